"""Small pictures of a cluster: its trend, and its mean as an image."""

from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.image import imsave
from numpy.typing import ArrayLike, NDArray

from bnpstream.plots.style import BLUE, ORANGE

HEIGHT = 20
"""Height of a trend, in units of the width of a bin."""

LARGEST = 64
"""Largest side of an image on the page, in pixels; larger images are shrunk."""


def trend_path(shares: ArrayLike) -> str:
    """Return the outline of a histogram as an SVG path; a bin is 1 wide, the path `HEIGHT` high.

    Examples
    --------
    >>> trend_path([0, 2, 1])
    'M0 20V20H1V0H2V10H3V20Z'
    """
    values = np.asarray(shares, dtype=float)
    tops = HEIGHT * (1 - values / max(values.max(initial=0.0), 1e-300))
    steps = "".join(f"V{short(top)}H{i}" for i, top in enumerate(tops, start=1))
    return f"M0 {HEIGHT}{steps}V{HEIGHT}Z"


def ink(mean: Sequence[float] | None, shape: tuple[int, int] | None) -> str | None:
    """Return an image as a data URI, in black; larger values are more opaque. None if unknown."""
    if mean is None or shape is None:
        return None
    values = shrink(np.asarray(mean, dtype=float).reshape(shape))
    low, high = min(0.0, float(values.min())), float(values.max())
    pixels = np.zeros((*values.shape, 4))
    pixels[..., 3] = (values - low) / max(high - low, 1e-300)
    return _data_uri(pixels)


def difference(mean: Sequence[float], of_all: ArrayLike, shape: tuple[int, int]) -> str:
    """Return the difference of two images: orange if the first is larger, blue if smaller."""
    values = shrink((np.asarray(mean, dtype=float) - np.asarray(of_all)).reshape(shape))
    pixels = np.zeros((*values.shape, 4))
    pixels[..., :3] = np.where(values[..., None] > 0, to_rgb(ORANGE), to_rgb(BLUE))
    pixels[..., 3] = np.abs(values) / max(float(np.abs(values).max()), 1e-300)
    return _data_uri(pixels)


def shrink(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an image, averaged over blocks if it is larger than the page shows.

    Examples
    --------
    >>> shrink(np.ones((130, 10))).shape
    (44, 4)
    """
    step = -(-max(image.shape) // LARGEST)
    if step == 1:
        return image
    for axis in (0, 1):
        starts = np.arange(0, image.shape[axis], step)
        sizes = np.diff(np.append(starts, image.shape[axis]))
        sums = np.add.reduceat(image, starts, axis=axis)
        image = sums / (sizes[:, None] if axis == 0 else sizes)
    return image


def short(value: float) -> str:
    """Return a coordinate with one decimal, unless it is whole."""
    return f"{value:.1f}".removesuffix(".0")


def _data_uri(pixels: NDArray[np.float64]) -> str:
    file = BytesIO()
    unsigned = {"Software": None}
    imsave(file, pixels, format="png", metadata=unsigned)  # type: ignore[arg-type]
    return "data:image/png;base64," + b64encode(file.getvalue()).decode()
