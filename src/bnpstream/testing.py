"""Law checks for priors and likelihoods: run them on your own classes.

A check raises AssertionError with the law that is broken and the numbers.
"""

from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import chisquare

from bnpstream.inference import adf
from bnpstream.inference.visits import visit
from bnpstream.kernels.arrays import TOTAL_MASS, Floats
from bnpstream.kernels.jit.dispatch import is_registered
from bnpstream.kernels.measures.rules import log_prior_weights
from bnpstream.kernels.passes.contributions import contribution_of
from bnpstream.kernels.words.dirichlet import log_predictive_of, log_predictive_of_new
from bnpstream.likelihoods import Batch, Likelihood, plus
from bnpstream.mixture import MixtureState, Model, SiteBuffer, log_joint
from bnpstream.mixture.sites import totals
from bnpstream.priors import NormalizedRandomMeasure, Prior, dirichlet_process
from bnpstream.priors.partitions import set_partitions

ENUMERATED = 5
"""52 partitions: enough to see every law, few enough to integrate one by one."""
FREQUENCY_DRAWS = 2000


def check_prior(prior: Prior) -> None:
    """Check that a prior over partitions obeys its laws.

    Partition probabilities sum to one, are symmetric, and give the predictive rule, the expected
    number of clusters and the samples; weights for soft counts are normalised and reduce to the
    rule for hard ones; a compiled twin agrees. For a normalized random measure also: phi and
    kappa_m belong together, and the mode of log U is a mode and increases with n.

    Parameters
    ----------
    prior : Prior
        Prior to check.

    Examples
    --------
    >>> from bnpstream import normalized_inverse_gaussian
    >>> from bnpstream.testing import check_prior
    >>> check_prior(normalized_inverse_gaussian(concentration=2, tilt=0.5))
    """
    if isinstance(prior, NormalizedRandomMeasure):
        _check_moments(prior)
    _check_partition_probabilities(prior)
    _check_samples(prior)
    _check_weights(prior)
    if isinstance(prior, NormalizedRandomMeasure):
        _check_auxiliary(prior)
    _check_merge_odds(prior)
    if prior.kernel_parameters() is not None:
        _check_compiled_prior(prior)


def check_likelihood(likelihood: Likelihood, X: Any) -> None:
    """Check that a likelihood obeys the laws of a conjugate exponential family.

    Scores follow from the normaliser, for non-empty clusters and soft weights; the order of rows
    does not matter; a zero row is the prior; the normaliser is convex; rows are encoded
    independently; sampled rows can be encoded and follow the scores; a compiled twin agrees. If the
    class cannot be sampled, that law is left out. log h(x) is the same for all clusters, so no
    check here can tell whether it is right.

    A `latent` family defines its own scores, so the first two laws are not required of it. What a
    row adds to a cluster must depend only on that cluster, and removing it must leave nothing.

    Parameters
    ----------
    likelihood : Likelihood
        Likelihood to check.
    X : array-like or sparse
        At least six valid rows, not all equal.

    Examples
    --------
    >>> from bnpstream import DirichletMultinomial
    >>> from bnpstream.datasets import bars
    >>> from bnpstream.testing import check_likelihood
    >>> check_likelihood(DirichletMultinomial(alpha=0.5), bars(n_images=20).counts)
    """
    batch = likelihood.encode(X)
    if len(batch) < 6:
        raise ValueError(f"check_likelihood needs at least six rows, got {len(batch)}")
    _check_encoding(likelihood, X, batch)
    if likelihood.latent:
        _check_contributions(likelihood, batch, np.zeros((2, batch.n_statistics)))
    statistics = _soft_clusters(likelihood, batch)
    _close("a zero row is the prior", likelihood.log_marginal(statistics[-1:]), [0.0])
    if likelihood.latent:
        _check_contributions(likelihood, batch, statistics)
        _check_taking_out(likelihood, batch)
    else:
        _check_scores(likelihood, batch, statistics)
    _check_convexity(likelihood, statistics)
    _check_means(likelihood, statistics)
    _check_rows_drawn(likelihood, batch, statistics)
    has_twin = likelihood.kernel_parameters(batch.n_statistics) is not None
    if has_twin and batch.kernel_rows is not None:
        _check_compiled_likelihood(likelihood, batch)


def _close(law: str, found: Any, expected: Any, tolerance: float = 1e-8) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=law)


