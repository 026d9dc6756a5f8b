"""sample_weight: a row counts for more or less than one."""

import math

import numpy as np
import pytest

from bnpstream import DirichletMultinomial, StreamingMixture
from bnpstream.datasets import bars
from bnpstream.inference import adf
from bnpstream.mixture import Model
from bnpstream.mixture.sites import totals
from bnpstream.priors import normalized_inverse_gaussian
from cell_cases import ENGINES, FAMILIES, FULL_ROWS
from cell_cases import rows_of as cell_rows
from states import bits

kernel = pytest.mark.kernel
engines = pytest.mark.parametrize("engine", ENGINES)
NAMES = ["documents", *FAMILIES]
names = pytest.mark.parametrize("name", NAMES)
PRIOR = normalized_inverse_gaussian(2.0, 1.0)


def rows_of(name, n, number):
    if name == "documents":
        return bars(n_images=n, seed=number).counts
    return cell_rows(name, n, number, 0.0 if name in FULL_ROWS else 0.2)


def likelihood_of(name):
    return DirichletMultinomial(0.5) if name == "documents" else FAMILIES[name].likelihood


def mixture(name, **options):
    return StreamingMixture(PRIOR, likelihood_of(name), **options)


def joined(batch, state):
    """Return statistics with their low digits added where they have some."""
    if not state.paired:
        return state.statistics
    half = batch.n_statistics // 2
    return state.statistics[:, :half] + state.statistics[:, half:]


# --- what a weight means --------------------------------------------------------------------------


