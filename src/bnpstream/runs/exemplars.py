"""A few typical records of every cluster, found along the stream."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.special import gammaln

from bnpstream.mixture import Event
from bnpstream.runs.decode import restored_row
from bnpstream.runs.description import Exemplar

Floats = NDArray[np.float64]

KEPT = 3
"""Exemplars of a cluster."""
SURE = 0.5
"""A record counts for a cluster if its responsibility is at least this."""
NATS_PER_TOKEN = 12.0
"""What a token costs that nothing is known about: about 160 000 words, equally likely."""
TOKENS_OF_DOUBT = 50.0
"""The gain of a short document is drawn towards none, as if it had so many more tokens."""
COST_OF_GAP = 1e3
"""Rows with missing cells come after all complete ones."""


class Exemplars:
    """The records of every cluster that the stream before them predicted best.

    Of documents that is the mean gain of a token over one that nothing is known about,

        (log evidence - log h(x) + 12 N) / (N + 50) for N tokens,

    of other rows the log evidence.

    Attributes
    ----------
    floors : dict
        Scores that records of a cluster have to exceed, as there are enough elsewhere.
    """

    def __init__(self) -> None:
        self._best: dict[int, list[Exemplar]] = {}
        self.floors: dict[int, float] = {}

    def add(
        self,
        ids: NDArray[np.int64],
        shares: Floats,
        scores: Floats,
        describe: Callable[[int], tuple[int, str | int, str]],
    ) -> None:
        """Look at rows in order.

        Parameters
        ----------
        ids, shares : ndarray of shape (n,)
            Likeliest cluster of every row and its responsibility.
        scores : ndarray of shape (n,)
            How typical it is.
        describe : callable
            Row -> number of the record, its id, an excerpt; asked for those that are kept.
        """
        for id in np.unique(ids).tolist():
            rows = np.flatnonzero((ids == id) & (shares >= SURE))
            kept = self._best.get(id, [])
            worst = kept[-1].score if len(kept) == KEPT else self.floors.get(id, -np.inf)
            rows = rows[scores[rows] > worst]
            best = rows[np.argsort(-scores[rows], kind="stable")][:KEPT]
            found = [Exemplar(*_with_score(describe(int(row)), scores[row])) for row in best]
            self._keep(id, [*kept, *found])

    def join(self, id: int, found: list[Exemplar]) -> None:
        """Take over records of a cluster that were found elsewhere; the best are kept."""
        self._keep(id, [*self._best.get(id, []), *found])

    def _keep(self, id: int, candidates: list[Exemplar]) -> None:
        if candidates:
            self._best[id] = sorted(candidates, key=lambda one: (-one.score, one.record))[:KEPT]

    def follow(self, events: list[Event]) -> None:
        """Let clusters that were merged live on in others, and forget the dead."""
        for event in events:
            if event.kind == "birth":
                continue
            lost = self._best.pop(event.id, [])
            if event.into is not None:
                self.join(event.into, lost)

    def ids(self) -> list[int]:
        """Return the clusters that have some."""
        return list(self._best)

    def of(self, id: int) -> list[Exemplar]:
        """Return the exemplars of a cluster, the best first."""
        return self._best.get(id, [])

    def document(self) -> list[Any]:
        """Return all as JSON."""
        return [[id, [list(one) for one in best]] for id, best in sorted(self._best.items())]

    @classmethod
    def from_document(cls, document: list[Any]) -> "Exemplars":
        """Return what `document` described."""
        found = cls()
        found._best = {
            int(id): [restored_row(Exemplar, one) for one in best] for id, best in document
        }
        return found


def _with_score(
    described: tuple[int, str | int, str], score: float
) -> tuple[int, str | int, float, str]:
    number, id, excerpt = described
    return number, id, float(score), excerpt


class Measure(NamedTuple):
    """What turns log evidence into typicality: (log evidence + offset) / divisor."""

    offsets: Floats
    divisors: Floats
    n_tokens: int | None
    """Of all rows; None where they are no documents."""

    def scores(self, log_evidence: Floats) -> Floats:
        """Return how typical every row is."""
        scores: Floats = (log_evidence + self.offsets) / self.divisors
        return scores


def measure(rows: Any) -> Measure:
    """Return what typicality needs to know of rows, each by itself."""
    if not (isinstance(rows, list) or issparse(rows)):
        missing = np.array([[cell is None or cell != cell for cell in row] for row in rows])
        return Measure(-COST_OF_GAP * missing.sum(axis=1), np.ones(len(rows)), None)
    lengths, coefficients = _documents(rows)
    offsets: Floats = NATS_PER_TOKEN * lengths - coefficients
    divisors: Floats = lengths + TOKENS_OF_DOUBT
    return Measure(offsets, divisors, int(lengths.sum()))


def log_coefficients(rows: Any) -> Floats:
    """Return log N! - sum_w log x_w! of every document; zero where rows are none."""
    if isinstance(rows, list) or issparse(rows):
        return _documents(rows)[1]
    return np.zeros(len(rows))


def _documents(rows: Any) -> tuple[Floats, Floats]:
    """Return length and log multinomial coefficient of every document."""
    if isinstance(rows, list):
        ends = np.append(0, np.cumsum([len(row) for row in rows]))
        counts = np.array([count for row in rows for count in row.values()], np.float64)
    else:
        matrix = csr_array(rows)
        ends, counts = matrix.indptr, matrix.data.astype(np.float64)
    lengths, factorials = _row_sums(counts, ends), _row_sums(_log_factorial(counts), ends)
    coefficients: Floats = gammaln(lengths + 1.0) - factorials
    return lengths, coefficients


def _row_sums(values: Floats, ends: NDArray[Any]) -> Floats:
    """Return the sums of rows that lie one after the other, each by itself."""
    columns: Any = np.zeros(values.size, np.int64)
    matrix: Any = csr_array((values, columns, ends), shape=(len(ends) - 1, 1))
    return np.asarray(matrix.sum(axis=1), np.float64)


_SMALL = gammaln(np.arange(256) + 1.0)


def _log_factorial(counts: Floats) -> Floats:
    """Return log x! of whole numbers, from a table where they are small."""
    found: Floats = _SMALL[np.minimum(counts, 255.0).astype(np.int64)]
    large = counts > 255.0
    if large.any():
        found[large] = gammaln(counts[large] + 1.0)
    return found
