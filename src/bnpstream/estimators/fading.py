"""The parameter `half_life`, and time stamps: what both estimators that forget share."""

from dataclasses import asdict
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream.estimators.base import MixtureEstimator
from bnpstream.inference.forgetting import Clock, Ticks

Floats = NDArray[np.float64]

EPOCH, SECOND = np.datetime64(0, "s"), np.timedelta64(1, "s")


class ForgettingEstimator(MixtureEstimator):
    """A mixture whose rows count for half after a half-life.

    Fitted, with a half-life, it has `clock_`: how far it has come.
    """

    half_life: float | None
    clock_: Clock

    def _check_half_life(self) -> None:
        value: Any = self.half_life
        if value is not None and not (isinstance(value, Real) and 0.0 < float(value) < np.inf):
            raise ValueError(
                f"half_life must be a finite number > 0 of rows or of time, or None, got {value!r}"
            )

    def _stamps(self, timestamps: Any, n_rows: int, by_time: bool | None) -> Floats | None:
        """Return the times of rows, or None if they are counted; ValueError names a bad one.

        Parameters
        ----------
        timestamps : array-like of shape (n_rows,) or None
            Numbers, or datetime64.
        n_rows : int
            Rows of this call.
        by_time : bool or None
            Whether earlier rows had times; None if there are none.
        """
        self._check_half_life()
        if timestamps is not None and self.half_life is None:
            raise ValueError(
                "timestamps say how much is forgotten between rows: give half_life in the same "
                "units, seconds for datetime64, or leave them out"
            )
        if by_time is not None and self.half_life is not None:
            if by_time and timestamps is None:
                raise ValueError(
                    "the rows before these had timestamps, and half_life is a time: give timestamps"
                )
            if not by_time and timestamps is not None:
                raise ValueError(
                    "the rows before these had no timestamps, and half_life counts rows: "
                    "leave timestamps out, or call fit"
                )
        return None if timestamps is None else as_stamps(timestamps, n_rows)

    def _ticks(self, n_before: int, n_rows: int, stamps: Floats | None) -> Ticks | None:
        """Return when earlier rows fade while these come, or None if nothing is forgotten."""
        if self.half_life is None:
            self.__dict__.pop("clock_", None)
            return None
        by_time, half_life = stamps is not None, float(self.half_life)
        clock: Clock | None = vars(self).get("clock_")
        if clock is None or clock.half_life != half_life:  # another one: ticks begin anew
            origin = float(n_before) if stamps is None else float(stamps[0])
            self.clock_ = clock = Clock(half_life, by_time, origin)
        return clock.ticks(n_before, n_rows, stamps)

    def _save_clock(self, document: dict[str, Any]) -> None:
        if "clock_" in vars(self):
            document["clock"] = asdict(self.clock_)

    def _load_clock(self, document: dict[str, Any]) -> None:
        if "clock" in document:
            self.clock_ = Clock(**document["clock"])


def as_stamps(timestamps: Any, n_rows: int) -> Floats:
    """Return one number a row, seconds for datetime64; ValueError names what is none.

    Examples
    --------
    >>> import numpy as np
    >>> as_stamps(np.array(["1970-01-01", "1970-01-02"], "datetime64[D]"), 2)
    array([    0., 86400.])
    """
    given = np.asarray(timestamps)
    if given.dtype.kind not in "biufM":
        raise ValueError(
            f"timestamps must be numbers or datetime64, got an array of {given.dtype}: "
            "numpy.asarray(timestamps, 'datetime64[us]') makes such of dates"
        )
    if given.shape != (n_rows,):
        raise ValueError(
            f"timestamps must be one a row, {n_rows}, got an array of shape {given.shape}"
        )
    seconds = (given - EPOCH) / SECOND if given.dtype.kind == "M" else given.astype(np.float64)
    bad = ~np.isfinite(seconds)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"row {row}, its timestamp is {given[row]}: it must be a finite time")
    return seconds
