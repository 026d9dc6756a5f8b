"""The topics of a stream: when they are found, what they are called, and which rows are in them.

Topics are found at n = 1000, 4000, 16000, ... rows, from some words and with little effort, and
with all effort at the end of a stream. On the way, topics of rows go on from those before, once
there are several; all others begin from nothing. They change no cluster. Between two such times a
cluster or row belongs to the topic with the best score, so a new cluster has one as soon as it is
born. Found again, topics are matched with those before by the units they share: ids keep their
meaning, and births, splits and merges are in the lineage.

What is grouped (`inference.topics`) are the clusters of the posterior, or rows. Rows of short texts
say little each: a cluster of such rows is a guess, made once, and rows grouped by themselves show
more. The joint decides: rows are grouped if theirs has a top below the largest number of topics, if
it is above that of the same rows in clusters that have nothing in common, and if topics are then no
more than clusters. A sample of rows is kept for it, the same for any split into calls; of a stream
that forgets, the last rows, and those count that are not all but forgotten. Where all
that leaves one topic, rows may still show a readable number of them (`inference.topics.readable`).

Topics of directions (`inference.margins`) are directions themselves, found from the clusters. A row
belongs to the topic that it points to most.
"""

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bnpstream.engine.row_sample import ENTRIES, Memory, Words, require, require_rows
from bnpstream.engine.topic_directions import (
    best_of_rows,
    found_directions,
    load_directions,
    row_means,
    save_directions,
)
from bnpstream.inference.drawn import alike
from bnpstream.inference.margins import Directions
from bnpstream.inference.odds import Odds, pool_of
from bnpstream.inference.topic_tree import resized
from bnpstream.inference.topic_units import Grouping, Units
from bnpstream.inference.topics import (
    LEAST_COUNT,
    QUICK,
    THOROUGH,
    Effort,
    damped,
    few_apart,
    followed,
    grouped,
    grouped_by_odds,
    readable,
    separate_evidence,
    tables_of,
)
from bnpstream.inference.visits import Responsibilities
from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.likelihoods import Batch, Directional, Likelihood
from bnpstream.mixture import Event

if TYPE_CHECKING:
    from bnpstream.engine.posterior import Posterior

Arrays = dict[str, NDArray[Any]]
Document = dict[str, Any]

FIRST, FACTOR = 1000, 4
"""Rows after which topics are found, and by what that grows."""
WORDS_PER_ROW, MOST_WORDS = 8, 2**17
"""Words that are looked at in the middle of a stream: for every row seen, and at most."""
REMEMBERED = 2.0
"""Rows that topics are found from in a stream that forgets, for each that is remembered."""


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


class TopicGroups(NamedTuple):
    """Topics of cells: which cluster is in which."""

    clusters: Integers
    """Ids, ascending."""
    topics: Integers
    """The topic of each, by position."""


