"""The state of a chain of hard assignments."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from bnpstream.kernels.arrays import Integers
from bnpstream.likelihoods import Batch
from bnpstream.mixture import MixtureState, Model
from bnpstream.mixture.model import require_plain


class Chain(NamedTuple):
    """The state of a chain: hard assignments, their totals, and log U."""

    assignments: Integers
    """(n,): slot of each row."""
    state: MixtureState
    """Totals of the assignments; `state.auxiliary` is log U."""


def init(model: Model, batch: Batch) -> Chain:
    """Return a chain with all rows in one cluster."""
    return chain_at(model, batch, np.zeros(len(batch), np.int64), np.nan)


def chain_at(model: Model, batch: Batch, assignments: Integers, auxiliary: float) -> Chain:
    """Return the chain with given assignments, slots 0..K-1 all occupied, and log U."""
    require_plain(model, "Gibbs sampling")
    state = MixtureState(batch.n_statistics, paired=model.likelihood.paired)
    counts = np.bincount(assignments).astype(np.float64)
    for _ in counts:
        state.open()
    rows = np.arange(len(batch))
    members = csr_array((np.ones(len(batch)), (rows, assignments)), (len(batch), counts.size))
    statistics = batch.weighted_sums(members)
    # Certainly occupied: the log vacancy is as low as a single row with q = 1 makes it.
    state.rebuild(statistics, counts, np.full(counts.size, -np.inf))
    state.auxiliary = auxiliary
    return Chain(assignments.copy(), state)
