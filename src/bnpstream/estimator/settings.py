"""What the parameters of a streaming estimator amount to: settings of a visit, and a schedule."""

import dataclasses
import re
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from bnpstream.estimator.base import MixtureEstimator, require_number, require_whole
from bnpstream.inference import adf, window
from bnpstream.inference.budget import NO_BUDGET, Budget
from bnpstream.likelihoods import ColumnLikelihood
from bnpstream.priors import Prior

LOWEST_DEFAULT_THRESHOLD = 0.1
EVEN_ODDS = 0.0
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


def budget_of(max_clusters: Any, max_memory: Any) -> Budget:
    """Return a checked budget."""
    if max_clusters is not None:
        require_whole("max_clusters", max_clusters, 2)
    return Budget(max_clusters, None if max_memory is None else require_bytes(max_memory))


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
    raise ValueError(f'max_memory must be bytes, or such as "512MB" or "2GB", got {value!r}')


def settings_of(
    prior: Prior,
    new_cluster_threshold: Any,
    min_responsibility: Any,
    prune_threshold: Any = None,
    budget: Budget = NO_BUDGET,
) -> adf.Settings:
    """Return checked settings of a visit, with the prior's defaults for what is None."""
    sigma, threshold = prior.smallest_mass, new_cluster_threshold
    if threshold is None:
        threshold = max(sigma, LOWEST_DEFAULT_THRESHOLD)
    if not (isinstance(threshold, Real) and sigma <= float(threshold) < 1.0):
        raise ValueError(
            f"new_cluster_threshold (epsilon) must be in [{sigma:g}, 1), not below the prior's "
            f"discount {sigma:g} (a cluster opened with less mass has no weight), "
            f"got {threshold!r}"
        )
    cut = require_number("min_responsibility", min_responsibility, 0.0, 1.0)
    prune = threshold if prune_threshold is None else prune_threshold
    least = require_number("prune_threshold", prune, 0.0, 1.0)
    return adf.Settings(float(threshold), cut, least, budget)


class ScheduledEstimator(MixtureEstimator):
    """A mixture whose rows may be revisited and whose clusters may be merged."""

    new_cluster_threshold: float | None
    min_responsibility: float
    prune_threshold: float | None
    n_passes: int
    revisit: int | Literal["all"]
    n_revisits: int
    tol: float
    keep_sites: bool
    merge_threshold: float | Literal["auto"] | None
    merge_every: int
    max_clusters: int | None
    max_memory: int | str | None

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

    def _settings(self) -> adf.Settings:
        return self._settings_for(self._prior())

    def _settings_for(self, prior: Prior) -> adf.Settings:
        return settings_of(
            prior,
            self.new_cluster_threshold,
            self.min_responsibility,
            self.prune_threshold,
            budget_of(self.max_clusters, self.max_memory),
        )
