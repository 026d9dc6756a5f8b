"""The auxiliary variable at any parameters: no start, size or strength leads astray.

The oracle is bisection of the logarithm of the mode's equation, n tau / u + sigma K =
a (u + tau)^sigma, which is nowhere flat.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest

import naive
from bnpstream.inference.gibbs import draw_auxiliary
from bnpstream.kernels.arrays import LOG_AUXILIARY, TOTAL_MASS
from bnpstream.kernels.measures.rules import log_prior_weights
from bnpstream.mixture import MixtureState
from bnpstream.priors import GeneralizedGamma

STRENGTHS = [1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1.0, 1e2, 1e4, 1e8]
TILTS = [0.0, 1e-8, 1e-4, 1.0, 1e2, 1e4, 1e8]
DISCOUNTS = [0.0, 1e-6, 1e-4, 0.01, 0.1, 0.25, 0.5, 0.75, 0.99, 1 - 1e-6]
SIZES = [(1, 1), (3, 2), (100, 1), (100, 40), (1e4, 1), (1500, 1), (1e6, 90), (1e12, 1), (1e12, 60)]
GRID = [
    point
    for point in itertools.product(STRENGTHS, DISCOUNTS, TILTS, SIZES)
    if point[1] > 0 or point[2] > 0
]
NEVER_EMPTY = -np.inf


def log_sum(x, y):
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))


def mode(a, sigma, tau, n, K):
    """Return log u with log(n tau / u + sigma K) = log a + sigma log(u + tau)."""
    if tau == 0:
        return math.log(sigma * K / a) / sigma
    if sigma == 0:
        return math.log(n) + math.log(tau) - math.log(a)
    low, high = -1e9, 1e9
    for _ in range(200):
        v = 0.5 * (low + high)
        asked = log_sum(math.log(n) + math.log(tau) - v, math.log(sigma * K))
        if asked > math.log(a) + sigma * log_sum(v, math.log(tau)):
            low = v
        else:
            high = v
    return low


def posterior(n, K):
    """Return masses and log vacancies of K clusters of the same size."""
    return np.full(K, n / K), np.full(K, NEVER_EMPTY)


def compiled_weights(prior, masses, log_vacancy, n, start):
    """Return log U and the log weights of the compiled engine."""
    state = MixtureState(1)
    for _ in masses:
        state.open()
    state.masses[:], state.log_vacancy[:] = masses, log_vacancy
    state.arrays.totals[TOTAL_MASS], state.arrays.totals[LOG_AUXILIARY] = n, start
    out = np.empty(state.arrays.masses.size)
    found = log_prior_weights(prior.kernel_parameters(), state.arrays, out)
    return found, out[: masses.size + 1]


def check_mode(point):
    a, sigma, tau, (n, K) = point
    prior, (masses, log_vacancy) = GeneralizedGamma(a, sigma, tau), posterior(n, K)
    expected = mode(a, sigma, tau, n, K)
    new = math.log(a)
    if sigma > 0:
        new += sigma * (log_sum(expected, math.log(tau)) if tau > 0 else expected)
    new = new - log_sum(new, math.log(n - sigma * K))
    # What matters is sigma log U; a root of a slope sigma is known to rounding / sigma.
    tolerance = 1e-9 + 1e-13 * abs(expected) + (1e-13 / sigma if sigma > 0 else 0.0)
    for start in (math.nan, expected + 3.0, expected - 500.0, expected + 1e4):
        found = prior.solve_auxiliary(masses, log_vacancy, n, start)
        compiled, weights = compiled_weights(prior, masses, log_vacancy, n, start)
        assert abs(found - expected) < tolerance
        assert abs(compiled - expected) < tolerance
        assert abs(prior.log_weights(masses, log_vacancy, n, found)[-1] - new) < 1e-9
        assert abs(weights[-1] - new) < 1e-9


@pytest.mark.kernel
def test_mode_is_right_at_any_parameters_and_from_any_start():
    rng = np.random.default_rng((41, 0))
    for i in rng.choice(len(GRID), 250, replace=False):
        check_mode(GRID[i])


@pytest.mark.kernel
def test_clusters_that_are_surely_empty_leave_a_mode():
    """E[K'] = 0: n tau / u = a (u + tau)^sigma."""
    prior, masses, vacant = GeneralizedGamma(2.0, 0.5, 3.0), np.array([2.5]), np.zeros(1)
    u = math.exp(prior.solve_auxiliary(masses, vacant, 2.5, math.nan))
    assert math.isclose(2.5 * 3.0 / u, 2.0 * math.sqrt(u + 3.0), rel_tol=1e-12)
    found, _ = compiled_weights(prior, masses, vacant, 2.5, math.nan)
    assert math.isclose(math.exp(found), u, rel_tol=1e-12)


@pytest.mark.slow
def test_mode_is_right_on_the_whole_grid():
    for point in GRID:
        check_mode(point)


@pytest.mark.parametrize(
    ("a", "sigma", "tau", "n"),
    [(1e-6, 0.25, 1.0, 10_000), (1e6, 0.99, 1e8, 7)],
)
def test_exact_rule_at_extreme_parameters(a, sigma, tau, n):
    """One cluster of n rows; p(new) / p(old) by mpmath, in units that make the integrals small."""
    a, sigma, tau = mpmath.mpf(a), mpmath.mpf(sigma), mpmath.mpf(tau)

    def log_density(v):
        shifted = mpmath.exp(v) + tau
        phi = a / sigma * (shifted**sigma - tau**sigma)
        return n * v + (sigma - n) * mpmath.log(shifted) - phi

    with mpmath.workdps(30):
        peak = mpmath.mpf(mode(float(a), float(sigma), float(tau), n, 1))
        top = log_density(peak)
        scale = 1 / mpmath.sqrt(-mpmath.diff(log_density, peak, 2))
        edges = [peak + scale * j * abs(j) for j in range(-14, 9)]

        def expect(rate):
            def integrand(v):
                share = mpmath.exp(v) / (mpmath.exp(v) + tau)
                return rate(v) * share * mpmath.exp(log_density(v) - top)

            return mpmath.quad(integrand, edges)

        new = expect(lambda v: a * (mpmath.exp(v) + tau) ** sigma)
        odds = float(new / (expect(lambda _: n - sigma)))
    rule = GeneralizedGamma(float(a), float(sigma), float(tau)).predictive_rule([float(n)])
    assert math.isclose(rule[1] / rule[0], odds, rel_tol=1e-9)
    assert abs(rule.sum() - 1) < 1e-10


@pytest.mark.parametrize(
    ("a", "sigma", "tau"),
    [
        (1e6, 0.99, 1e8),
        (1e6, 1 - 1e-6, 1e8),
        (1e8, 0.5, 1e-8),
        (1e-8, 0.5, 1e8),
        (1e-8, 0.01, 1e-8),
        (1.0, 1e-6, 1.0),
        (1e-3, 1e-3, 1.0),
    ],
)
def test_partition_probabilities_sum_to_one_at_extreme_parameters(a, sigma, tau):
    prior = GeneralizedGamma(a, sigma, tau)
    total = math.fsum(
        math.exp(prior.log_eppf(np.array(naive.sizes(labels), float)))
        for labels in naive.set_partitions(4)
    )
    assert abs(total - 1) < 1e-9


@pytest.mark.kernel
@pytest.mark.parametrize(("a", "sigma"), [(1e-4, 1e-6), (1e-8, 1e-9)])
def test_integrals_that_are_too_wide_are_refused(a, sigma):
    prior = GeneralizedGamma(a, sigma, auxiliary="quadrature")
    masses, log_vacancy = posterior(4.0, 2)
    mode_of = prior.solve_auxiliary(masses, log_vacancy, 4.0, math.nan)
    for asked in (
        lambda: prior.log_eppf(masses),
        lambda: prior.predictive_rule(masses),
        lambda: prior.log_weights(masses, log_vacancy, 4.0, mode_of),
        lambda: compiled_weights(prior, masses, log_vacancy, 4.0, math.nan),
    ):
        with pytest.raises(ValueError, match=r"too wide .* discount of 0\.001 or more"):
            asked()


@pytest.mark.kernel
@pytest.mark.parametrize("n", [1.0, 40.0, 1e6])
@pytest.mark.parametrize("sigma", [1e-3, 0.1, 0.5, 0.99])
def test_discounts_from_a_thousandth_are_narrow_enough(sigma, n):
    K = 1 if n == 1 else 5
    for a, tau in itertools.product((1e-8, 1.0, 1e8), (1e-8, 1.0, 1e8)):
        prior = GeneralizedGamma(a, sigma, tau, auxiliary="quadrature")
        masses, log_vacancy = posterior(n, K)
        mode_of, compiled = compiled_weights(prior, masses, log_vacancy, n, math.nan)
        weights = prior.log_weights(masses, log_vacancy, n, mode_of)
        np.testing.assert_allclose(compiled, weights, atol=1e-9)
        # E[s] + E[new] / (n - sigma K) = n / (n - sigma K): the rule is normalised by itself.
        rule = prior.predictive_rule(masses)
        assert abs(rule.sum() - 1) < 1e-8
        np.testing.assert_allclose(np.exp(weights), rule, rtol=1e-8)


@pytest.mark.parametrize(("a", "sigma", "tau"), [(1e-6, 0.01, 1.0), (1.0, 0.002, 0.0)])
def test_merge_odds_where_u_is_no_double(a, sigma, tau):
    prior, (masses, log_vacancy) = GeneralizedGamma(a, sigma, tau), posterior(100.0, 20)
    v = prior.solve_auxiliary(masses, log_vacancy, 100.0, math.nan)
    assert abs(v) > 709
    odds = prior.log_merge_odds(np.full((2, 1), 5.0), np.ones((2, 1)), np.ones(1), 20.0, v)
    # kappa_10 / kappa_5^2; (u + tau)^-sigma is all that is left of u
    gammas = math.lgamma(10 - sigma) + math.lgamma(1 - sigma) - 2 * math.lgamma(5 - sigma)
    expected = gammas - math.log(a) - sigma * (v if tau == 0 else log_sum(v, math.log(tau)))
    np.testing.assert_allclose(odds, expected, rtol=1e-12)


@pytest.mark.parametrize(("a", "sigma", "n"), [(1e-6, 0.1, 1500.0), (1e-6, 0.25, 1e4)])
def test_drawing_the_auxiliary_variable_ends(a, sigma, n):
    """False alarms: below 1e-6; what is drawn is nearly independent from draw to draw."""
    prior, counts, rng = GeneralizedGamma(a, sigma), np.array([n]), np.random.default_rng((41, 1))
    v, weights = prior._exact_nodes(counts)
    mean = weights @ v
    spread = math.sqrt(weights @ (v - mean) ** 2)
    draws, last = [], math.nan
    for _ in range(300):
        last = draw_auxiliary(prior, counts, last, rng)
        draws.append(last)
    assert abs(np.mean(draws) - mean) < 8 * spread / math.sqrt(300)
    for start in (mean - 50.0, mean + 50.0):
        assert math.isfinite(draw_auxiliary(prior, counts, start, rng))