def _sizes(labels: tuple[int, ...]) -> Floats:
    return np.bincount(labels).astype(np.float64)


def _check_partition_probabilities(prior: Prior) -> None:
    for n in range(1, ENUMERATED + 1):
        sizes = [_sizes(labels) for labels in set_partitions(n)]
        eppf = np.exp([prior.log_eppf(counts) for counts in sizes])
        _close(f"partition probabilities of {n} must sum to one", eppf.sum(), 1.0)
        n_clusters = np.array([counts.size for counts in sizes])
        _close("expected_clusters", prior.expected_clusters(n), eppf @ n_clusters)
    for counts in sizes:
        _close("the EPPF must be symmetric", prior.log_eppf(counts[::-1]), prior.log_eppf(counts))
        rule = prior.predictive_rule(counts)
        joined = [*(counts + np.eye(counts.size)), np.append(counts, 1.0)]
        ratios = np.exp([prior.log_eppf(after) - prior.log_eppf(counts) for after in joined])
        _close("predictive_rule must be a ratio of EPPFs", rule, ratios)


def _check_samples(prior: Prior) -> None:
    rng = np.random.default_rng(1)
    partitions = list(set_partitions(3))
    expected = np.exp([prior.log_eppf(_sizes(labels)) for labels in partitions])
    draws = [tuple(prior.sample_partition(3, rng).tolist()) for _ in range(FREQUENCY_DRAWS)]
    found = np.array([draws.count(labels) for labels in partitions])
    likely = expected * FREQUENCY_DRAWS > 5
    assert found[~likely].sum() <= 20, "sample_partition draws what log_eppf calls impossible"
    scale = found[likely].sum() / expected[likely].sum()
    p_value = chisquare(found[likely], expected[likely] * scale).pvalue if likely.sum() > 1 else 1
    assert p_value > 1e-6, f"sample_partition does not follow log_eppf (p = {p_value:.2g})"


def _soft_masses(seed: int, n: int = 30, clusters: int = 4) -> tuple[Floats, Floats]:
    """Return masses and log vacancies of n rows with random responsibilities."""
    rng = np.random.default_rng(seed)
    responsibilities = rng.dirichlet(np.full(clusters, 0.3), size=n)
    responsibilities = np.minimum(responsibilities, 1.0 - 2.0**-53)
    return responsibilities.sum(axis=0), np.log1p(-responsibilities).sum(axis=0)


def _check_weights(prior: Prior) -> None:
    for seed in range(5):
        masses, log_vacancy = _soft_masses(seed)
        n = float(masses.sum())
        auxiliary = prior.solve_auxiliary(masses, log_vacancy, n, np.nan)
        log_weights = prior.log_weights(masses, log_vacancy, n, auxiliary)
        _close("weights must sum to one", np.exp(log_weights).sum(), 1.0)
        assert log_weights.shape == (masses.size + 1,), (
            "one weight per cluster, and one for a new one"
        )
        masses[0] = 0.5 * prior.smallest_mass
        if prior.smallest_mass > 0:
            dead = prior.log_weights(masses, log_vacancy, n, auxiliary)
            assert dead[0] == -np.inf, "a mass up to smallest_mass must have zero weight"
        masses[0] = log_vacancy[0] = 0.0
        n = float(masses.sum())
        auxiliary = prior.solve_auxiliary(masses, log_vacancy, n, auxiliary)
        left = prior.log_weights(masses, log_vacancy, n, auxiliary)
        assert left[0] == -np.inf, "a cluster that a revisit emptied must have zero weight"
        assert np.isfinite(left[1:]).all(), "an emptied cluster must not disturb the others"


def _check_merge_odds(prior: Prior) -> None:
    counts, auxiliary = np.array([4.0, 2.0, 1.0]), 0.3
    merged = np.array([6.0, 1.0])
    pair = counts[:2, None]
    odds = prior.log_merge_odds(pair, np.ones((2, 1)), np.ones(1), counts.size, auxiliary)
    if isinstance(prior, NormalizedRandomMeasure):  # given U
        v, n = np.array([auxiliary]), float(counts.sum())
        together = prior.log_auxiliary_joint(v, merged, np.ones(2), n)
        expected = together - prior.log_auxiliary_joint(v, counts, np.ones(3), n)
    else:
        expected = np.array([prior.log_eppf(merged) - prior.log_eppf(counts)])
    _close("log_merge_odds must be a ratio of partition probabilities", odds, expected)


