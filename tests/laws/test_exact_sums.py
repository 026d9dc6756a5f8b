"""Gaussians far from zero: statistics, covariances and scores against exact fractions.

The clusters of one posterior are a million apart, one column is constant but for its tenth digit,
and rows go in and out by the thousand. Sums in single doubles have no digit left there.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit

import naive_cells as naive
from bnpstream import StreamingMixture
from bnpstream.kernels.passes.kinds import add_row, take_out_row
from bnpstream.likelihoods import DiagonalGaussian, Gaussian, SphericalGaussian
from bnpstream.mixture import MixtureState, Model, SiteBuffer, log_joint
from bnpstream.mixture.sites import totals
from bnpstream.priors import dirichlet_process
from cell_cases import ENGINES

kernel = pytest.mark.kernel
engines = pytest.mark.parametrize("engine", ENGINES)

FAR = 1e6
CENTERS = np.array([[-FAR, FAR], [0.0, FAR], [FAR, FAR]])
SPREAD = np.array([1.0, 1e-3])
"""Of the second column: a billionth of its value."""
MEAN, WEAK = [0.0, FAR], 1e-14
"""So weak that the distance of a cluster from the expected mean does not hide its spread."""
_base = {"mean": MEAN, "mean_strength": WEAK}
FAMILIES = {
    "gaussian": Gaussian(**_base, degrees=4.0, covariance=np.diag(SPREAD**2)),
    "diagonal": DiagonalGaussian(**_base, degrees=3.0, variance=SPREAD**2),
    "spherical": SphericalGaussian(**_base, degrees=3.0, variance=1e-4),
}
families = pytest.mark.parametrize("name", FAMILIES)


class Stream(NamedTuple):
    """Rows, and what is done with them in order: (row, slot, share), a negative share taken out."""

    rows: np.ndarray
    steps: list[tuple[int, int, float]]
    weights: np.ndarray
    """(clusters, rows): what is left in the end."""


def stream(number, n=240, strangers=1500):
    """Return rows of three clusters; thousands of strangers come and go in each."""
    rng = np.random.default_rng((69, number))
    z = np.arange(n) % 3
    rows = CENTERS[z] + SPREAD * rng.normal(size=(n, 2))
    weights = np.zeros((3, n))
    weights[z, np.arange(n)] = rng.uniform(0.05, 0.95, n)
    steps = [(i, int(z[i]), float(weights[z[i], i])) for i in range(n)]
    visits = [
        (int(rng.integers(n)), int(rng.integers(3)), rng.uniform(0.05, 0.95))
        for _ in range(strangers)
    ]
    leave = [(i, k, -share) for i, k, share in visits]
    steps += visits + [leave[j] for j in rng.permutation(strangers)]
    return Stream(rows, steps, weights)


@njit
def _change(cache, likelihood, clusters, rows, i, k, share, entries):
    if share > 0.0:
        add_row(cache, likelihood, clusters, rows, i, k, share, entries)
    else:
        take_out_row(cache, likelihood, clusters, rows, i, k, -share, entries)


def posterior(family, stream, engine):
    """Return the state after all steps, as the engine's own additions and subtractions make it."""
    model, batch = Model(dirichlet_process(1.0), family), family.encode(stream.rows)
    state = MixtureState(batch.n_statistics, paired=True)
    for _ in CENTERS:
        state.open()
    arguments = model.kernel_arguments(batch)
    cache, nothing = state.cache(family), np.empty(0, np.uint64)
    for i, k, share in stream.steps:
        if engine == "compiled":
            clusters = (arguments.likelihood, state.arrays, arguments.rows)
            _change(cache, *clusters, i, k, share, nothing)
        elif share > 0.0:
            state.add(np.eye(3)[k] * share, batch.row(i))
        else:
            state.take_out(np.array([k]), np.array([-share]), batch.row(i))
    return model, batch, state


def exact_covariance(family, rows, weights):
    """Return the posterior mean of the covariance: a matrix, variances, or one variance."""
    rows, weights = rows.tolist(), weights.tolist()
    n = sum(weights)
    if isinstance(family, Gaussian):
        _, _, _, Psi = naive.wishart_posterior(rows, weights, MEAN, WEAK, np.diag(SPREAD**2))
        return Psi / (4 + n - 3)
    squares = [float(naive.posterior_column(rows, weights, j, MEAN[j], WEAK)[3]) for j in (0, 1)]
    if isinstance(family, SphericalGaussian):
        return (0.5e-4 + sum(squares) / 2) / (1.5 + n - 1)
    return [(0.5 * SPREAD[j] ** 2 + squares[j] / 2) / (1.5 + n / 2 - 1) for j in (0, 1)]


def covariance(family, statistics):
    """Return the same from the package."""
    if isinstance(family, Gaussian):
        return family.covariances(statistics)
    post: Any = family._posterior(statistics)
    variances = post.rate / (post.shape - 1.0)
    return variances[:, 0] if isinstance(family, SphericalGaussian) else variances


