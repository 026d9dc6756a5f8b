"""Prior weights of the clusters, compiled (twins: ``bnpstream.priors``)."""

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from bnpstream.kernels.arrays import (
    LOG_AUXILIARY,
    N_CLUSTERS,
    TOTAL_MASS,
    Clusters,
    Floats,
)
from bnpstream.kernels.jit.decorators import entry, inlined, inner, shared
from bnpstream.kernels.jit.dispatch import specialize

# Shared with the reference spelling (bnpstream.priors.auxiliary).
NEWTON_TOLERANCE = 1e-8
"""Newton doubles the correct digits, so a step this small leaves nothing to gain."""
ROUNDING = 2.0**-50
"""Of v: a relative step of this size is lost in the rounding of what g is computed from."""
NEWTON_STEPS = 200
PLAIN_STEPS = 8
"""A search from the last root takes one to three."""
FAR = 64.0
"""A start that is farther outside of known bounds says nothing."""
LOG_2 = math.log(2.0)
NO_ROOT = "no mode of log U was found; take a concentration, discount and tilt of usual size"
LONGEST_STEP = 4.0
"""Of Newton's method at first; it doubles until the root is enclosed."""
TINY = 1e-300
"""Keeps a slope from being zero where a function is flat."""
LARGE_TERMS = 1e6
"""Of a log density of v, up to which their rounding is below 1e-8."""
TAIL_NATS = 37.0
"""exp(-37) is 2^-53: what lies farther below the mode does not change a double."""
TRAPEZOID_NODES = 128
TRAPEZOID_SPACING = 0.3
"""The integrand is analytic in a strip of half-width pi/2 about the axis of log u, so the rule's
error falls like exp(-pi^2 / spacing): 5e-15 at 0.3."""
MOST_NODES = 2**18
"""An integral over more nodes on one side of the mode is refused. With K clusters the density
reaches some 38 / (sigma K) down from its mode, so that this is one with a discount below 5e-4."""
TOO_WIDE = (
    "the density of log U is too wide to be integrated: take a larger concentration, a discount of "
    '0.001 or more, which is always narrow enough, 0 instead of a tiny one, or auxiliary="mode"'
)


class Rule(NamedTuple):
    """A predictive rule: existing clusters max(w_k - discount, 0), a new one `new`. Eq. (23).

    w_k is the mass S_k, or a weight that `rule_of` has filled in.
    """

    discount: float
    new: float
    log_total: float
    """Logarithm of the sum of all weights."""
    log_auxiliary: float


@singledispatch
def make_space(prior: Any, capacity: int) -> Any:
    """Return what the prior's rule remembers from row to row, for so many slots.

    It holds nothing that could not be computed from the posterior, to the same bits.
    """
    raise TypeError(f"no compiled prior for parameters of type {type(prior).__name__}")


@singledispatch
def rule_of(prior: Any, clusters: Clusters, space: Any) -> Rule:
    """Return the prior's rule given the posterior, for `weights_of` as they are then."""
    raise TypeError(f"no compiled prior for parameters of type {type(prior).__name__}")


@singledispatch
def weights_of(prior: Any, clusters: Clusters, space: Any) -> Floats:
    """Return where the w_k are, none of which is above S_k, as soon as `rule_of` has returned."""
    raise TypeError(f"no compiled prior for parameters of type {type(prior).__name__}")


@singledispatch
def new_weight(prior: Any, clusters: Clusters) -> tuple[float, float]:
    """Return the weight of a new cluster against S_k - discount, and the log auxiliary."""
    raise TypeError(f"no compiled prior for parameters of type {type(prior).__name__}")


GENERALIZED_GAMMA, PITMAN_YOR, GIVEN = range(3)
"""Rules with the same discount for all clusters. One class of parameters serves all of them, so
that the loops of one are those of the others and nothing is compiled again."""


class DiscountParameters(NamedTuple):
    """Parameters of ``bnpstream.priors.GeneralizedGamma`` and ``PitmanYor``."""

    rule: int
    """GENERALIZED_GAMMA, PITMAN_YOR, or GIVEN: the first one given U."""
    concentration: float
    """Or, given U, the new weight."""
    discount: float
    tilt: float = 0.0
    quadrature: bool = False
    plain_count: bool = False


@inlined
def occupied_clusters(plain_count: bool, clusters: Clusters) -> float:
    """Return E[K'] = sum_k 1 - prod_i (1 - q_ik), or plain K."""
    K = clusters.counters[N_CLUSTERS]
    if plain_count:
        return float(K)
    certain, doubtful = 0, 0.0
    for k in range(K):  # below -36 the probability of being occupied is one but for 2e-16
        if clusters.log_vacancy[k] < -36.0:
            certain += 1
        else:
            doubtful += 1.0 - math.exp(clusters.log_vacancy[k])
    return certain + doubtful


