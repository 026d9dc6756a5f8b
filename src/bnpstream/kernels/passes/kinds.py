"""What the loops over rows ask of a kind of data: documents, or rows of cells.

A kind is chosen by the class of the first argument: the rows, or the cache of what scores need
(``kernels.words.levels.Screen`` for documents, ``kernels.cells.columns.Derived`` for cells).

A kind whose rows add t(x) has `add_row` and `take_out_row`, one whose rows add what depends on the
cluster has `add_line` and `take_out_line` (``kernels.passes.contributions``).
"""

from functools import singledispatch
from typing import Any

from bnpstream.kernels.arrays import Clusters, Floats
from bnpstream.kernels.measures.rules import Rule


@singledispatch
def make_scratch(rows: Any, start: int, stop: int, capacity: int) -> Any:
    """Allocate the working space for rows start..stop-1 and so many slots."""
    raise TypeError(f"no compiled loops for rows of type {type(rows).__name__}")


@singledispatch
def n_columns(rows: Any, i: int) -> int:
    """Return how many columns row i has: what it may need of a hashed table."""
    raise TypeError(f"no compiled loops for rows of type {type(rows).__name__}")


@singledispatch
def score(
    cache: Any,
    likelihood: Any,
    clusters: Clusters,
    rows: Any,
    i: int,
    weights: Floats,
    rule: Rule,
    log_cut: float,
    most: int,
    scratch: Any,
) -> int:
    """Score the clusters that may be wanted; return how many candidates there are.

    Wanted are those within `log_cut` of the best score, the new cluster's included, and of these
    the `most` best.

    Fills scratch.slots and scratch.log_scores, ascending, the new cluster last. The rule takes its
    discount of the weights, which must not be larger than the masses.
    """
    raise TypeError(f"no compiled loops for a cache of type {type(cache).__name__}")


@singledispatch
def add_row(
    cache: Any,
    likelihood: Any,
    clusters: Clusters,
    rows: Any,
    i: int,
    k: int,
    q: float,
    entries: Any,
) -> None:
    """Add q times row i to the mass and the statistics of cluster k, Eq. (18)."""
    raise TypeError(f"no compiled loops for a cache of type {type(cache).__name__}")


@singledispatch
def take_out_row(
    cache: Any,
    likelihood: Any,
    clusters: Clusters,
    rows: Any,
    i: int,
    k: int,
    share: float,
    entries: Any,
) -> None:
    """Subtract `share` times row i from cluster k; rounding left of a statistic is zero."""
    raise TypeError(f"no compiled loops for a cache of type {type(cache).__name__}")


@singledispatch
def add_line(
    cache: Any,
    likelihood: Any,
    clusters: Clusters,
    rows: Any,
    i: int,
    k: int,
    q: float,
    line: Any,
    entries: Any,
) -> None:
    """Add q to the mass of cluster k, and q times a line at the columns of row i."""
    raise TypeError(f"no compiled loops for a cache of type {type(cache).__name__}")


@singledispatch
def take_out_line(
    cache: Any,
    likelihood: Any,
    clusters: Clusters,
    rows: Any,
    i: int,
    k: int,
    share: float,
    line: Any,
    entries: Any,
) -> None:
    """Subtract what `add_line` has added; rounding left of a statistic is zero."""
    raise TypeError(f"no compiled loops for a cache of type {type(cache).__name__}")


@singledispatch
def move_cluster(cache: Any, clusters: Clusters, k: int, last: int) -> None:
    """Give slot k the mass and the statistics of slot `last`, which is free thereafter."""
    raise TypeError(f"no compiled loops for a cache of type {type(cache).__name__}")