@dataclass(frozen=True)
class Topics:
    """The topics of a stream.

    Parameters
    ----------
    ids : ndarray of shape (J,)
        Stable ids, ascending.
    found : TopicWords, Directions or TopicGroups
        What belongs to them; topics by position in `ids`.
    units : {"clusters", "rows"}
        What was grouped.
    n_observations : int
        Rows seen then.
    next_id : int
        The id of the next topic that is born.
    """

    ids: Integers
    found: TopicWords | Directions | TopicGroups
    units: str
    n_observations: int
    next_id: int

    def of_clusters(self, posterior: "Posterior") -> Integers:
        """Return the topic of every cluster, by position in `ids`, clusters by ascending id."""
        if isinstance(self.found, TopicWords):
            words = cluster_words(posterior)
            base, strength = base_of(posterior, words.columns)
            tables = damped(words.values, strength * base)
            return self.found.best(words._replace(values=tables))
        if isinstance(self.found, Directions):
            means: Any = row_means(posterior)
            return self.found.best(means)
        clusters, topics = self.found
        ids = posterior.ids
        at = np.minimum(np.searchsorted(clusters, ids), clusters.size - 1)
        groups, is_known = topics[at], clusters[at] == ids
        if not is_known.any():
            return np.zeros(ids.size, np.int64)
        if not is_known.all():
            order = posterior.order
            odds = Odds(posterior.model, posterior.state, pool_of(posterior.model, posterior.state))
            table = odds.table(order[~is_known], order[is_known])
            groups[~is_known] = groups[is_known][np.argmax(table, axis=1)]
        return groups

    def of_rows(self, posterior: "Posterior", batch: Batch) -> Integers:
        """Return the topic of rows, by position in `ids`."""
        if isinstance(self.found, TopicWords):
            return self.found.best(Words.of_batch(batch))
        if isinstance(self.found, Directions):
            return best_of_rows(self.found, batch)
        return self.of_clusters(posterior)[posterior.best(batch)]

    def of_arrivals(self, batch: Batch, ranked: Responsibilities) -> list[int | None]:
        """Return the topics of rows that came since, whatever came with them or after.

        Documents have the one that explains their words best, other rows that of the likeliest of
        their clusters that was there when topics were found; None if there was none.

        Parameters
        ----------
        batch : Batch
            The rows.
        ranked : Responsibilities
            Theirs when they came, the likeliest cluster first.
        """
        if isinstance(self.found, TopicWords):
            words: list[int | None] = self.ids[self.found.best(Words.of_batch(batch))].tolist()
            return words
        if isinstance(self.found, Directions):
            pointed: list[int | None] = self.ids[best_of_rows(self.found, batch)].tolist()
            return pointed
        clusters, topics = self.found
        at = np.minimum(np.searchsorted(clusters, ranked.ids), clusters.size - 1)
        places = np.flatnonzero(clusters[at] == ranked.ids)
        firsts = np.searchsorted(places, ranked.indptr)
        groups = self.ids[topics[at[places]]].tolist()
        pairs = zip(firsts[:-1].tolist(), firsts[1:].tolist(), strict=True)
        return [groups[first] if first < stop else None for first, stop in pairs]

    def save_into(self, document: Document, arrays: Arrays) -> None:
        """Add them to a snapshot."""
        document["topics"] = {
            "units": self.units,
            "n_observations": self.n_observations,
            "next_id": self.next_id,
        }
        arrays["topics.ids"] = self.ids
        if isinstance(self.found, TopicWords):
            tables, masses, strength, base = self.found
            document["topics"]["strength"] = strength
            arrays["topics.masses"], arrays["topics.base"] = masses, base
            parts = ("indptr", "indices", "data")
            arrays |= {f"topics.{part}": getattr(tables, part) for part in parts}
        elif isinstance(self.found, Directions):
            save_directions(self.found, arrays)
        else:
            arrays["topics.clusters"], arrays["topics.of"] = self.found

    @classmethod
    def load_from(cls, document: Document, arrays: Arrays) -> "Topics":
        """Return the topics that `save_into` added."""
        saved = document["topics"]
        J = require(arrays, "topics.ids", np.int64).size
        if "strength" in saved:
            require_rows(arrays, "topics.", "indices", "data", J)
            n_words = require(arrays, "topics.base", np.float64).size
            if arrays["topics.indices"].max(initial=-1) >= n_words:
                raise ValueError(f"topics.indices: there are {n_words} words")
            require(arrays, "topics.masses", np.float64, J)
        elif "topics.units" not in arrays:
            n = require(arrays, "topics.clusters", np.int64).size
            of = require(arrays, "topics.of", np.int64, n)
            if n == 0 or of.min() < 0 or of.max() >= J:
                raise ValueError(f"topics.of: there are {J} topics")
        found: TopicWords | Directions | TopicGroups
        if "strength" in saved:
            parts = tuple(arrays[f"topics.{part}"] for part in ("data", "indices", "indptr"))
            tables = csr_array(parts, shape=(J, arrays["topics.base"].size))
            masses, base = arrays["topics.masses"], arrays["topics.base"]
            found = TopicWords(tables, masses, saved["strength"], base)
        elif "topics.units" in arrays:
            found = load_directions(arrays, J)
        else:
            found = TopicGroups(arrays["topics.clusters"], arrays["topics.of"])
        return cls(
            arrays["topics.ids"],
            found,
            saved["units"],
            saved["n_observations"],
            saved["next_id"],
        )


