"""The topics of a stream, as they were found last: which clusters and rows are in them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from bnpstream.engine.row_sample import Words, require, require_rows
from bnpstream.engine.topic_directions import (
    best_of_rows,
    load_directions,
    row_means,
    save_directions,
)
from bnpstream.engine.topic_words import TopicWords, cluster_words, tabled
from bnpstream.inference.margins import Directions
from bnpstream.inference.odds import Odds, pool_of
from bnpstream.inference.visits import Responsibilities
from bnpstream.kernels.arrays import Integers
from bnpstream.likelihoods import Batch

if TYPE_CHECKING:
    from bnpstream.engine.posterior import Posterior

Arrays = dict[str, NDArray[Any]]
Document = dict[str, Any]


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
            return self.found.best(tabled(cluster_words(posterior), posterior))
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
