"""Clusters out of the summed sites of shards: adding them up, and which new ones are the same."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bnpstream.distributed import matching
from bnpstream.distributed.matching import ALONE, assign, log_odds
from bnpstream.likelihoods import plus
from bnpstream.mixture import MixtureState, Model

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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

    def nameless(self) -> matching.Clusters:
        """Return the same without ids."""
        return matching.Clusters(csr_array(self.statistics), self.masses, self.log_vacancy)

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
    found = assign(log_odds(model, posterior, there.nameless(), new.nameless()))
    return np.where(found == ALONE, ALONE, there.ids[found])
