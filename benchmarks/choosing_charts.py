"""The pictures of docs/choosing.md."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from bnpstream.plots.style import BLUE, GREEN, ORANGE, PURPLE, thousands, tidy

LINES = ((BLUE, "-"), (GREEN, "--"), (ORANGE, "-."), (PURPLE, ":"))
SMALL = 8
GAP = 2
"""Pixels between two images."""


def draw_priors(growth: Sequence[int], priors: list[dict[str, Any]], path: Path) -> None:
    """Draw expected numbers of clusters, and sizes of clusters by rank."""
    figure, (left, right) = _panels("priors", 2)
    for (colour, line), prior in zip(LINES, priors, strict=True):
        style = {"color": colour, "linestyle": line, "linewidth": 1.8}
        left.plot(growth, prior["expected"], label=prior["name"], **style)
        sizes = np.array(prior["sizes"])
        shown = np.unique(np.geomspace(1, sizes.size, 60).astype(int))
        right.plot(shown, sizes[shown - 1], **style)
    left.set(xlabel="rows", ylabel="expected clusters", xscale="log", yscale="log")
    left.set_title("How many clusters", fontsize=10)
    right.set(xlabel="rank of the cluster", ylabel="rows in it", xscale="log", yscale="log")
    right.set_title("How large, in 10 000 rows", fontsize=10)
    for axis in (left.xaxis, left.yaxis, right.xaxis, right.yaxis):
        axis.set_major_formatter(FuncFormatter(thousands))
        axis.set_minor_formatter(NullFormatter())
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    _save(figure, path)


def draw_learning(learning: dict[str, Any], path: Path) -> None:
    """Draw log predictive and number of clusters by alpha; what is learnt is a line across."""
    figure, panels = _panels("learning", 2)
    fixed, learnt = learning["fixed"], learning["learnt"]
    alphas = [record["alpha"] for record in fixed]
    for panel, key in zip(panels, ("held_out", "clusters"), strict=True):
        values = [record[key] for record in fixed]
        panel.plot(alphas, values, color=BLUE, marker="o", markersize=4, label="fixed alpha")
        panel.axhline(learnt[key], color=ORANGE, linestyle="--", label="learnt from the stream")
        panel.set(xlabel="alpha of every word", xscale="log")
        panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    left, right = panels
    left.set_ylabel("held-out log predictive,\nnats per document")
    right.set_ylabel("clusters found")
    right.set_ylim(0, 1.1 * learnt["clusters"])
    right.axhline(learning["true_clusters"], color="#777777", linewidth=0.8)
    place = (alphas[-1], learning["true_clusters"])
    named = f"{learning['true_clusters']} in truth"
    right.annotate(named, place, ha="right", va="bottom", fontsize=SMALL, color="#555555")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    _save(figure, path)


def draw_coarse(coarse: dict[str, Any], path: Path) -> None:
    """Draw fine clusters and groups of digits, and agreement with what was written."""
    plt.rcParams.update({"font.size": 9, "svg.fonttype": "path", "svg.hashsalt": "coarse"})
    figure = plt.figure(figsize=(8.4, 3.0), layout="constrained")
    grid = figure.add_gridspec(1, 3, width_ratios=(1.5, 0.62, 1.25))
    fine, groups, curve = (figure.add_subplot(place) for place in grid)
    _images(fine, coarse["fine"], columns=18)
    fine.set_title(f"{len(coarse['fine']['weights'])} clusters, as found", fontsize=10)
    _images(groups, coarse["groups"], columns=2)
    groups.set_title(f"{len(coarse['groups']['weights'])} groups", fontsize=10)
    cuts = coarse["cuts"]
    n_groups = [cut["groups"] for cut in cuts]
    for key, (colour, line) in zip(("nmi", "ari"), LINES, strict=False):
        values = [cut[key] for cut in cuts]
        curve.plot(
            n_groups, values, color=colour, linestyle=line, marker="o", markersize=3,
            label={"nmi": "NMI", "ari": "adjusted Rand index"}[key],
        )  # fmt: skip
    curve.set(xlabel="groups that the tree is cut into", xscale="log", ylim=(0, 1))
    curve.set_xticks([2, 5, 10, 20, 50, n_groups[-1]])
    curve.xaxis.set_major_formatter(FuncFormatter(thousands))
    curve.xaxis.set_minor_formatter(NullFormatter())
    curve.set_title("Agreement with the ten digits", fontsize=10)
    curve.legend(loc="lower center", frameon=False)
    tidy(curve)
    _save(figure, path)


def _panels(name: str, n: int) -> tuple[Figure, Any]:
    """Return a figure with panels side by side; ids in it do not change from run to run."""
    plt.rcParams.update({"font.size": 9, "svg.fonttype": "path", "svg.hashsalt": name})
    figure, panels = plt.subplots(1, n, figsize=(7.2, 3.2), layout="constrained")
    for panel in panels:
        tidy(panel)
    return figure, panels


def _images(panel: Axes, clusters: dict[str, Any], columns: int) -> None:
    """Draw means as one picture, the heaviest cluster first."""
    order = np.argsort(clusters["weights"])[::-1]
    images = np.array(clusters["means"])[order].reshape(-1, 8, 8)
    rows = -(-len(images) // columns)
    step = 8 + GAP
    sheet = np.zeros((rows * step - GAP, columns * step - GAP))
    for place, image in enumerate(images):
        top, left = step * (place // columns), step * (place % columns)
        sheet[top : top + 8, left : left + 8] = image / image.max()
    panel.imshow(sheet, cmap="gray_r", interpolation="nearest")
    panel.set_axis_off()
    panel.set_anchor("N")


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)
