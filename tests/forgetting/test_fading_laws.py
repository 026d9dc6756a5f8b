"""Rows count for half after a half-life: the posterior is the weighted sum of what they added."""

import numpy as np
import pytest
from fading_cases import PRIORS, WORDS, changing, mixture, numbers

import naive
from bnpstream import DirichletMultinomial, Gaussian
from bnpstream.kernels.arrays import GONE
from bnpstream.mixture.sites import totals
from bnpstream.mixture.state import log_vacancy_of
from states import assert_free_slots_are_zero

ORACLES = {
    "dp": naive.Prior("nggp", 0.8, 0.0, 1.0),
    "nig": naive.Prior("nggp", 2.0, 0.5, 3.0),
    "py": naive.Prior("py", 0.6, 0.2),
}
engines = pytest.mark.parametrize("engine", ["compiled", "reference"])


def faded(state, factor, least):
    """Return the oracle's posterior after a tick, and the masses of what retired."""
    kept = [k for k, mass in enumerate(state.masses) if factor * mass >= least]
    gone = [factor * mass for mass in state.masses if factor * mass < least]
    return naive.State(
        [{word: factor * n for word, n in state.words[k].items()} for k in kept],
        [factor * state.lengths[k] for k in kept],
        [factor * state.masses[k] for k in kept],
        [factor * state.log_vacancy[k] for k in kept],
        factor * state.n - sum(gone),
    ), gone


@pytest.mark.kernel
@engines
@pytest.mark.parametrize("kind", PRIORS)
@pytest.mark.parametrize(("half_life", "interval"), [(6.0, 1), (15, 2), (200, 25)])
def test_a_pass_that_forgets_follows_the_oracle(kind, engine, half_life, interval):
    counts, epsilon = changing(3, rows=60), 0.5
    model = mixture(kind, half_life=half_life, engine=engine, new_cluster_threshold=epsilon)
    model.partial_fit(counts)
    state, evidence, retired = naive.empty_state(), [], []
    for i, row in enumerate(counts):
        if i > 0 and i % interval == 0:
            state, gone = faded(state, 0.5 ** (interval / half_life), epsilon)
            retired += [(i, mass) for mass in gone]
        document = {int(word): int(row[word]) for word in np.flatnonzero(row)}
        response = naive.respond(state, document, ORACLES[kind], [0.3] * WORDS, epsilon, 1e-4, 4)
        state = naive.absorb(state, document, response)
        evidence.append(response.log_evidence)
    np.testing.assert_allclose(model.log_evidence_, evidence, rtol=1e-9)
    np.testing.assert_allclose(np.sort(model.state_.masses), np.sort(state.masses), rtol=1e-9)
    found = [(e.n_observations, e.mass) for e in model.lineage_ if e.kind == "retire"]
    np.testing.assert_allclose(sorted(found), sorted(retired), rtol=1e-9)
    assert retired or half_life > 100
    assert model.n_samples_seen_ == 60


@pytest.mark.parametrize("half_life", [5, 64, 130, 1000.0])
def test_a_row_counts_for_half_after_a_half_life(half_life):
    """n of the prior's rule is the sum of what rows still count for."""
    n, interval = 400, max(1, round(half_life / 8))
    model = mixture("dp", half_life=half_life, prune_threshold=0.0).partial_fit(changing(4, rows=n))
    last = (n - 1) // interval
    ticks_since = last - np.arange(n) // interval
    weights = 0.5 ** (interval / half_life * ticks_since)
    assert model.state_.total_mass == pytest.approx(weights.sum(), rel=1e-7)
    assert model.state_.masses.sum() == pytest.approx(weights.sum(), rel=1e-7)
    age = np.arange(n)[::-1]
    near = np.abs(np.log2(weights) + age / half_life) <= interval / half_life + 1e-9
    assert near.all()


