"""Slow, obviously right oracles: Algorithm 1 for counts, and partitions by enumeration.

Pure Python over lists and dicts, and ``scipy.integrate.quad`` for integrals; no line of this file
comes from the package, and it imports nothing from it. Formulas: docs/notation.md.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from scipy.integrate import quad

LARGEST_BELOW_ONE = 1 - 2**-53
TAIL_NATS = 45


class Prior(NamedTuple):
    """An NGGP(a, sigma, tau), or a Pitman-Yor process, where tau means nothing."""

    kind: str
    concentration: float
    discount: float
    tilt: float = math.nan
    auxiliary: str = "mode"
    cluster_count: str = "expected"


class State(NamedTuple):
    """The posterior after n rows: a dict of word counts, S_k and sum log(1 - q) a cluster."""

    words: list[dict[int, float]]
    lengths: list[float]
    masses: list[float]
    log_vacancy: list[float]
    n: float


class Response(NamedTuple):
    """Responsibilities of K clusters, or of K + 1 if one opens; log h(x) is in the evidence."""

    responsibilities: list[float]
    opens: bool
    novelty: float
    log_evidence: float


def empty_state() -> State:
    """Return the posterior of no rows."""
    return State([], [], [], [], 0.0)


# --- integrals over a log-concave density of v = log u ------------------------------------------


def bisect(score: Callable[[float], float]) -> float:
    """Return the root of a falling function."""
    low, high = -1.0, 1.0
    while score(low) < 0:
        low *= 2
    while score(high) > 0:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if score(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def integrate(function: Callable[[float], float], edges: Sequence[float]) -> float:
    """Return the integral of a positive function over neighbouring intervals."""
    return math.fsum(
        quad(function, low, high, epsabs=0, epsrel=1e-11, limit=200)[0]
        for low, high in pairwise(edges)
    )


def support(log_density: Callable[[float], float], peak: float) -> list[float]:
    """Return edges about the peak of a log-concave density, TAIL_NATS out on either side."""
    level = log_density(peak) - TAIL_NATS
    ends = []
    for direction in (-1.0, 1.0):
        inside, outside = 0.0, 1e-6
        while log_density(peak + direction * outside) > level:
            inside, outside = outside, 2 * outside
        for _ in range(30):
            middle = (inside + outside) / 2
            if log_density(peak + direction * middle) > level:
                inside = middle
            else:
                outside = middle
        ends.append(direction * outside)
    return [peak + t * ends[0] for t in (1.0, 0.3, 0.1)] + [
        peak + t * ends[1] for t in (0.0, 0.1, 0.3, 1.0)
    ]


# --- the auxiliary variable of an NGGP ------------------------------------------------------------


def mode_score(prior: Prior, n: float, count: float, v: float) -> float:
    """Return g(v) = n - (n - sigma K) u/(u+tau) - a u (u+tau)^(sigma-1) at u = e^v."""
    _, a, sigma, tau, *_ = prior
    if v > 500:
        return -math.inf
    u = math.exp(v)
    if u + tau == 0:
        return n
    # n - n u/(u+tau) is n tau/(u+tau): nothing cancels.
    return (n * tau + sigma * count * u) / (u + tau) - a * u * (u + tau) ** (sigma - 1)


def mode(prior: Prior, n: float, count: float) -> float:
    """Return the mode of log U."""
    return bisect(lambda v: mode_score(prior, n, count, v))


def log_density(
    prior: Prior, n: float, count: float, v: float, cluster_power: float | None = None
) -> float:
    """Return log(u^n (u+tau)^(sigma K - n) e^(-phi(u))) at u = e^v, not normalised.

    `cluster_power` stands in for sigma in the exponent sigma K - n: the paper prints a.
    """
    tau = prior.tilt
    power = prior.discount if cluster_power is None else cluster_power
    if v > 500:
        return -math.inf
    u = math.exp(v)
    # u^n (u+tau)^-n is taken together as (1 + tau/u)^-n: apart they cancel.
    together = -n * math.log1p(tau / u) if tau > 0 else 0.0
    log_shifted = math.log(u + tau) if tau > 0 else v
    return together + power * count * log_shifted - laplace_exponent(prior, log_shifted)


def laplace_exponent(prior: Prior, log_shifted: float) -> float:
    """Return phi(u) = (a/sigma) ((u+tau)^sigma - tau^sigma) from log(u + tau)."""
    _, a, sigma, tau, *_ = prior
    if sigma == 0:
        return a * (log_shifted - math.log(tau))
    start = tau**sigma if tau > 0 else 0.0
    return a / sigma * (math.exp(sigma * log_shifted) - start)


def averaged_new_weight(prior: Prior, n: float, count: float) -> float:
    """Return E[u a (u+tau)^(sigma-1)] / E[u/(u+tau)]: the new weight against n_k - sigma."""
    _, a, sigma, tau, *_ = prior
    peak = mode(prior, n, count)
    top = log_density(prior, n, count, peak)

    def density(v: float) -> float:
        return math.exp(log_density(prior, n, count, v) - top)

    edges = support(lambda v: log_density(prior, n, count, v), peak)
    old = integrate(lambda v: density(v) / (1 + tau * math.exp(-v)), edges)
    new = integrate(
        lambda v: density(v) / (1 + tau * math.exp(-v)) * a * (math.exp(v) + tau) ** sigma, edges
    )
    return new / old


# --- the prior rule -------------------------------------------------------------------------------


def occupied(prior: Prior, log_vacancy: Sequence[float]) -> float:
    """Return E[K'] = sum_k 1 - prod_i (1 - q_ik), or plain K."""
    if prior.cluster_count == "plain":
        return float(len(log_vacancy))
    return math.fsum(-math.expm1(log) for log in log_vacancy)


def new_weight(prior: Prior, n: float, count: float) -> float:
    """Return the weight of a new cluster against S_k - sigma of the others."""
    kind, a, sigma, tau, auxiliary, _ = prior
    if kind == "py":
        return a + sigma * count
    if auxiliary == "quadrature":
        return averaged_new_weight(prior, n, count)
    return a * (math.exp(mode(prior, n, count)) + tau) ** sigma


def prior_weights(
    prior: Prior, masses: Sequence[float], log_vacancy: Sequence[float], n: float
) -> list[float]:
    """Return the normalised weights of K clusters and a new one, Eq. (25)."""
    if not masses:
        return [1.0]
    weights = [max(mass - prior.discount, 0.0) for mass in masses]
    weights.append(new_weight(prior, n, occupied(prior, log_vacancy)))
    total = math.fsum(weights)
    return [weight / total for weight in weights]


# --- the likelihood -------------------------------------------------------------------------------


def log_rising(x: float, n: int) -> float:
    """Return log x (x+1) .. (x+n-1)."""
    return math.fsum(math.log(x + j) for j in range(n))


def log_base(document: dict[int, int]) -> float:
    """Return log N! - sum_w log x_w!."""
    length = sum(document.values())
    return math.fsum(
        [log_rising(1, length)] + [-log_rising(1, count) for count in document.values()]
    )


def log_predictive(
    words: dict[int, float],
    length: float,
    document: dict[int, int],
    alpha: Sequence[float],
    total: float,
) -> float:
    """Return log p(x | cluster) without log h(x): the urn, token by token; total = sum alpha."""
    tokens = [
        math.log(alpha[word] + words.get(word, 0.0) + seen)
        for word, count in document.items()
        for seen in range(count)
    ]
    lengths = [-math.log(total + length + seen) for seen in range(len(tokens))]
    return math.fsum(tokens + lengths)


# --- Algorithm 1 ----------------------------------------------------------------------------------


def respond(
    state: State,
    document: dict[int, int],
    prior: Prior,
    alpha: Sequence[float],
    epsilon: float,
    min_responsibility: float,
    max_responsibilities: int | None = None,
) -> Response:
    """Return the responsibilities of one document, Eq. (17), and whether it opens a cluster."""
    weights = prior_weights(prior, state.masses, state.log_vacancy, state.n)
    clusters = [*zip(state.words, state.lengths, strict=True), ({}, 0.0)]
    total_alpha = math.fsum(alpha)
    scores = [
        math.log(weight) + log_predictive(*cluster, document, alpha, total_alpha)
        if weight > 0
        else -math.inf
        for weight, cluster in zip(weights, clusters, strict=True)
    ]
    best = max(scores)
    floor = best + math.log(min_responsibility) if min_responsibility > 0 else -math.inf
    shares = [math.exp(score - best) if score >= floor else 0.0 for score in scores]
    ranked = sorted(range(len(scores) - 1), key=lambda k: (-scores[k], k))
    for k in ranked[max_responsibilities:] if max_responsibilities is not None else []:
        shares[k] = 0.0
    log_evidence = best + math.log(math.fsum(shares)) + log_base(document)
    unseen = math.exp(scores[-1] - best)
    novelty = unseen / (math.fsum(shares[:-1]) + unseen)
    opens = shares[-1] / math.fsum(shares) > epsilon
    if not opens:
        shares.pop()
    total = math.fsum(shares)
    return Response([share / total for share in shares], opens, novelty, log_evidence)


def absorb(state: State, document: dict[int, int], response: Response) -> State:
    """Return the posterior with one more document, Eq. (21)."""
    opened = 1 if response.opens else 0
    words = [dict(cluster) for cluster in state.words] + [{} for _ in range(opened)]
    lengths = state.lengths + [0.0] * opened
    masses = state.masses + [0.0] * opened
    log_vacancy = state.log_vacancy + [0.0] * opened
    for k, q in enumerate(response.responsibilities):
        for word, count in document.items():
            words[k][word] = words[k].get(word, 0.0) + q * count
        lengths[k] += q * sum(document.values())
        masses[k] += q
        log_vacancy[k] += math.log1p(-min(q, LARGEST_BELOW_ONE))
    return State(words, lengths, masses, log_vacancy, state.n + 1)


# --- partitions by enumeration --------------------------------------------------------------------


def set_partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Yield every partition of n observations as labels, numbered in order of appearance."""
    if n == 0:
        yield ()
        return
    for labels in set_partitions(n - 1):
        for label in range(max(labels, default=-1) + 2):
            yield (*labels, label)


def sizes(labels: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of the clusters in order of appearance."""
    counts = Counter(labels)
    return tuple(counts[label] for label in range(len(counts)))


def log_eppf(prior: Prior, counts: Sequence[int], cluster_power: float | None = None) -> float:
    """Return the log probability of one partition; `cluster_power` as in `log_density`."""
    kind, a, sigma, *_ = prior
    n, K = sum(counts), len(counts)
    joined = math.fsum(log_rising(1 - sigma, count - 1) for count in counts)
    if kind == "py":
        opened = math.fsum(math.log(a + sigma * j) for j in range(1, K))
        return opened + joined - log_rising(a + 1, n - 1)

    def density(v: float) -> float:
        return log_density(prior, n, K, v, cluster_power)

    peak = bisect(lambda v: density(v + 1e-4) - density(v - 1e-4))
    integral = integrate(lambda v: math.exp(density(v) - density(peak)), support(density, peak))
    return density(peak) + math.log(integral) + K * math.log(a) + joined - log_rising(1, n - 1)


def exact_posterior(
    documents: Sequence[dict[int, int]], prior: Prior, alpha: Sequence[float]
) -> tuple[dict[tuple[int, ...], float], float]:
    """Return p(partition | documents) of every partition, and log p(documents)."""
    scores, total_alpha = {}, math.fsum(alpha)
    for labels in set_partitions(len(documents)):
        merged = [Counter() for _ in range(max(labels) + 1)]
        for label, document in zip(labels, documents, strict=True):
            merged[label].update(document)
        scores[labels] = (
            log_eppf(prior, sizes(labels))
            + math.fsum(log_predictive({}, 0.0, words, alpha, total_alpha) for words in merged)
            + math.fsum(log_base(document) for document in documents)
        )
    best = max(scores.values())
    total = math.fsum(math.exp(score - best) for score in scores.values())
    posterior = {labels: math.exp(score - best) / total for labels, score in scores.items()}
    return posterior, best + math.log(total)


# --- the Levy intensity ---------------------------------------------------------------------------


def levy_integral(prior: Prior, weight: Callable[[float], float], center: float) -> float:
    """Return int weight(s) rho(s) ds, rho(s) = a/Gamma(1-sigma) s^(-sigma-1) e^(-tau s).

    `center` is about the logarithm of where the integrand is largest.
    """
    _, a, sigma, tau, *_ = prior

    def integrand(x: float) -> float:
        s = math.exp(x)
        return weight(s) * math.exp(-sigma * x - tau * s)

    edges = [center + x for x in (-200, -50, -20, -10, -5, -2, 0, 2, 5, 10, 20, 50, 200, 400)]
    return a / math.gamma(1 - sigma) * integrate(integrand, edges)
