"""From rows as they are given to batches that a posterior absorbs, with columns fixed or growing.

An encoder owns the likelihood. It is the one place that knows whether columns are fixed, or come
along with the rows, as the words of a growing vocabulary do.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from bnpstream.engine.codec import decode, encode
from bnpstream.engine.wording import are_texts
from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods import Batch, Likelihood
from bnpstream.likelihoods.frames import check_sparse
from bnpstream.mixture import MixtureState
from bnpstream.mixture.window import Window

Arrays = dict[str, NDArray[Any]]
Document = dict[str, Any]


class Informed(NamedTuple):
    """What the first rows of a stream make of a likelihood that leaves something open."""

    likelihood: Likelihood
    batch: Batch | None
    """These rows encoded, if the scale of the base measure is to be learnt from them."""


@dataclass(frozen=True)
class Listed:
    """Rows of any kind, and how many rows each counts for."""

    rows: Sequence[Any]
    weights: Floats | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def chosen(self, places: NDArray[np.intp]) -> "Listed":
        """Return some of them."""
        weights = None if self.weights is None else self.weights[places]
        return Listed([self.rows[i] for i in places.tolist()], weights)

    def weighted(self, weights: Floats | None) -> "Listed":
        """Return the same rows with other weights."""
        return Listed(self.rows, weights)


class Encoder(ABC):
    """Encodes rows; what it is given is checked first, and encoded part by part."""

    name: ClassVar[str]
    """What a snapshot calls it."""

    @property
    @abstractmethod
    def likelihood(self) -> Likelihood:
        """Return what rows look like in a cluster, as far as it is known."""

    @abstractmethod
    def use(self, likelihood: Likelihood) -> None:
        """Use another likelihood over the same columns from now on."""

    @property
    @abstractmethod
    def is_informed(self) -> bool:
        """Return whether nothing is left open, so that no row has to wait."""

    @abstractmethod
    def n_statistics(self, rows: Any) -> int:
        """Return D, the length of a row of sufficient statistics, of prepared rows."""

    def settled(self, rows: Any) -> Self:
        """Return this encoder with what the type of the first rows makes certain."""
        return self

    @abstractmethod
    def check(self, rows: Any) -> Any:
        """Return rows to keep until there are enough; ValueError names a bad one."""

    def chosen(self, first: Any) -> "Encoder":
        """Return the encoder that the first rows speak for; by default a copy of this one."""
        return copy(self)

    @abstractmethod
    def informed(self, first: Any) -> Informed:
        """Take what is left open from the first rows, as `check` returned them."""

    @abstractmethod
    def prepared(self, rows: Any) -> Any:
        """Return rows that can be absorbed, or looked at; ValueError names a bad one.

        They have a length, and methods `chosen(places)` and `weighted(weights)`.
        """

    @abstractmethod
    def part(self, rows: Any, start: int, stop: int) -> Batch:
        """Return prepared rows start..stop-1 to absorb; their columns are known from then on."""

    @abstractmethod
    def view(self, rows: Any) -> Batch:
        """Return prepared rows to look at: nothing is learnt from them."""

    def room(self, rows: Any, start: int) -> int:
        """Return how many prepared rows come before columns change; by default all."""
        return len(rows) - start

    def grow(self, state: MixtureState, window: Window) -> None:  # noqa: B027
        """Add the columns that the rows absorbed last have made known; by default none wait."""

    def words(self) -> Sequence[Hashable] | None:
        """Return what the columns are called, if they have come along with the rows."""
        return None

    def means(self, means: Floats) -> Floats:
        """Return posterior means of the columns that are known, shape (K, columns)."""
        return means

    def counts(self, statistics: csr_array) -> csr_array:
        """Return how often clusters have every word that is known, given their statistics."""
        return statistics[:, :-1]

    def statistics(self, state: MixtureState, slots: NDArray[np.int64]) -> Floats:
        """Return the statistics of some slots as the likelihood's methods expect them."""
        return state.rows(slots)

    @abstractmethod
    def save_rows(self, rows: Any, document: Document, arrays: Arrays) -> None:
        """Add kept rows to a snapshot, as entries of a document of their own."""

    @abstractmethod
    def load_rows(self, document: Document, arrays: Arrays) -> Any:
        """Return the rows that `save_rows` added."""

    def check_columns(self, arrays: Arrays) -> None:  # noqa: B027
        """Raise ValueError if a snapshot has columns that are not known; by default all are."""

    @abstractmethod
    def save_into(self, document: Document, arrays: Arrays) -> None:
        """Add the likelihood and the columns to a snapshot."""

    @classmethod
    @abstractmethod
    def load_from(
        cls, document: Document, arrays: Arrays, classes: Iterable[type] = ()
    ) -> "Encoder":
        """Return the encoder that `save_into` described."""