def cluster_words(posterior: "Posterior", slots: Any = None) -> Words:
    """Return the words of clusters, by default of all by ascending id; crumbs are left out."""
    chosen = posterior.order if slots is None else slots
    rows = posterior.state.sparse_rows(np.asarray(chosen, np.int64))
    last = rows.shape[1] - 1
    keep = (rows.data >= LEAST_COUNT) & (rows.indices != last)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep)])[rows.indptr]
    return Words(indptr, rows.indices[keep].astype(np.int64), rows.data[keep])


def base_of(posterior: "Posterior", columns: Integers) -> tuple[Floats, float]:
    """Return m at some columns, and c."""
    likelihood: Any = posterior.model.likelihood
    alpha, total = likelihood.base_measure(posterior.state.n_statistics - 1)
    if alpha.size > 1 and columns.max(initial=0) >= alpha.size:
        raise ValueError(f"column {columns.max()} is no word: there are {alpha.size}")
    if alpha.size == 1:
        return np.full(columns.size, float(alpha[0]) / total), total
    return alpha[columns] / total, total


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

    def topic_words(self, grouping: Grouping) -> TopicWords:
        """Return what topics have of every word."""
        J, used = grouping.n_topics, self.used
        sums = csr_array(self.grouped.sums(grouping.topics, J).T)
        base = np.zeros(int(used.max(initial=0)) + 1)
        base[used] = grouping.base
        tables = csr_array((sums.data, used[sums.indices], sums.indptr), shape=(J, base.size))
        in_topics = np.bincount(grouping.topics, self.masses, J).astype(np.float64)
        return TopicWords(tables, in_topics, grouping.strength, base)


def _of_rows(rows: WordUnits, effort: Effort, several: bool) -> Grouping | None:
    """Return topics of rows; None where clusters explain rows better."""
    (counts, base), ids = rows.counted, np.asarray(rows.ids)
    least = separate_evidence(counts, ids, base, rows.strength)
    grouping = grouped(rows.counted, least, effort=effort, several=several)
    return _coarser(grouping, ids)


def _following(rows: WordUnits, before: TopicWords) -> Grouping | None:
    """Return topics of rows that go on from those before; None where these say no more."""
    (counts, base), ids = rows.counted, np.asarray(rows.ids)
    least = separate_evidence(counts, ids, base, rows.strength)
    grouping = followed(rows.counted, before.best(rows.words), before.strength, least)
    return None if grouping is None or grouping.n_topics == 1 else _coarser(grouping, ids)


def _coarser(grouping: Grouping | None, ids: Integers) -> Grouping | None:
    """Return topics, if they are no more than the clusters of rows: they are the coarser level."""
    return grouping if grouping is None or grouping.n_topics <= np.unique(ids).size else None


def _of_clusters(clusters: WordUnits, effort: Effort, several: bool) -> Grouping:
    """Return topics of clusters."""
    units: Any = clusters.grouped
    grouping: Any = grouped(units, effort=effort, several=several)
    return few_apart(units, grouping, clusters.masses) if grouping.n_topics == 1 else grouping


