"""The settings of a stream, validated once."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, Literal

import numpy as np

from bnpstream.engine.checks import require_bytes, require_number, require_whole
from bnpstream.inference.budget import Budget
from bnpstream.inference.merge import EVEN_ODDS
from bnpstream.inference.response import Settings as VisitSettings
from bnpstream.inference.window import Schedule
from bnpstream.mixture.model import ENGINES
from bnpstream.priors import Prior

LOWEST_DEFAULT_THRESHOLD = 0.1
SERIAL: dict[str, tuple[tuple[Any, ...], str]] = {
    "revisit": ((0, "all"), "revisits earlier rows between new ones"),
    "keep_sites": ((False,), "keeps what each row has added to clusters that all blocks share"),
    "merge_threshold": (
        (None, "auto"),
        "merges clusters by the rows that they share, across blocks",
    ),
    "split_threshold": ((None,), "splits clusters by their rows, across blocks"),
    "half_life": ((None,), "fades all rows by one clock"),
}
"""Settings that a parallel pass over blocks only allows these values of, and why."""


@dataclass(frozen=True)
class Settings:
    """How a stream is absorbed, revisited, merged and forgotten.

    Every interface offers these under the same names; `StreamingMixture` explains them.
    `n_jobs` is the number of threads.
    """

    prefix_rows: int = 500
    new_cluster_threshold: float | None = None
    min_responsibility: float = 1e-4
    max_responsibilities: int | None = 4
    prune_threshold: float | None = None
    n_passes: int = 1
    revisit: int | Literal["all"] = 0
    n_revisits: int = 1
    tol: float = 1e-4
    keep_sites: bool = False
    merge_threshold: float | Literal["auto"] | None = "auto"
    merge_every: int = 1000
    split_threshold: float | None = None
    max_clusters: int | None = None
    max_memory: int | str | None = None
    engine: Literal["auto", "compiled", "reference"] = "auto"
    n_jobs: int = 1
    half_life: float | None = None
    staleness: int = 0
    block_rows: int = 16_384
    learn_threads: int = 1
    n_topics: int | None = None
    granularity: float = 1.0

    def check(self, prior: Prior) -> None:
        """Raise ValueError for an invalid setting, even if it is not used."""
        require_whole("prefix_rows", self.prefix_rows, 1)
        if self.engine not in ENGINES:
            raise ValueError(
                f'engine must be "auto", "compiled" or "reference", got {self.engine!r}'
            )
        if self.n_topics is not None:
            require_whole("n_topics", self.n_topics, 1)
        fine: Any = self.granularity
        if not (isinstance(fine, Real) and 0.0 < float(fine) < np.inf):
            raise ValueError(f"granularity must be a finite number > 0, got {fine!r}")
        value: Any = self.half_life
        if value is not None and not (isinstance(value, Real) and 0.0 < float(value) < np.inf):
            raise ValueError(
                f"half_life must be a finite number > 0 of rows or of time, or None, got {value!r}"
            )
        self.schedule(all_rows=False)
        self._check_threads()
        self.visit(prior)

    def _check_threads(self) -> None:
        """Raise ValueError if blocks cannot be absorbed in parallel with the other settings."""
        require_whole("staleness", self.staleness, 0)
        require_whole("block_rows", self.block_rows, 1)
        threads = require_whole("learn_threads", self.learn_threads, 1)
        if self.staleness == 0:
            if threads > 1:
                raise ValueError(
                    f"learn_threads={threads} needs blocks that can be absorbed in parallel, but "
                    "with staleness=0 every row needs all rows before it: give staleness=1 or more"
                )
            return
        for name, (plain, reason) in SERIAL.items():
            value = getattr(self, name)
            if value not in plain:
                raise ValueError(
                    f"staleness={self.staleness} absorbs blocks of rows in parallel, but "
                    f"{name}={value!r} {reason}: give one of them"
                )
        limit = "max_clusters" if self.max_clusters is not None else "max_memory"
        if (self.n_passes > 1 or self.revisit != 0) and getattr(self, limit) is not None:
            raise ValueError(
                f"staleness={self.staleness} sweeps over blocks of rows in parallel, not with "
                f"{limit}={getattr(self, limit)!r}: give one of them, or a single pass"
            )

    @property
    def round_rows(self) -> int:
        """Return the number of rows that are absorbed in parallel."""
        return (self.staleness + 1) * self.block_rows

    @cached_property
    def budget(self) -> Budget:
        """Return the limits on clusters and memory of the posterior."""
        if self.max_clusters is not None:
            require_whole("max_clusters", self.max_clusters, 2)
        memory = None if self.max_memory is None else require_bytes(self.max_memory)
        return Budget(self.max_clusters, memory)

    def visit(self, prior: Prior) -> VisitSettings:
        """Return how a row is visited, with the prior's defaults for None."""
        sigma = prior.smallest_mass
        threshold: Any = self.new_cluster_threshold
        if threshold is None:
            threshold = max(sigma, LOWEST_DEFAULT_THRESHOLD)
        if not (isinstance(threshold, Real) and sigma <= float(threshold) < 1.0):
            raise ValueError(
                f"new_cluster_threshold (epsilon) must be in [{sigma:g}, 1), not below the prior's "
                f"discount {sigma:g} (a cluster opened with less mass has no weight), "
                f"got {threshold!r}"
            )
        cut = require_number("min_responsibility", self.min_responsibility, 0.0, 1.0)
        prune = threshold if self.prune_threshold is None else self.prune_threshold
        least = require_number("prune_threshold", prune, 0.0, 1.0)
        most = self.max_responsibilities
        if most is not None:
            most = require_whole("max_responsibilities", most, 1)
        return VisitSettings(float(threshold), cut, least, self.budget, most)

    @property
    def most_discount(self) -> float:
        """Return the largest discount that a prior may learn, which a given threshold bounds."""
        given = self.new_cluster_threshold
        return 1.0 if given is None else float(given)

    def schedule(self, *, all_rows: bool) -> Schedule | None:
        """Return when rows are revisited and clusters merged, or None for plain ADF.

        Parameters
        ----------
        all_rows : bool
            Whether all rows are given at once, so that `n_passes` applies.
        """
        n_passes = require_whole("n_passes", self.n_passes, 1)
        size = None if self.revisit == "all" else require_whole("revisit", self.revisit, 0)
        n_revisits = require_whole("n_revisits", self.n_revisits, 1)
        merge_every = require_whole("merge_every", self.merge_every, 1)
        require_number("tol", self.tol, 0.0, np.inf)
        if n_passes > 1 and size != 0:
            raise ValueError(
                f"n_passes={n_passes} revisits all rows of fit, revisit={self.revisit!r} those of "
                "a stream: give only one of them"
            )
        if self.keep_sites and size != 0:
            raise ValueError(
                f"keep_sites=True keeps all sites, revisit={self.revisit!r} rows too: give only one"
            )
        if self.split_odds is not None and n_passes == 1 and size == 0 and not self.keep_sites:
            raise ValueError(
                f"split_threshold={self.split_threshold!r} splits clusters by rows that are "
                "revisited: also give revisit=..., n_passes=... or keep_sites=True"
            )
        merging = (self.tol, self.merge_odds, self.split_odds)
        if all_rows and n_passes > 1:
            return Schedule(None, n_passes - 1, *merging)
        if size != 0:
            return Schedule(size, n_revisits, *merging)
        if self.keep_sites:
            return Schedule(None, 0, *merging)
        if self.merge_odds is not None:
            return Schedule(merge_every, 0, *merging)
        return None

    @property
    def merge_odds(self) -> float | None:
        """Return the log odds that merges along the stream must exceed; None for no merges."""
        if self.merge_threshold is None or self.merge_threshold == "auto":
            return None
        return require_number("merge_threshold", self.merge_threshold, -np.inf, np.inf)

    @property
    def split_odds(self) -> float | None:
        """Return the log odds that splits must exceed; None for no splits."""
        if self.split_threshold is None:
            return None
        merged = self.merge_odds or 0.0  # a split must not be undone by the next merge
        return require_number("split_threshold", self.split_threshold, max(0.0, -merged), np.inf)

    def last_merges(self, schedule: Schedule) -> Schedule | None:
        """Return a schedule of merges after all passes, as "auto" asks for; or None."""
        all_passes = schedule.size is None and schedule.n_revisits > 0
        if self.merge_threshold == "auto" and all_passes:
            return dataclasses.replace(schedule, merge_threshold=EVEN_ODDS, split_threshold=None)
        return None
