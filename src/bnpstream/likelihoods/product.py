"""Mixed rows: different families for different columns."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral
from typing import Any, cast

import numpy as np
from scipy.special import gammaln

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.cells.blocks import kind_of
from bnpstream.kernels.cells.families import multinomial
from bnpstream.likelihoods.base import InputTraits, Likelihood, Slowness
from bnpstream.likelihoods.batch import Row
from bnpstream.likelihoods.cells import (
    Block,
    CellBatch,
    ColumnLikelihood,
    no_options,
)
from bnpstream.likelihoods.counts import as_counts
from bnpstream.likelihoods.errors import RowError
from bnpstream.likelihoods.frames import columns_of, listed
from bnpstream.likelihoods.multinomial import DirichletMultinomial
from bnpstream.likelihoods.registry import register

Part = tuple[str, Likelihood, Any]


@register()
@dataclass(frozen=True, eq=False)
class Product(ColumnLikelihood):
    """Mixed data: several families over different columns, independent given the cluster.

    log p(x | cluster) is the sum over the parts. Missing cells are integrated out by the parts that
    can do so.

    Parameters
    ----------
    parts : sequence of (name, likelihood, columns)
        As for scikit-learn's ColumnTransformer: columns are given by position or, for data frames,
        by name: one, a list, or a slice.

    Examples
    --------
    >>> from bnpstream import Categorical, DiagonalGaussian, Product
    >>> rows = [[1.7, "blue"], [1.8, None], [None, "red"]]
    >>> mixed = Product([("size", DiagonalGaussian(), [0]), ("colour", Categorical(), [1])])
    >>> mixed.informed(rows).encode(rows).cells
    array([[1.7, 0. ], [1.8, nan], [nan, 1. ]])
    """

    parts: Sequence[Part]

    def __post_init__(self) -> None:
        if len(self.parts) == 0:
            raise ValueError("parts must name at least one family and its columns, got none")
        for part in self.parts:
            if len(part) != 3 or not isinstance(part[1], Likelihood):
                raise ValueError(f"a part is (name, likelihood, columns), got {part!r}")
            if not isinstance(part[1], ColumnLikelihood | DirichletMultinomial):
                raise ValueError(
                    f"part {part[0]!r} is {type(part[1]).__name__}: a Product takes families of "
                    "columns (subclasses of ColumnLikelihood), and DirichletMultinomial"
                )
        names = [part[0] for part in self.parts]
        if len(set(names)) < len(names):
            raise ValueError(f"parts must have different names, got {names}")

    @property
    def input(self) -> InputTraits:
        """Return what rows this family takes: what its parts take."""
        return InputTraits(allow_nan=True, categorical=True, string=True)

    @property
    def is_informed(self) -> bool:
        """Return whether all parts are informed."""
        return all(
            isinstance(family, ColumnLikelihood) and family.is_informed
            for _, family, _ in self.parts
        )

    def bound(self, names: list[str]) -> "Product":
        """Return this family with column names turned into positions."""
        parts = []
        for name, family, columns in self.parts:
            wanted: Any = listed(columns)
            if not isinstance(wanted, slice):
                absent = [c for c in wanted if isinstance(c, str) and c not in names]
                if absent:
                    raise ValueError(
                        f"part {name!r}: X has no column {absent[0]!r}; "
                        f"it has {', '.join(map(repr, names))}"
                    )
                wanted = [names.index(c) if isinstance(c, str) else c for c in wanted]
            parts.append((name, family, wanted))
        return replace(self, parts=parts)

    def informed(self, X: Any) -> "Product":
        """Return this family with unset parameters of its parts estimated from some rows."""
        if self.is_informed:
            return self
        parts = []
        for name, family, columns in self.parts:
            cells = columns_of(X, columns)
            if isinstance(family, DirichletMultinomial):
                family = _Words(family.informed(cells), as_counts(cells).shape[1])
            parts.append((name, family.informed(cells), columns))
        return replace(self, parts=parts)

    def check_rows(self, X: Any) -> None:
        """Raise ValueError if a cell is not valid for its part."""
        for name, family, columns in self.parts:
            with _named(name):
                family.check_rows(columns_of(X, columns))

    def continues(self, other: Likelihood) -> bool:
        """Return whether each part continues the other's part with the same columns."""
        return (
            isinstance(other, Product)
            and len(self.parts) == len(other.parts)
            and all(
                family.continues(before) and np.array_equal(here, there)
                for (_, family, _), (_, before, _), here, there in zip(
                    self.parts, other.parts, self.places(), other.places(), strict=True
                )
            )
        )

    @property
    def _families(self) -> list[ColumnLikelihood]:
        self.require_informed()
        return [cast(ColumnLikelihood, family) for _, family, _ in self.parts]

    @property
    def n_columns(self) -> int:
        """Return the number of columns in all parts."""
        return sum(family.n_columns for family in self._families)

    @property
    def n_pairs(self) -> int:
        """Return the number of sufficient statistics of all parts."""
        return sum(family.n_pairs for family in self._families)

    def encode(self, X: Any) -> CellBatch:
        """Return the cells of all parts, side by side.

        Parameters
        ----------
        X : array-like or data frame of shape (n, columns)
            Rows; NaN, None and masked cells are missing.
        """
        batches = []
        for name, family, columns in self.parts:
            self.require_informed()
            with _named(name):
                batches.append(cast(CellBatch, family.encode(columns_of(X, columns))))
        cells = np.ascontiguousarray(np.hstack([batch.cells for batch in batches]))
        return CellBatch(cells, np.sum([batch.log_base for batch in batches], axis=0), self)

    def pairs_of(self, cells: Floats) -> tuple[Floats, Floats]:
        """Return the statistics of all parts, side by side."""
        families = self._families
        ends = np.cumsum([0] + [family.n_columns for family in families])
        found = [
            family.pairs_of(cells[:, start:stop])
            for family, (start, stop) in zip(families, pairwise(ends.tolist()), strict=True)
        ]
        return np.hstack([high for high, _ in found]), np.hstack([low for _, low in found])

    def _split(self, statistics: Floats) -> list[tuple[ColumnLikelihood, Floats]]:
        """Return each part with its statistics, with high and low halves as it expects them."""
        families, half = self._families, self.n_pairs
        ends = np.cumsum([0] + [family.n_pairs for family in families])
        return [
            (
                family,
                np.concatenate(
                    [statistics[..., start:stop], statistics[..., half + start : half + stop]],
                    axis=-1,
                ),
            )
            for family, (start, stop) in zip(families, pairwise(ends.tolist()), strict=True)
        ]

    def slowness(self) -> Slowness | None:
        """Return the slowness of the slowest part."""
        found = [one for family in self._families if (one := family.slowness()) is not None]
        return max(found, default=None)

    def log_normalizer(self, statistics: Floats) -> Floats:
        """Return the sum over the parts."""
        total: Floats = np.sum(
            [family.log_normalizer(part) for family, part in self._split(statistics)], axis=0
        )
        return total

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        """Return the sum over the parts."""
        values = [part for _, part in self._split(row.values)]
        total: Floats = np.sum(
            [
                family.log_predictive(part, Row(slice(None), own, 0.0))
                for (family, part), own in zip(self._split(statistics), values, strict=True)
            ],
            axis=0,
        )
        return total

    def posterior_mean(self, statistics: Floats) -> Floats:
        """Return the means of the parts, side by side."""
        return np.hstack([family.posterior_mean(part) for family, part in self._split(statistics)])

    def mean_names(self, names: Sequence[str]) -> list[str]:
        """Return the names of the parts, side by side."""
        return [
            name
            for family, places in zip(self._families, self.places(), strict=True)
            for name in family.mean_names([names[j] for j in places])
        ]

    def sample(self, statistics: Floats, rng: np.random.Generator, **options: Any) -> Any:
        """Draw one row from the posterior predictive of each cluster, columns as in the data.

        Columns must be given as positions.
        """
        no_options(self, options)
        drawn = [family.sample(part, rng) for family, part in self._split(statistics)]
        kinds = {np.asarray(part).dtype.kind for part in drawn}
        rows = np.empty((len(statistics), self.n_columns), object if "O" in kinds else np.float64)
        for part, places in zip(drawn, self.places(), strict=True):
            rows[:, places] = part
        return rows

    def places(self) -> list[Any]:
        """Return the positions of the columns of each part; consecutive if columns are named."""
        total, start, places = self.n_columns, 0, []
        for (_, _, columns), family in zip(self.parts, self._families, strict=True):
            own = list(range(start, start + family.n_columns))
            start += family.n_columns
            wanted: Any = listed(columns)
            if isinstance(wanted, slice):
                own = list(range(total))[wanted]
            elif all(isinstance(column, Integral) for column in wanted):
                own = list(wanted)
            places.append(own)
        return places

    def blocks(self) -> list[Block]:
        """Return the blocks of the parts."""
        return [block for family in self._families for block in family.blocks()]


