"""What the parameters of `StreamingMixture` amount to: when rows are revisited."""

import dataclasses
from typing import Literal

import numpy as np

from bnpstream.estimators.base import require_number, require_whole
from bnpstream.estimators.visiting import VisitingEstimator
from bnpstream.inference import window
from bnpstream.likelihoods import ColumnLikelihood

EVEN_ODDS = 0.0


class ScheduledEstimator(VisitingEstimator):
    """A mixture whose rows may be revisited and whose clusters may be merged."""

    n_passes: int
    revisit: int | Literal["all"]
    n_revisits: int
    tol: float
    keep_sites: bool
    merge_threshold: float | Literal["auto"] | None
    merge_every: int

    def _schedule(self, *, batch_fit: bool) -> window.Schedule | None:
        """Return when rows are revisited and clusters merged, or None for plain ADF."""
        n_passes = require_whole("n_passes", self.n_passes, 1)
        size = None if self.revisit == "all" else require_whole("revisit", self.revisit, 0)
        n_revisits = require_whole("n_revisits", self.n_revisits, 1)
        merge_every = require_whole("merge_every", self.merge_every, 1)
        require_number("tol", self.tol, 0.0, np.inf)
        threshold = self._given_merge_threshold()
        self._check_engine()
        self._settings()
        if n_passes > 1 and size != 0:
            raise ValueError(
                f"n_passes={n_passes} revisits all rows of fit and revisit={self.revisit!r} those "
                "of a stream: give one of them"
            )
        if self.keep_sites and size != 0:
            raise ValueError(
                f"keep_sites=True keeps all sites, revisit={self.revisit!r} the rows too: give one"
            )
        merging = (self.tol, threshold)
        if batch_fit and n_passes > 1:
            return window.Schedule(None, n_passes - 1, *merging)
        if size != 0:
            return window.Schedule(size, n_revisits, *merging)
        if self.keep_sites:
            return window.Schedule(None, 0, *merging)
        if threshold is not None:
            return window.Schedule(merge_every, 0, *merging)
        return None

    def _given_merge_threshold(self) -> float | None:
        """Return the log odds that merges must exceed on the way; None if there are none."""
        if self.merge_threshold is None or self.merge_threshold == "auto":
            return None
        return require_number("merge_threshold", self.merge_threshold, -np.inf, np.inf)

    def _last_merges(self, schedule: window.Schedule) -> window.Schedule | None:
        """Return a schedule of merges once all passes over rows of cells are done, or None."""
        all_passes = schedule.size is None and schedule.n_revisits > 0
        cells = isinstance(self.likelihood_, ColumnLikelihood)
        if self.merge_threshold == "auto" and all_passes and cells:
            return dataclasses.replace(schedule, merge_threshold=EVEN_ODDS)
        return None
