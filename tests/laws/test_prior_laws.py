"""The laws of priors over partitions: what must hold for every one of them."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import chi2

import naive
from bnpstream.mixture import MixtureState, log_prior_weights
from bnpstream.priors import (
    GeneralizedGamma,
    NormalizedRandomMeasure,
    PitmanYor,
    dirichlet_process,
    normalized_inverse_gaussian,
    normalized_stable,
)

SIGMAS, TAUS, MASSES = [0.0, 0.1, 0.25, 0.5, 0.75], [0.0, 0.5, 1.0, 100.0], [0.5, 1.0, 10.0]
# Every pair of sigma and tau, with the values of a in turn: no mutation was lost by it
# (docs/decisions/2026-11-18-cost-of-tests.md).
NGGPS = [
    GeneralizedGamma(MASSES[(i + j) % 3], sigma, tau)
    for (i, sigma), (j, tau) in itertools.product(enumerate(SIGMAS), enumerate(TAUS))
    if sigma > 0 or tau > 0
]
DISCOUNTED = [prior for prior in NGGPS if prior.discount > 0]
TILTED = [prior for prior in NGGPS if prior.tilt > 0]
STABLES = [prior for prior in NGGPS if prior.tilt == 0]
FEW_NGGPS = [
    dirichlet_process(2.0),
    GeneralizedGamma(0.5, 0.1, 0.5),
    normalized_inverse_gaussian(10.0, 100.0),
    normalized_inverse_gaussian(1.0, 1.0),
    GeneralizedGamma(10.0, 0.75, 1.0),
    GeneralizedGamma(1.0, 0.25, 0.0),
]
PITMAN_YORS = [
    PitmanYor(theta, sigma)
    for theta, sigma in [
        (0.5, 0.0),
        (10.0, 0.0),
        (1.0, 0.1),
        (0.0, 0.1),
        (0.0, 0.75),
        (-0.2, 0.25),
        (-0.7, 0.75),
        (5.0, 0.5),
    ]
]
PRIORS = NGGPS + PITMAN_YORS
RULES = list(itertools.product(["mode", "quadrature"], ["expected", "plain"]))
COUNTS = [np.array(sizes, float) for sizes in [(1,), (3,), (1, 1), (4, 1, 2), (9, 1, 1, 5, 20)]]
NEVER_EMPTY = -np.inf


def as_naive(prior):
    """Return the oracle's spelling of a prior."""
    if isinstance(prior, PitmanYor):
        return naive.Prior(
            "py", prior.concentration, prior.discount, cluster_count=prior.cluster_count
        )
    return naive.Prior(
        "nggp",
        prior.concentration,
        prior.discount,
        prior.tilt,
        prior.auxiliary,
        prior.cluster_count,
    )


def soft_responsibilities(case, n=40, K=5):
    """Return responsibilities, shape (n, K): some shared, some whole, and one light cluster."""
    rng = np.random.default_rng((1, case))
    q = rng.dirichlet([0.2, 0.4, 0.8, 1.6, 0.01][:K], size=n)
    q[::4] = np.eye(K)[rng.integers(0, K - 1, size=q[::4].shape[0])]
    return q


def soft_posterior(case, n=40):
    """Return masses, log vacancies and n of responsibilities."""
    q = soft_responsibilities(case, n)
    return q.sum(axis=0), np.log1p(-np.minimum(q, 1 - 2**-53)).sum(axis=0), float(n)


def hard_posterior(counts):
    """Return masses, log vacancies and n of a partition."""
    return counts, np.full(counts.size, NEVER_EMPTY), float(counts.sum())


def log_weights(prior, masses, log_vacancy, n):
    """Return the log weights at the mode of log U, solved from scratch."""
    auxiliary = prior.solve_auxiliary(masses, log_vacancy, n, math.nan)
    return prior.log_weights(masses, log_vacancy, n, auxiliary)


def mean_clusters(prior, n):
    """Return the mean number of clusters by enumeration of all partitions."""
    return math.fsum(
        len(sizes) * probability for sizes, probability in enumerated_probabilities(prior, n)
    )


