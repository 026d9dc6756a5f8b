"""Topics of documents: what is grouped into them, and what they have of every word."""

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array

from bnpstream.engine.row_sample import Words
from bnpstream.inference.topic_tree import joined
from bnpstream.inference.topic_units import Grouping, Units, adapted
from bnpstream.inference.topics import (
    LEAST_COUNT,
    Effort,
    damped,
    few_apart,
    followed,
    grouped,
    separate_evidence,
    tables_of,
)
from bnpstream.kernels.arrays import Floats, Integers

if TYPE_CHECKING:
    from bnpstream.engine.posterior import Posterior

FEW_MORE = 1.5
"""Topics of rows for each cluster up to which they are joined until they are no more."""


class TopicWords(NamedTuple):
    """Topics of documents: what every topic has of every word."""

    tables: csr_array
    """(J, V): T, by column."""
    masses: Floats
    """(J,): rows in every topic."""
    strength: float
    """c1."""
    base: Floats
    """(V,): m by column as it was then; 0 for words that no topic has."""

    def best(self, words: Words) -> Integers:
        """Return the topic of every row: the one with the largest of `scores`."""
        best: Integers = np.argmax(self.scores(words), axis=1)
        return best

    def scores(self, words: Words) -> Floats:
        """Return log mass_j + sum_w x_w log((c1 m_w + T_jw) / (c1 + T_j.)), shape (n, J).

        Words that no topic has are left out: all that counts was known when topics were found.
        """
        columns = np.minimum(words.columns, self.base.size - 1)
        known = (words.columns < self.base.size) & (self.base[columns] > 0.0)
        used, columns = np.unique(words.columns[known], return_inverse=True)
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])[words.indptr]
        totals = np.asarray(self.tables.sum(axis=1)).ravel()
        sums = self.strength * self.base[used] + self.tables[:, used].toarray()
        logs = np.log(sums) - np.log(self.strength + totals)[:, None]
        shape = (words.indptr.size - 1, used.size)
        rows = csr_array((words.values[known], columns, indptr), shape=shape)
        scores: Floats = rows @ logs.T + np.log(np.maximum(self.masses, LEAST_COUNT))
        return scores


class WordUnits(NamedTuple):
    """What is grouped into topics of documents: clusters, or rows."""

    words: Words
    masses: Floats
    used: Integers
    """The columns of words that more than one unit has."""
    counted: Units
    """Their counts."""
    strength: float
    """c of the clusters."""
    ids: Integers | None
    """The clusters that rows arrived in; None if units are clusters."""

    @classmethod
    def of(
        cls, words: Words, masses: Floats, posterior: "Posterior", ids: Integers | None = None
    ) -> Self:
        """Return units of some words and masses."""
        common = words.common()
        used, columns = np.unique(common.columns, return_inverse=True)
        share, strength = base_of(posterior, used)
        shape = (words.indptr.size - 1, used.size)
        counts = csr_array((common.values, columns, common.indptr), shape=shape)
        return cls(words, masses, used, Units(counts, share / share.sum()), strength, ids)

    @property
    def grouped(self) -> Units:
        """Return the units as they are grouped: clusters with tables, rows with counts."""
        if self.ids is not None:
            return self.counted
        counts, base = self.counted
        return Units(tables_of(counts, base, self.strength), base)

    def settled(self, grouping: Grouping, posterior: "Posterior") -> Grouping:
        """Return topics without those that no unit has by `TopicWords.best`, if there are any."""
        words = self.words if self.ids is not None else tabled(self.words, posterior)
        while True:
            best = self.topic_words(grouping).best(words)
            if np.unique(best).size == grouping.n_topics:
                return grouping
            grouping = adapted(self.grouped._replace(base=grouping.base), best, grouping.strength)

    def topic_words(self, grouping: Grouping) -> TopicWords:
        """Return what topics have of every word."""
        J, used = grouping.n_topics, self.used
        sums = csr_array(self.grouped.sums(grouping.topics, J).T)
        base = np.zeros(int(used.max(initial=0)) + 1)
        base[used] = grouping.base
        tables = csr_array((sums.data, used[sums.indices], sums.indptr), shape=(J, base.size))
        in_topics = np.bincount(grouping.topics, self.masses, J).astype(np.float64)
        return TopicWords(tables, in_topics, grouping.strength, base)


def cluster_words(posterior: "Posterior", slots: Any = None) -> Words:
    """Return the words of clusters, by default of all by ascending id; crumbs are left out."""
    chosen = posterior.order if slots is None else slots
    rows = posterior.state.sparse_rows(np.asarray(chosen, np.int64))
    last = rows.shape[1] - 1
    keep = (rows.data >= LEAST_COUNT) & (rows.indices != last)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep)])[rows.indptr]
    return Words(indptr, rows.indices[keep].astype(np.int64), rows.data[keep])


def tabled(words: Words, posterior: "Posterior") -> Words:
    """Return clusters with tables for counts: so they are scored by `TopicWords.best`."""
    base, strength = base_of(posterior, words.columns)
    return words._replace(values=damped(words.values, strength * base))


def base_of(posterior: "Posterior", columns: Integers) -> tuple[Floats, float]:
    """Return m at some columns, and c."""
    likelihood: Any = posterior.model.likelihood
    alpha, total = likelihood.base_measure(posterior.state.n_statistics - 1)
    if alpha.size > 1 and columns.max(initial=0) >= alpha.size:
        raise ValueError(f"column {columns.max()} is no word: there are {alpha.size}")
    if alpha.size == 1:
        return np.full(columns.size, float(alpha[0]) / total), total
    return alpha[columns] / total, total


def topics_of_rows(rows: WordUnits, effort: Effort, several: bool) -> Grouping | None:
    """Return topics of rows; None where clusters explain rows better."""
    (counts, base), ids = rows.counted, np.asarray(rows.ids)
    least = separate_evidence(counts, ids, base, rows.strength)
    grouping = grouped(rows.counted, least, effort=effort, several=several)
    return _coarser(rows, grouping)


def topics_following(rows: WordUnits, before: TopicWords) -> Grouping | None:
    """Return topics of rows that go on from those before; None where these say no more."""
    (counts, base), ids = rows.counted, np.asarray(rows.ids)
    least = separate_evidence(counts, ids, base, rows.strength)
    grouping = followed(rows.counted, before.best(rows.words), before.strength, least)
    return None if grouping is None or grouping.n_topics == 1 else _coarser(rows, grouping)


def _coarser(rows: WordUnits, grouping: Grouping | None) -> Grouping | None:
    """Return no more topics than clusters, as they are the coarser level; None if far more exist.

    A few more are joined. Where rows ask for far more groups than there are clusters, the clusters
    are coarse on purpose.
    """
    n_clusters = np.unique(np.asarray(rows.ids)).size
    if grouping is None or grouping.n_topics <= n_clusters:
        return grouping
    few_more = grouping.n_topics <= FEW_MORE * n_clusters
    return joined(rows.counted, grouping, n_clusters) if few_more else None


def topics_of_clusters(clusters: WordUnits, effort: Effort, several: bool) -> Grouping:
    """Return topics of clusters."""
    units: Any = clusters.grouped
    grouping: Any = grouped(units, effort=effort, several=several)
    return few_apart(units, grouping, clusters.masses) if grouping.n_topics == 1 else grouping
