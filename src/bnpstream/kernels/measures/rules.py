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
NEWTON_STEPS = 200
LONGEST_STEP = 4.0
"""Of Newton's method at first; it doubles until the root is enclosed."""
TAIL_NATS = 37.0
"""exp(-37) is 2^-53: what lies farther below the mode does not change a double."""
TRAPEZOID_NODES = 128
TRAPEZOID_SPACING = 0.3
"""The integrand is analytic in a strip of half-width pi/2 about the axis of log u, so the rule's
error falls like exp(-pi^2 / spacing): 5e-15 at 0.3."""


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
def rule_of(prior: Any, clusters: Clusters, space: Any) -> tuple[Rule, Floats]:
    """Return the prior's rule given the posterior, and the w_k, none of which is above S_k."""
    raise TypeError(f"no compiled prior for parameters of type {type(prior).__name__}")


@singledispatch
def new_weight(prior: Any, clusters: Clusters) -> tuple[float, float]:
    """Return the weight of a new cluster against S_k - discount, and the log auxiliary."""
    raise TypeError(f"no compiled prior for parameters of type {type(prior).__name__}")


class GeneralizedGammaParameters(NamedTuple):
    """Parameters of ``bnpstream.priors.GeneralizedGamma``."""

    concentration: float
    discount: float
    tilt: float
    quadrature: bool
    plain_count: bool


class PitmanYorParameters(NamedTuple):
    """Parameters of ``bnpstream.priors.PitmanYor``."""

    concentration: float
    discount: float
    plain_count: bool


class PointParameters(NamedTuple):
    """A rule with a fixed new weight: ``bnpstream.priors.GeneralizedGamma`` given U."""

    discount: float
    new: float


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
    return Rule(discount, new, math.log((s0 + s1) + (s2 + s3)), log_auxiliary), masses


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
    g: float, slope: float, v: float, low: float, high: float, longest: float
) -> tuple[bool, float, float, float, float]:
    """Return whether the root of a falling g is found, the next v, and what is known of it.

    The step is kept inside the bracket (low, high), and is at most `longest` until there is one.
    """
    if g > 0.0:
        low = v
    else:
        high = v
    step = min(max(-g / slope, -longest), longest)
    if abs(step) <= NEWTON_TOLERANCE:
        return True, v + step, low, high, longest
    if not (math.isfinite(low) and math.isfinite(high)):
        longest *= 2.0
    elif not (low < v + step < high):
        step = 0.5 * (low + high) - v
    return False, v + step, low, high, longest


@inner
def auxiliary_mode(prior: Any, n: float, count: float, start: float) -> float:
    """Solve g(v) = n (1-s) + sigma K s - a s (u+tau)^sigma = 0 for v = log u.

    g falls monotonically (the density of log u is log-concave), so Newton's step is kept
    inside the bracket found so far.
    """
    if prior.discount == 0.0:
        return math.log(n * prior.tilt / prior.concentration)
    if prior.tilt == 0.0:
        return math.log(prior.discount * count / prior.concentration) / prior.discount
    low, high, longest = -np.inf, np.inf, LONGEST_STEP
    v = start if math.isfinite(start) else math.log(prior.tilt)
    for _ in range(NEWTON_STEPS):
        s, t, log_shifted = auxiliary_terms(prior, v)
        rate = prior.concentration * math.exp(prior.discount * log_shifted)
        g = n * t + prior.discount * count * s - rate * s
        slope = s * t * (prior.discount * count - n - rate) - prior.discount * rate * s * s
        found, v, low, high, longest = newton_step(g, slope, v, low, high, longest)
        if found:
            return v
    return v


@inner
def auxiliary_log_density(prior: Any, n: float, count: float, v: float) -> float:
    """Return log density of v = log u up to a constant."""
    log_shifted = auxiliary_terms(prior, v)[2]
    growth = math.expm1(prior.discount * log_shifted) / prior.discount
    return n * v + (prior.discount * count - n) * log_shifted - prior.concentration * growth


@inner
def tail_end(prior: Any, n: float, count: float, mode: float, direction: float) -> float:
    """Return where the log density has fallen by TAIL_NATS: doubling, then bisection."""
    level = auxiliary_log_density(prior, n, count, mode) - TAIL_NATS
    inside, width = mode, 1.0
    while auxiliary_log_density(prior, n, count, mode + direction * width) > level:
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


@discounting(GeneralizedGammaParameters)
def _generalized_gamma(prior, clusters):  # type: ignore[no-untyped-def]
    n, last = clusters.totals[TOTAL_MASS], clusters.totals[LOG_AUXILIARY]
    if prior.discount == 0.0:  # whatever the clusters are
        return prior.concentration, auxiliary_mode(prior, n, 0.0, last)
    count = occupied_clusters(prior.plain_count, clusters)
    mode = auxiliary_mode(prior, n, count, last)
    if prior.quadrature:
        return averaged_new_weight(prior, n, count, mode), mode
    log_shifted = auxiliary_terms(prior, mode)[2]
    return prior.concentration * math.exp(prior.discount * log_shifted), mode


@discounting(PointParameters)
def _point(prior, clusters):  # type: ignore[no-untyped-def]
    return prior.new, clusters.totals[LOG_AUXILIARY]


@discounting(PitmanYorParameters)
def _pitman_yor(prior, clusters):  # type: ignore[no-untyped-def]
    count = occupied_clusters(prior.plain_count, clusters)
    return prior.concentration + prior.discount * count, clusters.totals[LOG_AUXILIARY]


@entry
def log_prior_weights(prior: Any, clusters: Clusters, out: Floats) -> float:
    """Fill out[:K + 1] with normalised log weights and return the log auxiliary variable."""
    K = clusters.counters[N_CLUSTERS]
    rule, weights = rule_of(prior, clusters, make_space(prior, clusters.masses.size))
    for k in range(K):
        out[k] = log_weight(weights[k] - rule.discount, rule)
    out[K] = log_weight(rule.new, rule)
    return rule.log_auxiliary