def enumerated_probabilities(prior, n):
    """Return (sizes, probability) of every set partition."""
    memory = {}
    for labels in naive.set_partitions(n):
        sizes = naive.sizes(labels)
        if sizes not in memory:
            memory[sizes] = math.exp(prior.log_eppf(np.array(sizes, float)))
        yield sizes, memory[sizes]


@dataclass(frozen=True, kw_only=True, repr=False)
class KnownByTwoMethods(NormalizedRandomMeasure):
    """An NGGP of which only phi and kappa are known: all else is derived by the base class."""

    known: GeneralizedGamma

    @property
    def smallest_mass(self):
        return self.known.discount

    def laplace_exponent(self, u):
        return self.known.laplace_exponent(u)

    def log_tilted_moment(self, m, u):
        return self.known.log_tilted_moment(m, u)


def derived(prior):
    """Return the same measure without its closed forms."""
    return KnownByTwoMethods(
        known=prior, auxiliary=prior.auxiliary, cluster_count=prior.cluster_count
    )


# --- partition probabilities ----------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_partition_probabilities_sum_to_one(prior):
    for n in range(1, 7):
        total = math.fsum(probability for _, probability in enumerated_probabilities(prior, n))
        assert abs(total - 1) < 1e-8


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_partition_probability_is_symmetric(prior):
    values = [
        prior.log_eppf(np.array(sizes)) for sizes in itertools.permutations([1.0, 1.0, 2.0, 5.0])
    ]
    assert np.ptp(values) < 1e-10


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_partition_probability_equals_the_oracle(prior):
    for n in range(1, 7):
        for sizes in {tuple(sorted(naive.sizes(labels))) for labels in naive.set_partitions(n)}:
            expected = naive.log_eppf(as_naive(prior), sizes)
            assert abs(prior.log_eppf(np.array(sizes, float)) - expected) < 1e-9


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_exact_rule_is_a_ratio_of_partition_probabilities(prior):
    for counts in COUNTS:
        grown = [counts + one for one in np.eye(counts.size)] + [np.append(counts, 1.0)]
        ratios = np.exp([prior.log_eppf(sizes) - prior.log_eppf(counts) for sizes in grown])
        rule = prior.predictive_rule(counts)
        np.testing.assert_allclose(rule, ratios, rtol=1e-9)
        assert abs(rule.sum() - 1) < 1e-10


@pytest.mark.parametrize(
    ("prior", "n"),
    [
        (GeneralizedGamma(2.0, 0.5, 1.0), 2),
        (GeneralizedGamma(2.0, 0.5, 1.0), 5),
        (GeneralizedGamma(1.0, 0.25, 0.5), 4),
        (normalized_inverse_gaussian(10.0, 100.0), 3),
    ],
)
def test_exponent_printed_in_the_paper_is_no_probability(prior, n):
    """Erratum: q(U) is printed with (U + tau)^(n - a K); it is n - sigma K."""
    printed = math.fsum(
        math.exp(naive.log_eppf(as_naive(prior), sizes, cluster_power=prior.concentration))
        for sizes in map(naive.sizes, naive.set_partitions(n))
    )
    corrected = math.fsum(probability for _, probability in enumerated_probabilities(prior, n))
    assert printed > 1.5
    assert abs(corrected - 1) < 1e-8


# --- Levy intensity, Laplace exponent, tilted moments ---------------------------------------------


@pytest.mark.parametrize("prior", NGGPS, ids=repr)
def test_tilted_moments_integrate_the_intensity(prior):
    for m, u in itertools.product((1.0, 1.7, 2.0, 6.0), (0.01, 1.0, 300.0)):
        center = math.log((m - prior.discount) / (u + prior.tilt))
        expected = naive.levy_integral(
            as_naive(prior), lambda s, m=m, u=u: math.exp(m * math.log(s) - u * s), center
        )
        moment = np.exp(prior.log_tilted_moment(np.array([m]), np.array([u])))
        np.testing.assert_allclose(moment, expected, rtol=1e-9)


@pytest.mark.parametrize("prior", NGGPS, ids=repr)
def test_laplace_exponent_integrates_the_intensity(prior):
    for u in (0.01, 1.0, 300.0):
        expected = naive.levy_integral(
            as_naive(prior), lambda s, u=u: -math.expm1(-u * s), -math.log(u)
        )
        assert math.isclose(prior.laplace_exponent(u), expected, rel_tol=1e-9)