@contextmanager
def _named(part: str) -> Iterator[None]:
    """Let errors name the part that they come from."""
    try:
        yield
    except RowError as error:
        raise error.within(f"part {part!r}") from None
    except ValueError as error:
        raise ValueError(f"part {part!r}: {error}") from None


@register()
@dataclass(frozen=True, eq=False)
class _Words(ColumnLikelihood):
    """A Dirichlet-multinomial over a few columns of counts; a row must have all cells or none."""

    family: DirichletMultinomial
    size: int

    @property
    def n_columns(self) -> int:
        return self.size

    @property
    def n_pairs(self) -> int:
        return self.size + 1

    def check_cells(self, cells: Floats) -> None:
        as_counts(cells)

    takes_missing = False

    def pairs_of(self, cells: Floats) -> tuple[Floats, Floats]:
        high = np.hstack([cells, cells.sum(axis=1, keepdims=True)])
        return high, np.zeros_like(high)

    def log_base_of(self, cells: Floats) -> Floats:
        total: Floats = gammaln(cells.sum(axis=1) + 1.0) - gammaln(cells + 1.0).sum(axis=1)
        return total

    def log_normalizer(self, statistics: Floats) -> Floats:
        return self.family.log_normalizer(statistics[:, : self.n_pairs])

    def log_predictive(self, statistics: Floats, row: Row) -> Floats:
        values = row.values[: self.n_pairs]
        columns = np.append(np.flatnonzero(values[:-1]), self.size)
        return self.family.log_predictive(
            statistics[:, : self.n_pairs], Row(columns, values[columns], row.log_base)
        )

    def posterior_mean(self, statistics: Floats) -> Floats:
        return self.family.posterior_mean(statistics[:, : self.n_pairs])

    def sample(self, statistics: Floats, rng: np.random.Generator, **options: Any) -> Any:
        return self.family.sample(statistics[:, : self.n_pairs], rng, **options)

    def blocks(self) -> list[Block]:
        alpha = np.broadcast_to(np.asarray(self.family.alpha, np.float64), self.size)
        parameters = np.append(alpha, alpha.sum())
        D = self.size
        return [Block(kind_of(multinomial), D, D, D + 1, D + 1, parameters)]
