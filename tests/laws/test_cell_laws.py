"""Families of columns: predictives and marginals against scipy.stats and integrals."""

import math
from itertools import permutations

import numpy as np
import pytest

import naive_cells as naive
from bnpstream.likelihoods import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    DirichletMultinomial,
    Gaussian,
    Poisson,
    Product,
    SphericalGaussian,
    plus,
)
from bnpstream.mixture import Model, log_joint
from bnpstream.mixture.state import MixtureState
from bnpstream.priors import dirichlet_process
from bnpstream.testing import check_likelihood
from cell_cases import FAMILIES, FULL_ROWS, LEVELS, MEAN, D, rows_of

kernel = pytest.mark.kernel
families = pytest.mark.parametrize("name", FAMILIES)
SPOKEN = [name for name, family in FAMILIES.items() if family.oracle is not None]
spoken = pytest.mark.parametrize("name", SPOKEN)
MISSING = {name: 0.0 if name in FULL_ROWS else 0.25 for name in FAMILIES}


def clusters_of(likelihood, batch, weights):
    """Return the statistics of weighted rows, one cluster a row of `weights`."""
    statistics = np.zeros((len(weights), batch.n_statistics))
    for i in range(len(batch)):
        statistics = plus(statistics, weights[:, i], batch.row(i).values, paired=True)
    return statistics


def compiled_scores(likelihood, statistics, batch):
    """Return log p(x | cluster) of every row, log h(x) included, from the compiled loops."""
    model = Model(dirichlet_process(1.0), likelihood)
    state = MixtureState(batch.n_statistics, paired=True)
    for _ in statistics:
        state.open()
    K = len(statistics)
    state.rebuild(statistics, np.ones(K), np.full(K, -1.0))
    return log_joint(model, state, batch, model.kernel_arguments(batch), np.zeros(K + 1))


# --- the shipped checks ---------------------------------------------------------------------------


@families
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_shipped_checks_pass(name, missing):
    check_likelihood(FAMILIES[name].likelihood, rows_of(name, 12, 1, missing))


@spoken
def test_shipped_checks_pass_where_the_base_measure_is_learnt(name):
    rows = rows_of(name, 20, 2, MISSING[name])
    family = type(FAMILIES[name].likelihood)()
    assert not family.is_informed
    assert family.informed(rows).is_informed
    check_likelihood(family.informed(rows), rows)


@pytest.mark.parametrize("name", ["gaussian", "diagonal", "spherical"])
def test_shipped_checks_pass_far_from_zero(name):
    """Engines agree to 1e-10 there too: what they round, they round alike."""
    for number in range(2):
        rows = np.random.default_rng((66, 5, number)).normal(size=(20, 2)) + 1e6
        check_likelihood(type(FAMILIES[name].likelihood)().informed(rows), rows)


# --- predictives ----------------------------------------------------------------------------------


@kernel
@spoken
def test_both_engines_predict_as_the_oracle_does(name):
    """Three soft clusters of weights in (0, 1) and an empty one."""
    family = FAMILIES[name]
    batch = family.likelihood.encode(rows_of(name, 9, 4, MISSING[name]))
    cells = batch.cells.tolist()
    weights = np.vstack([np.random.default_rng((66, 0)).uniform(0.05, 0.95, (3, 9)), np.zeros(9)])
    statistics = clusters_of(family.likelihood, batch, weights)
    compiled = compiled_scores(family.likelihood, statistics, batch)
    for i, x in enumerate(cells):
        expected = [family.oracle(x, cells, w) for w in weights.tolist()]
        row = batch.row(i)
        found = family.likelihood.log_predictive(statistics, row) + row.log_base
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(compiled[i, :4], expected, rtol=1e-9, atol=1e-9)
        assert compiled[i, 4] == pytest.approx(expected[3], abs=1e-9)  # the free slot is the prior