@pytest.mark.parametrize("prior", NGGPS, ids=repr)
def test_derivatives_are_tilted_moments(prior):
    def moment(m, u):
        return np.exp(prior.log_tilted_moment(np.array([m]), u))

    u = np.array([0.03, 1.0, 40.0])
    h = 1e-5 * u
    slope = (prior.laplace_exponent(u + h) - prior.laplace_exponent(u - h)) / (2 * h)
    np.testing.assert_allclose(slope, moment(1.0, u), rtol=1e-6)
    for m in (1.0, 2.5):
        slope = (moment(m, u + h) - moment(m, u - h)) / (2 * h)
        np.testing.assert_allclose(slope, -moment(m + 1, u), rtol=1e-6)


def test_moments_that_diverge_are_infinite():
    moments = normalized_inverse_gaussian().log_tilted_moment(np.array([0.2, 0.5]), np.ones(1))
    assert np.array_equal(moments, [np.inf, np.inf])


# --- members of the family that are the same, or approach each other ------------------------------


@pytest.mark.parametrize("c", [1e-3, 7.0])
@pytest.mark.parametrize("prior", TILTED, ids=repr)
def test_only_a_tau_to_the_sigma_matters(prior, c):
    scaled = replace(
        prior, concentration=prior.concentration * c**-prior.discount, tilt=c * prior.tilt
    )
    for counts in COUNTS:
        assert abs(scaled.log_eppf(counts) - prior.log_eppf(counts)) < 1e-9
    for auxiliary, cluster_count in RULES:
        rules = [
            replace(p, auxiliary=auxiliary, cluster_count=cluster_count) for p in (prior, scaled)
        ]
        posterior = soft_posterior(0)
        modes = [rule.solve_auxiliary(*posterior, math.nan) for rule in rules]
        assert abs(modes[1] - modes[0] - math.log(c)) < 1e-9
        weights = [rule.log_weights(*posterior, v) for rule, v in zip(rules, modes, strict=True)]
        np.testing.assert_allclose(weights[1], weights[0], atol=1e-9)


@pytest.mark.parametrize("n", [1, 2000])
@pytest.mark.parametrize("prior", [p for p in FEW_NGGPS if p.tilt > 0], ids=repr)
def test_only_a_tau_to_the_sigma_matters_to_expected_clusters(prior, n):
    scaled = replace(
        prior, concentration=prior.concentration * 7**-prior.discount, tilt=7 * prior.tilt
    )
    assert math.isclose(scaled.expected_clusters(n), prior.expected_clusters(n), rel_tol=1e-9)


@pytest.mark.parametrize("tau", [0.5, 100.0])
@pytest.mark.parametrize("a", [0.5, 10.0])
def test_small_discount_approaches_the_dirichlet_process(a, tau):
    small, limit = GeneralizedGamma(a, 1e-6, tau), dirichlet_process(a)
    for counts in COUNTS:
        assert abs(small.log_eppf(counts) - limit.log_eppf(counts)) < 1e-3
        np.testing.assert_allclose(
            small.predictive_rule(counts), limit.predictive_rule(counts), rtol=1e-4
        )
    for auxiliary, cluster_count in RULES:
        rule = replace(small, auxiliary=auxiliary, cluster_count=cluster_count)
        posterior = soft_posterior(1)
        np.testing.assert_allclose(
            np.exp(log_weights(rule, *posterior)), np.exp(log_weights(limit, *posterior)), atol=1e-5
        )
    assert math.isclose(small.expected_clusters(50), limit.expected_clusters(50), rel_tol=1e-4)


def test_dirichlet_process_is_the_chinese_restaurant():
    for a in (0.5, 10.0):
        for prior in (dirichlet_process(a), GeneralizedGamma(a, 0.0, 100.0), PitmanYor(a, 0.0)):
            np.testing.assert_allclose(
                prior.predictive_rule([3.0, 1.0]), np.array([3, 1, a]) / (4 + a), rtol=1e-12
            )
            masses, log_vacancy, n = soft_posterior(2)
            np.testing.assert_allclose(
                np.exp(log_weights(prior, masses, log_vacancy, n)),
                np.append(masses, a) / (n + a),
                rtol=1e-12,
            )