@dataclass
class TopicFinder:
    """Finds the topics of a stream, and keeps what that takes.

    Parameters
    ----------
    n_topics : int, optional
        Topics wanted; by default as many as the data ask for.
    granularity : float
        By what the number of topics found is multiplied.
    """

    n_topics: int | None = None
    granularity: float = 1.0
    memory: Memory = field(default_factory=Memory)
    topics: Topics | None = None
    n_next: int = FIRST
    due: bool = False
    """Whether the stream has ended since."""
    seconds: float = 0.0
    """Spent on finding topics; not kept."""

    def forgetful(self) -> "TopicFinder":
        """Return a finder with the same settings that has seen nothing."""
        return TopicFinder(self.n_topics, self.granularity)

    def again(self, posterior: "Posterior") -> list[Event]:
        """Find topics now; return what became of those before. Interrupted, nothing changes."""
        began = time.perf_counter()
        self.topics, events = self.search(posterior, THOROUGH if self.due else QUICK)
        self.seconds += time.perf_counter() - began
        while self.n_next <= posterior.state.n_observations:
            self.n_next *= FACTOR
        self.due = False
        return events

    def search(
        self, posterior: "Posterior", effort: Effort = THOROUGH
    ) -> tuple[Topics, list[Event]]:
        """Return the topics of a posterior, matched with those before, and what became of these."""
        likelihood = posterior.model.likelihood
        if likelihood.feature_kind == "words":
            return self._matched(posterior, *self._documents(posterior, effort))
        means = row_means(posterior)
        if means is None:
            return self._matched(posterior, "clusters", *self._clusters(posterior))
        found, topics = found_directions(
            posterior, means, self.n_topics, self.granularity, self._vectors(posterior)
        )
        masses = posterior.state.masses[posterior.order]
        return self._matched(posterior, "clusters", found, (None, masses, topics))

    def _vectors(self, posterior: "Posterior") -> Floats | None:
        """Return the directions that were kept; None if not all rows were looked at."""
        if self.memory.n_seen == 0 or self.memory.n_seen != posterior.state.n_observations:
            return None
        last = REMEMBERED * posterior.state.total_mass
        return self.memory.vectors(last).astype(np.float64)

    def _wanted(self, n_found: int) -> int:
        return self.n_topics or max(1, round(self.granularity * n_found))

    def _documents(self, posterior: "Posterior", effort: Effort) -> tuple[str, TopicWords, Any]:
        """Return what is grouped, its topics, and the words and masses of units."""
        most_words = ENTRIES
        if effort is QUICK:
            most_words = min(WORDS_PER_ROW * posterior.state.n_observations, MOST_WORDS)
        several, chosen = (self.n_topics or 1) > 1, "rows"
        rows, grouping = self._going_on(posterior, effort, most_words // 2)
        if grouping is None:
            rows = self._rows(posterior, most_words)
            grouping = None if rows is None else _of_rows(rows, effort, several)
        units = rows
        if units is None or grouping is None:
            chosen, units = "clusters", self._heaviest(posterior, most_words)
            grouping = _of_clusters(units, effort, several)
        if grouping.n_topics == 1 and rows is not None:
            survivors = readable(rows.counted, effort)
            if survivors is not None:
                chosen, units, grouping = "rows", rows, survivors
        wanted = self._wanted(grouping.n_topics)
        if wanted != grouping.n_topics:
            grouping = resized(units.grouped, grouping, wanted)
        members = units.words, units.masses, grouping.topics
        return chosen, units.topic_words(grouping), members

    def _going_on(
        self, posterior: "Posterior", effort: Effort, most_words: int
    ) -> tuple[WordUnits | None, Grouping | None]:
        """Return rows and topics that go on from those before, if these were several, of rows."""
        before = self.topics if effort is QUICK else None
        if before is None or before.units != "rows" or before.ids.size == 1:
            return None, None
        rows, found = self._rows(posterior, most_words), before.found
        if rows is None or not isinstance(found, TopicWords):
            return None, None
        return rows, _following(rows, found)

    def _rows(self, posterior: "Posterior", most_words: int) -> WordUnits | None:
        """Return the rows kept, unless some rows were never seen."""
        if self.memory.n_seen != posterior.state.n_observations:
            return None
        words, ids = self.memory.rows(most_words, REMEMBERED * posterior.state.total_mass)
        if ids.size == 0:
            return None
        return WordUnits.of(words, np.ones(ids.size), posterior, ids)

    @staticmethod
    def _heaviest(posterior: "Posterior", most_words: int) -> WordUnits:
        """Return the heaviest clusters, as many as have so many words."""
        slots = np.argsort(-posterior.state.masses, kind="stable")
        words = cluster_words(posterior, slots)
        n_used = max(1, int(np.searchsorted(words.indptr, most_words, side="right")) - 1)
        some = words.chosen(np.arange(slots.size) < n_used)
        return WordUnits.of(some, posterior.state.masses[slots[:n_used]], posterior)

    def _clusters(self, posterior: "Posterior") -> tuple[TopicGroups, Any]:
        """Return groups of clusters, and the clusters."""
        model, state, order = posterior.model, posterior.state, posterior.order
        groups = self._alike(posterior)
        n_found = int(groups.max()) + 1
        wanted = min(self._wanted(n_found), state.n_clusters)
        if wanted != n_found:
            start = groups if wanted < n_found else None
            groups = grouped_by_odds(model, state, wanted, start)
        found = TopicGroups(posterior.ids, groups[order])
        return found, (None, state.masses[order], groups[order])

    @staticmethod
    def _alike(posterior: "Posterior") -> Integers:
        """Return groups of clusters that the model would rather have as one, by slot."""
        try:
            return alike(posterior.model, posterior.state, posterior.kernel_for)
        except NotImplementedError:  # a family that does not say how rows are drawn
            return grouped_by_odds(posterior.model, posterior.state)

    def _matched(
        self, posterior: "Posterior", units: str, found: Any, members: Any
    ) -> tuple[Topics, list[Event]]:
        """Return topics called by the ids of those before that they have most in common with."""
        words, masses, topics = members
        J, n = int(topics.max()) + 1, posterior.state.n_observations
        mass = np.bincount(topics, masses, J)
        if self.topics is None or type(self.topics.found) is not type(found):
            first = 0 if self.topics is None else self.topics.next_id
            ids = np.arange(first, first + J)
            events = [_event("birth", ids[j], None, n, mass[j]) for j in range(J)]
            return Topics(ids, found, units, n, first + J), events
        before = self.topics
        if isinstance(before.found, TopicWords):
            old = before.found.best(words)
        else:
            old = before.of_clusters(posterior)
        shared = np.zeros((before.ids.size, J))
        np.add.at(shared, (old, topics), masses)
        ids, next_id = np.full(J, -1), before.next_id
        taken = np.zeros(before.ids.size, np.bool_)
        for flat in np.argsort(-shared, axis=None, kind="stable"):
            i, j = divmod(int(flat), J)
            if shared[i, j] <= 0.0:
                break
            if ids[j] < 0 and not taken[i] and 2.0 * shared[i, j] > min(mass[j], shared[i].sum()):
                ids[j], taken[i] = before.ids[i], True
        events = []
        for j in np.flatnonzero(ids < 0).tolist():
            ids[j], next_id = next_id, next_id + 1
            i = int(np.argmax(shared[:, j]))
            if taken[i] and 2.0 * shared[i, j] > mass[j]:
                whole = shared[i].sum()
                events.append(_event("split", before.ids[i], before.ids[i], n, whole, (ids[j],)))
            else:
                events.append(_event("birth", ids[j], None, n, mass[j]))
        for i in np.flatnonzero(~taken).tolist():
            heir = int(np.argmax(shared[i]))
            lives_on = ids[heir] if shared[i, heir] > 0.0 else None
            kind = "death" if lives_on is None else "merge"
            events.append(_event(kind, before.ids[i], lives_on, n, shared[i].sum()))
        order = np.argsort(ids)
        place = np.argsort(order)
        if isinstance(found, TopicWords):
            found = found._replace(tables=found.tables[order], masses=found.masses[order])
        elif isinstance(found, Directions):
            found = found._replace(units=found.units[order])
        else:
            found = found._replace(topics=place[found.topics])
        return Topics(ids[order], found, units, n, next_id), events

    def save_into(self, document: Document, arrays: Arrays) -> None:
        """Add the topics, and the rows kept, to a snapshot."""
        document["topics_next"], document["topics_due"] = self.n_next, self.due
        self.memory.save_into(arrays)
        if self.topics is not None:
            self.topics.save_into(document, arrays)

    def loaded(self, document: Document, arrays: Arrays) -> "TopicFinder":
        """Return this finder with what a snapshot holds; of an old one, with nothing."""
        if "topics_next" not in document:
            return self
        topics = Topics.load_from(document, arrays) if "topics" in document else None
        memory, n_next = Memory.load_from(arrays), document["topics_next"]
        due = document["topics_due"]
        return replace(self, memory=memory, topics=topics, n_next=n_next, due=due)


def keeps_rows(likelihood: Likelihood) -> bool:
    """Return whether some rows are kept to find topics with: documents and directions."""
    return likelihood.feature_kind == "words" or isinstance(likelihood, Directional)


def _event(
    kind: Any, id: int, into: int | None, n: int, mass: float, others: tuple[int, ...] = ()
) -> Event:
    heir = None if into is None else int(into)
    more = tuple(int(other) for other in others)
    return Event(kind, int(id), heir, n, float(mass), more, "topic")