@kernel
@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in (*FULL_ROWS, "mixed")])
def test_a_missing_cell_is_the_column_left_out(name):
    """A column that no row has scores as the family of the other columns does."""
    family, rows = FAMILIES[name].likelihood, rows_of(name, 8, 5)
    rows[:, 1] = None if rows.dtype == object else np.nan
    kept = [0, 2]
    narrow = {
        "diagonal": DiagonalGaussian(
            mean=[MEAN[j] for j in kept], mean_strength=0.3, degrees=4.5, variance=[0.7, 0.4]
        ),
        "spherical": SphericalGaussian(
            mean=[MEAN[j] for j in kept], mean_strength=0.3, degrees=4.5, variance=0.9
        ),
        "poisson": Poisson(mean=[2.0, 5.0], shape=1.7),
        "bernoulli": Bernoulli(mean=[0.3, 0.9], strength=2.5),
        "categorical": Categorical(levels=[LEVELS[j] for j in kept], alpha=0.6),
    }[name]
    weights = np.random.default_rng((66, 1)).uniform(0.1, 0.9, (2, 8))
    found = []
    for likelihood, table in ((family, rows), (narrow, rows[:, kept])):
        batch = likelihood.encode(table)
        statistics = clusters_of(likelihood, batch, weights)
        scores = [likelihood.log_predictive(statistics, batch.row(i)) for i in range(8)]
        marginals = likelihood.log_marginal(statistics)
        found.append((scores, marginals, compiled_scores(likelihood, statistics, batch)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@kernel
@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in (*FULL_ROWS, "mixed")])
def test_a_row_without_any_cell_is_certain_and_changes_no_statistics(name):
    family, rows = FAMILIES[name].likelihood, rows_of(name, 6, 6)
    rows[3] = None if rows.dtype == object else np.nan
    batch = family.encode(rows)
    assert not batch.row(3).values.any()
    statistics = clusters_of(family, batch, np.full((2, 6), 0.4))
    assert family.log_predictive(statistics, batch.row(3)).tolist() == [0.0, 0.0]
    assert compiled_scores(family, statistics, batch)[3].tolist() == [0.0, 0.0, 0.0]


@kernel
def test_a_product_scores_as_the_sum_of_its_parts():
    rows = rows_of("mixed", 10, 7, 0.25)
    product = FAMILIES["mixed"].likelihood
    batch = product.encode(rows)
    weights = np.random.default_rng((66, 2)).uniform(0.1, 0.9, (3, 10))
    statistics = clusters_of(product, batch, weights)
    found = compiled_scores(product, statistics, batch)[:, :3]
    expected, log_base = np.zeros((10, 3)), np.zeros(10)
    spoken = {"real": "diagonal", "counts": "poisson", "truths": "bernoulli"}
    for part, name in (*spoken.items(), ("labels", "categorical")):
        family, columns = next((f, c) for n, f, c in product.parts if n == part)
        cells = family.encode(rows[:, columns]).cells.tolist()
        for i, x in enumerate(cells):
            expected[i] += [FAMILIES[name].oracle(x, cells, w) for w in weights.tolist()]
    around = np.array(rows[:, 3:5], dtype=float).tolist()
    words = DirichletMultinomial(0.4).encode(rows[:, 14:])
    counts = weights @ words.statistics.toarray()
    for i in range(10):
        expected[i] += [
            naive.log_spherical(around[i], around, w, MEAN[:2], 0.01, 1.5, 0.45)
            for w in weights.tolist()
        ]
        expected[i] += DirichletMultinomial(0.4).log_predictive(counts, words.row(i))
        log_base[i] += words.log_base[i]
    np.testing.assert_allclose(found, expected + log_base[:, None], rtol=1e-9)
    np.testing.assert_allclose(
        product.log_predictive(statistics, batch.row(2)) + batch.log_base[2], found[2], rtol=1e-10
    )


# --- marginals ------------------------------------------------------------------------------------


@families
def test_log_marginal_is_a_chain_of_predictives_in_any_order(name):
    family = FAMILIES[name].likelihood
    batch = family.encode(rows_of(name, 4, 8, MISSING[name]))
    whole = family.log_marginal(clusters_of(family, batch, np.ones((1, 4))))[0]
    for order in permutations(range(4)):
        statistics, total = np.zeros((1, batch.n_statistics)), 0.0
        for i in order:
            total += family.log_predictive(statistics, batch.row(i))[0]
            statistics = plus(statistics, np.ones(1), batch.row(i).values, paired=True)
        assert total == pytest.approx(whole, abs=1e-9)


REAL = [1.4, -0.3, 0.9, math.nan, 2.2]