def assert_sites_add_up(model, batch):
    """State == sum of the sites, each with what its row counts for now, by plain loops."""
    state, sites, fading = model.state_, model.window_.sites, model.window_.fading
    X = batch.statistics.toarray()
    sums = np.zeros((state.n_clusters, X.shape[1]))
    masses, vacancy = np.zeros((2, state.n_clusters))
    for i in range(len(X)):
        for slot, share in zip(*sites.row(i), strict=True):
            if slot != GONE:
                sums[slot] += fading[i] * share * X[i]
                masses[slot] += fading[i] * share
                vacancy[slot] += fading[i] * log_vacancy_of(share)
    for found, expected in (
        (state.statistics, sums),
        (state.masses, masses),
        (state.log_vacancy, vacancy),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
    assert state.total_mass == pytest.approx(masses.sum(), rel=1e-8)
    assert_free_slots_are_zero(state)


@pytest.mark.kernel
@engines
@pytest.mark.parametrize("kind", PRIORS)
@pytest.mark.parametrize(
    "options",
    [
        {"revisit": "all"},
        {"revisit": 200},
        {"keep_sites": True},
        {"keep_sites": True, "merge_threshold": -3.0},
        {"revisit": "all", "n_revisits": 2, "merge_threshold": -3.0},
    ],
    ids=str,
)
def test_the_posterior_stays_the_sum_of_the_sites(kind, engine, options):
    counts = changing(5, rows=70)
    prune = max(0.02, PRIORS[kind].smallest_mass * 0.02)
    model = mixture(kind, half_life=15, prune_threshold=prune, engine=engine, **options)
    batch = model.likelihood.encode(counts)
    for part in np.split(counts, [1, 30, 64]):
        model.partial_fit(part)
    assert model.window_.fading.min() == pytest.approx(0.5 ** (68 / 15))
    assert_sites_add_up(model, batch)
    assert {event.kind for event in model.lineage_} >= {"birth"}
    if options.get("keep_sites"):
        model.refine(counts, n_passes=2)
    else:
        for _ in model.finishing():
            assert_sites_add_up(model, batch)
        return
    assert_sites_add_up(model, batch)


def test_a_sweep_rebuilds_what_the_sites_add_up_to():
    counts = changing(6, rows=60)
    model = mixture("dp", half_life=20, prune_threshold=0.01, revisit="all").partial_fit(counts)
    next(model.finishing())
    assert 0.0 < model.epochs_[0].drift < 1e-12
    rebuilt = totals(model.window_.sites, model.window_.batch(), model.n_clusters_)
    np.testing.assert_array_equal(model.state_.statistics, rebuilt[0])
    np.testing.assert_array_equal(model.state_.masses, rebuilt[1])
    assert model.state_.masses.sum() < 30


def test_rows_that_have_faded_away_are_not_revisited():
    counts = changing(7, rows=80)
    model = mixture("dp", half_life=8, prune_threshold=0.1, revisit="all").partial_fit(counts)
    left = 0.5 ** (np.arange(80)[::-1] / 8)
    assert model.window_.n_rows == (left >= 0.1).sum()
    np.testing.assert_allclose(model.window_.fading, left[left >= 0.1])
    model.finish()
    assert model.state_.total_mass == pytest.approx(model.state_.masses.sum())


def test_several_passes_see_rows_with_what_they_count_for_in_the_end():
    counts = changing(8, rows=60)
    options = {"half_life": 20, "prune_threshold": 0.05}
    whole = mixture("nig", n_passes=3, **options).fit(counts)
    streamed = mixture("nig", revisit="all", n_revisits=2, **options)
    for part in np.split(counts, [7, 8, 41]):
        streamed.partial_fit(part)
    streamed.finish()
    np.testing.assert_array_equal(whole.state_.masses, streamed.state_.masses)
    assert whole.state_.total_mass < 30


def test_occupancy_counts_the_clusters_that_are_alive():
    """E[K'] falls to the clusters that still get rows, by what is left of the log vacancy."""
    rng = np.random.default_rng((73, 1))
    own = np.kron(np.eye(4, dtype=int), np.ones((1, 6), int))
    counts = 3 * own[np.append(rng.integers(0, 3, size=60), np.full(600, 3))]
    prior = PRIORS["nig"]
    model = mixture("nig", half_life=40, prune_threshold=0.0, new_cluster_threshold=0.5)
    model.partial_fit(counts[:60])
    assert model.n_clusters_ == 3
    assert prior.occupancy(model.state_.log_vacancy).sum() == pytest.approx(3.0, abs=0.01)
    model.partial_fit(counts[60:])
    assert model.n_clusters_ == 4  # nothing is retired without a threshold
    assert prior.occupancy(model.state_.log_vacancy).sum() == pytest.approx(1.0, abs=0.05)
    lighter = mixture("nig", half_life=40, new_cluster_threshold=0.5).partial_fit(counts)
    assert lighter.n_clusters_ == 1
    assert [lighter.resolve_id(id) for id in range(4)] == [None, None, None, 3]


def test_no_digit_of_a_variance_is_forgotten():
    """After ten half-lives of ticks a cluster at 1e7 is as wide as one at zero."""
    rows, family = numbers(9, rows=60), Gaussian(np.zeros(3), 0.01, 5.0, np.eye(3))
    there = Gaussian(np.full(3, 1e7), 0.01, 5.0, np.eye(3))
    rows = np.round(rows * 1024) / 1024  # sums of these and 1e7 are exact
    near = mixture("dp", family, half_life=6).partial_fit(rows)
    far = mixture("dp", there, half_life=6).partial_fit(rows + 1e7)
    np.testing.assert_allclose(far.state_.masses, near.state_.masses, rtol=1e-9)
    np.testing.assert_allclose(far.log_evidence_, near.log_evidence_, atol=1e-6)
    assert any(event.kind == "retire" for event in far.lineage_)


def test_a_half_life_that_is_never_over_changes_no_bit():
    counts = changing(10)
    for options in ({}, {"revisit": 30}, {"merge_threshold": -1.0}, {"n_passes": 3}):
        plain = mixture("nig", **options).fit(counts)
        endless = mixture("nig", half_life=1e300, **options).fit(counts)
        for name in ("masses", "log_vacancy", "statistics", "ids"):
            np.testing.assert_array_equal(
                getattr(plain.state_, name), getattr(endless.state_, name)
            )
        np.testing.assert_array_equal(plain.log_evidence_, endless.log_evidence_)


def test_rows_of_a_cluster_that_retired_in_the_same_call_are_labelled_anew():
    own = np.kron(np.eye(2, dtype=int), np.ones((1, 12), int))
    counts = 2 * own[np.repeat([0, 1], [10, 90])]
    model = mixture("dp", DirichletMultinomial(0.3), half_life=5).partial_fit(counts)
    assert model.cluster_ids_.tolist() == [1]
    assert model.absorbed_.rows.ids[:10].tolist() == [0] * 10
    assert model.labels_.tolist() == [0] * 100
    assert model.label_ids_.tolist() == [1] * 100
