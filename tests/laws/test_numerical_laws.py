"""Measures known by their intensity: the NGGP again, and others against adaptive quadrature."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import naive
from bnpstream.priors import GeneralizedGamma, NumericalMeasure, PitmanYor, normalized_stable
from bnpstream.testing import check_prior
from intensities import OTHERS, generalized_dirichlet, generalized_gamma, numerical

NGGPS = [
    GeneralizedGamma(a, sigma, tau)
    for (sigma, a), tau in itertools.product(
        [(0.0, 2.0), (0.25, 0.5), (0.5, 10.0), (0.75, 1.0)], [0.1, 1.0, 100.0]
    )
]
FEW = NGGPS[1::4]
RULES = list(itertools.product(["mode", "quadrature"], ["expected", "plain"]))
COUNTS = [np.array(sizes, float) for sizes in [(1,), (3,), (1, 1), (4, 1, 2), (9, 1, 1, 5, 20)]]


def soft_posterior(case, n=40, K=5):
    """Return masses, log vacancies and n of responsibilities, some shared, some whole."""
    rng = np.random.default_rng((31, case))
    q = rng.dirichlet([0.2, 0.4, 0.8, 1.6, 0.3], size=n)
    q[::4] = np.eye(K)[rng.integers(0, K, size=q[::4].shape[0])]
    return q.sum(axis=0), np.log1p(-np.minimum(q, 1 - 2**-53)).sum(axis=0), float(n)


def spread(case, low, high, size):
    """Return numbers whose logarithms are uniform."""
    return np.exp(np.random.default_rng((32, case)).uniform(low, high, size))


# --- fed the intensity of an NGGP it is that NGGP -------------------------------------------------


@pytest.mark.parametrize("prior", NGGPS, ids=repr)
def test_exponent_is_the_closed_form(prior):
    u = prior.tilt * spread(0, -12, 18, 300)
    found = numerical(prior).laplace_exponent(u)
    np.testing.assert_allclose(found, prior.laplace_exponent(u), rtol=1e-13)


@pytest.mark.parametrize("prior", NGGPS, ids=repr)
def test_exponent_of_complex_arguments_is_the_closed_form(prior):
    angles = np.random.default_rng((32, 1)).uniform(-1.57, 1.57, 300)
    u = prior.tilt * spread(1, -3, 18, 300) * np.exp(1j * angles)
    found = numerical(prior).laplace_exponent(u)
    np.testing.assert_allclose(found, prior.laplace_exponent(u), rtol=1e-12)


@pytest.mark.parametrize("prior", NGGPS, ids=repr)
def test_tilted_moments_are_the_closed_form(prior):
    """To 1e-10 up to sizes where log kappa, some m log m, has no more digits than that."""
    u, m = prior.tilt * spread(2, -12, 18, 400), prior.discount + spread(3, -6, 9, 400)
    found = numerical(prior).log_tilted_moment(m, u)
    np.testing.assert_allclose(found, prior.log_tilted_moment(m, u), rtol=1e-12, atol=1e-11)
    assert np.all(numerical(prior).log_tilted_moment([0.5 * prior.discount], u) == np.inf)


@pytest.mark.parametrize("prior", NGGPS, ids=repr)
def test_tables_are_the_closed_form(prior):
    """u kappa_{m+1} / kappa_m = (m - sigma) u / (u + tau), and u kappa_1 last."""
    v = np.log(prior.tilt) + np.random.default_rng((32, 4)).uniform(-8, 20, 12)
    m = prior.discount + spread(5, -6, 14, 30)
    share = 1 / (1 + prior.tilt * np.exp(-v))[:, None]
    found, slopes = numerical(prior)._ratios(m, v)
    np.testing.assert_allclose(found[:, :-1], (m - prior.discount) * share, rtol=1e-10)
    expected = (m - prior.discount) * share * (1 - share)
    np.testing.assert_allclose(slopes[:, :-1], expected, rtol=1e-6, atol=1e-8 * m.max())
    new = np.exp(v + prior.log_tilted_moment(np.ones(1), np.exp(v)))
    np.testing.assert_allclose(found[:, -1], new, rtol=1e-12)


@pytest.mark.parametrize(("auxiliary", "cluster_count"), RULES)
@pytest.mark.parametrize("prior", NGGPS, ids=repr)
def test_weights_and_mode_are_those_of_the_nggp(prior, auxiliary, cluster_count):
    prior = replace(prior, auxiliary=auxiliary, cluster_count=cluster_count)
    masses, log_vacancy, n = soft_posterior(1)
    assert masses.min() > 1  # the general soft form needs S_k >= p_k
    modes = [p.solve_auxiliary(masses, log_vacancy, n, math.nan) for p in (numerical(prior), prior)]
    assert abs(modes[0] - modes[1]) < 1e-9
    np.testing.assert_allclose(
        numerical(prior).log_weights(masses, log_vacancy, n, modes[0]),
        prior.log_weights(masses, log_vacancy, n, modes[1]),
        atol=1e-10,
    )


@pytest.mark.parametrize("prior", NGGPS, ids=repr)
def test_partitions_and_merges_are_those_of_the_nggp(prior):
    measure = numerical(prior)
    assert measure.smallest_mass == prior.discount
    for counts in COUNTS:
        assert abs(measure.log_eppf(counts) - prior.log_eppf(counts)) < 1e-9
        np.testing.assert_allclose(
            measure.predictive_rule(counts), prior.predictive_rule(counts), rtol=1e-9
        )
    pairs = (np.array([[3.2, 0.7], [1.1, 12.0]]), np.array([[0.9, 0.5], [0.6, 1.0]]))
    odds = [p.log_merge_odds(*pairs, np.array([0.95, 1.0]), 4.0, 0.3) for p in (measure, prior)]
    np.testing.assert_allclose(odds[0], odds[1], atol=1e-10)


@pytest.mark.parametrize("prior", FEW, ids=repr)
def test_expected_clusters_are_those_of_the_nggp(prior):
    for n in (2, 30, 10_000):
        expected = prior.expected_clusters(n)
        assert math.isclose(numerical(prior).expected_clusters(n), expected, rel_tol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [FEW[0], GeneralizedGamma(3.0, 0.4, 1e4)], ids=repr)
def test_concentration_is_found_again(prior):
    measure = replace(numerical(prior), concentration=77.0)
    found = measure.with_expected_clusters(prior.expected_clusters(40), 40)
    assert math.isclose(found.concentration, prior.concentration, rel_tol=1e-6)


@pytest.mark.parametrize("sigma", [0.3, 0.6])
def test_stable_intensity_gives_pitman_yor_without_concentration(sigma):
    measure, pitman_yor = numerical(normalized_stable(sigma)), PitmanYor(0.0, sigma)
    for counts in COUNTS:
        assert abs(measure.log_eppf(counts) - pitman_yor.log_eppf(counts)) < 1e-9


def test_scale_of_s_changes_nothing():
    """c rho(c s) is the same prior, also where the table has to begin elsewhere."""
    plain = NumericalMeasure(generalized_dirichlet)
    for log_scale in (-60.0, 45.0):
        measure = NumericalMeasure(
            lambda s, c=log_scale: generalized_dirichlet(s * math.exp(c)) + c
        )
        np.testing.assert_allclose(
            measure.predictive_rule([4.0, 1.0]), plain.predictive_rule([4.0, 1.0]), rtol=1e-11
        )


# --- measures that are no NGGP --------------------------------------------------------------------


def integral(measure, weight, low=-200.0, high=5.0):
    """Return int weight(s) a rho(s) ds by adaptive quadrature in log s from low to high."""

    def integrand(x):
        s = math.exp(x)
        value = math.exp(float(measure.log_intensity(s)) + x)
        return measure.concentration * weight(s) * value

    edges = [low, *(x for x in (-100, -50, *np.arange(-40, 5, 0.5).tolist()) if low < x < high)]
    return naive.integrate(integrand, [*edges, high])


@pytest.mark.parametrize("measure", OTHERS.values(), ids=OTHERS)
def test_quadrature_equals_adaptive_quadrature(measure):
    for u in (1e-3, 0.2, 3.0, 500.0):
        expected = integral(measure, lambda s, u=u: -math.expm1(-u * s))
        assert math.isclose(float(measure.laplace_exponent(u)), expected, rel_tol=1e-10)
        decay, turn = u * math.cos(1.2), u * math.sin(1.2)

        def real_part(s, decay=decay, turn=turn):
            """Return Re(1 - e^{-(decay + i turn) s}), no difference of near equals."""
            return -math.expm1(-decay * s) + 2 * math.exp(-decay * s) * math.sin(turn * s / 2) ** 2

        found = measure.laplace_exponent(np.array(complex(decay, turn))).real
        assert math.isclose(float(found), integral(measure, real_part), rel_tol=1e-9)
        moments = {
            m: integral(
                measure,
                lambda s, u=u, m=m: s**m * math.exp(-u * s),
                -500 / m,
                math.log(400 / (u + 1)),
            )
            for m in (1.0, 2.0, 2.7, 3.7, 30.0, 31.0)
        }
        for m, expected in moments.items():
            found = float(measure.log_tilted_moment(m, u))
            assert math.isclose(found, math.log(expected), rel_tol=1e-10, abs_tol=1e-10)
        ratios = measure._ratios(np.array([1.0, 2.7, 30.0]), np.log([u]))[0, 0]
        for m, found in zip((1.0, 2.7, 30.0), ratios, strict=False):
            assert math.isclose(found, u * moments[m + 1] / moments[m], rel_tol=1e-9)
        assert math.isclose(ratios[-1], u * moments[1.0], rel_tol=1e-10)


@pytest.mark.parametrize("measure", OTHERS.values(), ids=OTHERS)
def test_tables_equal_quadrature(measure):
    """Between the nodes too, and down to the smallest mass."""
    m = measure.smallest_mass + spread(6, -6, 8, 40)
    v = np.random.default_rng((32, 7)).uniform(-6, 12, 12)
    log_moments = [measure.log_tilted_moment(m + j, np.exp(v)[:, None]) for j in (0, 1)]
    expected = np.exp(v[:, None] + log_moments[1] - log_moments[0])
    np.testing.assert_allclose(measure._ratios(m, v)[0, :, :-1], expected, rtol=1e-9)


@pytest.mark.parametrize("measure", OTHERS.values(), ids=OTHERS)
def test_partition_probabilities_sum_to_one(measure):
    for n in range(1, 7):
        memory = {}
        for labels in naive.set_partitions(n):
            sizes = tuple(sorted(naive.sizes(labels)))
            memory.setdefault(sizes, [math.exp(measure.log_eppf(np.array(sizes, float))), 0])
            memory[sizes][1] += 1
        assert abs(math.fsum(p * times for p, times in memory.values()) - 1) < 1e-10


def test_two_processes_are_two_processes():
    """Intensities add, so phi and kappa do."""
    parts = [GeneralizedGamma(1.5, 0.0, 1.0), GeneralizedGamma(1.5, 0.6, 10.0)]
    measure = OTHERS["two_processes"]
    assert measure.smallest_mass == 0.6
    u, m = spread(8, -5, 12, 100), 0.6 + spread(9, -5, 7, 100)
    total = sum(part.laplace_exponent(u) for part in parts)
    np.testing.assert_allclose(measure.laplace_exponent(u), total, rtol=1e-12)
    moments = np.logaddexp(*(part.log_tilted_moment(m, u) for part in parts))
    np.testing.assert_allclose(measure.log_tilted_moment(m, u), moments, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("name", ["generalized_dirichlet", "two_processes"])
def test_shipped_laws_hold(name):
    check_prior(OTHERS[name])


def test_generalized_dirichlet_is_no_nggp():
    """An NGGP reveals one discount at all sizes; here it depends on them."""

    def revealed(n_1, n_2):
        p_1, p_2, _ = OTHERS["generalized_dirichlet"].predictive_rule([n_1, n_2])
        return (n_2 * p_1 - n_1 * p_2) / (p_1 - p_2)

    assert abs(revealed(2.0, 1.0) - revealed(20.0, 10.0)) > 0.01


# --- the constructor ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log_intensity", "message"),
    [
        (lambda s: -s, r"sigma in \[0, 1\), got sigma = -1: .*finitely many"),
        (lambda s: -2.5 * np.log(s) - s, r"got sigma = 1\.5: .*infinite"),
        (lambda s: -1.05 * np.log(s), r"fall off faster than .*add a tilt"),
        (
            lambda s: np.log(-np.log(s) + 400) - 1.2 * np.log(s) - s,
            r"s = 5e-131 sigma is .*power of s",
        ),
        (lambda s: -np.log(s) - s - 3.0 * (s > 1.0), r"smooth in log s, .* near s = 1"),
        (lambda s: -np.log(s) - s - np.abs(s - 1.0), r"smooth in log s, .* near s = "),
        (lambda s: -np.log(s) + np.where(s > 3.0, np.nan, -s), r"but is not at s = 3"),
        (lambda s: 0.0, r"a number for each s of an array; for \(4801,\) it gives \(\)"),
        (lambda s: np.log(np.exp(-s) / s**4), r"finite for small s, it is inf .*term by term"),
    ],
)
def test_impossible_intensities_are_refused(log_intensity, message):
    with pytest.raises(ValueError, match=message):
        NumericalMeasure(log_intensity)


def test_impossible_parameters_are_refused():
    with pytest.raises(TypeError, match=r"log_intensity must be a function of s, got 0\.5"):
        NumericalMeasure(0.5)
    with pytest.raises(ValueError, match=r"concentration.*got -2\.0"):
        NumericalMeasure(generalized_dirichlet, -2.0)


def test_equal_functions_make_equal_priors():
    function = generalized_gamma(0.5, 1.0)
    assert NumericalMeasure(function, 2.0) == NumericalMeasure(function, 2.0)
    same = NumericalMeasure(lambda s: function(s), 2.0)
    assert NumericalMeasure(function, 2.0) != same
