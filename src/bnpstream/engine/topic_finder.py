"""When the topics of a stream are found, and what they are called.

Topics are found at n = 1000, 4000, 16000, ... rows, from some words and with little effort, and
with all effort at the end of a stream. On the way, topics of rows go on from those before, once
there are several; all others begin from nothing. They change no cluster. Whoever asks an estimator
for topics in between gets topics found with all effort for the answer. These are not kept, so what
is saved does not depend on who asked when. Between two such times a
cluster or row belongs to the topic with the best score, so a new cluster has one as soon as it is
born. Found again, topics are matched with those before by the units they share: ids keep their
meaning, and births, splits and merges are in the lineage.

What is grouped (`inference.topics`) are the clusters of the posterior, or rows. Rows of short texts
say little each: a cluster of such rows is a guess, made once, and rows grouped by themselves show
more. The joint decides: rows are grouped if theirs has a top below the largest number of topics, if
it is above that of the same rows in clusters that have nothing in common, and if topics are then no
more than clusters and have ten rows on average. A sample of rows is kept for it, the same for any
split into calls; of a stream that forgets, the last rows, and those count that are not all but
forgotten. Where all
that leaves one topic, rows may still show a readable number of them (`inference.topics.readable`).

Topics of directions (`inference.margins`) are directions themselves, found from the clusters. A row
belongs to the topic that it points to most.
"""

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bnpstream.engine.row_sample import ENTRIES, Memory
from bnpstream.engine.topic_directions import found_directions, row_means
from bnpstream.engine.topic_words import (
    TopicWords,
    WordUnits,
    cluster_words,
    topics_following,
    topics_of_clusters,
    topics_of_rows,
)
from bnpstream.engine.topics import Arrays, Document, TopicGroups, Topics
from bnpstream.inference.drawn import alike
from bnpstream.inference.margins import Directions
from bnpstream.inference.topic_tree import resized
from bnpstream.inference.topic_units import Grouping
from bnpstream.inference.topics import QUICK, THOROUGH, Effort, grouped_by_odds, readable
from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.mixture import Event

if TYPE_CHECKING:
    from bnpstream.engine.posterior import Posterior

FIRST, FACTOR = 1000, 4
"""Rows after which topics are found, and by what that grows."""
WORDS_PER_ROW, MOST_WORDS = 8, 2**17
"""Words that are looked at in the middle of a stream: for every row seen, and at most."""
QUICK_VECTORS = 2048
"""Vectors that are looked at in the middle of a stream, at most."""
GROWTH = 1.5
"""By what rows grow before topics are found for an answer again."""
REMEMBERED = 2.0
"""Rows that topics are found from in a stream that forgets, for each that is remembered."""


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
    thorough: bool = False
    """Whether the topics kept were found with all effort, and with these settings."""
    answer: Topics | None = None
    """Found with all effort when somebody asked last; not kept."""
    seconds: float = 0.0
    """Spent on finding topics; not kept."""

    def forgetful(self) -> "TopicFinder":
        """Return a finder with the same settings that has seen nothing."""
        return TopicFinder(self.n_topics, self.granularity)

    def set(self, n_topics: int | None, granularity: float) -> None:
        """Take other settings; the next answer is found with them."""
        if (n_topics, granularity) != (self.n_topics, self.granularity):
            self.n_topics, self.granularity = n_topics, granularity
            self.thorough, self.answer = False, None

    def again(self, posterior: "Posterior") -> list[Event]:
        """Find topics now; return what became of those before. Interrupted, nothing changes."""
        began = time.perf_counter()
        effort = THOROUGH if self.due else QUICK
        self.topics, events = self.search(posterior, self.topics, effort)
        self.thorough, self.answer = self.due, self.topics if self.due else self.answer
        self.seconds += time.perf_counter() - began
        while self.n_next <= posterior.state.n_observations:
            self.n_next *= FACTOR
        self.due = False
        return events

    def asked(self, posterior: "Posterior") -> Topics:
        """Return topics to answer with; they are found now if the last answer is out of date."""
        n, kept, last = posterior.state.n_observations, self.topics, self.answer
        before = _newest(last, kept)
        if before is kept and self.thorough:
            last = kept
        if last is None or last is not before or _is_old(last.n_observations, n):
            last, _ = self.search(posterior, before)
        self.answer = last
        return last

    def search(
        self, posterior: "Posterior", before: Topics | None, effort: Effort = THOROUGH
    ) -> tuple[Topics, list[Event]]:
        """Return the topics of a posterior, matched with those before, and what became of these."""
        likelihood = posterior.model.likelihood
        if likelihood.feature_kind == "words":
            return _matched(before, posterior, *self._documents(posterior, effort))
        means = row_means(posterior)
        if means is None:
            return _matched(before, posterior, "clusters", *self._clusters(posterior))
        found, topics = found_directions(
            posterior, means, self.n_topics, self.granularity, self._vectors(posterior, effort)
        )
        masses = posterior.state.masses[posterior.order]
        return _matched(before, posterior, "clusters", found, (None, masses, topics))

    def _vectors(self, posterior: "Posterior", effort: Effort) -> Floats | None:
        """Return the directions that were kept; None if not all rows were looked at."""
        if self.memory.n_seen == 0 or self.memory.n_seen != posterior.state.n_observations:
            return None
        last = REMEMBERED * posterior.state.total_mass
        rows = self.memory.vectors(last)
        step = -(-len(rows) // QUICK_VECTORS) if effort is QUICK else 1
        return rows[:: max(step, 1)].astype(np.float64)

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
            grouping = None if rows is None else topics_of_rows(rows, effort, several)
        units = rows
        if units is None or grouping is None:
            chosen, units = "clusters", self._heaviest(posterior, most_words)
            grouping = topics_of_clusters(units, effort, several)
        if grouping.n_topics == 1 and rows is not None:
            survivors = readable(rows.counted, effort)
            if survivors is not None:
                chosen, units, grouping = "rows", rows, survivors
        grouping = units.settled(grouping, posterior)
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
        return rows, topics_following(rows, found)

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
        thorough = topics is not None and topics.n_observations != n_next // FACTOR
        kept = {"memory": memory, "topics": topics, "n_next": n_next, "due": due}
        return replace(self, **kept, thorough=thorough)


def _is_old(n_then: int, n: int) -> bool:
    """Return whether topics of the first `n_then` rows are out of date after `n` rows."""
    return n >= GROWTH * n_then or n_then < n < FIRST


def _newest(one: Topics | None, other: Topics | None) -> Topics | None:
    """Return the topics that were found later; of two found at the same row, the first."""
    if one is None or other is None:
        return other if one is None else one
    return one if one.n_observations >= other.n_observations else other


def _matched(
    before: Topics | None, posterior: "Posterior", units: str, found: Any, members: Any
) -> tuple[Topics, list[Event]]:
    """Return topics called by the ids of those before that they have most in common with."""
    words, masses, topics = members
    J, n = int(topics.max()) + 1, posterior.state.n_observations
    mass = np.bincount(topics, masses, J)
    if before is None or type(before.found) is not type(found):
        first = 0 if before is None else before.next_id
        ids = np.arange(first, first + J)
        events = [_event("birth", ids[j], None, n, mass[j]) for j in range(J)]
        return Topics(ids, found, units, n, first + J), events
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


def _event(
    kind: Any, id: int, into: int | None, n: int, mass: float, others: tuple[int, ...] = ()
) -> Event:
    heir = None if into is None else int(into)
    more = tuple(int(other) for other in others)
    return Event(kind, int(id), heir, n, float(mass), more, "topic")
