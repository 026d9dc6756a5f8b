"""The result of a grid search, as a heat map."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from bnpstream.plots.style import ORANGE, thousands

WIDE, TALL = 0.5, 0.32
"""Size of a cell in inches: four digits in small print fit."""
COLOURS = "cividis_r"
"""Works for every kind of colour vision, and in grey; lighter is better."""
DARK = 0.55
"""Shade above which white print is easier to read than black."""
BEND = 0.5
"""Power of the loss that colours show, so that points close to the best differ in colour too."""


def plot_grid(
    panels: Sequence[str],
    concentrations: Sequence[Any],
    alphas: Sequence[Any],
    scores: ArrayLike,
    figure: Figure | None = None,
) -> list[Axes]:
    """Draw how much each point of a grid loses against the best: concentration by alpha.

    Parameters
    ----------
    panels : sequence of P strings
        Prior of each point; each prior has a panel.
    concentrations, alphas : sequence of P numbers or words
        Position of a point in its panel: numbers in ascending order, then words such as "learn".
    scores : array of shape (P,)
        Log predictive of held-out rows, in nats per row.
    figure : Figure, optional
        Where to draw; a new one by default.

    Examples
    --------
    >>> axes = plot_grid(["dp"] * 4, [1, 10, 1, 10], [0.1, 0.1, "learn", "learn"], [-9, -8, -7, -6])
    >>> [text.get_text() for text in axes[0].texts]
    ['3.0', '2.0', '1.0', 'best']
    """
    found = np.asarray(scores, float)
    loss, best = found.max() - found, int(found.argmax())
    layout, down = _layout(panels, concentrations), _sorted(alphas)
    if figure is None:
        import matplotlib.pyplot as plt  # here, as it chooses a backend, which a given figure has

        size = size_of_grid(panels, concentrations, alphas)
        figure = plt.figure(figsize=size, layout="constrained")
    ratios = [len(across) for across in layout.values()]
    axes: list[Axes] = list(
        figure.subplots(1, len(layout), sharey=True, squeeze=False, width_ratios=ratios)[0]
    )
    norm = PowerNorm(BEND, vmin=0.0, vmax=max(float(loss.max()), np.finfo(float).tiny))
    for ax, (name, across) in zip(axes, layout.items(), strict=True):
        cells = np.full((len(down), len(across)), np.nan)
        for i in (i for i, own in enumerate(panels) if own == name):
            at = down.index(alphas[i]), across.index(concentrations[i])
            cells[at] = loss[i]
            _write(ax, at, loss[i], norm, is_best=i == best)
        image = ax.imshow(cells, cmap=COLOURS, norm=norm, origin="lower", aspect="auto")
        ax.set_title(name, fontsize=10)
        ax.set_xlabel("concentration", fontsize=9)
        ax.set_xticks(range(len(across)), [_shown(value) for value in across], fontsize=8)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    axes[0].set_yticks(range(len(down)), [_shown(value) for value in down], fontsize=8)
    axes[0].set_ylabel("" if down == [""] else "alpha", fontsize=9)
    bar = figure.colorbar(image, ax=axes, pad=0.02, aspect=max(4, 4 * len(down)))
    bar.set_label(f"nats per row behind\nthe best, {found[best]:,.4g}", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    bar.ax.invert_yaxis()
    bar.ax.yaxis.set_major_locator(MaxNLocator(5))
    bar.outline.set_visible(False)
    return axes


def size_of_grid(
    panels: Sequence[str], concentrations: Sequence[Any], alphas: Sequence[Any]
) -> tuple[float, float]:
    """Return width and height, in inches, of a figure that makes `plot_grid` easy to read."""
    layout = _layout(panels, concentrations)
    n_across = sum(len(across) for across in layout.values())
    width = WIDE * max(n_across, 2 * len(layout)) + 0.3 * len(layout) + 1.8
    return width, TALL * max(len(_sorted(alphas)), 3) + 1.1


def _layout(panels: Sequence[str], concentrations: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the concentrations of each panel, in order."""
    found: dict[str, list[Any]] = {}
    for name, concentration in zip(panels, concentrations, strict=True):
        found.setdefault(name, []).append(concentration)
    return {name: _sorted(values) for name, values in found.items()}


def _write(ax: Axes, at: tuple[int, int], loss: float, norm: PowerNorm, *, is_best: bool) -> None:
    """Write the loss into a cell; frame the best one."""
    row, column = at
    dark = _shade(float(norm(loss))) < DARK
    ax.text(
        column,
        row,
        "best" if is_best else _digits(loss),
        ha="center",
        va="center",
        fontsize=7,
        fontweight="bold" if is_best else "normal",
        color="white" if dark else "black",
    )
    if is_best:
        corner = (column - 0.47, row - 0.46)
        ax.add_patch(Rectangle(corner, 0.94, 0.92, fill=False, edgecolor=ORANGE, linewidth=2.2))


def _shade(level: float) -> float:
    """Return the lightness of a colour of the map, from 0 to 1."""
    red, green, blue, _ = colormaps[COLOURS](level)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def _digits(loss: float) -> str:
    """Return a loss in about four characters."""
    if loss < 10.0:
        return f"{loss:.2f}" if loss < 1.0 else f"{loss:.1f}"
    return thousands(round(loss))


def _sorted(values: Iterable[Any]) -> list[Any]:
    """Return values once each: numbers in order, then words as they come."""
    once = list(dict.fromkeys(values))
    numbers = [value for value in once if not isinstance(value, str)]
    return sorted(numbers) + [value for value in once if isinstance(value, str)]


def _shown(value: Any) -> str:
    """Return a value for an axis."""
    if isinstance(value, str):
        return value
    return f"{value:.3g}" if value < 1000.0 else f"{value / 1000.0:.3g}k"
