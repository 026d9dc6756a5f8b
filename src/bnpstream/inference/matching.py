"""Matches new clusters of different partitions: an assignment problem.

Partitions that started from the same posterior may each have opened a cluster for the same rows.
The log odds of one cluster against two, from likelihood and prior, are the gain of matching two
clusters; leaving a cluster unmatched gains nothing. Two clusters of one partition are never
matched. The best set of matches is found by the Hungarian method (Campbell, Straub, Fisher & How,
*Streaming, Distributed Variational Inference for Bayesian Nonparametrics*, NIPS 2015).
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, vstack

from bnpstream.inference.odds import Odds
from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.likelihoods import plus
from bnpstream.mixture import MixtureState, Model

ALONE = -1
"""A new cluster without a match."""


class ClusterRows(NamedTuple):
    """Clusters outside a posterior: one row each."""

    ids: Integers
    statistics: Any
    """(K, D), an array or a sparse array."""
    masses: Floats
    log_vacancy: Floats

    def chosen(self, places: Integers) -> "ClusterRows":
        """Return some of them."""
        return ClusterRows._make(part[places] for part in self)

    @classmethod
    def of(cls, state: MixtureState, slots: Integers) -> "ClusterRows":
        """Return those in some slots of a posterior."""
        columns = state.sparse_rows(slots), state.masses[slots], state.log_vacancy[slots]
        return cls(state.ids[slots], *columns)

    def posterior(self, *, paired: bool) -> MixtureState:
        """Return a posterior of these alone."""
        state = MixtureState(self.statistics.shape[1], paired=paired)
        for _ in self.ids:
            state.open()
        state.ids[:] = self.ids
        state.rebuild(self.statistics, self.masses, self.log_vacancy)
        return state

    @classmethod
    def added(cls, parts: list["ClusterRows"], *, paired: bool) -> "ClusterRows":
        """Return the sums over parts by id, in order of first appearance."""
        every = np.concatenate([part.ids for part in parts])
        found, first = np.unique(every, return_index=True)
        order = np.argsort(first)
        ids, places = found[order], np.argsort(order)
        masses, log_vacancy = np.zeros((2, ids.size))
        statistics: Any = None
        for part in parts:
            rows = places[np.searchsorted(found, part.ids)]
            masses[rows] += part.masses
            log_vacancy[rows] += part.log_vacancy
            if isinstance(part.statistics, np.ndarray):
                if statistics is None:
                    statistics = np.zeros((ids.size, part.statistics.shape[1]))
                ones = np.ones(rows.size)
                statistics[rows] = plus(statistics[rows], ones, part.statistics, paired=paired)
            else:
                entries = (np.ones(rows.size), (rows, np.arange(rows.size)))
                placed = csr_array(entries, (ids.size, rows.size)) @ part.statistics
                statistics = placed if statistics is None else statistics + placed
        return cls(ids, statistics, masses, log_vacancy)


def assign(odds: Floats) -> Integers:
    """Return the column that each row is matched with, or `ALONE`.

    Parameters
    ----------
    odds : ndarray of shape (new, there)
        Gain of each match; no match gains 0.

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


def match(model: Model, posterior: MixtureState, there: ClusterRows, new: ClusterRows) -> Integers:
    """Return, for each new cluster, the id of its match among those there, or `ALONE`.

    Parameters
    ----------
    model : Model
        Prior and likelihood.
    posterior : MixtureState
        E[K'] and U of the prior's odds are those of this posterior.
    there, new : ClusterRows
        Clusters to match with, and new ones, no two of which are the same.
    """
    if there.ids.size == 0 or new.ids.size == 0:
        return np.full(new.ids.size, ALONE, np.int64)
    found = assign(log_odds(model, posterior, there, new))
    return np.where(found == ALONE, ALONE, there.ids[found])


def log_odds(model: Model, posterior: MixtureState, there: ClusterRows, new: ClusterRows) -> Floats:
    """Return the log odds of one cluster against two, (new, there); parameters as in `match`."""
    rows = vstack([csr_array(some.statistics) for some in (there, new)], format="csr")
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