def _check_moments(prior: NormalizedRandomMeasure) -> None:
    u, step = np.array([0.3, 1.0, 7.0]), 1e-5

    def slope(function: Any) -> Any:
        return (function(u * (1 + step)) - function(u * (1 - step))) / (2 * step * u)

    first = np.exp(prior.log_tilted_moment(np.ones(1), u))
    _close("phi' must be kappa_1", slope(prior.laplace_exponent), first, 1e-6)
    complex_u = np.asarray(prior.laplace_exponent(u + 0j))
    _close("phi must take complex arguments", complex_u, prior.laplace_exponent(u))
    for m in (1.0, 1.7, 4.0):
        order = np.array([m])
        ratio = np.exp(prior.log_tilted_moment(order + 1, u) - prior.log_tilted_moment(order, u))
        found = slope(lambda u, order=order: prior.log_tilted_moment(order, u))
        _close("kappa_m' must be -kappa_{m+1}", found, -ratio, 1e-6)


def _check_auxiliary(prior: NormalizedRandomMeasure) -> None:
    hard = np.ones(4)
    last = -np.inf
    for scale in (1.0, 3.0, 20.0, 1000.0):
        masses = scale * np.array([1.0, 2.0, 3.0, 5.0])
        n = float(masses.sum())
        mode = prior.solve_auxiliary(masses, np.full(4, -np.inf), n, np.nan)
        warm = prior.solve_auxiliary(masses, np.full(4, -np.inf), n, mode + 0.1)
        _close("a warm start must find the same mode", warm, mode)
        around = mode + np.array([-1e-3, 0.0, 1e-3])
        density = prior.log_auxiliary_joint(around, masses, hard, n)
        assert density[1] >= density.max(), "solve_auxiliary must return the mode of log u"
        assert mode >= last - 1e-9, "at fixed K the mode must not fall as n grows"
        last = mode
        v = np.linspace(mode - 5, mode + 5, 41)
        bends = np.diff(prior.log_auxiliary_joint(v, masses, hard, n), 2)
        assert bends.max() <= 1e-7 * n, "the density of log u must be log-concave"


def _check_compiled_prior(prior: Prior) -> None:
    for seed in range(5):
        masses, log_vacancy = _soft_masses(seed)
        state = MixtureState(1)
        for _ in masses:
            state.open()
        state.masses[:], state.log_vacancy[:] = masses, log_vacancy
        n = float(masses.sum())
        state.arrays.totals[TOTAL_MASS] = n
        out = np.empty(state.arrays.masses.size)
        found = log_prior_weights(prior.kernel_parameters(), state.arrays, out)
        auxiliary = prior.solve_auxiliary(masses, log_vacancy, n, np.nan)
        _close("compiled auxiliary", found, auxiliary)
        expected = prior.log_weights(masses, log_vacancy, n, auxiliary)
        _close("compiled log_weights", out[: expected.size], expected, 1e-10)


def _dense(batch: Batch) -> Floats:
    if isinstance(batch.statistics, np.ndarray):
        return batch.statistics
    return batch.statistics.toarray()


def _check_encoding(likelihood: Likelihood, X: Any, batch: Batch) -> None:
    rows = _dense(batch)
    assert rows.ndim == 2, "sufficient statistics must be a matrix with one row per observation"
    assert rows.dtype == np.float64, f"sufficient statistics must be float64, not {rows.dtype}"
    assert batch.log_base.shape == (len(rows),), "log h(x) must be one number per row"
    sums_plainly = type(batch).weighted_sums is Batch.weighted_sums
    assert not (likelihood.paired and sums_plainly), "paired statistics need a PairedBatch"
    assert np.isfinite(rows).all(), "sufficient statistics must be finite"
    assert np.isfinite(batch.log_base).all(), "log h(x) must be finite"
    again = likelihood.encode(X[1:3])
    _close("encode must work row by row", _dense(again), rows[1:3], 0)
    _close("log h must be computed row by row", again.log_base, batch.log_base[1:3], 0)
    for i in range(3):
        row = batch.row(i)
        spread = np.zeros(batch.n_statistics)
        spread[row.columns] = row.values
        _close("Batch.row must agree with Batch.statistics", spread, rows[i], 0)


