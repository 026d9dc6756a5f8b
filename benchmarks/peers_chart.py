"""The chart of the comparison with peers: documents a second against quality."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import StrMethodFormatter

OWN_COLOUR, PEER_COLOUR, KEY_COLOUR = "#1f5a94", "#8a8a8a", "#333333"
MARKERS = {
    "bnpstream, one pass": "o",
    "bnpstream, window": "p",
    "bnpstream, five passes": "*",
    "gensim HDP": "s",
    "tomotopy HDP": "D",
    "scikit-learn LDA": "^",
    "scikit-learn KMeans": "v",
    "river TextClust": "P",
}
QUALITIES = {
    "completion": "log probability of a held-out token",
    "nmi": "NMI with newsgroups",
}


def draw(results: dict[str, Any], path: Path) -> None:
    """Draw a panel for each corpus and quality; the suffix of `path` says the format."""
    panels = [
        (corpus, key)
        for corpus in results["corpora"]
        for key in QUALITIES
        if key == "completion" or corpus["labelled"]
    ]
    plt.rcParams.update({"font.size": 9, "svg.fonttype": "path", "svg.hashsalt": "peers"})
    figure, axes = plt.subplots(
        1,
        len(panels),
        figsize=(3.6 * len(panels), 3.9),
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    for panel, (corpus, key) in zip(axes[0], panels, strict=True):
        _panel(panel, corpus, key)
    handles = [_key(tool) for tool in MARKERS]
    handles += [
        Line2D([], [], marker="o", linestyle="", color=KEY_COLOUR, label="tuned"),
        Line2D([], [], marker="o", linestyle="", color=KEY_COLOUR, mfc="white", label="defaults"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
    plt.close(figure)


def _panel(panel: Axes, corpus: dict[str, Any], key: str) -> None:
    for record in corpus["methods"]:
        runs = [run for run in record["repetitions"] if key in run]
        if not runs:
            continue
        speed, quality = (
            np.quantile([run[name] for run in runs], [0.5, 0.0, 1.0])
            for name in ("documents_per_second", key)
        )
        colour = _colour(record["tool"])
        panel.errorbar(
            speed[0],
            quality[0],
            xerr=[[speed[0] - speed[1]], [speed[2] - speed[0]]],
            yerr=[[quality[0] - quality[1]], [quality[2] - quality[0]]],
            color=colour,
            marker=MARKERS[record["tool"]],
            markerfacecolor=colour if record["tuned"] else "white",
            markersize=_size(record["tool"]),
            elinewidth=0.8,
        )
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    panel.set_title(corpus["name"], fontsize=10)
    panel.set_xlabel("documents a second, one core")
    panel.set_ylabel(QUALITIES[key])
    panel.grid(color="#e6e6e6", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def _key(tool: str) -> Line2D:
    return Line2D(
        [],
        [],
        marker=MARKERS[tool],
        markersize=_size(tool),
        linestyle="",
        color=_colour(tool),
        label=tool,
    )


def _colour(tool: str) -> str:
    return OWN_COLOUR if tool.startswith("bnpstream") else PEER_COLOUR


def _size(tool: str) -> float:
    return 9.5 if MARKERS[tool] == "*" else 6.5
