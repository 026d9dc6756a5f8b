"""Records as dicts of features that come and go: word counts, or numbers."""

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from bnpstream.engine import Encoder, GrowingVocabulary
from bnpstream.engine.codec import decode, encode
from bnpstream.engine.encoder import Arrays, Document, Informed, Listed
from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods import DiagonalGaussian, Likelihood
from bnpstream.likelihoods.cells import LARGEST, CellBatch
from bnpstream.likelihoods.documents import Document as Counts
from bnpstream.likelihoods.documents import as_document
from bnpstream.mixture import MixtureState
from bnpstream.mixture.window import Window

Record = dict[Hashable, Any]
Numbers = dict[Hashable, float]
Kind = Literal["auto", "counts", "gaussian"]


def as_number(value: Any, name: Hashable) -> float:
    """Return a value as a number, NaN if missing; ValueError names the feature if it is not one."""
    number = math.nan if value is None else value
    try:
        number = float(number)
    except (TypeError, ValueError):
        number = math.inf
    if abs(number) > LARGEST or isinstance(value, str | bytes):
        raise ValueError(
            f"feature {name!r} is {value!r}: features must be numbers up to {LARGEST:g}, or "
            "missing; count words with feature_extraction.BagOfWords, and encode categories with "
            "preprocessing.OneHotEncoder"
        )
    return number


def as_numbers(record: Record) -> Numbers:
    """Return a record of numbers; ValueError names a feature that is not one."""
    return {name: as_number(value, name) for name, value in record.items()}


def as_counted(record: Record) -> Counts:
    """Return a record of counts; ValueError names a feature that is not one, and what to do."""
    try:
        return as_document(record, "record")
    except ValueError as error:
        raise ValueError(f"{error}; for other numbers use likelihood='gaussian'") from None


class CountRecords(GrowingVocabulary):
    """Records of counts; a feature with the count 0 counts as missing.

    The number of features in the first records determines the base measure, which is not learnt
    further.
    """

    name = "count records"

    def __init__(
        self,
        spread: float | None = None,
        total: float | None = None,
        *,
        learn_total: bool = False,
        bursty: bool = False,
    ) -> None:
        super().__init__(spread, total, learn_total=learn_total, bursty=bursty)

    def check(self, rows: Iterable[Record]) -> list[Counts]:
        """Return records of counts."""
        return [as_counted(record) for record in rows]

    def prepared(self, rows: Iterable[Record]) -> Listed:
        """Return records of counts."""
        return Listed(self.check(rows))

    def informed(self, first: Any) -> Informed:
        """Learn the spread from the features of the first records."""
        return super().informed(self.check(first))