@pytest.mark.parametrize("prior", STABLES, ids=repr)
def test_normalized_stable_is_pitman_yor_without_concentration(prior):
    """Exactly so for both rules of U: given K', a (u+tau)^sigma has mode and mean sigma K'."""
    pitman_yor = PitmanYor(0.0, prior.discount)
    for counts in COUNTS:
        assert abs(prior.log_eppf(counts) - pitman_yor.log_eppf(counts)) < 1e-9
        np.testing.assert_allclose(
            prior.predictive_rule(counts), pitman_yor.predictive_rule(counts), rtol=1e-9
        )
    posteriors = [hard_posterior(counts) for counts in COUNTS] + [soft_posterior(3)]
    for auxiliary, cluster_count in RULES:
        rule = replace(prior, auxiliary=auxiliary, cluster_count=cluster_count)
        same = replace(pitman_yor, cluster_count=cluster_count)
        for posterior in posteriors:
            np.testing.assert_allclose(
                log_weights(rule, *posterior), log_weights(same, *posterior), atol=1e-9
            )


@pytest.mark.parametrize("sigma", [0.1, 0.5, 0.75])
def test_new_weight_of_the_stable_at_the_mode_is_sigma_k(sigma):
    for counts in COUNTS:
        weights = np.exp(log_weights(normalized_stable(sigma), *hard_posterior(counts)))
        expected = np.append(counts - sigma, sigma * counts.size) / counts.sum()
        np.testing.assert_allclose(weights, expected, rtol=1e-13)


# --- the auxiliary variable -----------------------------------------------------------------------


@pytest.mark.parametrize("prior", NGGPS, ids=repr)
def test_mode_is_the_root_and_the_peak_of_the_density_of_log_u(prior):
    for masses, log_vacancy, n in [hard_posterior(COUNTS[-1]), soft_posterior(4)]:
        occupancy = -np.expm1(log_vacancy)
        mode = prior.solve_auxiliary(masses, log_vacancy, n, math.nan)
        assert abs(mode - naive.mode(as_naive(prior), n, occupancy.sum())) < 1e-9
        assert abs(prior.auxiliary_score(mode, masses, occupancy, n)[0]) < 1e-9 * n

        def log_density(v, posterior=(masses, occupancy, n)):
            return prior.log_auxiliary_joint(np.array(v), *posterior)

        above, below = log_density([mode + 1e-4, mode - 1e-4])
        assert abs(above - below) / 2e-4 < 1e-5 * n
        distances = 10.0 ** np.linspace(-3, 1, 30)
        peak = log_density([mode])[0]
        assert np.all(log_density(mode + distances) < peak)
        assert np.all(log_density(mode - distances) < peak)


@pytest.mark.parametrize("prior", NGGPS, ids=repr)
def test_score_is_the_derivative_of_the_log_density(prior):
    masses, log_vacancy, n = soft_posterior(5)
    occupancy = -np.expm1(log_vacancy)
    for v in (-2.0, 0.5, 3.0):
        h = 1e-4
        below, here, above = prior.log_auxiliary_joint(
            np.array([v - h, v, v + h]), masses, occupancy, n
        )
        score, slope = prior.auxiliary_score(v, masses, occupancy, n)
        scale = n + abs(score) + abs(slope)
        assert abs((above - below) / (2 * h) - score) < 1e-6 * scale
        assert abs((above - 2 * here + below) / h**2 - slope) < 1e-4 * scale


@pytest.mark.parametrize("prior", NGGPS, ids=repr)
def test_mode_does_not_depend_on_the_start(prior):
    posterior = soft_posterior(6)
    mode = prior.solve_auxiliary(*posterior, math.nan)
    for distance in (-30.0, -1.0, 1e-3, 30.0):
        assert abs(prior.solve_auxiliary(*posterior, mode + distance) - mode) < 1e-11 * (
            1 + abs(mode)
        )


@pytest.mark.parametrize("prior", NGGPS, ids=repr)
def test_mode_rises_with_observations_at_fixed_clusters(prior):
    modes = [
        prior.solve_auxiliary(*hard_posterior(np.array([1.0, 2.0, n])), math.nan)
        for n in (1, 2, 5, 30, 1000, 1e5)
    ]
    rises = np.diff(modes)
    assert np.all(rises > 0) if prior.tilt > 0 else np.all(np.abs(rises) < 1e-12)


