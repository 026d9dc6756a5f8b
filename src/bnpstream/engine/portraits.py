"""Descriptions of topics, in the same form as those of clusters."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bnpstream.engine.posterior import Posterior
from bnpstream.engine.topic_words import TopicWords, base_of
from bnpstream.engine.topics import Topics
from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.likelihoods.telling import Telling, telling_words
from bnpstream.mixture import Event


class TopicPortraits:
    """Topics as `likelihoods.features.Portrayed`: sums of their clusters, or of their rows.

    Parameters
    ----------
    topics : Topics
        The topics.
    posterior : Posterior
        The clusters.

    Attributes
    ----------
    groups : ndarray of shape (K,)
        The topic of each cluster in the order of `posterior.ids`, by position.
    weights : ndarray of shape (J,)
        Share of the stream in each topic: of the rows that were grouped, or of its clusters.
    """

    def __init__(self, topics: Topics, posterior: Posterior) -> None:
        self.topics, self._posterior = topics, posterior
        self.groups: Integers = topics.of_clusters(posterior)
        shares: Any = np.bincount(self.groups, posterior.weights, topics.ids.size)
        self.weights: Floats = shares
        self._rows = topics.found if topics.units == "rows" else None
        if isinstance(self._rows, TopicWords):
            self.weights = self._rows.masses / self._rows.masses.sum()

    @property
    def ids(self) -> NDArray[np.int64]:
        """Return the topic of each cluster, by id."""
        return self.topics.ids[self.groups]

    @property
    def sizes(self) -> Floats:
        """Return the expected number of rows in each topic, shape (J,)."""
        sizes: Floats = self.weights * self._posterior.state.masses.sum()
        return sizes

    @cached_property
    def _counts(self) -> csr_array:
        """Return the counts of each known word in topics, shape (J, V)."""
        posterior, encoder, J = self._posterior, self._posterior.encoder, self.topics.ids.size
        if isinstance(self._rows, TopicWords):
            rows = self._rows.tables
            shape = (J, posterior.state.n_statistics)
            return encoder.counts(csr_array((rows.data, rows.indices, rows.indptr), shape=shape))
        K = self.groups.size
        members: Any = csr_array((np.ones(K), (self.groups, np.arange(K))), (J, K))
        summed: csr_array = members @ encoder.counts(posterior.state.sparse_rows(posterior.order))
        return summed

    @cached_property
    def _base(self) -> tuple[Floats, float]:
        """Return the base measure of each known word as a share, and its total."""
        posterior = self._posterior
        share = posterior.means(np.array([posterior.state.n_clusters]))[0]
        return share, base_of(posterior, np.zeros(1, np.int64))[1]

    def mean(self, k: int) -> Floats:
        """Return the posterior mean parameters of the topic at a position."""
        posterior, likelihood = self._posterior, self._posterior.model.likelihood
        if likelihood.feature_kind == "words":
            share, total = self._base
            counts = self._counts[[k]].toarray()[0]
            words: Floats = (total * share + counts) / (total + counts.sum())
            return words
        slots = posterior.order[self.groups == k]
        statistics = posterior.statistics(slots).sum(axis=0, keepdims=True)
        mean: Floats = posterior.encoder.means(likelihood.posterior_mean(statistics))[0]
        return mean

    def telling(self, n: int) -> list[Telling]:
        """Return the n words that tell each topic apart."""
        if isinstance(self._rows, TopicWords):
            return telling_words(self._counts, self._rows.masses, n)
        found = self._posterior.telling(n, self.groups)
        nothing = Telling(np.empty(0, np.int64), np.empty(0))
        return found + [nothing] * (self.topics.ids.size - len(found))


def births(events: Iterable[Event], level: str = "cluster") -> dict[int, int]:
    """Return the rows seen when clusters, or topics, were born, by id."""
    found: dict[int, int] = {}
    for event in events:
        if event.level == level:
            born = (event.id,) if event.kind == "birth" else event.others
            found |= dict.fromkeys(born, event.n_observations)
    return found