@kernel
@engines
@names
def test_a_row_adds_its_weight_times_its_responsibilities(name, engine):
    """Masses, vacancies, statistics and total mass, summed anew from what `respond` says."""
    model = Model(PRIOR, likelihood_of(name))
    weights = np.random.default_rng((81, 1)).uniform(0.2, 3.0, 20)
    batch = model.likelihood.encode(rows_of(name, 20, 1)).weighted(weights)
    settings, state = adf.Settings(0.6, 1e-4), adf.init(model, batch.n_statistics)
    t = batch.statistics if isinstance(batch.statistics, np.ndarray) else batch.statistics.toarray()
    if state.paired:
        t = t[:, : t.shape[1] // 2] + t[:, t.shape[1] // 2 :]
    expected = [[] for _ in range(3)]  # masses, log vacancies, statistics of every cluster
    evidence = 0.0
    for i, weight in enumerate(weights.tolist()):
        response = adf.respond(model, state, batch.row(i), settings)
        if response.opens:
            for part, nothing in zip(expected, (0.0, 0.0, np.zeros(t.shape[1])), strict=True):
                part.append(nothing)
        for k, q in enumerate(response.responsibilities.tolist()):
            expected[0][k] += weight * q
            expected[1][k] += weight * math.log1p(-min(q, 1 - 2**-53))
            expected[2][k] = expected[2][k] + weight * q * t[i]
        evidence += weight * response.log_evidence
        part = batch.part(i, i + 1)
        arguments = model.kernel_arguments(part) if engine == "compiled" else None
        list(adf.run(model, state, part, settings, arguments))
    np.testing.assert_allclose(state.masses, expected[0], rtol=1e-10)
    np.testing.assert_allclose(np.exp(state.log_vacancy), np.exp(expected[1]), atol=1e-10)
    np.testing.assert_allclose(joined(batch, state), expected[2], rtol=1e-9, atol=1e-9)
    assert state.total_mass == pytest.approx(weights.sum(), rel=1e-12)
    assert state.log_evidence == pytest.approx(evidence, rel=1e-10)
    assert state.n_observations == 20


@engines
@names
def test_weight_two_is_the_same_row_counted_twice(name, engine):
    rows = rows_of(name, 15, 2)
    model, plain = (mixture(name, engine=engine).fit(rows[:14]) for _ in range(2))
    before = {part: getattr(plain.state_, part).copy() for part in ("masses", "log_vacancy")}
    statistics, total = plain.state_.statistics.copy(), plain.state_.total_mass
    plain.partial_fit(rows[14:])
    model.partial_fit(rows[14:], sample_weight=[2.0])
    K = len(before["masses"])
    assert model.state_.n_clusters == plain.state_.n_clusters
    for part, old in before.items():
        added = getattr(plain.state_, part)[:K] - old
        found = getattr(model.state_, part)[:K] - old
        np.testing.assert_allclose(found, 2.0 * added, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        model.state_.statistics[:K] - statistics,
        2.0 * (plain.state_.statistics[:K] - statistics),
        atol=1e-9,
    )
    assert model.state_.total_mass == total + 2.0
    np.testing.assert_array_equal(model.label_ids_, plain.label_ids_)
    np.testing.assert_array_equal(model.probabilities_, plain.probabilities_)
    np.testing.assert_array_equal(model.log_evidence_, plain.log_evidence_)
    assert model.n_samples_seen_ == plain.n_samples_seen_ == 15


@names
def test_weights_of_one_are_no_weights(name):
    rows = rows_of(name, 30, 3)
    plain = mixture(name, n_passes=2).fit(rows)
    for ones in (np.ones(30), [1] * 30, 1.0):
        assert bits(mixture(name, n_passes=2).fit(rows, sample_weight=ones).state_) == bits(
            plain.state_
        )


# --- weight zero ----------------------------------------------------------------------------------


@engines
@names
def test_weight_zero_leaves_no_trace_but_gets_a_label(name, engine):
    rows = rows_of(name, 30, 4)
    absent = np.zeros(30, bool)
    absent[[0, 7, 8, 29]] = True
    weights = np.where(absent, 0.0, 1.0)
    model = mixture(name, engine=engine).partial_fit(rows, sample_weight=weights)
    without = mixture(name, engine=engine).partial_fit(rows[np.flatnonzero(~absent)])
    assert bits(model.state_) == bits(without.state_)
    assert model.n_samples_seen_ == 26
    np.testing.assert_array_equal(model.label_ids_[~absent], without.label_ids_)
    np.testing.assert_array_equal(model.log_evidence_[~absent], without.log_evidence_)
    there = np.flatnonzero(absent)
    np.testing.assert_array_equal(model.label_ids_[absent], without.predict_ids(rows[there]))
    np.testing.assert_array_equal(model.labels_[absent], without.predict(rows[there]))
    np.testing.assert_allclose(
        model.probabilities_[absent], without.predict_proba(rows[there]).max(axis=1), rtol=1e-9
    )
    np.testing.assert_allclose(
        model.log_evidence_[absent], without.score_samples(rows[there]), rtol=1e-9
    )


def test_rows_of_weight_zero_count_for_the_prefix_but_not_for_the_posterior():
    rows = cell_rows("diagonal", 30, 5)
    weights = np.ones(30)
    weights[[2, 11]] = 0.0
    whole = StreamingMixture(prefix_rows=10).partial_fit(rows, sample_weight=weights)
    parts = StreamingMixture(prefix_rows=10)
    for start in range(0, 30, 6):
        inside = slice(start, start + 6)
        parts.partial_fit(rows[inside], sample_weight=weights[inside])
    assert bits(parts.state_) == bits(whole.state_)
    assert whole.n_samples_seen_ == 28


# --- revisits -------------------------------------------------------------------------------------


@engines
@names
def test_sweeps_rebuild_weighted_totals_without_drift(name, engine):
    rows, weights = rows_of(name, 25, 6), np.random.default_rng((81, 2)).uniform(0.2, 3.0, 25)
    weights[3] = 0.0
    model = mixture(name, engine=engine, keep_sites=True).fit(rows, sample_weight=weights)
    model.refine(rows, n_passes=3, sample_weight=weights)
    assert len(model.epochs_) >= 1
    assert max(epoch.drift for epoch in model.epochs_) < 1e-9
    kept = np.flatnonzero(weights)
    batch = model.likelihood_.encode(rows).chosen(kept).weighted(weights[kept])
    state, sites = model.state_, model.window_.sites
    statistics, masses, log_vacancy = totals(sites, batch, state.n_clusters)
    np.testing.assert_allclose(state.statistics, statistics, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(state.masses, masses, rtol=1e-10)
    np.testing.assert_allclose(np.exp(state.log_vacancy), np.exp(log_vacancy), atol=1e-10)
    assert 0.9 * weights.sum() < masses.sum() <= weights.sum() + 1e-9  # a drop takes some along
    matrix = sites.matrix(state.n_clusters).toarray()
    np.testing.assert_allclose(masses, weights[kept] @ matrix, rtol=1e-12)


@names
def test_passes_of_fit_are_one_pass_and_refining(name):
    rows, weights = rows_of(name, 25, 7), np.random.default_rng((81, 3)).uniform(0.2, 3.0, 25)
    weights[[0, 9]] = 0.0
    fitted = mixture(name, n_passes=3, merge_threshold=None).fit(rows, sample_weight=weights)
    refined = mixture(name, keep_sites=True).fit(rows, sample_weight=weights)
    refined.refine(rows, n_passes=2, sample_weight=weights)
    assert bits(fitted.state_) == bits(refined.state_)
    np.testing.assert_array_equal(fitted.label_ids_, refined.label_ids_)


def test_refining_with_other_weights_is_refused():
    rows, weights = cell_rows("diagonal", 20, 8), np.linspace(0.5, 2.0, 20)
    model = mixture("diagonal", keep_sites=True).fit(rows, sample_weight=weights)
    before = bits(model.state_)
    for other in (None, weights[::-1]):
        with pytest.raises(ValueError, match=r"with the same weights; these are different"):
            model.refine(rows, sample_weight=other)
    assert bits(model.state_) == before


# --- wrong weights --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(5), r"one number per row \(6\), but its shape is \(5,\)"),
        (np.ones((6, 1)), r"one number per row \(6\), but its shape is \(6, 1\)"),
        ([1, 1, -0.5, 1, 1, 1], r"sample_weight\[2\] must be finite and >= 0, got -0\.5"),
        ([1, 1, 1, np.nan, 1, 1], r"sample_weight\[3\] must be finite and >= 0, got nan"),
        ([1, np.inf, 1, 1, 1, 1], r"sample_weight\[1\] must be finite and >= 0, got inf"),
        (np.zeros(6), "zero for all rows"),
        (["a"] * 6, "could not convert"),
    ],
)
@pytest.mark.parametrize("prefix", [3, 100])
def test_wrong_weights_are_refused_and_nothing_changes(prefix, weights, message):
    rows = cell_rows("diagonal", 12, 9)
    model = StreamingMixture(prefix_rows=prefix).partial_fit(rows[:6])
    before = bits(model.state_)
    for method in (model.partial_fit, model.fit):
        with pytest.raises(ValueError, match=message):
            method(rows[6:], sample_weight=weights)
        assert bits(model.state_) == before
    assert model.partial_fit(rows[6:]).n_samples_seen_ == 12


def test_rows_of_weight_zero_leave_no_trace_in_what_is_learnt():
    rng = np.random.default_rng((91, 1))
    rows = rng.normal(size=(300, 2)) + 8.0 * rng.integers(3, size=(300, 1))
    odd = 1e4 * rng.normal(size=(60, 2))
    mixed = np.concatenate([rows[:120], odd, rows[120:]])
    weights = np.concatenate([np.ones(120), np.zeros(60), np.ones(180)])
    plain = StreamingMixture(prefix_rows=150).partial_fit(rows)
    for calls in ([360], [100, 260], [150, 60, 150]):
        weighted = StreamingMixture(prefix_rows=150)
        for part in np.split(np.arange(360), np.cumsum(calls)[:-1]):
            weighted.partial_fit(mixed[part], sample_weight=weights[part])
        assert weighted.total_log_evidence_ == plain.total_log_evidence_
        assert weighted.state_.masses.tobytes() == plain.state_.masses.tobytes()
