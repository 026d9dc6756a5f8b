"""One face for every method of the comparison: load rows, learn, and say what was learnt.

Training is timed from rows in memory, in the form that a method takes: `load` brings them there
and is not timed. Every method has one thread.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream import StreamingMixture
from peers_corpora import Floats, Rows

COMPILED_WITH = 200
PIECES = 16


class Watch:
    """Count seconds of training; from time to time stop the clock and look at the figure."""

    def __init__(self, figure: Callable[[], float] | None) -> None:
        self.trace: list[tuple[float, float]] = []
        self._figure = figure
        self._next_look = 0.0
        self.restart()

    def restart(self) -> None:
        """Count from zero."""
        self.seconds = 0.0
        self._started = time.perf_counter()

    def look(self) -> None:
        """Note the figure, if as much time again has passed as there was until the last look."""
        self.seconds += time.perf_counter() - self._started
        if self._figure is not None and self.seconds >= self._next_look:
            self.trace.append((self.seconds, self._figure()))
            self._next_look = 2.0 * self.seconds
        self._started = time.perf_counter()

    def stop(self) -> None:
        """Note the figure at the end."""
        self.seconds += time.perf_counter() - self._started
        if self._figure is not None:
            self.trace.append((self.seconds, self._figure()))


class Learner(ABC):
    """A method with its settings, before and after training."""

    completes = True
    """Whether there are word probabilities to complete documents with."""

    def __init__(self, seed: int, **settings: Any) -> None:
        self.seed = seed
        self.settings = settings

    @abstractmethod
    def load(self, rows: Rows) -> int:
        """Take training rows in the method's own form; return how many will be learnt from."""

    @abstractmethod
    def learn(self, watch: Watch) -> None:
        """Train, and let the watch look after each step."""

    def assign(self, rows: Rows) -> NDArray[np.intp]:
        """Return the cluster or the largest topic of every row."""
        largest: NDArray[np.intp] = self.shares(rows).argmax(axis=1)
        return largest

    def shares(self, rows: Rows) -> Floats:
        """Return theta of every row, shape (n, K)."""
        raise NotImplementedError

    def word_probabilities(self) -> Floats:
        """Return phi, shape (K, V)."""
        raise NotImplementedError


class Streaming(Learner):
    """bnpstream's `StreamingMixture`; theta are the responsibilities of a document's cluster."""

    def load(self, rows: Rows) -> int:
        self.rows = rows
        self.model = StreamingMixture(**self.settings)
        StreamingMixture(**self.settings).fit(rows[:COMPILED_WITH])
        return rows.shape[0]

    def learn(self, watch: Watch) -> None:
        n_passes = self.settings.get("n_passes", 1)
        if n_passes > 1:
            self._learn_afresh(n_passes, watch)
            return
        cuts = np.linspace(0, self.rows.shape[0], PIECES + 1).astype(int)
        for start, end in pairwise(cuts.tolist()):
            self.model.partial_fit(self.rows[start:end])
            watch.look()
        self.model.finish()

    def _learn_afresh(self, n_passes: int, watch: Watch) -> None:
        """Fit with ever more passes; the time of each is that of the whole fit."""
        for passes in range(2, n_passes + 1):
            watch.restart()
            self.model.set_params(n_passes=passes).fit(self.rows)
            watch.look()

    def shares(self, rows: Rows) -> Floats:
        return self.model.predict_proba(rows)

    def word_probabilities(self) -> Floats:
        return self.model.means_