@pytest.mark.parametrize("prior", NGGPS, ids=repr)
def test_delta_rule_at_the_mode_is_normalised_by_itself(prior):
    """The mode of log u, not of u: E[u kappa_{m+1}/kappa_m] at one point adds up to n."""
    for counts in COUNTS:
        u = math.exp(prior.solve_auxiliary(*hard_posterior(counts), math.nan))
        share = u / (u + prior.tilt)
        delta = np.append(
            counts - prior.discount, prior.concentration * (u + prior.tilt) ** prior.discount
        )
        assert math.isclose(share * delta.sum(), counts.sum(), rel_tol=1e-9)
        weights = np.exp(log_weights(prior, *hard_posterior(counts)))
        np.testing.assert_allclose(weights, share * delta / counts.sum(), rtol=1e-9)


# --- soft counts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("auxiliary", "cluster_count"), RULES)
@pytest.mark.parametrize("prior", FEW_NGGPS, ids=repr)
def test_occupied_clusters_are_one_minus_the_product(prior, auxiliary, cluster_count):
    prior = replace(prior, auxiliary=auxiliary, cluster_count=cluster_count)
    q = soft_responsibilities(7, n=12).tolist()
    masses = [math.fsum(column) for column in zip(*q, strict=True)]
    occupied = [1 - math.prod(1 - share for share in column) for column in zip(*q, strict=True)]
    count = math.fsum(occupied) if cluster_count == "expected" else len(masses)
    weights = [max(mass - prior.discount, 0) for mass in masses]
    new = prior.concentration
    if prior.discount > 0:
        new = naive.new_weight(as_naive(prior), 12.0, count)
    expected = np.array([*weights, new]) / (math.fsum(weights) + new)
    np.testing.assert_allclose(
        np.exp(log_weights(prior, *soft_posterior(7, n=12))), expected, rtol=1e-9
    )


@pytest.mark.parametrize("cluster_count", ["expected", "plain"])
@pytest.mark.parametrize("prior", PITMAN_YORS, ids=repr)
def test_soft_rule_of_pitman_yor_equals_the_oracle(prior, cluster_count):
    prior = replace(prior, cluster_count=cluster_count)
    masses, log_vacancy, n = soft_posterior(8)
    expected = naive.prior_weights(as_naive(prior), masses.tolist(), log_vacancy.tolist(), n)
    np.testing.assert_allclose(
        np.exp(prior.log_weights(masses, log_vacancy, n, math.nan)), expected, rtol=1e-12
    )


@pytest.mark.parametrize("auxiliary", ["mode", "quadrature"])
@pytest.mark.parametrize("prior", [*DISCOUNTED[::2], PitmanYor(1.0, 0.5)], ids=repr)
def test_plain_count_ignores_vacancy(prior, auxiliary):
    if isinstance(prior, GeneralizedGamma):
        prior = replace(prior, auxiliary=auxiliary)
    masses, log_vacancy, n = soft_posterior(9)
    plain = log_weights(replace(prior, cluster_count="plain"), masses, log_vacancy, n)
    never_empty = log_weights(prior, masses, np.full_like(masses, NEVER_EMPTY), n)
    np.testing.assert_allclose(plain, never_empty, atol=1e-12)
    assert plain[-1] > log_weights(prior, masses, log_vacancy, n)[-1] + 1e-4


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_log_weights_are_normalised_and_start_with_a_new_cluster(prior):
    assert abs(np.exp(log_weights(prior, *soft_posterior(10))).sum() - 1) < 1e-12
    first, _ = log_prior_weights(prior, MixtureState(1))
    assert np.array_equal(first, [0.0])


@pytest.mark.parametrize(
    "prior", [*FEW_NGGPS, *PITMAN_YORS, derived(normalized_inverse_gaussian())], ids=repr
)
def test_cluster_of_the_smallest_mass_has_no_weight(prior):
    smallest, log_vacancy = prior.smallest_mass, np.array([-30.0, -0.5])
    for excess in (0.0, 0.01):
        masses = np.array([3.0 - smallest - excess, smallest + excess])
        weights = log_weights(prior, masses, log_vacancy, 3.0)
        assert np.all(np.isfinite(weights[[0, 2]]))
        assert np.isfinite(weights[1]) == (excess > 0)


