"""The memory floor, and posteriors with a chosen number of clusters to compare a pass with.

The floor is a compiled loop that only adds up the rows of a word-major table: for every document,
every word's row over the K clusters that the pass had at that document, in float64.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bnpstream import DirichletMultinomial, PitmanYor, normalized_inverse_gaussian
from bnpstream.datasets import synthetic_corpus
from bnpstream.inference import adf
from bnpstream.inference.gibbs import chain_at
from bnpstream.kernels.arrays import N_CLUSTERS
from bnpstream.likelihoods import Batch
from bnpstream.mixture import MixtureState, Model

VISITED = 2000
"""Rows of a synthetic corpus that the timed pass visits."""
SETTINGS = adf.Settings(0.5, 1e-4)
MODEL = Model(normalized_inverse_gaussian(10, 100), DirichletMultinomial(0.02))


class Case(NamedTuple):
    """Rows to visit from a posterior."""

    model: Model
    settings: adf.Settings
    state: MixtureState
    batch: Batch
    behind: NDArray[np.int64]
    """Clusters that the pass has when it comes to a row."""
    after: MixtureState
    """The posterior after the pass."""


class Floor(NamedTuple):
    """The floor of a case, or of its first documents."""

    run: Callable[[], None]
    cells: int
    """(word, cluster) pairs that it reads."""
    share: float
    """Of the cells that the pass has before it."""


@njit  # type: ignore[untyped-decorator]
def add_up_rows(table, indptr, indices, n_clusters, sums):  # type: ignore[no-untyped-def]
    for i in range(n_clusters.size):
        slots = n_clusters[i]
        for k in range(slots):
            sums[k] = 0.0
        for j in range(indptr[i], indptr[i + 1] - 1):  # the last entry is the length
            row = table[indices[j]]
            for k in range(slots):
                sums[k] += row[k]


def visit(case: Case, state: MixtureState, n_jobs: int = 1) -> NDArray[np.int64]:
    """Make the pass; return the clusters after every row."""
    kernel = case.model.kernel_arguments(case.batch, n_jobs)
    records = list(adf.run(case.model, state, case.batch, case.settings, kernel))
    return np.concatenate([record.rows.n_clusters for record in records])


def ready(case: Case) -> MixtureState:
    """Return a copy of the posterior with its screen, as a stream in full flow has it."""
    state = case.state.copy()
    state.cache(case.model.likelihood)
    return state


def make_case(
    model: Model, settings: adf.Settings, state: MixtureState, batch: Batch, *, grown: bool
) -> Case:
    """Return a case, its pass made once; `grown` gives the posterior the room it needs first."""
    case = Case(model, settings, state, batch, np.empty(0, np.int64), state.copy())
    n_clusters = visit(case, case.after)
    if grown:
        grow(state, case.after.arrays.masses.size)
    return case._replace(behind=np.append(state.n_clusters, n_clusters[:-1]))


def grow(state: MixtureState, capacity: int) -> None:
    """Give a posterior as many slots as it would have grown to."""
    n_clusters = state.n_clusters
    while state.arrays.masses.size < capacity:
        state.arrays.counters[N_CLUSTERS] = state.arrays.masses.size - 1
        state.make_room()
    state.arrays.counters[N_CLUSTERS] = n_clusters


def synthetic_case(n_clusters: int) -> Case:
    """Return 2000 documents to visit from a posterior of about so many clusters.

    The posterior is that of the true clusters of the rows before, a power law of three rows a
    cluster on average; there are free slots for the clusters that the pass opens.
    """
    n = max(3 * n_clusters, VISITED)
    prior = PitmanYor(1.0, 0.2).with_expected_clusters(n_clusters, n=n)
    corpus = synthetic_corpus(n + VISITED, prior=prior)
    labels = np.unique(np.asarray(corpus.labels)[:n], return_inverse=True)[1]
    rows = [MODEL.likelihood.encode(part) for part in (corpus.counts[:n], corpus.counts[n:])]
    state = chain_at(MODEL, rows[0], labels, np.nan).state
    state.make_room()
    return make_case(MODEL, SETTINGS, state, rows[1], grown=True)


def floor_of(case: Case, n_documents: int | None = None) -> Floor:
    """Return the floor of a case, or of its first documents."""
    rows = case.batch.kernel_rows
    assert rows is not None
    behind = case.behind[:n_documents]
    # What the pass leaves: pages that nothing was ever written to would be read too fast.
    table = np.ascontiguousarray(case.after.statistics.T)
    sums = np.empty(table.shape[1])
    words = np.diff(rows.indptr) - 1
    cells = int(words[: behind.size] @ behind)

    def run() -> None:
        add_up_rows(table, rows.indptr, rows.indices, behind, sums)

    run()
    return Floor(run, cells, cells / int(words @ case.behind))