def _soft_clusters(likelihood: Likelihood, batch: Batch) -> Floats:
    """Return statistics of three non-empty clusters and an empty one."""
    rng = np.random.default_rng(2)
    responsibilities = rng.dirichlet(np.ones(3), size=len(batch))
    statistics = np.zeros((4, batch.n_statistics))
    for i, shares in enumerate(responsibilities):
        row, slots = batch.row(i), np.arange(4)
        lines = likelihood.contributions(statistics, row, slots)
        before, q = statistics[:, row.columns], np.append(shares, 0.0)
        statistics[:, row.columns] = plus(before, q, lines, paired=likelihood.paired)
    return statistics


def _sum(likelihood: Likelihood, statistics: Floats, share: float, others: Floats) -> Floats:
    """Return statistics plus a share of others."""
    shares = np.full(len(statistics), share)
    return plus(statistics, shares, others, paired=likelihood.paired)


def _check_scores(likelihood: Likelihood, batch: Batch, statistics: Floats) -> None:
    rows = _dense(batch)
    by_default = type(likelihood).contributions is Likelihood.contributions
    assert by_default, "only latent families may override contributions"
    for i in range(min(len(batch), 6)):
        score = likelihood.log_predictive(statistics, batch.row(i))
        after = likelihood.log_marginal(_sum(likelihood, statistics, 1.0, rows[i]))
        before = likelihood.log_marginal(statistics)
        _close("log_predictive must be a ratio of normalisers", score, after - before)
        derived = Likelihood.log_predictive(likelihood, statistics, batch.row(i))
        _close("log_predictive must equal the base class's", score, derived)
    first, second = batch.row(0), batch.row(1)
    one = likelihood.log_predictive(statistics, first)
    one = one + likelihood.log_predictive(_sum(likelihood, statistics, 1.0, rows[0]), second)
    other = likelihood.log_predictive(statistics, second)
    other = other + likelihood.log_predictive(_sum(likelihood, statistics, 1.0, rows[1]), first)
    _close("the order of rows must not matter", one, other)


def _check_contributions(likelihood: Likelihood, batch: Batch, statistics: Floats) -> None:
    """Check that a cluster's score and a row's contribution depend on this cluster alone."""
    family = type(likelihood)
    assert not likelihood.paired, "statistics of a latent family cannot be paired"
    for name in ("contributions", "log_predictive"):
        own = getattr(family, name) is not getattr(Likelihood, name)
        assert own, f"{family.__name__} is latent but does not define {name}"
    slots = np.arange(len(statistics))
    for i in range(min(len(batch), 6)):
        row, before = batch.row(i), statistics.copy()
        lines = likelihood.contributions(statistics, row, slots)
        scores = likelihood.log_predictive(statistics, row)
        shape = (slots.size, row.values.size)
        assert lines.shape == shape, f"contributions must be {shape}, not {lines.shape}"
        assert np.isfinite(lines).all(), "contributions must be finite"
        assert scores.shape == slots.shape, "log_predictive must be one number per cluster"
        assert np.isfinite(scores).all(), "log_predictive must be finite"
        for k in slots:
            alone = likelihood.contributions(statistics[[k]], row, np.zeros(1, np.int64))
            _close("contributions must depend on the cluster alone", alone[0], lines[k])
            found = likelihood.contributions(statistics, row, slots[[k]])
            _close("contributions must be those of the slots", found[0], lines[k])
            score = likelihood.log_predictive(statistics[[k]], row)
            _close("log_predictive must depend on the cluster alone", score[0], scores[k])
        lines[:] = 0.0
        _close("contributions must not be a view of the statistics", statistics, before, 0)


def _check_taking_out(likelihood: Likelihood, batch: Batch) -> None:
    """Check that nothing is left of a pass after every row is removed."""
    model, sites = Model(dirichlet_process(), likelihood), SiteBuffer(len(batch))
    state = adf.init(model, batch.n_statistics)
    for _ in visit(model, state, batch, SiteBuffer(), sites, adf.Settings(0.1, 1e-4), None):
        pass
    statistics, masses, _ = totals(sites, batch, state.n_clusters)
    scale = 1.0 + float(np.abs(state.statistics).max())
    _close("statistics must be the sum of the sites", state.distance(statistics) / scale, 0.0)
    for i in range(len(batch)):
        state.take_out(*sites.row(i), sites.added(i, batch.row(i)))
    _close("what was added must be taken out", state.statistics / scale, 0.0)
    _close("masses must be taken out", state.masses / masses.sum(), 0.0)


