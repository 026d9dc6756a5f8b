"""Which new clusters of different shards are the same: an assignment problem.

Shards that started from the same posterior may each have opened a cluster for the same rows. The
log odds of one cluster against two say what it is worth to take two for one; to leave a cluster
alone is worth nothing, and no two clusters of one shard are taken for one (Campbell, Straub, Fisher
& How, *Streaming, Distributed Variational Inference for Bayesian Nonparametrics*, NIPS 2015).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from bnpstream.inference.odds import Odds
from bnpstream.inference.pools import pool_of
from bnpstream.likelihoods import plus
from bnpstream.mixture import MixtureState, Model, log_prior_weights

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ALONE = -1
"""A new cluster that is none of those there."""


class Clusters(NamedTuple):
    """Clusters out of a posterior: a row each."""

    ids: Integers
    statistics: Any
    """(K, D), an array or a sparse array."""
    masses: Floats
    log_vacancy: Floats

    def chosen(self, places: Integers) -> "Clusters":
        """Return some of them."""
        return Clusters._make(part[places] for part in self)

    def renamed(self, ids: Integers) -> "Clusters":
        """Return the same with other ids."""
        return self._replace(ids=ids)

    def posterior(self, *, paired: bool) -> MixtureState:
        """Return a posterior of these alone."""
        state = MixtureState(self.statistics.shape[1], paired=paired)
        for _ in self.ids:
            state.open()
        state.ids[:] = self.ids
        state.rebuild(self.statistics, self.masses, self.log_vacancy)
        return state

    @classmethod
    def added(cls, parts: list["Clusters"], *, paired: bool) -> "Clusters":
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


def match(model: Model, posterior: MixtureState, there: Clusters, new: Clusters) -> Integers:
    """Return for every new cluster the id of the one there that it is, or `ALONE`.

    Parameters
    ----------
    model : Model
        Prior and likelihood.
    posterior : MixtureState
        What the shards started from: its E[K'] and U are those of the prior's odds.
    there, new : Clusters
        Clusters that were opened since, of which no two in `new` are the same.
    """
    if there.ids.size == 0 or new.ids.size == 0:
        return np.full(new.ids.size, ALONE, np.int64)
    n_there, paired = there.ids.size, posterior.paired
    numbers = np.arange(n_there + new.ids.size)
    parts = [there.renamed(numbers[:n_there]), new.renamed(numbers[n_there:])]
    both = Clusters.added(parts, paired=paired).posterior(paired=paired)
    odds = Odds(model, both, pool_of(model, both))
    odds.auxiliary = log_prior_weights(model.prior, posterior)[1]
    odds.count = float(model.prior.occupancy(posterior.log_vacancy).sum())
    worth = np.stack([odds.of(i, numbers[:n_there]) for i in numbers[n_there:].tolist()])
    found = assign(worth)
    return np.where(found == ALONE, ALONE, there.ids[found])


def assign(worth: Floats) -> Integers:
    """Return the column that every row is matched with, or `ALONE`.

    Parameters
    ----------
    worth : ndarray of shape (new, there)
        Of each match; none is worth 0.

    Examples
    --------
    >>> assign(np.array([[3.0, 2.9], [2.8, -5.0], [-1.0, -1.0]]))
    array([ 1,  0, -1])
    """
    n_new, n_there = worth.shape
    rows, columns = linear_sum_assignment(np.hstack([worth, np.zeros((n_new, n_new))]), True)
    matched = np.full(n_new, ALONE, np.int64)
    good = columns < n_there
    matched[rows[good]] = columns[good]
    return matched
