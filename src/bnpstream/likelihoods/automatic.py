"""Chooses families from the first rows."""

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from bnpstream.kernels.counts import are_word_counts
from bnpstream.likelihoods.base import InputTraits, Likelihood
from bnpstream.likelihoods.bernoulli import Bernoulli
from bnpstream.likelihoods.categorical import Categorical
from bnpstream.likelihoods.cells import LARGEST, all_numbers, as_cells
from bnpstream.likelihoods.diagonal import DiagonalGaussian
from bnpstream.likelihoods.directional import MOST_ALIGNED, Directional, are_unit, norms_of
from bnpstream.likelihoods.errors import RowError
from bnpstream.likelihoods.frames import as_labels, check_table
from bnpstream.likelihoods.gaussian import Gaussian
from bnpstream.likelihoods.multinomial import DirichletMultinomial
from bnpstream.likelihoods.product import Product
from bnpstream.likelihoods.registry import NAMED_LIKELIHOODS, register
from bnpstream.likelihoods.scaled import ScaledGaussian
from bnpstream.likelihoods.typicality import Typicality
from bnpstream.likelihoods.vectors import as_vectors

MOST_COLUMNS = 30
"""Most columns for a full covariance: it has 465 numbers, about as many as there are first rows."""
ALIKE = 0.1
"""If row lengths vary by less than this share of their mean, directions tell more than lengths."""

SPARSE = (
    "X is sparse and has values that are not counts, as after tf-idf: give word counts, as from "
    "scikit-learn's CountVectorizer; for columns of real numbers name the likelihood, "
    "such as 'gaussian'"
)


@register("auto")
@dataclass(frozen=True)
class Automatic(Likelihood):
    """Choose the family from the first rows; `informed` makes the choice.

    - A sparse matrix of whole numbers holds word counts, `DirichletMultinomial`. One of other
      numbers, such as tf-idf, is refused.
    - A dense table of integers holds word counts if it looks like them: most cells are 0, and most
      others at most 3. Else it is a table of numbers: pixels, ages, answers from 1 to 5.
    - Vectors of unit length are embeddings: `Directional`.
    - Any other table of real numbers: `DiagonalGaussian` if a cell is missing; `Gaussian`, with
      full covariance, up to 30 columns. With more columns, rows cannot determine a covariance:
      `Directional` if the lengths of rows vary by less than a tenth and their directions differ,
      else `ScaledGaussian`.
    - Anything else is mixed: `Bernoulli` for boolean columns, `DiagonalGaussian` for columns of
      numbers, `Categorical` for all others.

    Parameters
    ----------
    rules : int
        1 for rules without vectors: for early models, and for algorithms that do not take vectors.
        Up to 2, all dense non-negative integers are word counts.
    """

    rules: int = 1

    @property
    def is_informed(self) -> bool:
        """Return False: the choice is still open."""
        return False

    @property
    def input(self) -> InputTraits:
        """Return the input that some family can be chosen for: any."""
        return InputTraits(allow_nan=True, categorical=True, string=True)

    def settled(self, X: Any) -> Likelihood:
        """Return a likelihood of counts for a sparse matrix of integers, which is certain."""
        whole = X.dtype.kind in "iu"
        return DirichletMultinomial() if whole and issparse(X) else self

    def check_rows(self, X: Any) -> None:
        """Raise ValueError if rows are not a table of numbers, booleans and labels."""
        check_table(X)
        if issparse(X):
            matrix: Any = X
            values = matrix.tocsr().data
            as_cells(values[:, None])
            if not ((values >= 0) & (values % 1 == 0)).all():
                raise ValueError(SPARSE)
        elif X.dtype.kind in "biuf":
            if not all_numbers(X):  # otherwise there is nothing to check or copy
                as_cells(X)
        else:
            _check_numbers(as_labels(X))

    def n_tokens(self, rows: Any) -> int | None:
        """Return the number of words if rows are certain to be documents."""
        family = self.settled(rows)
        return super().n_tokens(rows) if family is self else family.n_tokens(rows)

    def typicality(self, rows: Any) -> Typicality:
        """Return how typical rows are, as far as their kind is certain."""
        family = self.settled(rows)
        return super().typicality(rows) if family is self else family.typicality(rows)

    def chosen(self, X: Any) -> Likelihood:
        """Return the family that suits some rows; parameters to be learnt stay open."""
        return choose(X, self.rules)

    def informed(self, X: Any) -> Likelihood:
        """Return the family that suits some rows, with its unset parameters learnt from them."""
        return self.chosen(X).informed(X)

    def _undecided(self, *given: Any, **options: Any) -> Any:
        """Raise ValueError: no family is chosen yet."""
        raise ValueError('likelihood "auto" is undecided: call informed(X) with some rows')

    encode = log_normalizer = posterior_mean = sample = _undecided


