"""Checks of single values: errors say what is wrong and what is allowed."""

import re
from numbers import Integral, Real
from typing import Any

import numpy as np

from bnpstream.kernels.arrays import Floats

EPOCH, SECOND = np.datetime64(0, "s"), np.timedelta64(1, "s")
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


def require_whole(name: str, value: Any, least: int) -> int:
    """Return a whole number >= least; otherwise ValueError says what is allowed."""
    if not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
    return int(value)


def require_number(name: str, value: Any, low: float, high: float) -> float:
    """Return a number in [low, high); otherwise ValueError says what is allowed."""
    if not isinstance(value, Real) or not low <= float(value) < high:
        raise ValueError(f"{name} must be in [{low:g}, {high:g}), got {value!r}")
    return float(value)


def require_bytes(value: Any) -> int:
    """Return an amount of memory in bytes, given as a number or such as "512MB".

    Examples
    --------
    >>> require_bytes(1000), require_bytes("1.5 kB"), require_bytes("2GB")
    (1000, 1500, 2000000000)
    """
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMG]?)B?\s*", value, re.IGNORECASE)
        if found is not None:
            return int(float(found[1]) * UNITS[found[2].upper()])
    elif isinstance(value, Integral) and int(value) >= 1:
        return int(value)
    raise ValueError(
        f'max_memory must be a number of bytes, or a size such as "512MB" or "2GB", got {value!r}'
    )


def require_weights(sample_weight: Any, n_rows: int) -> Floats | None:
    """Return one weight >= 0 per row, or None if all are one."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one number per row ({n_rows}), but its shape is "
            f"{weights.shape}"
        )
    bad = ~((weights >= 0) & np.isfinite(weights))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"sample_weight[{row}] must be finite and >= 0, got {weights[row]}")
    if not weights.any():
        raise ValueError("sample_weight is zero for all rows: at least one must be above zero")
    return None if (weights == 1.0).all() else weights


def require_stamps(
    timestamps: Any, n_rows: int, half_life: float | None, by_time: bool | None
) -> Floats | None:
    """Return one time per row as a number, seconds for datetime64; None if rows are counted.

    Parameters
    ----------
    timestamps : array-like of shape (n_rows,) or None
        Times of the rows. ValueError names a bad one.
    n_rows : int
        Number of rows.
    half_life : float or None
        Time, or rows, after which a row counts half.
    by_time : bool or None
        Whether earlier rows had timestamps; None if there were none.

    Examples
    --------
    >>> import numpy as np
    >>> require_stamps(np.array(["1970-01-01", "1970-01-02"], "datetime64[D]"), 2, 3600.0, None)
    array([    0., 86400.])
    """
    if half_life is None:
        if timestamps is None:
            return None
        raise ValueError(
            "timestamps are used for forgetting only: give half_life in the same units "
            "(seconds for datetime64), or leave them out"
        )
    if timestamps is None:
        if by_time:
            raise ValueError(
                "earlier rows had timestamps, and half_life is a time: give timestamps"
            )
        return None
    if by_time is False:
        raise ValueError(
            "earlier rows had no timestamps, so half_life counts rows: leave timestamps out, or "
            "call fit"
        )
    given = np.asarray(timestamps)
    if given.dtype.kind not in "biufM":
        raise ValueError(
            f"timestamps must be numbers or datetime64, got an array of {given.dtype}: "
            "convert dates with numpy.asarray(timestamps, 'datetime64[us]')"
        )
    if given.shape != (n_rows,):
        raise ValueError(
            f"timestamps must have one time per row ({n_rows}), but their shape is {given.shape}"
        )
    seconds = (given - EPOCH) / SECOND if given.dtype.kind == "M" else given.astype(np.float64)
    bad = ~np.isfinite(seconds)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"row {row}, its timestamp is {given[row]}: timestamps must be finite")
    return seconds