def discounting(parameters: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated `new_weight` for priors whose discount is the same for all clusters.

    Parameters
    ----------
    parameters : type
        A NamedTuple class with a field `discount`.
    """
    specialize(make_space, parameters)(_nothing)
    specialize(rule_of, parameters, inline=True)(_discounted)
    specialize(weights_of, parameters, inline=True)(_masses)
    return specialize(new_weight, parameters)


def _nothing(prior, capacity):  # type: ignore[no-untyped-def]
    return 0


def _discounted(prior, clusters, space):  # type: ignore[no-untyped-def]
    """Take the masses for weights: for these priors the discount is the same for all."""
    new, log_auxiliary = new_weight(prior, clusters)
    masses, discount = clusters.masses, prior.discount
    s0, s1, s2, s3 = max(new, 0.0), 0.0, 0.0, 0.0
    for k in range(0, clusters.counters[N_CLUSTERS], 4):  # beyond K masses are zero
        s0 += max(masses[k] - discount, 0.0)
        s1 += max(masses[k + 1] - discount, 0.0)
        s2 += max(masses[k + 2] - discount, 0.0)
        s3 += max(masses[k + 3] - discount, 0.0)
    return Rule(discount, new, math.log((s0 + s1) + (s2 + s3)), log_auxiliary)


def _masses(prior, clusters, space):  # type: ignore[no-untyped-def]
    return clusters.masses


@inlined
def log_weight(weight: float, rule: Rule) -> float:
    """Return the normalised logarithm of a weight; -inf if it is not positive."""
    return math.log(weight) - rule.log_total if weight > 0.0 else -np.inf


@inner
def auxiliary_terms(prior: Any, v: float) -> tuple[float, float, float]:
    """Return s = u/(u+tau), 1 - s and log(u+tau) at v = log u."""
    if prior.tilt == 0.0:
        return 1.0, 0.0, v
    log_tilt = math.log(prior.tilt)
    gap = v - log_tilt
    if gap > 0.0:
        small = math.exp(-gap)
        return 1.0 / (1.0 + small), small / (1.0 + small), v + math.log1p(small)
    small = math.exp(gap)
    return small / (1.0 + small), 1.0 / (1.0 + small), log_tilt + math.log1p(small)


@shared
def newton_step(
    g: float, slope: float, v: float, low: float, high: float, longest: float, taken: int
) -> tuple[bool, float, float, float, float]:
    """Return whether the root of a falling g is found, the next v, and what is known of it.

    Steps are kept inside the bracket (low, high), and are at most `longest` until there is one. If
    PLAIN_STEPS were not enough, every further step inside is at most half of the last, or bisects:
    far from the root Newton's steps may all be alike.
    """
    if g > 0.0:
        low = max(low, v)
    else:
        high = min(high, v)
    tolerance = max(NEWTON_TOLERANCE, ROUNDING * abs(v))
    step = min(max(-g / min(slope, -TINY), -longest), longest)
    if abs(step) <= tolerance:
        return True, v + step, low, high, longest
    if not (math.isfinite(low) and math.isfinite(high)):
        longest = 2.0 * longest if taken < PLAIN_STEPS else max(2.0 * abs(step), LONGEST_STEP)
        return False, v + step, low, high, longest
    careful = taken >= PLAIN_STEPS
    if not low < v + step < high or (careful and abs(step) > 0.5 * longest):
        step = 0.5 * (low + high) - v
    if careful:
        longest = abs(step)
    return careful and high - low <= tolerance, v + step, low, high, longest


@shared
def enclosed_mode(
    concentration: float, discount: float, tilt: float, n: float, count: float
) -> tuple[float, float]:
    """Return two bounds of the mode of an NGGP's log u: n tau/u + sigma K = a (u+tau)^sigma.

    Below, u <= tau and a (2 tau)^sigma is at most the first term; above, each term is at most half
    of a u^sigma.
    """
    log_tilt, log_ratio = math.log(tilt), math.log(n / concentration)
    first = log_ratio + (1.0 - discount) * log_tilt - discount * LOG_2
    last = (LOG_2 + log_ratio + log_tilt) / (1.0 + discount)
    if count > 0.0:
        last = max(last, math.log(2.0 * discount * count / concentration) / discount)
    return min(log_tilt, first), last


@inner
def auxiliary_mode(prior: Any, n: float, count: float, start: float) -> float:
    """Solve g(v) = n (1-s) + sigma K s - a s (u+tau)^sigma = 0 for v = log u.

    g falls monotonically: the density of log u is log-concave.
    """
    if prior.discount == 0.0:
        return math.log(n * prior.tilt / prior.concentration)
    if prior.tilt == 0.0:
        return math.log(prior.discount * count / prior.concentration) / prior.discount
    first, last = enclosed_mode(prior.concentration, prior.discount, prior.tilt, n, count)
    low, high, longest = -np.inf, np.inf, LONGEST_STEP
    v = start if math.isfinite(start) else math.log(prior.tilt)
    v = min(max(v, first - FAR), last + FAR)
    for taken in range(NEWTON_STEPS):
        if taken == PLAIN_STEPS:
            low, high = max(low, first), min(high, last)
            v, longest = min(max(v, low), high), high - low
        s, t, log_shifted = auxiliary_terms(prior, v)
        rate = prior.concentration * math.exp(prior.discount * log_shifted)
        g = n * t + prior.discount * count * s - rate * s
        slope = s * t * (prior.discount * count - n - rate) - prior.discount * rate * s * s
        found, v, low, high, longest = newton_step(g, slope, v, low, high, longest, taken)
        if found:
            return v
    raise FloatingPointError(NO_ROOT)


@inner
def auxiliary_log_density(prior: Any, n: float, count: float, v: float) -> float:
    """Return log density of v = log u up to a constant."""
    sigma = prior.discount
    if prior.tilt > 0.0:
        log_tilt = math.log(prior.tilt)
        strength = prior.concentration * math.exp(sigma * log_tilt)
        if max(n, strength) > LARGE_TERMS:  # by log(u/(u+tau)) and log(1 + u/tau) nothing cancels
            gap = v - log_tilt
            small = math.log1p(math.exp(-abs(gap)))
            log_share, grown = min(gap, 0.0) - small, max(gap, 0.0) + small
            phi = strength / sigma * math.expm1(sigma * grown)
            return n * log_share + sigma * count * (log_tilt + grown) - phi
    log_shifted = auxiliary_terms(prior, v)[2]
    growth = math.expm1(sigma * log_shifted) / sigma
    return n * v + (sigma * count - n) * log_shifted - prior.concentration * growth


@inner
def tail_end(prior: Any, n: float, count: float, mode: float, direction: float) -> float:
    """Return where the log density has fallen by TAIL_NATS: doubling, then bisection."""
    level = auxiliary_log_density(prior, n, count, mode) - TAIL_NATS
    inside, width = mode, 1.0
    while auxiliary_log_density(prior, n, count, mode + direction * width) > level:
        if width > MOST_NODES * TRAPEZOID_SPACING:
            raise ValueError(TOO_WIDE)
        inside = mode + direction * width
        width *= 2.0
    outside = mode + direction * width
    for _ in range(20):
        middle = 0.5 * (inside + outside)
        if auxiliary_log_density(prior, n, count, middle) > level:
            inside = middle
        else:
            outside = middle
    return outside


@inner
def averaged_new_weight(prior: Any, n: float, count: float, mode: float) -> float:
    """Return a E[s (u+tau)^sigma] / E[s]: the exact rule's new weight against S_k - sigma."""
    low = tail_end(prior, n, count, mode, -1.0)
    high = tail_end(prior, n, count, mode, 1.0)
    nodes = max(TRAPEZOID_NODES, math.ceil((high - low) / TRAPEZOID_SPACING))
    peak = auxiliary_log_density(prior, n, count, mode)
    old, new = 0.0, 0.0
    for j in range(nodes):
        v = low + (high - low) * j / (nodes - 1)
        s, _, log_shifted = auxiliary_terms(prior, v)
        weight = s * math.exp(auxiliary_log_density(prior, n, count, v) - peak)
        old += weight
        new += weight * math.exp(prior.discount * log_shifted)
    return prior.concentration * new / old


@discounting(DiscountParameters)
def _discounted_rule(prior, clusters):  # type: ignore[no-untyped-def]
    n, start = clusters.totals[TOTAL_MASS], clusters.totals[LOG_AUXILIARY]
    if prior.rule == GIVEN:
        return prior.concentration, start
    if prior.rule == GENERALIZED_GAMMA and prior.discount == 0.0:  # whatever clusters there are
        return prior.concentration, auxiliary_mode(prior, n, 0.0, start)
    count = occupied_clusters(prior.plain_count, clusters)
    if prior.rule == PITMAN_YOR:
        return prior.concentration + prior.discount * count, start
    mode = auxiliary_mode(prior, n, count, start)
    if prior.quadrature:
        return averaged_new_weight(prior, n, count, mode), mode
    log_shifted = auxiliary_terms(prior, mode)[2]
    return prior.concentration * math.exp(prior.discount * log_shifted), mode


@entry
def log_prior_weights(prior: Any, clusters: Clusters, out: Floats) -> float:
    """Fill out[:K + 1] with normalised log weights and return the log auxiliary variable."""
    K = clusters.counters[N_CLUSTERS]
    space = make_space(prior, clusters.masses.size)
    rule, weights = rule_of(prior, clusters, space), weights_of(prior, clusters, space)
    for k in range(K):
        out[k] = log_weight(weights[k] - rule.discount, rule)
    out[K] = log_weight(rule.new, rule)
    return rule.log_auxiliary