@pytest.mark.parametrize("prior", DISCOUNTED, ids=repr)
def test_quadrature_rule_equals_adaptive_quadrature(prior):
    prior = replace(prior, auxiliary="quadrature")
    for n in (1.0, 2.0, 10.0, 1000.0, 1e5):
        counts = np.diff(np.unique(np.round(np.array([0.0, 0.1, 0.15, 1.0]) * n)))
        masses, log_vacancy, n = hard_posterior(counts)
        expected = naive.prior_weights(as_naive(prior), masses.tolist(), log_vacancy.tolist(), n)
        np.testing.assert_allclose(
            log_weights(prior, masses, log_vacancy, n), np.log(expected), atol=1e-9
        )


@pytest.mark.parametrize("prior", NGGPS, ids=repr)
def test_quadrature_rule_at_whole_counts_is_the_exact_rule(prior):
    rule = replace(prior, auxiliary="quadrature")
    for counts in COUNTS:
        np.testing.assert_allclose(
            np.exp(log_weights(rule, *hard_posterior(counts))),
            prior.predictive_rule(counts),
            rtol=1e-9,
        )


# --- what the base class derives from phi and kappa -----------------------------------------------


@pytest.mark.parametrize("prior", TILTED, ids=repr)
def test_closed_forms_equal_what_the_base_class_derives(prior):
    general = derived(prior)
    for counts in COUNTS:
        assert abs(general.log_eppf(counts) - prior.log_eppf(counts)) < 1e-9
        np.testing.assert_allclose(
            general.predictive_rule(counts), prior.predictive_rule(counts), rtol=1e-9
        )
    masses, log_vacancy, n = soft_posterior(11)
    occupancy = -np.expm1(log_vacancy)
    v = np.linspace(-6, 6, 9)
    joints = [p.log_auxiliary_joint(v, masses, occupancy, n) for p in (general, prior)]
    np.testing.assert_allclose(joints[0], joints[1], rtol=1e-10, atol=1e-9)
    for x in v:
        scores = [p.auxiliary_score(x, masses, occupancy, n) for p in (general, prior)]
        np.testing.assert_allclose(scores[0], scores[1], rtol=1e-8, atol=1e-9 * n)


@pytest.mark.parametrize(("auxiliary", "cluster_count"), RULES)
@pytest.mark.parametrize("prior", TILTED, ids=repr)
def test_closed_form_weights_equal_what_the_base_class_derives(prior, auxiliary, cluster_count):
    prior = replace(prior, auxiliary=auxiliary, cluster_count=cluster_count)
    masses, log_vacancy, n = soft_posterior(12)
    if cluster_count == "plain":  # the general soft form needs S_k >= p_k, and p_k is one here
        masses, log_vacancy = masses[masses >= 1], log_vacancy[masses >= 1]
        n = float(masses.sum())
    np.testing.assert_allclose(
        log_weights(derived(prior), masses, log_vacancy, n),
        log_weights(prior, masses, log_vacancy, n),
        atol=1e-9,
    )


# --- the number of clusters -----------------------------------------------------------------------


@pytest.mark.parametrize("prior", NGGPS[::2] + PITMAN_YORS, ids=repr)
def test_expected_clusters_is_the_mean_over_partitions(prior):
    for n in (1, 2, 6):
        assert math.isclose(prior.expected_clusters(n), mean_clusters(prior, n), rel_tol=1e-9)


@pytest.mark.parametrize("prior", NGGPS, ids=repr)
def test_one_row_is_one_cluster(prior):
    assert abs(prior.expected_clusters(1) - 1) < 1e-9


@pytest.mark.parametrize("n", [1, 10, 300, 10_000])
@pytest.mark.parametrize("sigma", [0.1, 0.5, 0.75])
def test_expected_clusters_of_the_stable_are_pitman_yors(sigma, n):
    # (1 + sigma)_{n-1} / (n-1)!, factor by factor
    expected = math.prod((sigma + i) / i for i in range(1, n))
    stable = normalized_stable(sigma)
    for prior in (stable, derived(stable), PitmanYor(0.0, sigma)):
        assert math.isclose(prior.expected_clusters(n), expected, rel_tol=1e-8)