@pytest.mark.parametrize(
    "family",
    [
        Gaussian(mean=[0.4], mean_strength=0.6, degrees=3.5, covariance=[[0.8]]),
        DiagonalGaussian(mean=[0.4], mean_strength=0.6, degrees=3.5, variance=[0.8]),
        SphericalGaussian(mean=[0.4], mean_strength=0.6, degrees=3.5, variance=0.8),
    ],
    ids=lambda family: type(family).__name__,
)
def test_one_real_column_is_the_integral_over_its_precision(family):
    """In one column an inverse Wishart with nu, Psi is an inverse gamma with nu/2, Psi/2."""
    here = [x for x in REAL if not math.isnan(x)]
    batch = family.encode(np.array([here if not family.takes_missing else REAL]).T)
    found = family.log_marginal(clusters_of(family, batch, np.ones((1, len(batch)))))
    expected = naive.log_marginal_normal([here], [0.4], 0.6, 1.75, 0.75 * 0.8)
    if isinstance(family, Gaussian):
        expected = naive.log_marginal_normal([here], [0.4], 0.6, 1.75, 0.5 * 1.5 * 0.8)
    assert found[0] == pytest.approx(expected, abs=1e-8)


def test_two_columns_with_one_variance_are_the_integral_over_it():
    family = SphericalGaussian(mean=[0.4, -1.0], mean_strength=0.6, degrees=3.5, variance=0.8)
    columns = [[1.4, -0.3, 0.9], [-2.0, 0.1]]
    rows = np.array([[1.4, -2.0], [-0.3, 0.1], [0.9, math.nan]])
    batch = family.encode(rows)
    found = family.log_marginal(clusters_of(family, batch, np.ones((1, 3))))
    expected = naive.log_marginal_normal(columns, [0.4, -1.0], 0.6, 1.75, 0.75 * 0.8)
    assert found[0] == pytest.approx(expected, abs=1e-8)


def test_counts_are_the_integral_over_their_rate():
    family, counts = Poisson(mean=[2.5], shape=1.3), [3.0, 0.0, 7.0, 2.0]
    batch = family.encode(np.array([[*counts, math.nan]]).T)
    found = family.log_marginal(clusters_of(family, batch, np.ones((1, 5))))
    expected = naive.log_marginal_poisson(counts, 1.3, 1.3 / 2.5)
    assert found[0] + batch.log_base.sum() == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("family", "cells", "a", "b"),
    [
        (Bernoulli(mean=[0.3], strength=1.4), [1, 0, 0, 1, 1], 0.42, 0.98),
        (Categorical(levels=[["yes"]], alpha=0.7), ["yes", "no", "?", "yes", "yes"], 0.7, 0.7),
    ],
)
def test_shares_are_the_integral_over_them(family, cells, a, b):
    batch = family.encode(np.array([[*cells, None]], dtype=object).T)
    found = family.log_marginal(clusters_of(family, batch, np.ones((1, 6))))
    assert found[0] == pytest.approx(naive.log_marginal_share(3, 2, a, b), abs=1e-8)


# --- what is said of clusters ---------------------------------------------------------------------


@spoken
def test_samples_have_the_mean_of_the_predictive(name):
    """4000 draws a column; 5 standard errors, a false alarm in a million columns."""
    family = FAMILIES[name].likelihood
    batch = family.encode(rows_of(name, 30, 9))
    statistics = clusters_of(family, batch, np.full((1, 30), 0.7))
    drawn = family.sample(np.repeat(statistics, 4000, axis=0), np.random.default_rng((66, 3)))
    means = family.posterior_mean(statistics)[0]
    if name == "categorical":
        shares = [
            float(np.mean([x == label for x in drawn[:, j]]))
            for j, known in enumerate(LEVELS)
            for label in [*known, None]
        ]
        np.testing.assert_allclose(shares, means, atol=5 * 0.5 / math.sqrt(4000))
        return
    error = drawn.std(axis=0) / math.sqrt(4000)
    assert (np.abs(drawn.mean(axis=0) - means) < 5 * error + 1e-12).all()
    assert drawn.shape == (4000, D)


def test_a_product_samples_columns_where_the_data_has_them():
    swapped = Product(
        [
            ("label", Categorical(levels=[["a", "b"]]), [1]),
            ("number", DiagonalGaussian(mean=[1e3], variance=[1.0]), [0]),
        ]
    )
    rows = swapped.sample(np.zeros((20, 2 * swapped.n_pairs)), np.random.default_rng((66, 4)))
    assert all(isinstance(x, float) for x in rows[:, 0])
    assert set(rows[:, 1]) <= {"a", "b", None}
    assert swapped.encode(rows).cells[:, 1].tolist() == rows[:, 0].tolist()
