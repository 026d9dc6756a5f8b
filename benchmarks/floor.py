"""The memory floor, and posteriors with a chosen number of clusters to compare a pass with.

The floor is a compiled loop that only adds up the rows of a word-major table: for every document,
every word's row over the K clusters that the pass had at that document, in float64.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bnpstream import (
    DirichletMultinomial,
    PitmanYor,
    dirichlet_process,
    normalized_inverse_gaussian,
)
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
SHORT_MODEL = Model(dirichlet_process(100), DirichletMultinomial(0.02))
"""For documents of 8 words."""


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
    """Return 2000 documents of 138 words to visit from a posterior of about so many clusters."""
    return _drawn_case(MODEL, SETTINGS, n_clusters, 3)


def short_case(n_clusters: int, max_responsibilities: int | None = 4) -> Case:
    """Return 2000 documents of 8 words to visit from a posterior of about so many clusters."""
    settings = adf.Settings(0.1, 1e-4, max_responsibilities=max_responsibilities)
    drawn = {"mean_length": 8.0, "word_concentration": 30.0}
    return _drawn_case(SHORT_MODEL, settings, n_clusters, 20, **drawn)


def _drawn_case(
    model: Model, settings: adf.Settings, n_clusters: int, rows_per_cluster: int, **drawn: float
) -> Case:
    """Return drawn documents to visit from the posterior of the true clusters of rows before.

    Clusters follow a power law; there are free slots for those that the pass opens.
    """
    n = max(rows_per_cluster * n_clusters, VISITED)
    prior = PitmanYor(1.0, 0.2).with_expected_clusters(n_clusters, n=n)
    corpus = synthetic_corpus(n + VISITED, prior=prior, **drawn)
    labels = np.unique(np.asarray(corpus.labels)[:n], return_inverse=True)[1]
    rows = [model.likelihood.encode(part) for part in (corpus.counts[:n], corpus.counts[n:])]
    state = chain_at(model, rows[0], labels, np.nan).state
    state.make_room()
    return make_case(model, settings, state, rows[1], grown=True)


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
