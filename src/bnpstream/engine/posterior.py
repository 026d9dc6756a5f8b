"""A posterior's answers about its clusters, and about rows that it has not absorbed."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bnpstream.engine.encoder import Encoder
from bnpstream.inference.tree import MergeTree, merge_tree
from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.passes.steps import NEGLIGIBLE
from bnpstream.likelihoods import Batch
from bnpstream.likelihoods.telling import Telling, telling_words
from bnpstream.mixture import (
    KernelArguments,
    MixtureState,
    Model,
    log_joint,
    log_prior_weights,
)

SCORED_CELLS = 4_000_000
"""Most (row, cluster) scores held at a time: 32 MB."""
DRAWS = 256
"""Draws for an expectation: the mean is then known to a sixteenth of the spread."""


class Posterior(NamedTuple):
    """A model and its state; clusters are in order of id."""

    model: Model
    state: MixtureState
    encoder: Encoder
    kernel_for: Callable[[Model, Batch], KernelArguments | None]

    @property
    def order(self) -> NDArray[np.intp]:
        """Return the slots of all clusters, by ascending id."""
        return np.argsort(self.state.ids)

    @property
    def ids(self) -> NDArray[np.int64]:
        """Return the stable ids, ascending, shape (K,)."""
        return np.sort(self.state.ids)

    @property
    def weights(self) -> Floats:
        """Return S_k / sum S, shape (K,)."""
        masses = self.state.masses[self.order]
        weights: Floats = masses / masses.sum()
        return weights

    def statistics(self, slots: NDArray[np.integer]) -> Floats:
        """Return the statistics of some slots; the first free one is the prior."""
        return self.encoder.statistics(self.state, slots.astype(np.int64, copy=False))

    def means(self, slots: NDArray[np.integer] | None = None) -> Floats:
        """Return the posterior mean parameters of some slots, by default of all in order."""
        chosen = self.order if slots is None else slots
        return self.encoder.means(self.model.likelihood.posterior_mean(self.statistics(chosen)))

    def mean(self, k: int) -> Floats:
        """Return the posterior mean parameters of the cluster at a position in `ids`."""
        mean: Floats = self.means(self.order[k : k + 1])[0]
        return mean

    def telling(self, n: int, groups: NDArray[np.integer] | None = None) -> list[Telling]:
        """Return the n words that tell each cluster, or group of clusters, apart.

        Parameters
        ----------
        n : int
            Words per group.
        groups : ndarray of shape (K,), optional
            Group of each cluster in the order of `ids`, from 0 on; by default each is its own.
        """
        order = self.order
        counts = self.encoder.counts(self.state.sparse_rows(order))
        return telling_words(counts, self.state.masses[order], n, groups)

    def log_joint(
        self, batch: Batch, *, log_cut: float = NEGLIGIBLE, new: bool = True
    ) -> list[Floats]:
        """Return log joints in blocks of rows: clusters in order of id, the new one last.

        Without `new`, a new cluster has no weight. Entries more than `log_cut` below the best may
        be -inf.
        """
        model, state = self.model, self.state
        log_weights = log_prior_weights(model.prior, state)[0]
        if not new:
            log_weights[-1] = -np.inf
        columns = np.append(self.order, state.n_clusters)
        rows = max(1, SCORED_CELLS // columns.size)
        parts = [batch.part(start, start + rows) for start in range(0, len(batch), rows)]
        return [
            log_joint(
                model, state, part, self.kernel_for(model, part), log_weights, log_cut=log_cut
            )[:, columns]
            for part in parts
        ]

    def best(self, batch: Batch) -> NDArray[np.intp]:
        """Return the position in `ids` of the most likely cluster of each row."""
        blocks = self.log_joint(batch, log_cut=0.0, new=False)
        return np.concatenate([np.argmax(block[:, :-1], axis=1) for block in blocks])

    def assigned(self, batch: Batch) -> tuple[NDArray[np.intp], NDArray[np.int64], Floats]:
        """Return position and id of each row's most likely cluster, and its responsibility."""
        found = [likeliest(block[:, :-1]) for block in self.log_joint(batch, new=False)]
        best, shares = (np.concatenate(part) for part in zip(*found, strict=True))
        return best, self.ids[best], shares

    def responsibilities(self, batch: Batch) -> Floats:
        """Return the responsibilities of each row without a new cluster, shape (n, K)."""
        blocks = []
        for block in self.log_joint(batch, new=False):
            known = block[:, :-1]
            blocks.append(np.exp(known - logsumexp(known, axis=1, keepdims=True)))
        return np.concatenate(blocks)

    def log_predictives(self, batch: Batch) -> Floats:
        """Return the log predictive of each row, including a new cluster, shape (n,)."""
        return np.concatenate([logsumexp(block, axis=1) for block in self.log_joint(batch)])

    def novelty(self, batch: Batch) -> Floats:
        """Return the responsibility of a new cluster for each row, shape (n,)."""
        blocks = self.log_joint(batch)
        return np.concatenate([np.exp(b[:, -1] - logsumexp(b, axis=1)) for b in blocks])

    def surprise(self, batch: Batch) -> Floats:
        """Return how far log predictives are below their expectation, relative to their spread."""
        likelihood = self.model.likelihood

        def draw(**options: Any) -> Any:
            """Return rows drawn from the posterior predictive, the same ones every time."""
            return self.sample(DRAWS, np.random.default_rng(0), **options)[0]

        def score(rows: Any) -> tuple[float, float]:
            found = self.log_predictives(likelihood.encode(rows))
            return float(found.mean()), max(float(found.std()), np.finfo(float).tiny)

        mean, spread = likelihood.expected_score(batch, draw, score)
        return (mean - self.log_predictives(batch)) / spread

    def sample(
        self, n: int, rng: np.random.Generator, **options: Any
    ) -> tuple[Any, NDArray[np.int64]]:
        """Draw rows from the posterior predictive; return them and their clusters' ids, -1: new."""
        weights = np.exp(log_prior_weights(self.model.prior, self.state)[0])
        slots = rng.choice(weights.size, size=n, p=weights / weights.sum())
        rows = self.model.likelihood.sample(self.statistics(slots), rng, **options)
        return rows, np.append(self.state.ids, -1)[slots]

    def merge_tree(self, n_groups: int) -> MergeTree:
        """Return the tree of merges over the clusters, optimised for `n_groups` groups."""
        return merge_tree(self.model, self.state, n_groups)


def likeliest(log_joint: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return the position of each row's largest entry, and its share of the row."""
    best = np.argmax(log_joint, axis=1)
    shares = np.exp(log_joint[np.arange(len(best)), best] - logsumexp(log_joint, axis=1))
    return best, shares