class NumberRecords(Encoder):
    """Records of numbers as Gaussian columns; a feature missing from a record is a missing cell.

    A feature becomes a column when `values_needed` of its values have been seen. They determine its
    base measure, as the first rows do in `DiagonalGaussian.informed`. From the next record on it
    is used, in clusters that have no values of it yet.

    Parameters
    ----------
    values_needed : int
        Number of values that a feature needs to become a column.

    Attributes
    ----------
    columns : dict
        Columns by feature.
    waiting : dict
        Values of features that are not columns yet.
    """

    name = "number records"

    def __init__(self, values_needed: int) -> None:
        self.values_needed = values_needed
        self.columns: dict[Hashable, int] = {}
        self.waiting: dict[Hashable, list[float]] = {}
        self._family = DiagonalGaussian()
        self._ready: list[Hashable] = []

    @property
    def likelihood(self) -> Likelihood:
        """Return the Gaussian of the columns so far."""
        return self._family

    def use(self, likelihood: Any) -> None:
        """Use another Gaussian over the same columns."""
        self._family = likelihood

    @property
    def is_informed(self) -> bool:
        """Return whether the first records are known."""
        return self._family.is_informed

    def n_statistics(self, rows: Listed) -> int:
        """Return D of the columns so far."""
        return 2 * self._family.n_pairs

    def check(self, rows: Iterable[Record]) -> list[Numbers]:
        """Return records of numbers."""
        return [as_numbers(record) for record in rows]

    def informed(self, first: Any) -> Informed:
        """Make columns of the features of the first records that have enough values."""
        self.columns, self.waiting, self._ready = {}, {}, []
        first = self.check(first)
        for record in first:
            self._wait(record)
        enough = [name for name, seen in self.waiting.items() if len(seen) >= self.values_needed]
        names = sorted(enough or self.waiting, key=repr)
        # Other features are seen again when the records are absorbed.
        self.columns, self.waiting = {name: j for j, name in enumerate(names)}, {}
        self._family = DiagonalGaussian(mean=np.empty(0), variance=np.empty(0))
        if names:
            self._family = DiagonalGaussian().informed(self._cells(first))
        return Informed(self._family, None)

    def _wait(self, record: Numbers) -> list[Hashable]:
        """Note values of features that are not columns; return those that now have enough."""
        ready = []
        for name, number in record.items():
            if name not in self.columns and not math.isnan(number):
                seen = self.waiting.setdefault(name, [])
                seen.append(number)
                if len(seen) == self.values_needed:
                    ready.append(name)
        return ready

    def prepared(self, rows: Iterable[Record]) -> Listed:
        """Return records of numbers."""
        return Listed(self.check(rows))

    def room(self, rows: Listed, start: int) -> int:
        """Return the number of records until a feature becomes a column, including the last one."""
        wanted: dict[Hashable, int] = {}
        for i in range(start, len(rows)):
            record = rows.rows[i]
            if record.keys() <= self.columns.keys():
                continue
            for name, number in record.items():
                if name not in self.columns and not math.isnan(number):
                    wanted[name] = wanted.get(name, len(self.waiting.get(name, ()))) + 1
                    if wanted[name] == self.values_needed:
                        return i + 1 - start
        return len(rows) - start

    def part(self, rows: Listed, start: int, stop: int) -> CellBatch:
        """Return some records; values of features that are not columns are noted."""
        some = rows.rows[start:stop]
        for record in some:
            if not record.keys() <= self.columns.keys():
                self._ready += self._wait(record)
        weights = None if rows.weights is None else rows.weights[start:stop]
        return self._batch(some, weights)

    def grow(self, state: MixtureState, window: Window) -> None:
        """Make columns of the features that now have enough values."""
        for name in sorted(self._ready, key=repr):
            cells = np.array(self.waiting.pop(name))
            state.restate(self._family.with_empty_column(state.statistics))
            self._family = self._family.with_column(cells)
            self.columns[name] = len(self.columns)
        if self._ready:
            window.change_rows(self._widened)
        self._ready = []

    def _widened(self, batch: Any) -> CellBatch:
        """Return rows with columns added since then as missing."""
        missing = np.full((len(batch), len(self.columns) - batch.cells.shape[1]), np.nan)
        cells = np.concatenate([batch.cells, missing], axis=1)
        return CellBatch(cells, batch.log_base, self._family, batch.weights)

    def view(self, rows: Listed) -> CellBatch:
        """Return records to look at, without features that are not columns."""
        return self._batch(rows.rows, None)

    def _cells(self, records: Sequence[Numbers]) -> Floats:
        rows = [[record.get(name, math.nan) for name in self.columns] for record in records]
        return np.array(rows).reshape(len(records), len(self.columns))

    def _batch(self, records: Sequence[Numbers], weights: Floats | None) -> CellBatch:
        return CellBatch(self._cells(records), np.zeros(len(records)), self._family, weights)

    def save_rows(self, rows: Any, document: Document, arrays: Arrays) -> None:
        """Add records."""
        # Features need not be strings.
        document["records"] = [
            [[encode(name), encode(value)] for name, value in each.items()] for each in rows
        ]

    def load_rows(self, document: Document, arrays: Arrays) -> list[Any]:
        """Return records."""
        return [{decode(name): decode(x) for name, x in each} for each in document["records"]]

    def save_into(self, document: Document, arrays: Arrays) -> None:
        """Add the columns, and the values of features that wait to become one."""
        document["values_needed"] = self.values_needed
        document["likelihood"] = encode(self._family)
        document["columns"] = [encode(name) for name in self.columns]
        document["waiting"] = [[encode(name), encode(seen)] for name, seen in self.waiting.items()]

    @classmethod
    def load_from(
        cls, document: Document, arrays: Arrays, classes: Iterable[type] = ()
    ) -> "NumberRecords":
        """Return the encoder with its columns."""
        encoder = cls(document["values_needed"])
        encoder._family = decode(document["likelihood"])
        encoder.columns = {decode(name): j for j, name in enumerate(document["columns"])}
        encoder.waiting = {decode(name): decode(seen) for name, seen in document["waiting"]}
        return encoder


class AnyRecords(CountRecords):
    """Records whose kind is decided by the first of them: counts if all are, else numbers.

    Parameters
    ----------
    values_needed : int
        As in `NumberRecords`.
    """

    name = "records"

    def __init__(self, values_needed: int) -> None:
        super().__init__()
        self.values_needed = values_needed

    def check(self, rows: Iterable[Record]) -> list[Any]:
        """Return the records unchanged, if all their features are numbers."""
        found = [dict(record) for record in rows]
        for record in found:
            as_numbers(record)
        return found

    def chosen(self, first: list[Record]) -> Encoder:
        """Return the encoder for the kind of the first records."""
        counted = all(map(_is_counted, first))
        return CountRecords() if counted else NumberRecords(self.values_needed)

    save_rows, load_rows = NumberRecords.save_rows, NumberRecords.load_rows

    def save_into(self, document: Document, arrays: Arrays) -> None:
        """Add what is known before the first records."""
        document["values_needed"] = self.values_needed

    @classmethod
    def load_from(
        cls, document: Document, arrays: Arrays, classes: Iterable[type] = ()
    ) -> "AnyRecords":
        """Return the encoder."""
        return cls(document["values_needed"])


RECORD_ENCODERS: dict[str, type[Encoder]] = {
    encoder.name: encoder for encoder in (CountRecords, NumberRecords, AnyRecords)
}


def encoder_for(kind: Kind, prefix_rows: int) -> Encoder:
    """Return the encoder for a kind of records."""
    if kind == "counts":
        return CountRecords()
    needed = max(prefix_rows // 10, min(2, prefix_rows))
    return NumberRecords(needed) if kind == "gaussian" else AnyRecords(needed)


def _is_counted(record: Record) -> bool:
    numbers = as_numbers(record).values()
    return all(number >= 0.0 and number.is_integer() for number in numbers)
