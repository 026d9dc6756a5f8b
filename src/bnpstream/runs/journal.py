"""Notes about a stream besides the posterior: trend, exemplars, tokens, rejects."""

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from bnpstream.inference.visits import Absorbed
from bnpstream.likelihoods import Likelihood
from bnpstream.likelihoods.typicality import Typicality
from bnpstream.mixture import Event
from bnpstream.runs.description import Exemplar
from bnpstream.runs.exemplars import Exemplars
from bnpstream.runs.trend import Trend
from bnpstream.sources import Records, Reject
from bnpstream.storage import Tensors

WORDS_OF_EXCERPT = 12
REASONS = 50
"""Most reasons for rejects counted separately; all others are added up."""
OTHER = "other reasons"


class Waiting(NamedTuple):
    """A record whose row waits for more rows."""

    number: int
    id: str | int
    excerpt: str
    offset: float
    divisor: float


@dataclass(frozen=True)
class JournalDocument:
    """The JSON part of `Journal.tensors`."""

    tokens: int | None
    reasons: list[tuple[str, int]]
    waiting: list[Waiting]
    exemplars: list[tuple[int, list[Exemplar]]]
    parts: int = 0


class Journal:
    """Notes about the absorbed rows, in order.

    Parameters
    ----------
    names : sequence of str, optional
        Names of the columns.
    """

    def __init__(self, names: tuple[str, ...] | None = None) -> None:
        self.names = names
        self.trend, self.exemplars = Trend(), Exemplars()
        self.n_tokens: int | None = None
        self.reasons: Counter[str] = Counter()
        self.n_parts = 0
        """Invalid lines left out of records that are used without them."""
        self._described: list[Waiting] = []
        self._records: list[tuple[Records, Typicality]] = []
        """Records that wait after these; described only on demand."""

    @property
    def n_rejects(self) -> int:
        """Return the number of rejects."""
        return self.reasons.total() - self.n_parts

    def reject(self, rejects: list[Reject]) -> None:
        """Count rejects, and invalid lines left out of other records."""
        for reject in rejects:
            self.n_parts += reject.is_part
            known = reject.reason in self.reasons or len(self.reasons) < REASONS
            self.reasons[reject.reason if known else OTHER] += 1

    def wait(self, records: Records, likelihood: Likelihood) -> None:
        """Remember records whose rows wait for more rows."""
        self.count_tokens(likelihood.n_tokens(records.rows))
        self._records.append((records, likelihood.typicality(records.rows)))

    @property
    def waiting(self) -> list[Waiting]:
        """Return the records whose rows wait."""
        for records, measured in self._records:
            scales = zip(measured.offsets.tolist(), measured.divisors.tolist(), strict=True)
            self._described += [
                Waiting(*self._told(records, i), *scale) for i, scale in enumerate(scales)
            ]
        self._records = []
        return self._described

    @waiting.setter
    def waiting(self, records: list[Waiting]) -> None:
        self._described, self._records = records, []

    def note(
        self,
        records: Records | None,
        absorbed: Absorbed,
        events: list[Event],
        likelihood: Likelihood,
    ) -> None:
        """Note rows that were absorbed, and the events they caused.

        Waiting rows come first, then these; rows that were not absorbed now wait.
        """
        if records is not None:
            self.wait(records, likelihood)
        rows, n = absorbed.rows, absorbed.rows.ids.size
        described, parts = self._described, self._records
        offsets = np.array([one.offset for one in described])
        divisors = np.array([one.divisor for one in described])
        for _, measured in parts:
            offsets = np.append(offsets, measured.offsets)
            divisors = np.append(divisors, measured.divisors)
        starts = np.cumsum([len(described), *(len(some) for some, _ in parts)]).tolist()

        def describe(row: int) -> tuple[int, str | int, str]:
            if row < len(described):
                return described[row][:3]
            part = bisect_right(starts, row) - 1
            return self._told(parts[part][0], row - starts[part])

        scores = Typicality(offsets[:n], divisors[:n]).scores(rows.log_evidence)
        self.trend.add(rows.ids, rows.log_evidence, rows.n_clusters)
        self.exemplars.add(rows.ids, rows.shares, scores, describe)
        self.follow(events)
        self._described = described[n:]
        self._records = [
            (some, measured) if start >= n else _from(some, measured, n - start)
            for (some, measured), start in zip(parts, starts, strict=False)
            if start + len(some) > n
        ]

    def follow(self, events: list[Event]) -> None:
        """Follow merges and deaths of clusters; events of topics are ignored."""
        events = [event for event in events if event.level == "cluster"]
        self.trend.follow(events)
        self.exemplars.follow(events)

    def count_tokens(self, n_tokens: int | None) -> None:
        """Count the tokens of rows; None if rows are not documents."""
        if n_tokens is not None:
            self.n_tokens = (self.n_tokens or 0) + n_tokens

    def _told(self, records: Records, i: int) -> tuple[int, str | int, str]:
        """Return number, id and excerpt of a record."""
        return records.numbers[i], records.ids[i], self._excerpt(records, i)

    def _excerpt(self, records: Records, i: int) -> str:
        """Return the excerpt of a record that people see."""
        if records.excerpts:
            return records.excerpts[i]
        rows: Any = records.rows
        if issparse(records.rows):
            inside = slice(rows.indptr[i], rows.indptr[i + 1])
            counts, words = rows.data[inside], rows.indices[inside]
            top = words[np.argsort(-counts, kind="stable")[:WORDS_OF_EXCERPT]]
            return " ".join(map(self._name, top.tolist()))
        if isinstance(rows, list):
            bag: Counter[str] = Counter(rows[i])
            return " ".join(word for word, _ in bag.most_common(WORDS_OF_EXCERPT))
        cells = [f"{self._name(j)}={_shown(cell)}" for j, cell in enumerate(rows[i])]
        return ", ".join(cells[:WORDS_OF_EXCERPT])

    def _name(self, column: int) -> str:
        return str(column) if self.names is None else self.names[column]

    def tensors(self) -> Tensors:
        """Return everything as arrays and JSON."""
        document: dict[str, Any] = {
            "tokens": self.n_tokens,
            "reasons": sorted(self.reasons.items()),
            "waiting": self.waiting,
            "exemplars": self.exemplars.document(),
        }
        if self.n_parts:
            document["parts"] = self.n_parts
        return Tensors(self.trend.arrays(), document)

    @classmethod
    def of(
        cls,
        arrays: dict[str, NDArray[Any]],
        document: JournalDocument,
        names: tuple[str, ...] | None,
    ) -> "Journal":
        """Return the journal that `tensors` described."""
        journal = cls(names)
        journal.trend = Trend.of(arrays)
        journal.n_tokens, journal.waiting = document.tokens, document.waiting
        journal.reasons, journal.n_parts = Counter(dict(document.reasons)), document.parts
        journal.exemplars = Exemplars.from_document(document.exemplars)
        return journal


def _from(records: Records, measured: Typicality, first: int) -> tuple[Records, Typicality]:
    """Return the records from a given one on."""
    rest = Typicality(measured.offsets[first:], measured.divisors[first:])
    return records.part(slice(first, None)), rest


def _shown(cell: Any) -> str:
    if cell is None or cell != cell:
        return "-"
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)
