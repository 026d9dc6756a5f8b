"""Which new clusters of different partitions are the same: an assignment problem.

Partitions that started from the same posterior may each have opened a cluster for the same rows.
The log odds of one cluster against two, likelihood and prior, say what it is worth to take two for
one; to leave a cluster alone is worth nothing. No two clusters of one partition are taken for one.
The best of all such choices is found by the Hungarian method (Campbell, Straub, Fisher & How,
*Streaming, Distributed Variational Inference for Bayesian Nonparametrics*, NIPS 2015).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, vstack

from bnpstream.inference.odds import Odds
from bnpstream.mixture import MixtureState, Model

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ALONE = -1
"""A new cluster that is none of those there."""


class Clusters(NamedTuple):
    """Clusters out of a posterior: a row each."""

    rows: csr_array
    """(n, D): statistics."""
    masses: Floats
    log_vacancy: Floats


def assign(odds: Floats) -> Integers:
    """Return the column that every row is matched with, or `ALONE`.

    Parameters
    ----------
    odds : ndarray of shape (new, there)
        What each match is worth; none is worth 0.

    Examples
    --------
    >>> assign(np.array([[3.0, 2.9], [2.8, -5.0], [-1.0, -1.0]]))
    array([ 1,  0, -1])
    """
    n_new, n_there = odds.shape
    alone = np.zeros((n_new, n_new))
    rows, columns = linear_sum_assignment(np.hstack([odds, alone]), maximize=True)
    matched = np.full(n_new, ALONE, np.int64)
    good = columns < n_there
    good[good] = odds[rows[good], columns[good]] > 0.0
    matched[rows[good]] = columns[good]
    return matched


def match(model: Model, state: MixtureState, new: Clusters, there: Integers) -> Integers:
    """Return for every new cluster the slot of the one that it is, or `ALONE`.

    Parameters
    ----------
    model : Model
        Prior and likelihood.
    state : MixtureState
        The posterior.
    new : Clusters
        Clusters that a partition opened.
    there : ndarray of int
        Slots of clusters that they may be.
    """
    if new.masses.size == 0 or there.size == 0:
        return np.full(new.masses.size, ALONE, np.int64)
    some = Clusters(state.sparse_rows(there), state.masses[there], state.log_vacancy[there])
    found = assign(log_odds(model, state, some, new))
    return np.where(found == ALONE, ALONE, there[found])


def log_odds(model: Model, posterior: MixtureState, there: Clusters, new: Clusters) -> Floats:
    """Return the log odds of one cluster against two, shape (new, there).

    Parameters
    ----------
    model : Model
        Prior and likelihood.
    posterior : MixtureState
        Its E[K'] and U are those of the prior's odds.
    there, new : Clusters
        Those that others may be, and these others.
    """
    rows = vstack([there.rows, new.rows], format="csr")
    rows.sort_indices()
    odds = Odds(
        model,
        posterior,
        model.likelihood.pool(rows),
        np.append(there.masses, new.masses),
        np.append(there.log_vacancy, new.log_vacancy),
    )
    n_there = there.masses.size
    return odds.table(np.arange(n_there, rows.shape[0]), np.arange(n_there))
