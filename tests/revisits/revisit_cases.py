"""Models, small data and helpers that the tests of revisits share."""

import math
from typing import NamedTuple

import numpy as np

import naive
from bnpstream.inference import ep
from bnpstream.inference.response import Settings
from bnpstream.inference.visits import visit
from bnpstream.kernels.arrays import GONE
from bnpstream.likelihoods import DirichletMultinomial
from bnpstream.mixture import MixtureState, Model, SiteBuffer
from bnpstream.mixture.sites import totals
from bnpstream.priors import (
    GeneralizedGamma,
    PitmanYor,
    dirichlet_process,
    normalized_inverse_gaussian,
    normalized_stable,
)
from states import assert_free_slots_are_zero, bits

__all__ = ["assert_free_slots_are_zero", "bits"]

WORDS = 20
ENGINES = ["reference", "compiled"]

PRIORS = {
    "dp": (dirichlet_process(0.8), naive.Prior("nggp", 0.8, 0.0, 1.0)),
    "nig": (normalized_inverse_gaussian(2.0, 3.0), naive.Prior("nggp", 2.0, 0.5, 3.0)),
    "nggp": (
        GeneralizedGamma(1.5, 0.25, 0.7, auxiliary="quadrature"),
        naive.Prior("nggp", 1.5, 0.25, 0.7, "quadrature"),
    ),
    "stable": (normalized_stable(0.3), naive.Prior("nggp", 1.0, 0.3, 0.0)),
    "py": (PitmanYor(0.6, 0.2), naive.Prior("py", 0.6, 0.2)),
    "plain": (
        GeneralizedGamma(0.9, 0.4, 2.0, cluster_count="plain"),
        naive.Prior("nggp", 0.9, 0.4, 2.0, "mode", "plain"),
    ),
}


class Case(NamedTuple):
    """A prior in both spellings, a base measure, and settings."""

    kind: str
    number: int
    alpha: float
    settings: Settings

    @property
    def model(self):
        return Model(PRIORS[self.kind][0], DirichletMultinomial(self.alpha))

    @property
    def oracle(self):
        return PRIORS[self.kind][1]

    def __str__(self):
        return f"{self.kind}-{self.number}"


def random_case(kind, number):
    """Return case `number` of a prior: thresholds, cut and base measure in turn."""
    sigma = PRIORS[kind][1].discount
    opening = max(sigma, [0.5, 0.15][number % 2])
    prune = [opening, 0.9, 1.3][number % 3]
    settings = Settings(
        opening,
        [1e-4, 0.0][number // 2 % 2],
        prune,
        max_responsibilities=[None, 2][number // 3 % 2],
    )
    return Case(kind, number, [0.2, 0.6][number % 2], settings)


CASES = [random_case(kind, number) for kind in PRIORS for number in (0, 1, 3, 5)]


def documents(number, rows=36, topics=4, length=7):
    """Return counts of overlapping topics, shape (rows, WORDS), with an empty and odd rows."""
    rng = np.random.default_rng((31, number))
    theta, n = rng.dirichlet(np.full(WORDS, 0.35), size=topics), max(rows, 22)
    counts = rng.multinomial(rng.poisson(length, size=n), theta[rng.integers(0, topics, size=n)])
    counts[3] = 0
    counts[[8, 21]] = rng.multinomial(length, np.full(WORDS, 1 / WORDS), size=2)
    return counts[:rows]


def separated(number, topics=4, rows=40):
    """Return counts of topics without a word in common, the last row alone on its words."""
    rng = np.random.default_rng((32, number))
    own = WORDS // (topics + 1)
    counts = np.zeros((rows, WORDS), dtype=int)
    for i in range(rows - 1):
        topic = i % topics
        counts[i, topic * own : (topic + 1) * own] = rng.multinomial(40, np.full(own, 1 / own))
    counts[-1, topics * own :] = rng.multinomial(40, np.full(WORDS - topics * own, 1 / own))
    return counts


def kernel_of(model, batch, engine):
    return model.kernel_arguments(batch) if engine == "compiled" else None


def first_pass(model, counts, settings, engine):
    """Return batch, posterior and sites after one pass of ADF."""
    batch = model.likelihood.encode(counts)
    state = MixtureState(batch.n_statistics)
    sites = SiteBuffer(len(batch))
    records = visit(
        model, state, batch, SiteBuffer(), sites, settings, kernel_of(model, batch, engine)
    )
    assert sum(len(record.rows.ids) for record in records) == len(batch)
    return batch, state, sites


def sweep(model, state, batch, sites, settings, engine):
    return ep.sweep(model, state, batch, sites, settings, kernel_of(model, batch, engine))


def dense(state, sites):
    """Return the responsibilities as a list of dicts id -> q, row by row; what is gone is not."""
    ids, found = state.ids.tolist(), []
    for i in range(sites.n_visited):
        slots, shares = (part.tolist() for part in sites.row(i))
        kept = [(ids[slot], q) for slot, q in zip(slots, shares, strict=True) if slot != GONE]
        found.append(dict(kept))
        assert len(found[-1]) == len(kept)
    return found


def assert_sites_add_up(state, batch, sites, tolerance=1e-10):
    """Sum of sites == state: by plain loops, and by what the package rebuilds from."""
    X = batch.statistics.toarray()
    statistics = np.zeros((state.n_clusters, X.shape[1]))
    masses, log_vacancy = np.zeros(state.n_clusters), np.zeros(state.n_clusters)
    slot_of = {int(id): slot for slot, id in enumerate(state.ids)}
    assert len(slot_of) == state.n_clusters
    for i, site in enumerate(dense(state, sites)):
        for id, q in site.items():
            k = slot_of[id]
            statistics[k] += q * X[i]
            masses[k] += q
            log_vacancy[k] += math.log1p(-min(q, naive.LARGEST_BELOW_ONE))
    for expected in ((statistics, masses, log_vacancy), totals(sites, batch, state.n_clusters)):
        for found, wanted in zip(
            (state.statistics, state.masses, state.log_vacancy), expected, strict=True
        ):
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    assert abs(state.total_mass - masses.sum()) < tolerance * max(1.0, masses.sum())
    assert_free_slots_are_zero(state)