def oracle(family, x, rows, weights):
    if isinstance(family, Gaussian):
        return naive.log_full(x, rows, weights, MEAN, WEAK, 4.0, np.diag(SPREAD**2))
    if isinstance(family, SphericalGaussian):
        return naive.log_spherical(x, rows, weights, MEAN, WEAK, 1.5, 0.5e-4)
    return naive.log_diagonal(x, rows, weights, MEAN, WEAK, 1.5, (0.5 * SPREAD**2).tolist())


@kernel
@engines
@families
def test_rows_that_came_and_went_leave_the_exact_posterior(name, engine):
    family, case = FAMILIES[name], stream(1)
    model, batch, state = posterior(family, case, engine)
    np.testing.assert_allclose(state.masses, case.weights.sum(axis=1), rtol=1e-10)
    found = covariance(family, state.statistics)
    for k in range(3):
        expected = np.asarray(exact_covariance(family, case.rows, case.weights[k]))
        spread = np.sqrt(np.diag(expected)) if expected.ndim == 2 else np.ones(1)
        scale = np.outer(spread, spread) if expected.ndim == 2 else expected
        assert (np.abs(found[k] - expected) <= 1e-6 * scale).all()
    arguments = model.kernel_arguments(batch) if engine == "compiled" else None
    scores = log_joint(model, state, batch, arguments, np.zeros(4))
    rows = case.rows.tolist()
    for i in range(0, 240, 40):
        k = i % 3
        expected = oracle(family, rows[i], rows, case.weights[k].tolist())
        assert scores[i, k] == pytest.approx(expected, abs=1e-6)


@kernel
@engines
@families
def test_a_few_rows_near_zero_outlast_a_stranger_from_far_away(name, engine):
    """Their squares are fourteen digits below the stranger's, and no rounding."""
    family, near = FAMILIES[name], np.array([[0.1, FAR], [-0.1, FAR], [0.3, FAR]])
    rows = np.vstack([near, [[1e8, -1e8]]])
    weights = np.array([[0.4, 0.3, 0.2, 0.0], np.zeros(4), np.zeros(4)])
    steps = [(i, 0, weights[0, i]) for i in range(3)] + [(3, 0, 0.5), (3, 0, -0.5)]
    _, _, state = posterior(family, Stream(rows, steps, weights), engine)
    expected = np.asarray(exact_covariance(family, rows, weights[0]))
    found = covariance(family, state.statistics)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)
    emptied = steps + [(i, 0, -weights[0, i]) for i in (1, 2, 0)]
    _, _, state = posterior(family, Stream(rows, emptied, weights), engine)
    assert not state.statistics[0, 0].any()  # nothing is left of the count
    prior = covariance(family, np.zeros((1, state.n_statistics)))[0]
    np.testing.assert_allclose(covariance(family, state.statistics)[0], prior, rtol=1e-6)


@families
def test_rebuilding_and_merging_lose_no_digit(name):
    family, case = FAMILIES[name], stream(2, strangers=10)
    _, batch, state = posterior(family, case, "reference")
    sites = SiteBuffer(len(batch))
    for weights in case.weights.T:
        sites.append(np.flatnonzero(weights), weights[weights > 0])
    state.rebuild(*totals(sites, batch, 3))
    np.testing.assert_allclose(
        covariance(family, state.statistics),
        [exact_covariance(family, case.rows, weights) for weights in case.weights],
        rtol=1e-6,
        atol=1e-9,
    )
    state.merge(2, 0, -1.0)
    both = case.weights[0] + case.weights[2]
    np.testing.assert_allclose(
        covariance(family, state.statistics)[0],
        exact_covariance(family, case.rows, both),
        rtol=1e-9,
    )
    expected = exact_covariance(family, case.rows, case.weights[1])
    np.testing.assert_allclose(
        covariance(family, state.statistics)[1], expected, rtol=1e-6, atol=1e-9
    )


@kernel
@families
def test_an_offset_changes_nothing_that_is_said_of_rows(name):
    """Whole millions and halves of thousandths: the offset rows are exact, not rounded."""
    rng = np.random.default_rng((69, 3))
    centers = np.array([[-6, 0], [0, 4], [5, 1]])[np.arange(60) % 3]
    rows = np.round(centers + rng.normal(size=(60, 2))) + rng.integers(-500, 500, (60, 2)) / 1024
    plain, moved = (
        StreamingMixture(likelihood=name, n_passes=3, new_cluster_threshold=0.2).fit(rows + offset)
        for offset in (0.0, FAR)
    )
    assert plain.n_clusters_ > 2
    np.testing.assert_array_equal(plain.labels_, moved.labels_)
    np.testing.assert_allclose(moved.log_evidence_, plain.log_evidence_, atol=1e-6)
    np.testing.assert_allclose(moved.state_.masses, plain.state_.masses, rtol=1e-6)
    np.testing.assert_allclose(moved.means_ - FAR, plain.means_, atol=1e-6)
    assert moved.epochs_[-1].drift < 1e-3


def test_clusters_a_million_apart_are_found_with_their_own_spread():
    case = stream(4, strangers=0)
    model = StreamingMixture(likelihood="gaussian").fit(case.rows)
    truth = np.arange(240) % 3
    for k in range(3):
        assert len(set(model.labels_[truth == k])) == 1
    np.testing.assert_allclose(model.means_[:, 0], [-FAR, 0.0, FAR], atol=1e5)
