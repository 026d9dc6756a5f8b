"""Groups of clusters from coarse to fine: the tree as a picture and as a list."""

from dataclasses import dataclass

from markupsafe import Markup

from bnpstream.plots import plot_tree
from bnpstream.report.figures import chart
from bnpstream.report.phrases import whole, word
from bnpstream.report.pictures import ink
from bnpstream.runs.description import GroupDescription, RunDescription

SIZE = (9.6, 2.9)
"""Size in inches of a picture as wide as the page."""
WORDS = 8
"""Words per group."""


@dataclass(frozen=True)
class Group:
    """A line of the list, and the lines below it."""

    group: GroupDescription
    image: str | None
    parts: list["Group"]


@dataclass(frozen=True)
class Groups:
    """The section about groups."""

    caption: str
    svg: Markup
    coarsest: list[Group]


def groups_of(run: RunDescription) -> Groups | None:
    """Return the picture of the tree, and its two coarsest levels as a list."""
    if run.tree is None:
        return None
    tree, levels = run.tree.tree, run.tree.levels
    finer = levels[1] if len(levels) > 1 else []
    coarsest = [
        _group(run, group, [_group(run, part) for part in finer if part.parent == group.id])
        for group in levels[0]
    ]
    names = {}  # groups of several levels can share a name: the coarsest provides the words
    if run.kind == "words":
        named = (group for level in reversed(levels) for group in level)
        names = {
            group.id: " ".join(word(feature.name) for feature in group.lifted[:WORDS])
            for group in named
        }
    sizes = [len(level) for level in levels]
    words = (
        f"Boxes in {len(sizes)} rows: {', '.join(map(str, sizes))} groups of clusters, each as "
        "wide as its share of the stream and placed above its parts."
    )
    svg = chart("chart-tree", words, lambda ax: plot_tree(tree, sizes, names, ax=ax), SIZE)
    caption = (
        f"The {whole(run.n_clusters)} clusters merged in pairs, at each step the pair whose merge "
        "costs the least log evidence. Topics are found differently and may differ from these "
        f"groups. bnpstream clusters RUN --coarse {sizes[min(1, len(sizes) - 1)]} lists them."
    )
    return Groups(caption, svg, coarsest)


def _group(run: RunDescription, group: GroupDescription, parts: list[Group] | None = None) -> Group:
    return Group(group, ink(group.mean, run.image_shape), parts or [])
