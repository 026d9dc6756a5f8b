"""Records of numbers: Gaussian columns that come and go."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream.inference import adf
from bnpstream.likelihoods import DiagonalGaussian
from bnpstream.likelihoods.cells import LARGEST, CellBatch
from bnpstream.priors import Prior
from bnpstream.river.learner import Learner, Record

Floats = NDArray[np.float64]


def as_number(value: Any, name: Hashable) -> float:
    """Return a value as a number, NaN if it is missing, or say which feature is none."""
    number = math.nan if value is None else value
    try:
        number = float(number)
    except (TypeError, ValueError):
        number = math.inf
    if abs(number) > LARGEST or isinstance(value, str | bytes):
        raise ValueError(
            f"feature {name!r} is {value!r}: features must be numbers up to {LARGEST:g}, or "
            "missing; words can be counted with feature_extraction.BagOfWords, and categories "
            "spread out with preprocessing.OneHotEncoder"
        )
    return number


def as_numbers(record: Record) -> dict[Hashable, float]:
    """Return a record of numbers, or say which feature is none."""
    return {name: as_number(value, name) for name, value in record.items()}


class NumberLearner(Learner):
    """Learns from numbers; a feature that is not in a record, or NaN, is a missing cell.

    A feature becomes a column when `values_needed` values of it have been seen. They give it its
    base measure, as the first rows do in `DiagonalGaussian.informed`. From the next record on it
    takes part, in clusters that have no value of it so far.

    Parameters
    ----------
    prior, settings
        As in `Learner`.
    records : sequence of dict
        The first records.
    values_needed : int
        Values that a feature must have been seen with.
    """

    def __init__(
        self,
        prior: Prior,
        settings: adf.Settings,
        records: Sequence[Record],
        values_needed: int,
    ) -> None:
        self.values_needed = values_needed
        self.columns: dict[Hashable, int] = {}
        self.waiting: dict[Hashable, list[float]] = {}
        for record in records:
            self._wait(record)
        ready = [name for name, seen in self.waiting.items() if len(seen) >= values_needed]
        names = sorted(ready or self.waiting, key=repr)
        self.columns = {name: j for j, name in enumerate(names)}
        # What did not become a column is seen again when the records are learnt.
        self.waiting = {}
        likelihood = DiagonalGaussian(mean=np.empty(0), variance=np.empty(0))
        if names:
            rows = [self._row(as_numbers(record)) for record in records]
            likelihood = DiagonalGaussian().informed(np.array(rows))
        super().__init__(prior, settings, likelihood, 2 * likelihood.n_pairs, len(records))
        self.likelihood = likelihood

    def _wait(self, record: Record) -> list[Hashable]:
        """Note values of features that are no columns; return those that have enough now."""
        ready = []
        for name, value in record.items():
            if name not in self.columns:
                number = as_number(value, name)
                if not math.isnan(number):
                    seen = self.waiting.setdefault(name, [])
                    seen.append(number)
                    if len(seen) == self.values_needed:
                        ready.append(name)
        return ready

    def learn(self, records: Sequence[Record]) -> None:
        """Absorb records in order, and add columns when their time has come."""
        checked = [
            {name: as_number(value, name) for name, value in each.items()} for each in records
        ]
        rows: list[list[float]] = []
        for record in checked:
            rows.append(self._row(record))
            if not record.keys() <= self.columns.keys():
                ready = self._wait(record)
                if ready:
                    self.absorb(self._batch(rows))
                    rows = []
                    for name in sorted(ready, key=repr):
                        self._add_column(name)
        if rows:
            self.absorb(self._batch(rows))

    def _add_column(self, name: Hashable) -> None:
        cells = np.array(self.waiting.pop(name))
        self.state.restate(self.likelihood.with_empty_column(self.state.statistics))
        self.likelihood = self.likelihood.with_column(cells)
        self.model = self.model._replace(likelihood=self.likelihood)
        self.columns[name] = len(self.columns)

    def _row(self, record: Record) -> list[float]:
        return [record.get(name, math.nan) for name in self.columns]

    def _batch(self, rows: list[list[float]]) -> CellBatch:
        return CellBatch(np.array(rows), np.zeros(len(rows)), self.likelihood)

    def encode(self, record: Record) -> CellBatch:
        """Return a record to look at; features that are no columns are left out."""
        return self._batch([self._row(as_numbers(record))])