NAMED_LIKELIHOODS["auto"] = Automatic(rules=3)


def choose(X: Any, rules: int) -> Likelihood:
    """Return the family, or product of families, that suits some rows (see `Automatic`)."""
    if issparse(X):
        return DirichletMultinomial()
    table: Any = X if isinstance(X, np.ndarray) else np.asarray(X)
    if table.dtype.kind in "iu" and rules <= 2:
        return DirichletMultinomial() if table.min(initial=0) >= 0 else Gaussian()
    if table.dtype.kind in "iu":
        return DirichletMultinomial() if are_word_counts(table) else _of_numbers(table, rules)
    if table.dtype.kind == "f":
        return _of_numbers(table, rules)
    if table.dtype.kind == "b":
        return Bernoulli()
    kinds: dict[str, list[int]] = {"number": [], "truth": [], "label": []}
    for j, column in enumerate(as_labels(X).T):
        kinds[_kind([cell for cell in column if cell is not None])].append(j)
    families = {"number": DiagonalGaussian(), "truth": Bernoulli(), "label": Categorical()}
    parts = [(kind, families[kind], columns) for kind, columns in kinds.items() if columns]
    return Product(parts)


def _of_numbers(table: NDArray[Any], rules: int) -> Likelihood:
    """Return the family of a table of real numbers."""
    there = ~np.isnan(table).any(axis=1)
    if not there.all():
        _warn_of_holes(table, there)
        return DiagonalGaussian()
    if rules == 1 or table.shape[1] == 1:
        return Gaussian()
    values = as_vectors(table)
    norms = norms_of(values)
    if are_unit(norms):
        return Directional()
    if table.shape[1] <= MOST_COLUMNS:
        return Gaussian()
    if norms.min() > 0.0 and norms.std() < ALIKE * norms.mean():
        directions = values / norms[:, None]
        if np.linalg.norm(directions.mean(axis=0)) < MOST_ALIGNED:
            return Directional(normalize=True)
    return ScaledGaussian()


def _warn_of_holes(table: NDArray[Any], there: NDArray[np.bool_]) -> None:
    """Warn if a few missing numbers make embeddings look like a table."""
    most = 2 * np.count_nonzero(there) > there.size
    if most and table.shape[1] > 1 and are_unit(norms_of(as_vectors(table[there]))):
        warnings.warn(
            f"row {int(np.argmin(there))} has missing numbers, so the rows are treated as a table "
            "with missing cells (DiagonalGaussian), though most have unit length: if they are "
            "embeddings, leave out rows with missing numbers",
            stacklevel=2,
        )


def _kind(cells: list[Any]) -> str:
    """Return the type of a column's cells; a column without any is one of labels."""
    if cells and all(isinstance(cell, bool | np.bool_) for cell in cells):
        return "truth"
    numbers = int | float | np.integer | np.floating
    return "number" if cells and all(isinstance(cell, numbers) for cell in cells) else "label"


def _check_numbers(labels: NDArray[np.object_]) -> None:
    """Raise ValueError for cells that are no labels, and numbers too large to square and sum."""
    for (row, column), cell in np.ndenumerate(labels):
        if isinstance(cell, dict | list | set | np.ndarray):
            kind = type(cell).__name__
            raise RowError(row, f"column {column} has a {kind}: give numbers, booleans or labels")
        if isinstance(cell, Real) and not abs(float(cell)) <= LARGEST:
            raise RowError(row, f"column {column} is {cell}: numbers must be up to {LARGEST:g}")
