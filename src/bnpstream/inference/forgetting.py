"""Forgetting: rows count less and less, half as much after each half-life.

At fixed row counts, or at fixed times, everything that rows have added is multiplied by one factor:
statistics, masses, log vacancies, and with them n of the prior's rule and E[K']. A row in the
window is down-weighted by the same factor, so the posterior remains the weighted sum of the sites.
Clusters that have become too light are retired.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bnpstream.inference.response import Settings
from bnpstream.inference.retirement import retire
from bnpstream.kernels.arrays import Floats, Integers
from bnpstream.mixture import Event, MixtureState, Model
from bnpstream.mixture.window import Window

TICKS, FIRST_TICKS = 8, 64
"""Steps per half-life, 8.3 % each; and those of streams saved without their number."""
LAST = 2**62
"""Most ticks: more than the whole numbers in the range of a double need."""


@dataclass
class Clock:
    """Counts ticks, by rows or by time.

    Parameters
    ----------
    half_life : float
        Rows, or time, after which a row counts half.
    by_time : bool
        Whether it is a time.
    origin : float
        Row count or time at which ticks start.
    per_half_life : int
        Ticks per half-life. After each half-life, negligible statistics are cleared and the bounds
        of the screen are lowered; bounds that are an octave too high cost less than lowering them.
    n_ticks : int
        Ticks so far.
    """

    half_life: float
    by_time: bool
    origin: float
    per_half_life: int = TICKS
    n_ticks: int = 0

    @property
    def interval(self) -> float:
        """Return the number of rows or the time between two ticks."""
        interval = self.half_life / self.per_half_life
        return interval if self.by_time else max(1.0, float(round(interval)))

    @property
    def factor(self) -> float:
        """Return the factor of a tick."""
        return float(0.5 ** (self.interval / self.half_life))

    def ticks(self, n_before: int, n_rows: int, stamps: Floats | None) -> "Ticks":
        """Return the ticks before each of some rows, without moving the clock.

        Parameters
        ----------
        n_before : int
            Rows absorbed so far.
        n_rows : int
            Number of these rows.
        stamps : ndarray of shape (n_rows,) or None
            Their times. A row that comes late has the time of the row before it.
        """
        at = np.arange(n_before, n_before + n_rows) if stamps is None else stamps
        passed = np.clip(np.floor((at - self.origin) / self.interval), self.n_ticks, LAST)
        return Ticks(self, np.maximum.accumulate(passed.astype(np.int64)))


class Ticks(NamedTuple):
    """When the clock ticks while some rows arrive."""

    clock: Clock
    reached: Integers
    """(n,): ticks before each row, since the start of the stream."""

    def part(self, start: int, stop: int) -> "Ticks":
        """Return the ticks of rows start..stop-1."""
        return Ticks(self.clock, self.reached[start:stop])

    @property
    def places(self) -> Integers:
        """Return the rows, except the first, before which it ticks."""
        return np.flatnonzero(np.diff(self.reached)) + 1

    def room(self, i: int) -> int:
        """Return the number of rows, from row i on, before it ticks again."""
        return int(np.searchsorted(self.reached, self.reached[i], side="right")) - i

    def before(
        self,
        i: int,
        model: Model,
        state: MixtureState,
        settings: Settings,
        window: Window | None = None,
    ) -> list[Event]:
        """Let the clock tick as often as it must before row i; return the clusters retired.

        Parameters
        ----------
        i : int
            The row to be absorbed next.
        model, state
            The posterior; changed in place.
        settings : Settings
            Clusters with less than `least_mass` are retired.
        window : Window, optional
            The rows that can be revisited; rows with less weight than that are frozen.
        """
        clock, now = self.clock, int(self.reached[i])
        due, thinned = now - clock.n_ticks, clock.n_ticks // clock.per_half_life
        if due == 0:
            return []
        clock.n_ticks, thin = now, now // clock.per_half_life > thinned
        factor = clock.factor**due
        state.fade(factor, model.likelihood, thin=thin)
        if window is not None:
            window.fade(factor)
            if window.keep_rows:
                window.freeze_faint(settings.least_mass)
        sites = [] if window is None else [window.sites]
        light = np.flatnonzero(state.masses < settings.least_mass)[::-1]
        return [retire(state, sites, slot) for slot in light.tolist()]