@pytest.mark.parametrize("n", [1, 10, 300, 10_000])
@pytest.mark.parametrize("a", [0.5, 10.0, 100.0])
def test_expected_clusters_of_the_dirichlet_process_is_a_sum(a, n):
    expected = math.fsum(a / (a + i) for i in range(n))
    for prior in (dirichlet_process(a), derived(dirichlet_process(a)), PitmanYor(a, 0.0)):
        assert math.isclose(prior.expected_clusters(n), expected, rel_tol=1e-8)


@pytest.mark.parametrize(
    "prior", [*(p for p in FEW_NGGPS if p.tilt > 0), PitmanYor(3.0, 0.25)], ids=repr
)
def test_prior_with_expected_clusters_expects_them(prior):
    found = prior.with_expected_clusters(18.0, 40)
    assert math.isclose(found.expected_clusters(40), 18.0, rel_tol=1e-6)
    assert replace(found, concentration=prior.concentration) == prior


def test_unreachable_number_of_clusters_names_the_range():
    reached = PitmanYor(0.0, 0.5).expected_clusters(100)
    with pytest.raises(ValueError, match=rf"expect 50.* {reached:.4g} to {reached:.4g};"):
        normalized_stable(0.5).with_expected_clusters(50, 100)
    with pytest.raises(ValueError, match=r"expect 101 .*among 100 .* expects 1(\.00\d)? to 100;"):
        dirichlet_process(1.0).with_expected_clusters(101, 100)


@pytest.mark.parametrize(
    "prior",
    [dirichlet_process(1.0), normalized_inverse_gaussian(1.0, 1.0), PitmanYor(-0.2, 0.5)],
    ids=repr,
)
def test_sampled_partitions_have_their_probabilities(prior):
    rng = np.random.default_rng((1, 13))
    draws, n = 2000, 4
    found = [tuple(prior.sample_partition(n, rng).tolist()) for _ in range(draws)]
    statistic = 0.0
    partitions = list(naive.set_partitions(n))
    for labels in partitions:
        expected = draws * math.exp(naive.log_eppf(as_naive(prior), naive.sizes(labels)))
        statistic += (found.count(labels) - expected) ** 2 / expected
    assert set(found) <= set(partitions)
    assert 1e-3 < chi2.sf(statistic, len(partitions) - 1) < 1 - 1e-3


# --- the constructor ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GeneralizedGamma(1.0, 1.0), r"discount.*got 1\.0"),
        (lambda: GeneralizedGamma(1.0, -0.25), r"discount.*got -0\.25"),
        (lambda: GeneralizedGamma(1.0, math.nan), r"discount.*got nan"),
        (lambda: GeneralizedGamma(0.0, 0.5), r"concentration.*got 0\.0"),
        (lambda: GeneralizedGamma(-3.5, 0.5), r"concentration.*got -3\.5"),
        (lambda: GeneralizedGamma(math.inf, 0.5), r"concentration.*got inf"),
        (lambda: GeneralizedGamma(1.0, 0.5, -0.125), r"tilt.*got -0\.125"),
        (lambda: GeneralizedGamma(1.0, 0.5, math.nan), r"tilt.*got nan"),
        (lambda: GeneralizedGamma(1.0, 0.0, 0.0), r"discount.*tilt.*both be 0"),
        (lambda: GeneralizedGamma(1.0, 0.5, auxiliary="median"), r"auxiliary.*'median'"),
        (lambda: GeneralizedGamma(1.0, 0.5, cluster_count="all"), r"cluster_count.*'all'"),
        (lambda: PitmanYor(1.0, 0.5, cluster_count="all"), r"cluster_count.*'all'"),
        (lambda: PitmanYor(-0.5, 0.5), r"concentration.*> -0\.5, got -0\.5"),
        (lambda: PitmanYor(0.0, 0.0), r"concentration.*got 0\.0"),
        (lambda: PitmanYor(1.0, 1.5), r"discount.*got 1\.5"),
        (lambda: normalized_stable(0.0), r"discount.*got 0\.0"),
    ],
)
def test_impossible_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
