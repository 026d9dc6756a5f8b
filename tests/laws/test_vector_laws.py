"""Vectors with a scale per row: densities, bounds and merges against slow spellings."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.sparse import csr_array, issparse
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from bnpstream import Directional, ScaledGaussian, StreamingMixture, dirichlet_process
from bnpstream.engine.names import resolve_likelihood
from bnpstream.inference import adf
from bnpstream.kernels.vectors.bessel import log_c_fall
from bnpstream.kernels.vectors.families import (
    AT,
    LONGER,
    SCALES,
    TANGENTS,
    WORK,
    fill_pairs,
    fill_tangents,
    still_bound,
)
from bnpstream.likelihoods import Automatic
from bnpstream.likelihoods.pools import Pool
from bnpstream.mixture import Model, log_joint
from bnpstream.testing import check_likelihood

FAMILIES = {
    "directions": Directional(normalize=True),
    "widths": ScaledGaussian(),
}
families = pytest.mark.parametrize("family", FAMILIES)


def rows(n, D, seed=0, K=3, dtype=np.float64):
    """Return rows of K clusters, at different distances from their centres."""
    rng = np.random.default_rng((91, seed))
    width = rng.choice([0.2, 0.5, 1.0], size=(n, 1))
    X = rng.normal(size=(K, D))[rng.integers(K, size=n)] + width * rng.normal(size=(n, D))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)


def clusters(family, X, K=3):
    """Return statistics of K clusters with soft shares of rows, and a zero row."""
    likelihood, rng = family.informed(X), np.random.default_rng(92)
    batch = likelihood.encode(X)
    found = np.zeros((K + 1, batch.n_statistics))
    for i in range(len(batch)):
        q = np.append(rng.dirichlet(np.full(K, 0.3)), 0.0)
        lines = likelihood.contributions(found, batch.row(i), np.arange(K + 1))
        found += q[:, None] * lines
    return likelihood, batch, found


@pytest.mark.parametrize("D", [2, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@families
def test_laws(family, D, dtype):
    X = rows(12, D, dtype=dtype)
    check_likelihood(FAMILIES[family].informed(X), X)


def test_directions_integrate_to_one():
    likelihood, _, statistics = clusters(Directional(), rows(20, 2))

    def density(angle, k):
        batch = likelihood.encode([[np.cos(angle), np.sin(angle)]])
        return np.exp(likelihood.log_predictive(statistics[[k]], batch.row(0))[0])

    for k in range(len(statistics)):
        total = quad(density, -np.pi, np.pi, args=(k,), limit=400)[0]
        assert total == pytest.approx(1.0, rel=1e-7)


def test_widths_are_gaussians():
    likelihood, batch, statistics = clusters(ScaledGaussian(), 3.0 + 2.0 * rows(20, 2))
    precision = likelihood.precision + statistics[:, :SCALES] @ likelihood.grid
    for i in range(5):
        x = batch.values[i]
        expected = [
            logsumexp(
                [
                    share + multivariate_normal(mean, 1.0 / P + 1.0 / scale).logpdf(x)
                    for share, scale in zip(likelihood.log_shares, likelihood.grid, strict=True)
                ]
            )
            for P, mean in zip(precision, likelihood.posterior_mean(statistics), strict=True)
        ]
        found = likelihood.log_predictive(statistics, batch.row(i))
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("D", [3, 40, 100])
def test_a_pair_is_a_ratio_of_normalisers(D):
    likelihood, batch, statistics = clusters(Directional(), rows(20, D))
    before = likelihood.log_normalizer(statistics)
    for i in range(4):
        x = batch.row(i).values[SCALES:]
        expected = [
            likelihood.log_normalizer(statistics + np.append(np.eye(SCALES)[g], kappa * x)) - before
            for g, kappa in enumerate(likelihood.grid)
        ]
        found = likelihood.log_predictive(statistics, batch.row(i))
        np.testing.assert_allclose(found, logsumexp(expected, axis=0), rtol=1e-10, atol=1e-8)


@families
@pytest.mark.parametrize("D", [3, 70, 300])
def test_no_score_is_above_its_tangents(family, D):
    likelihood, _, statistics = clusters(FAMILIES[family], rows(30, D))
    parameters = likelihood.kernel_parameters(D + SCALES)
    eta, precisions = likelihood._parts(statistics)
    pairs, constants, slopes = np.zeros(WORK), *np.zeros((2, SCALES * TANGENTS))
    for squares, precision in zip((eta**2).sum(axis=1).tolist(), precisions.tolist(), strict=True):
        fill_tangents(parameters, squares, precision, constants, slopes)
        for cosine in (-0.9, -0.2, 0.0, *AT, 0.4, 0.8, 1.0):
            dot = cosine * np.sqrt(squares)
            fill_pairs(parameters, squares, precision, dot, 1.0, pairs)
            lines = constants + slopes * (dot - parameters.lean * precision)
            least = lines.reshape(SCALES, TANGENTS).min(axis=1)
            assert (least >= pairs[:SCALES] - 0.005).all()
            if cosine in AT:
                assert (least <= pairs[:SCALES] + 0.005).all()


@families
@pytest.mark.parametrize("D", [3, 70, 300])
def test_no_score_is_above_tangents_of_a_shorter_cluster(family, D):
    """As far as these are used, at any product from the least on."""
    likelihood, _, statistics = clusters(FAMILIES[family], rows(30, D))
    parameters = likelihood.kernel_parameters(D + SCALES)
    eta, precisions = likelihood._parts(statistics)
    pairs, constants, slopes = np.zeros(WORK), *np.zeros((2, SCALES * TANGENTS))
    n_used = 0
    for made, precision in zip((eta**2).sum(axis=1).tolist(), precisions.tolist(), strict=True):
        fill_tangents(parameters, made, precision, constants, slopes)
        for longer in (0.99, 1.0, 1.1, LONGER, 1.001 * LONGER):
            squares = longer * made
            if not still_bound(parameters, made, squares):
                continue
            n_used += 1
            for cosine in (-0.9, -0.2, -0.01, 0.0, *AT, 0.4, 0.8, 1.0):
                dot = cosine * np.sqrt(squares)
                fill_pairs(parameters, squares, precision, dot, 1.0, pairs)
                y = max(dot - parameters.lean * precision, parameters.least)
                lines = (constants + slopes * y).reshape(SCALES, TANGENTS)
                assert (lines.min(axis=1) >= pairs[:SCALES] - 0.005).all()
    assert n_used == (3 * len(eta) if family == "directions" else 0)


@pytest.mark.kernel
@pytest.mark.parametrize("D", [3, 40, 64, 300, 600])
def test_scores_of_all_scales_at_a_time_have_the_same_bits(D):
    likelihood, batch, statistics = clusters(Directional(), rows(20, D))
    parameters = likelihood.kernel_parameters(D + SCALES)
    eta, pairs = likelihood._parts(statistics)[0], np.zeros(WORK)
    for squares, dot in zip((eta**2).sum(axis=1), eta @ batch.values[0], strict=True):
        fill_pairs(parameters, float(squares), 0.0, float(dot), 1.0, pairs)
        for g, kappa in enumerate(parameters.grid.tolist()):
            fall = log_c_fall(parameters.order, float(squares), kappa * (kappa + 2.0 * float(dot)))
            assert pairs[g] == parameters.constants[g] + fall


@pytest.mark.kernel
@families
def test_the_screen_changes_no_score(family):
    """What is left out is below the cut, and all else has the bits that it has without a screen."""
    X = rows(150, 12, seed=3, K=20)
    likelihood = FAMILIES[family].informed(X)
    model, batch = Model(dirichlet_process(5.0), likelihood), likelihood.encode(X)
    state, kernel = adf.init(model, batch.n_statistics), model.kernel_arguments(batch)
    for _ in adf.run(model, state, batch.part(0, 100), adf.Settings(0.1, 1e-4), kernel):
        pass
    assert state.n_clusters > 12
    every = log_joint(model, state, batch, kernel)
    found = log_joint(model, state, batch, kernel, log_cut=-3.0)
    left_out = np.isneginf(found)
    assert left_out.mean() > 0.3
    assert found[~left_out].tobytes() == every[~left_out].tobytes()
    below = every - every.max(axis=1, keepdims=True)
    assert below[left_out].max() < -3.0


@pytest.mark.parametrize("options", [{}, {"revisit": 30, "merge_threshold": 0.0}])
@families
def test_blocks_and_types_do_not_matter(family, options):
    X = rows(120, 10, seed=4, K=15, dtype=np.float32)

    def bits(X, step):
        model = StreamingMixture(likelihood=FAMILIES[family], prefix_rows=60, **options)
        for start in range(0, len(X), step):
            model.partial_fit(X[start : start + step])
        return model.finish().state_.statistics.tobytes()

    assert bits(X, 120) == bits(X, 7) == bits(X.astype(np.float64), 50)


@families
def test_odds_are_those_of_marginals(family):
    likelihood, _, statistics = clusters(FAMILIES[family], rows(30, 40), K=5)
    found, slow = likelihood.pool(_sparse(statistics)), Pool(likelihood, statistics)
    every = np.arange(6)
    np.testing.assert_allclose(found.table(every, every), slow.table(every, every), atol=1e-8)
    others = np.array([1, 3])
    joined = found.join(0, 2, others, np.zeros(2)), slow.join(0, 2, others, np.zeros(2))
    np.testing.assert_allclose(*joined, atol=1e-8)


def _sparse(statistics):
    from scipy.sparse import csr_array

    return csr_array(statistics)


def test_rows_without_a_direction_are_named():
    X = rows(30, 5)
    X[17] *= 1.5
    with pytest.raises(ValueError, match=r"row 17, the length is 1.5.*normalize=True"):
        StreamingMixture(likelihood="directional").fit(X)
    X[21] = 0.0
    with pytest.raises(ValueError, match="row 21, all numbers are zero"):
        StreamingMixture(likelihood=Directional(normalize=True)).fit(X)
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="row 3, column 2 is nan"):
        StreamingMixture(likelihood=Directional(normalize=True)).fit(X)


def test_no_mean_is_no_concentration():
    X = np.vstack([np.eye(4), -np.eye(4)])
    assert Directional().informed(X).concentration == 0.0
    assert Directional().informed(np.tile(np.eye(4)[0], (9, 1))).concentration > 10.0


@pytest.mark.parametrize(
    ("X", "chosen"),
    [
        (rows(40, 12), "Directional"),
        (rows(40, 12).astype(np.float16), "Directional"),
        (2.5 * rows(40, 12), "Gaussian"),
        (2.5 * rows(40, 50), "Directional"),
        (10.0 + rows(40, 50), "ScaledGaussian"),
        (rows(40, 50) * np.linspace(1.0, 3.0, 40)[:, None], "ScaledGaussian"),
    ],
)
def test_auto_by_rule(X, chosen):
    assert type(Automatic(rules=2).chosen(X)).__name__ == chosen
    assert type(Automatic().chosen(X)).__name__ == "Gaussian"


def counted(n, D, total):
    return np.random.default_rng((7, D)).multinomial(total, np.full(D, 1.0 / D), size=n)


@pytest.mark.parametrize(
    ("X", "chosen"),
    [
        (counted(40, 50, 20), "DirichletMultinomial"),
        (counted(40, 50, 20).astype(np.uint8), "DirichletMultinomial"),
        (csr_array(counted(40, 3, 90)), "DirichletMultinomial"),
        (counted(40, 3, 90), "Gaussian"),  # hardly a zero
        (90 * counted(40, 50, 20), "Directional"),  # pixels: many zeros, and large numbers
        (counted(40, 50, 20) - 1, "Directional"),
        (counted(40, 1, 1), "Gaussian"),
        (np.eye(4, dtype=int)[[0, 1, 2, 3] * 9][:, [0]], "Gaussian"),
    ],
)
def test_auto_takes_integers_for_word_counts_if_they_look_like_them(X, chosen):
    assert type(resolve_likelihood("auto").chosen(X)).__name__ == chosen
    if not issparse(X) and X.min() >= 0:  # models saved before this rule go on as they were
        assert type(Automatic(rules=2).chosen(X)).__name__ == "DirichletMultinomial"


def test_auto_takes_unit_rows_for_directions():
    model = StreamingMixture().fit(rows(80, 6).astype(np.float32))
    assert isinstance(model.likelihood_, Directional)
    np.testing.assert_allclose(np.linalg.norm(model.means_, axis=1), 1.0)
