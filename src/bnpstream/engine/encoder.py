"""Encodes rows into batches that a posterior absorbs, with fixed or growing columns.

An encoder owns the likelihood. It alone knows whether columns are fixed, or grow with the rows,
like the words of a growing vocabulary.
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
    """The model after unset parameters were learnt from the first rows."""

    likelihood: Likelihood
    batch: Batch | None
    """These rows encoded, if the scale of the base measure is to be learnt from them."""


@dataclass(frozen=True)
class Listed:
    """Rows of any kind, and the number of rows that each counts for."""

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
    """Encodes rows: validates them first, then encodes part by part."""

    name: ClassVar[str]
    """Name in snapshots."""

    @property
    @abstractmethod
    def likelihood(self) -> Likelihood:
        """Return the likelihood, as far as it is known."""

    @abstractmethod
    def use(self, likelihood: Likelihood) -> None:
        """Use another likelihood over the same columns from now on."""

    @property
    @abstractmethod
    def is_informed(self) -> bool:
        """Return whether all parameters are set, so that no row has to wait."""

    @abstractmethod
    def n_statistics(self, rows: Any) -> int:
        """Return D, the length of a row of sufficient statistics, for prepared rows."""

    def settled(self, rows: Any) -> Self:
        """Return this encoder with what is certain from the type of the first rows."""
        return self

    @abstractmethod
    def check(self, rows: Any) -> Any:
        """Return rows to keep until there are enough; ValueError names a bad one."""

    def chosen(self, first: Any) -> "Encoder":
        """Return the encoder that suits the first rows; by default a copy of this one."""
        return copy(self)

    @abstractmethod
    def informed(self, first: Any) -> Informed:
        """Learn unset parameters from the first rows, as `check` returned them."""

    @abstractmethod
    def prepared(self, rows: Any) -> Any:
        """Return rows that can be absorbed or viewed; ValueError names a bad one.

        They have a length, and methods `chosen(places)` and `weighted(weights)`.
        """

    @abstractmethod
    def part(self, rows: Any, start: int, stop: int) -> Batch:
        """Return prepared rows start..stop-1 to absorb; their columns are known from then on."""

    @abstractmethod
    def view(self, rows: Any) -> Batch:
        """Return prepared rows for viewing: nothing is learnt from them."""

    def room(self, rows: Any, start: int) -> int:
        """Return the number of prepared rows before columns change; by default all."""
        return len(rows) - start

    def grow(self, state: MixtureState, window: Window) -> None:  # noqa: B027
        """Add the columns that the last rows have introduced; by default there are none."""

    def words(self) -> Sequence[Hashable] | None:
        """Return the names of the columns, if they grow with the rows."""
        return None

    def means(self, means: Floats) -> Floats:
        """Return posterior means of the known columns, shape (K, columns)."""
        return means

    def counts(self, statistics: csr_array) -> csr_array:
        """Return the counts of each known word in clusters, given their statistics."""
        return statistics[:, :-1]

    def statistics(self, state: MixtureState, slots: NDArray[np.int64]) -> Floats:
        """Return the statistics of some slots as the likelihood's methods expect them."""
        return state.rows(slots)

    @abstractmethod
    def save_rows(self, rows: Any, document: Document, arrays: Arrays) -> None:
        """Add kept rows to a snapshot, under names of their own."""

    @abstractmethod
    def load_rows(self, document: Document, arrays: Arrays) -> Any:
        """Return the rows that `save_rows` added."""

    def check_columns(self, arrays: Arrays) -> None:  # noqa: B027
        """Raise ValueError if a snapshot has unknown columns; by default all are known."""

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
    """Rows of a matrix, encoded by the likelihood.

    Parameters
    ----------
    likelihood : Likelihood
        Likelihood of the rows; parameters may be unset.
    """

    name = "columns"

    def __init__(self, likelihood: Likelihood) -> None:
        self._likelihood = likelihood

    @property
    def likelihood(self) -> Likelihood:
        """Return the likelihood."""
        return self._likelihood

    def use(self, likelihood: Likelihood) -> None:
        """Use another likelihood with the same statistics from now on."""
        self._likelihood = likelihood

    @property
    def is_informed(self) -> bool:
        """Return whether all parameters of the likelihood are set."""
        return self.likelihood.is_informed

    def n_statistics(self, rows: Batch) -> int:
        """Return D of encoded rows."""
        return rows.n_statistics

    def settled(self, rows: Any) -> "FixedColumns":
        """Return the encoder of what is certain from the type of the rows alone."""
        likelihood = self.likelihood.settled(rows)
        return self if likelihood is self.likelihood else FixedColumns(likelihood)

    def check(self, rows: Any) -> Any:
        """Return the rows if the likelihood can take them, even if parameters are unset."""
        _refuse_texts(rows)
        self.likelihood.check_rows(rows)
        return rows

    def informed(self, first: Any) -> Informed:
        """Choose the family if necessary, and learn its base measure from the first rows."""
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
        """Return the rows, which are already encoded."""
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
            raise ValueError("the rows of the prefix are not a matrix")
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
    """Raise ValueError if rows are texts, because columns are fixed."""
    if are_texts(rows):
        raise ValueError(
            "X has 1 dimension and holds texts, but earlier rows had columns: give rows with "
            "these columns, or fit another model to the texts"
        )
