"""A row of cells block by block, every block by the loops of its family.

Compiled code cannot look a function up in a table, so a block finds its family by a chain of ifs.
The chains are written by `_chain` from the one table of families, `FAMILIES`: as source, since a
compiled function that closes over others is never found on disk again.
"""

from types import ModuleType
from typing import Any

from bnpstream.kernels.cells.columns import (
    CELL,
    CELLS,
    DERIVED,
    KIND,
    PARAMETER,
    STATISTIC,
    Cells,
    Columns,
    Derived,
    Work,
)
from bnpstream.kernels.cells.families import (
    bernoulli,
    categorical,
    diagonal,
    full,
    multinomial,
    poisson,
    spherical,
)
from bnpstream.kernels.jit.decorators import inlined, inner

FAMILIES: tuple[ModuleType, ...] = (
    full,
    diagonal,
    spherical,
    poisson,
    bernoulli,
    categorical,
    multinomial,
)
"""All families of columns; a new one is added here."""


def kind_of(family: ModuleType) -> int:
    """Return what blocks of a family have for their kind."""
    return FAMILIES.index(family)


def _chain(step: str, arguments: str) -> Any:
    """Return a compiled function of a kind and arguments that calls the step of its family."""
    steps = {f"step_{i}": getattr(family, step) for i, family in enumerate(FAMILIES)}
    names: dict[str, Any] = {"__name__": __name__, **steps}
    lines = [f"    if kind == {i}: return step_{i}({arguments})" for i in range(len(FAMILIES))]
    source = [f"def {step}_block(kind, {arguments}):", *lines[:-1]]
    source.append(f"    return step_{len(FAMILIES) - 1}({arguments})")
    exec(compile("\n".join(source), __file__, "exec"), names)
    return inlined(names[f"{step}_block"])


derive_block = _chain("derive", "p, cells, row, s, pairs, out")
score_block = _chain("score", "v, at, x, cells, width, even, scores, work")
add_block = _chain("add", "row, s, pairs, x, cells, share")


@inner
def derive(columns: Columns, row: Any, out: Any) -> bool:
    """Fill `out` (n_derived,) from a cluster's row; return whether cells differ in their counts."""
    uneven, pairs = False, columns.n_statistics
    for b in range(columns.blocks.shape[0]):
        block = columns.blocks[b]
        p, made = columns.parameters[block[PARAMETER] :], out[block[DERIVED] :]
        differ = derive_block(block[KIND], p, block[CELLS], row, block[STATISTIC], pairs, made)
        uneven = differ or uneven
    return uneven


@inlined
def score_cells(
    columns: Columns, derived: Derived, rows: Cells, i: int, width: int, scores: Any, work: Work
) -> None:
    """Fill scores[:width] with log p(x_i | cluster), log h(x) left out."""
    scores[:width] = 0.0
    v, even = derived.values, rows.complete[i] and not derived.uneven[:width].any()
    for b in range(columns.blocks.shape[0]):
        block = columns.blocks[b]
        x = rows.values[i, block[CELL] :]
        score_block(block[KIND], v, block[DERIVED], x, block[CELLS], width, even, scores, work)


@inner
def add_cells(columns: Columns, row: Any, x: Any, share: float) -> None:
    """Add share times the statistics of a row of cells to those of a cluster, Eq. (18)."""
    for b in range(columns.blocks.shape[0]):
        block = columns.blocks[b]
        cells, s, pairs = block[CELLS], block[STATISTIC], columns.n_statistics
        add_block(block[KIND], row, s, pairs, x[block[CELL] :], cells, share)