class FixedColumns(Encoder):
    """Rows of a matrix: the likelihood encodes them.

    Parameters
    ----------
    likelihood : Likelihood
        What rows look like in a cluster; it may leave something open.
    """

    name = "columns"

    def __init__(self, likelihood: Likelihood) -> None:
        self._likelihood = likelihood

    @property
    def likelihood(self) -> Likelihood:
        """Return what rows look like in a cluster."""
        return self._likelihood

    def use(self, likelihood: Likelihood) -> None:
        """Use another likelihood with the same statistics from now on."""
        self._likelihood = likelihood

    @property
    def is_informed(self) -> bool:
        """Return whether the likelihood leaves nothing open."""
        return self.likelihood.is_informed

    def n_statistics(self, rows: Batch) -> int:
        """Return D of encoded rows."""
        return rows.n_statistics

    def settled(self, rows: Any) -> "FixedColumns":
        """Return the encoder of what the type of the rows alone makes certain."""
        likelihood = self.likelihood.settled(rows)
        return self if likelihood is self.likelihood else FixedColumns(likelihood)

    def check(self, rows: Any) -> Any:
        """Return the rows if the likelihood can take them, whatever it leaves open."""
        _refuse_texts(rows)
        self.likelihood.check_rows(rows)
        return rows

    def informed(self, first: Any) -> Informed:
        """Choose the family if that is open, and take its base measure from the first rows."""
        family = self.likelihood.chosen(first)
        self._likelihood = family.informed(first)
        batch = self._likelihood.encode(first) if family.scale_is_open else None
        return Informed(self._likelihood, batch)

    def prepared(self, rows: Any) -> Batch:
        """Return the rows encoded."""
        _refuse_texts(rows)
        return self._likelihood.encode(rows)

    def part(self, rows: Batch, start: int, stop: int) -> Batch:
        """Return encoded rows start..stop-1."""
        return rows if start == 0 and stop >= len(rows) else rows.part(start, stop)

    def view(self, rows: Batch) -> Batch:
        """Return the rows, which are encoded already."""
        return rows

    def save_rows(self, rows: Any, document: Document, arrays: Arrays) -> None:
        """Add a matrix: sparse, of numbers, or of cells of any type."""
        if issparse(rows):
            matrix: Any = rows
            names = ("indptr", "indices", "data")
            arrays |= {f"prefix.{name}": getattr(matrix, name) for name in names}
            document["shape"] = list(matrix.shape)
        elif rows.dtype.kind in "biuf":
            arrays["prefix.rows"] = rows
        else:
            document["rows"] = encode(rows.astype(object))

    def load_rows(self, document: Document, arrays: Arrays) -> Any:
        """Return the matrix."""
        if "shape" in document:
            parts = tuple(arrays[f"prefix.{name}"] for name in ("data", "indices", "indptr"))
            matrix = csr_array(parts, shape=tuple(document["shape"]))
            check_sparse(matrix)
            return matrix
        rows = decode(document["rows"]) if "rows" in document else arrays["prefix.rows"]
        if not isinstance(rows, np.ndarray) or rows.ndim != 2:
            raise ValueError("the rows of the prefix are no matrix")
        return rows

    def save_into(self, document: Document, arrays: Arrays) -> None:
        """Add the likelihood."""
        document["likelihood"] = encode(self.likelihood)

    @classmethod
    def load_from(
        cls, document: Document, arrays: Arrays, classes: Iterable[type] = ()
    ) -> "FixedColumns":
        """Return the encoder of a saved likelihood."""
        return cls(decode(document["likelihood"], classes))


def _refuse_texts(rows: Any) -> None:
    """Raise ValueError if rows are texts, where columns are fixed."""
    if are_texts(rows):
        raise ValueError(
            "X has 1 dimension and holds texts, but the rows so far had columns: give rows with "
            "these columns, or fit a model of its own to texts"
        )
