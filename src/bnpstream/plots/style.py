"""Shared by all plots."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

BLUE, ORANGE, PURPLE, GREEN = "#0072b2", "#d55e00", "#cc79a7", "#009e73"
"""Colours of the Okabe-Ito palette, which work for every kind of colour vision."""

SIZE = (5.6, 3.2)
"""Size in inches of a picture made for half the width of a page."""


def axes_of(ax: Axes | None, size: tuple[float, float] = SIZE) -> Axes:
    """Return `ax`, or the axes of a new figure of this size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt  # here: it chooses a backend, which a given axes has

    return plt.subplots(figsize=size, layout="constrained")[1]


def tidy(ax: Axes) -> Axes:
    """Remove the upper and right sides of the frame; draw a faint grid behind the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", linewidth=0.5, alpha=0.3)
    ax.set_axisbelow(True)
    return ax


def stream_axes(ax: Axes | None, last: float, label: str = "") -> Axes:
    """Return `ax`, or new axes, for data along the stream up to the last row seen."""
    ax = tidy(axes_of(ax))
    ax.set_xlabel("rows seen")
    ax.set_xlim(0, max(float(last), 1.0))
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.xaxis.set_major_formatter(FuncFormatter(thousands))
    ax.set_ylabel(label)
    return ax


def thousands(value: float, position: Any = None) -> str:
    """Return a number with separators; shorten thousands and millions if nothing is lost.

    Examples
    --------
    >>> [thousands(x) for x in (0, 800, 1500, 20_000, 3_000_000)]
    ['0', '800', '1,500', '20k', '3M']
    """
    for unit, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        scaled = round(value / unit, 1)
        if abs(value) >= 10 * unit or (abs(value) >= unit and value % unit == 0):
            return f"{scaled:g}{name}"
    return f"{value:,.10g}"
