"""The picture of docs/scaling.md."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter, PercentFormatter

from bnpstream.plots.style import BLUE, GREEN, ORANGE, PURPLE, thousands, tidy

LINES = ((PURPLE, ":", "^"), (GREEN, "--", "s"), (BLUE, "-", "o"), (ORANGE, "-.", "D"))
QUIET = "#777777"


def draw(
    figures: dict[str, Any], results: dict[str, Any], alone: float, part: int, path: Path
) -> None:
    """Draw speed by workers, and what staleness costs in quality."""
    plt.rcParams.update({"font.size": 9, "svg.fonttype": "path", "svg.hashsalt": "scaling"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.6), layout="constrained")
    _speeds(left, figures, results, alone, part)
    _quality(right, figures)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
    plt.close(figure)


def _parts(figures: dict[str, Any]) -> list[int]:
    return sorted({run["part"] for run in figures["costs"]["played"]})


def _speeds(
    panel: Axes, figures: dict[str, Any], results: dict[str, Any], alone: float, part: int
) -> None:
    for (colour, line, _), size in zip(LINES, _parts(figures), strict=True):
        found = results[f"parts of {size:,d}"]
        workers = [r["workers"] for r in found]
        speed = [r["rows_a_second"] for r in found]
        style: dict[str, Any] = {"color": colour, "linestyle": line, "linewidth": 1.8}
        panel.plot(workers, speed, label=f"parts of {thousands(size)}", **style)
    panel.plot(workers, [alone * w for w in workers], color=QUIET, linewidth=0.8, label="ideal")
    rows = figures["news"]["alone"]["npz"]["rows"]
    runs = [r for r in figures["news"]["runs"] if r["form"] == "npz" and r["part"] == part]
    points = {w: [r for r in runs if r["workers"] == w and r["staleness"] > 0] for w in (1, 2)}
    best = {w: rows / min(r["wall"] for r in some) for w, some in points.items() if some}
    label = f"measured, {thousands(part)}, load {figures['machine']['load'][1]:.0f}"
    panel.plot(list(best), list(best.values()), "x", color="black", label=label)
    panel.set(xscale="log", yscale="log", xlabel="workers", ylabel="documents a second")
    panel.set_xticks([1, 2, 4, 8, 16, 32, 64])
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    panel.yaxis.set_major_formatter(FuncFormatter(thousands))
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_minor_formatter(NullFormatter())
    panel.set_title("Speed, simulated from measured costs", fontsize=10)
    tidy(panel)


def _quality(panel: Axes, figures: dict[str, Any]) -> None:
    score = figures["news"]["alone"]["npz"]["score"]
    for (colour, line, marker), size in zip(LINES, _parts(figures), strict=True):
        runs = {r["staleness"]: r for r in figures["costs"]["played"] if r["part"] == size}
        behind = np.array(sorted(runs))
        better = [(runs[s]["score"] - score) / abs(score) for s in behind]
        panel.plot(behind * size, better, color=colour, linestyle=line, marker=marker, markersize=4)
    panel.axhline(0.0, color=QUIET, linewidth=0.8)
    panel.set(xscale="log", xlabel="documents behind", ylabel="held-out log-likelihood")
    panel.xaxis.set_major_formatter(FuncFormatter(thousands))
    panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=3))
    panel.set_title("Quality against one process, measured", fontsize=10)
    tidy(panel)
