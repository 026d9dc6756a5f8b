"""The tree of merges as an icicle plot: groups above, their parts below."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from numpy.typing import NDArray

from bnpstream.inference.tree import MergeTree
from bnpstream.plots.style import BLUE, axes_of

LEVELS = (5, 20, 80)
SHADES = (0.55, 0.4, 0.28, 0.2)
"""Opacity of the levels, coarsest first."""
GAP = 0.0015
"""Gap between neighbours, as a share of the width."""
LETTERS, LINES = 125, 4
"""Small letters that fit into the width, and lines that fit into a box; names are cut to fit."""


def plot_tree(
    tree: MergeTree,
    levels: Sequence[int] = LEVELS,
    names: Mapping[int, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw groups of clusters from coarse to fine, as wide as their share of the stream.

    Parameters
    ----------
    tree : MergeTree
        From `merge_tree` of a fitted model.
    levels : sequence of int
        Numbers of groups, ascending: one row of boxes each. If there are no more clusters than the
        last number, all clusters form one row.
    names : mapping from ids to str, optional
        Names of groups, such as their words; by default their ids.
    ax : Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> tree = MergeTree(
    ...     np.array([0, 3, 7]), np.array([5.0, 1.0, 9.0]), np.array([[0, 1], [2, 3]]), np.zeros(2)
    ... )
    >>> [text.get_text() for text in plot_tree(tree, levels=[1, 2]).texts]
    ['7', '7', '0']
    """
    ax = axes_of(ax, size=(9.0, 3.2))
    K = tree.ids.size
    shown = [n for n in levels if n < K]
    if len(shown) < len(levels):
        shown.append(K)
    cuts = [tree.cut(n) for n in shown]
    order, shares = _order(tree, cuts), tree.masses / tree.masses.sum()
    for depth, cut in enumerate(cuts):
        starts = np.flatnonzero(np.append(True, np.diff(cut[order]) != 0))
        widths = np.add.reduceat(shares[order], starts)
        lefts = np.cumsum(widths) - widths
        _draw_boxes(ax, lefts, widths, depth)
        for id, left, width in zip(cut[order][starts].tolist(), lefts, widths, strict=True):
            text = _fitting((names or {}).get(id, str(id)), int(width * LETTERS))
            if text:
                middle = (left + width / 2, depth + 0.5)
                ax.text(*middle, text, ha="center", va="center", fontsize="small")
    ax.set_xlim(0, 1)
    ax.set_ylim(len(shown), 0)
    ax.set_yticks(np.arange(len(shown)) + 0.5, [f"{n:,}" for n in shown])
    ax.set_ylabel("groups")
    ax.set_xlabel("share of the stream")
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"])
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax


def _order(tree: MergeTree, cuts: list[NDArray[np.int64]]) -> NDArray[np.intp]:
    """Return the clusters in the order of the picture: heavy groups first, at each level."""
    keys: list[NDArray[Any]] = [-tree.masses]
    for cut in reversed(cuts):
        place = np.searchsorted(tree.ids, cut)
        masses = np.bincount(place, tree.masses, minlength=tree.ids.size)
        keys += [cut, -masses[place]]  # of two equally heavy groups, the older one first
    return np.lexsort(keys)


def _draw_boxes(
    ax: Axes, lefts: NDArray[np.float64], widths: NDArray[np.float64], depth: int
) -> None:
    """Draw one level as a single collection, which is light however many boxes it has."""
    rights = lefts + np.maximum(widths - GAP, 0.2 * widths)
    top, bottom = np.full(lefts.size, depth + 0.04), np.full(lefts.size, depth + 0.96)
    corners = [(lefts, top), (rights, top), (rights, bottom), (lefts, bottom)]
    boxes = np.stack([np.stack(corner, axis=1) for corner in corners], axis=1)
    shade = SHADES[min(depth, len(SHADES) - 1)]
    ax.add_collection(PolyCollection(list(boxes), facecolors=BLUE, alpha=shade, linewidths=0))


def _fitting(name: str, letters: int) -> str:
    r"""Return the first words of a name that fit into lines of this length.

    Examples
    --------
    >>> _fitting("space nasa orbit", 11), _fitting("space nasa orbit", 4)
    ('space nasa\norbit', 'nasa')
    """
    words = " ".join(word for word in name.split() if len(word) <= letters)
    return "\n".join(wrap(words, letters)[:LINES]) if words else ""