def _check_convexity(likelihood: Likelihood, statistics: Floats) -> None:
    """Check log Z half way between clusters: by Hölder's inequality it is convex."""
    first, second = np.triu_indices(len(statistics), 1)
    log_z = likelihood.log_normalizer(statistics)
    half = _sum(likelihood, np.zeros_like(statistics), 0.5, statistics)
    between = likelihood.log_normalizer(_sum(likelihood, half[first], 1.0, half[second]))
    excess = between - 0.5 * (log_z[first] + log_z[second])
    law = "log_normalizer must be convex in the statistics, as the log of an integral is"
    assert (excess <= 1e-8 * (1.0 + np.abs(between))).all(), f"{law}: above by {excess.max():.3g}"


def _check_means(likelihood: Likelihood, statistics: Floats) -> None:
    try:
        means = likelihood.posterior_mean(statistics)
    except NotImplementedError:
        return
    assert means.shape[0] == len(statistics), "posterior_mean must give one mean per cluster"
    assert np.isfinite(means).all(), "posterior means must be finite"


def _check_rows_drawn(likelihood: Likelihood, batch: Batch, statistics: Floats) -> None:
    """Check rows drawn from two clusters against their scores.

    With half of the rows from p and half from r, the mean of p / (p/2 + r/2) is the integral of p,
    which is one. It lies in [0, 2], so a thousand rows suffice; log h(x) cancels.
    """
    rng = np.random.default_rng(3)
    try:
        drawn = likelihood.encode(likelihood.sample(statistics, rng))
    except NotImplementedError:
        return
    assert len(drawn) == len(statistics), "sample must draw one row per cluster"
    assert drawn.n_statistics == batch.n_statistics, "sampled rows must have the data's columns"
    half = FREQUENCY_DRAWS // 4
    for pair in ([0, 1], [0, 3], [1, 3]):
        chosen = np.repeat(statistics[pair], half, axis=0)
        drawn = likelihood.encode(likelihood.sample(chosen, rng))
        if drawn.has_gaps:
            return  # missing cells and unknown labels have no score
        rows = (drawn.row(i) for i in range(len(drawn)))
        scores = np.array([likelihood.log_predictive(statistics[pair], row) for row in rows])
        parts = (2.0 * expit(scores[:, 0] - scores[:, 1])).reshape(2, half)
        error = np.sqrt(parts.var(axis=1).sum() / (4.0 * half))
        gap = abs(parts.mean() - 1.0)
        assert gap <= 6.0 * error + 1e-3, (
            f"sample and log_predictive must belong together: the predictive integrates to "
            f"{parts.mean():.4f} +- {error:.4f}, not 1"
        )


def _check_compiled_likelihood(likelihood: Likelihood, batch: Batch) -> None:
    model = Model(dirichlet_process(), likelihood)
    parameters = type(likelihood.kernel_parameters(batch.n_statistics))
    wanted: list[Any] = [contribution_of] if likelihood.latent else []
    if batch.scores_alone:
        wanted += [log_predictive_of, log_predictive_of_new]
    for function in wanted:
        name = function.__name__
        assert is_registered(function, parameters), (
            f"{name} must be registered for {parameters.__name__}: specialize"
        )
    state = adf.init(model, batch.n_statistics)
    for _ in adf.run(model, state, batch, adf.Settings(0.1, 1e-4)):
        pass
    reference = log_joint(model, state, batch, None)
    compiled = log_joint(model, state, batch, model.kernel_arguments(batch))
    # A difference of normalisers has their rounding errors.
    rounding = 1e-15 * float(np.abs(likelihood.log_normalizer(state.statistics)).max())
    _close("compiled scores", compiled, reference, 1e-10 + 10.0 * rounding)
    if likelihood.latent:
        _check_compiled_contributions(model, state, batch)


def _check_compiled_contributions(model: Model, state: MixtureState, batch: Batch) -> None:
    """Check that compiled loops add the same for each row as the reference."""
    for i in range(len(batch)):
        row, part = batch.row(i), batch.part(i, i + 1)
        sites, before = SiteBuffer(1), state.copy()
        before.open()  # a cluster that opens is a row of zeros
        kernel = model.kernel_arguments(part)
        for _ in visit(
            model, state.copy(), part, SiteBuffer(), sites, adf.Settings(0.1, 0.0), kernel
        ):
            pass
        lines = model.likelihood.contributions(before.candidates, row, sites.row(0)[0])
        _close("compiled contributions", sites.lines(0), lines, 1e-10)
