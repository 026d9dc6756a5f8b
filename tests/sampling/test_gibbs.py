"""Collapsed Gibbs sampling: against enumeration, engine against engine, and its books."""

import math
from collections import Counter

import numpy as np
import pytest
from sampling_cases import (
    ALPHA,
    ENGINES,
    PRIORS,
    WORDS,
    PoissonGamma,
    as_documents,
    documents,
    model_of,
)
from scipy.stats import chisquare, kstest
from sklearn.exceptions import NotFittedError

import naive
from bnpstream import DirichletMultinomial, GibbsMixture
from bnpstream.inference import exact, gibbs
from bnpstream.mixture import Model
from states import assert_free_slots_are_zero

kernel = pytest.mark.kernel
engines = pytest.mark.parametrize("engine", ENGINES)
priors = pytest.mark.parametrize("kind", PRIORS)
SMALLEST_P = 1e-3


def kernel_of(model, batch, engine):
    return model.kernel_arguments(batch) if engine == "compiled" else None


def canonical(assignments):
    """Return labels in order of appearance."""
    names = {slot: k for k, slot in enumerate(dict.fromkeys(assignments.tolist()))}
    return tuple(names[slot] for slot in assignments.tolist())


# --- against enumeration --------------------------------------------------------------------------


def frequencies_fit(model, rows, engine, n_draws, thin, seed):
    """Return the p-value of a chi-square test of thinned draws against the exact posterior."""
    batch = model.likelihood.encode(rows)
    posterior = exact.run(model, batch)
    draws = gibbs.run(
        model, batch, np.random.default_rng(seed), kernel_of(model, batch, engine),
        n_sweeps=50 + n_draws * thin,
    )  # fmt: skip
    found = Counter(
        canonical(draw.assignments) for t, draw in enumerate(draws) if t >= 50 and t % thin == 0
    )
    expected = np.exp(posterior.log_probabilities) * n_draws
    counts = np.array([found[labels] for labels in posterior.partitions])
    assert counts.sum() == n_draws
    # Cells that expect fewer than ten are one.
    rare = expected < 10.0
    cells = [[*part[~rare], part[rare].sum()] for part in (counts, expected) if rare.any()]
    cells = cells or [counts, expected]
    assert len(cells[0]) > 8
    return chisquare(*cells).pvalue


@pytest.mark.parametrize("kind", ["dp", "nig", "stable", "py", "nggp"])
def test_partition_frequencies_are_the_exact_posterior(kind):
    rows = documents(1, 5, length=3)
    assert frequencies_fit(model_of(kind), rows, "compiled", 2000, 3, (51, 1)) > SMALLEST_P


@pytest.mark.parametrize("kind", ["dp", "nig", "stable", "py"])
def test_the_reference_engine_samples_the_exact_posterior(kind):
    rows = documents(2, 4, length=3)
    assert frequencies_fit(model_of(kind), rows, "reference", 700, 2, (51, 2)) > SMALLEST_P


def test_a_likelihood_from_elsewhere_is_sampled_too():
    model = model_of("nig", PoissonGamma(0.8))
    assert frequencies_fit(model, [0, 3, 1, 5], "reference", 700, 2, (51, 3)) > SMALLEST_P


# --- engine against engine ------------------------------------------------------------------------


@kernel
@priors
def test_both_engines_follow_the_same_path(kind):
    model = model_of(kind)
    batch = model.likelihood.encode(documents(3, 40, length=9))
    one, other = gibbs.init(model, batch), gibbs.init(model, batch)
    rng = np.random.default_rng((52, 0))
    seen = set()
    for _ in range(15):
        start = one.state.auxiliary
        log_u = gibbs.draw_auxiliary(model.prior, one.state.masses, start, rng)
        one.state.auxiliary = other.state.auxiliary = log_u
        uniforms = rng.random(len(batch))
        gibbs.sweep(model, one, batch, uniforms, None)
        gibbs.sweep(model, other, batch, uniforms, model.kernel_arguments(batch))
        assert one.assignments.tolist() == other.assignments.tolist()
        assert one.state.ids.tolist() == other.state.ids.tolist()
        assert one.state.next_id == other.state.next_id
        np.testing.assert_array_equal(one.state.statistics, other.state.statistics)
        np.testing.assert_array_equal(one.state.masses, other.state.masses)
        seen.add(one.state.n_clusters)
    assert len(seen) > 2


@kernel
def test_the_compiled_engine_makes_room_in_the_middle_of_a_sweep():
    """A row a cluster: more clusters than there are slots at first."""
    model = model_of("nig", DirichletMultinomial(0.01))
    batch = model.likelihood.encode(np.eye(50, dtype=int) * 30)
    one, other = gibbs.init(model, batch), gibbs.init(model, batch)
    uniforms = np.random.default_rng((52, 1)).random(50)
    one.state.auxiliary = other.state.auxiliary = 3.0
    gibbs.sweep(model, one, batch, uniforms, None)
    gibbs.sweep(model, other, batch, uniforms, model.kernel_arguments(batch))
    assert one.state.n_clusters > 32
    assert one.assignments.tolist() == other.assignments.tolist()


@kernel
@priors
def test_both_engines_draw_the_same_posterior(kind):
    X = documents(4, 25, length=8)
    one, other = (
        GibbsMixture(PRIORS[kind][0], DirichletMultinomial(ALPHA), n_sweeps=12, n_kept=6,
                     n_chains=2, random_state=5, engine=engine).fit(X)
        for engine in ENGINES
    )  # fmt: skip
    np.testing.assert_array_equal(one.assignments_, other.assignments_)
    np.testing.assert_array_equal(one.auxiliaries_, other.auxiliaries_)
    np.testing.assert_array_equal(one.n_clusters_, other.n_clusters_)
    np.testing.assert_allclose(one.log_likelihood_, other.log_likelihood_, rtol=1e-12)
    np.testing.assert_allclose(one.score_samples(X), other.score_samples(X), atol=1e-9)


# --- the books ------------------------------------------------------------------------------------


@kernel
@engines
@priors
def test_totals_are_those_of_the_assignments_after_every_sweep(kind, engine):
    model, counts = model_of(kind), documents(5, 30, length=8)
    batch = model.likelihood.encode(counts)
    chain = gibbs.init(model, batch)
    assert chain.assignments.tolist() == [0] * 30
    rng = np.random.default_rng((53, 0))
    for _ in range(6):
        state = chain.state
        log_u = gibbs.draw_auxiliary(model.prior, state.masses, state.auxiliary, rng)
        state.auxiliary = log_u
        gibbs.sweep(model, chain, batch, rng.random(30), kernel_of(model, batch, engine))
        K, state = chain.state.n_clusters, chain.state
        assert sorted(set(chain.assignments.tolist())) == list(range(K))
        for k in range(K):
            mine = counts[chain.assignments == k]
            assert state.masses[k] == len(mine)
            assert state.statistics[k].tolist() == [*mine.sum(axis=0), mine.sum()]
        assert state.total_mass == 30
        assert len(set(state.ids.tolist())) == K
        assert_free_slots_are_zero(state)
        np.testing.assert_equal(state.auxiliary, log_u)  # given, not solved for


@engines
def test_the_only_row_has_a_cluster_of_its_own(engine):
    for kind in ("dp", "nig", "py"):
        model = model_of(kind)
        batch = model.likelihood.encode([[1, 2, 0, 0]])
        twin = kernel_of(model, batch, engine)
        draws = list(gibbs.run(model, batch, np.random.default_rng(1), twin, n_sweeps=5))
        assert all(draw.assignments.tolist() == [0] for draw in draws)


@priors
def test_a_draw_reports_its_likelihood_and_clusters(kind):
    model, counts = model_of(kind), documents(6, 12)
    batch = model.likelihood.encode(counts)
    rng = np.random.default_rng((53, 1))
    for draw in gibbs.run(model, batch, rng, model.kernel_arguments(batch), n_sweeps=5):
        expected = sum(naive.log_base(document) for document in as_documents(counts))
        for k in range(draw.n_clusters):
            (words,) = as_documents([counts[draw.assignments == k].sum(axis=0)])
            expected += naive.log_predictive({}, 0.0, words, [ALPHA] * WORDS, ALPHA * WORDS)
        assert draw.log_likelihood == pytest.approx(expected, abs=1e-9)
        assert draw.n_clusters == len(set(draw.assignments.tolist()))


# --- the auxiliary variable -----------------------------------------------------------------------


@pytest.mark.parametrize("counts", [[1.0], [30.0, 1.0, 1.0, 1.0, 7.0]], ids=str)
@pytest.mark.parametrize("kind", ["nig", "nggp", "stable"])
def test_slices_leave_the_conditional_of_log_u_as_it_is(kind, counts):
    prior, oracle = PRIORS[kind]
    n, K = sum(counts), len(counts)

    def log_density(v):
        return naive.log_density(oracle, n, K, v)

    edges = naive.support(log_density, naive.mode(oracle, n, K))
    nodes = np.linspace(edges[0], edges[-1], 2001)
    density = np.exp([log_density(v) - log_density(naive.mode(oracle, n, K)) for v in nodes])
    cdf = np.cumsum(density) - density / 2
    cdf /= density.sum()
    rng, v, draws = np.random.default_rng((54, K)), math.nan, []
    for _ in range(2400):
        v = gibbs.draw_auxiliary(prior, np.array(counts), v, rng)
        draws.append(v)
    assert kstest(draws[8::8], lambda x: np.interp(x, nodes, cdf)).pvalue > SMALLEST_P


@pytest.mark.parametrize("kind", ["dp", "py", "negative py"])
def test_where_there_is_no_u_nothing_is_drawn(kind):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    counts = np.array([3.0, 1.0])
    assert math.isnan(gibbs.draw_auxiliary(PRIORS[kind][0], counts, math.nan, rng))
    assert gibbs.draw_auxiliary(PRIORS[kind][0], counts, 1.25, rng) == 1.25
    assert rng.bit_generator.state == before


# --- the estimator --------------------------------------------------------------------------------

X = documents(7, 24, length=8)
NEW = documents(8, 7, length=6)


def mixture(kind="nig", **options):
    options = {"n_sweeps": 20, "n_kept": 8, "n_chains": 2, **options}
    return GibbsMixture(PRIORS[kind][0], DirichletMultinomial(ALPHA), **options)


def test_the_same_seed_gives_the_same_draws_and_another_one_others():
    one, same, other = (mixture(random_state=seed).fit(X) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.assignments_, same.assignments_)
    np.testing.assert_array_equal(one.auxiliaries_, same.auxiliaries_)
    np.testing.assert_array_equal(one.score_samples(NEW), same.score_samples(NEW))
    assert (one.assignments_ != other.assignments_).any()
    assert (one.auxiliaries_ != other.auxiliaries_).all()


def test_chains_are_different_and_independent_of_how_many_there_are():
    two, three = mixture().fit(X), mixture(n_chains=3).fit(X)
    assert (two.assignments_[0] != two.assignments_[1]).any()
    assert (two.auxiliaries_[0] != two.auxiliaries_[1]).all()
    np.testing.assert_array_equal(three.assignments_[:2], two.assignments_)


def test_shapes_and_what_is_kept():
    model, longer = mixture().fit(X), mixture(n_kept=20).fit(X)
    assert model.log_likelihood_.shape == model.n_clusters_.shape == (2, 20)
    assert model.assignments_.shape == (2, 8, 24)
    assert model.auxiliaries_.shape == (2, 8)
    assert model.labels_.shape == (24,)
    assert model.draw_log_predictives(NEW).shape == (16, 7)
    assert model.score_samples(NEW).shape == (7,)
    np.testing.assert_array_equal(longer.assignments_[:, -8:], model.assignments_)
    np.testing.assert_array_equal(longer.auxiliaries_[:, -8:], model.auxiliaries_)
    np.testing.assert_array_equal(model.n_clusters_[:, -8:], model.assignments_.max(axis=2) + 1)
    best = np.unravel_index(np.argmax(model.log_likelihood_[:, -8:]), (2, 8))
    np.testing.assert_array_equal(model.labels_, model.assignments_[best])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_kept": 21}, "n_kept must be at most n_sweeps=20, got 21"),
        ({"n_kept": 0}, "n_kept must be a whole number >= 1, got 0"),
        ({"n_sweeps": 0}, "n_sweeps must be a whole number >= 1, got 0"),
        ({"n_sweeps": 20.0}, "n_sweeps must be a whole number >= 1, got 20.0"),
        ({"n_chains": 0}, "n_chains must be a whole number >= 1, got 0"),
        ({"engine": "fast"}, "engine must be"),
    ],
    ids=str,
)
def test_bad_values_are_named(options, match):
    with pytest.raises(ValueError, match=match):
        mixture(**options).fit(X)


def test_asking_before_fitting_and_for_other_columns_says_so():
    with pytest.raises(NotFittedError):
        mixture().score_samples(X)
    with pytest.raises(ValueError, match="4 features"):
        mixture().fit(X).score_samples(X[:, :3])


def exact_weights(oracle, sizes):
    """Return the probabilities of joining hard clusters and of a new one: ratios of EPPFs."""
    before = naive.log_eppf(oracle, sizes)
    joined = [[*sizes[:k], sizes[k] + 1, *sizes[k + 1 :]] for k in range(len(sizes))]
    return [math.exp(naive.log_eppf(oracle, after) - before) for after in [*joined, [*sizes, 1]]]


@engines
@priors
def test_scores_are_the_average_over_draws(kind, engine):
    model, oracle = mixture(kind, engine=engine).fit(X), PRIORS[kind][1]
    expected = np.empty((16, 7))
    for d, assignments in enumerate(model.assignments_.reshape(-1, 24)):
        clusters = [X[assignments == k] for k in range(assignments.max() + 1)]
        weights = exact_weights(oracle, [len(rows) for rows in clusters])
        words = [*as_documents([rows.sum(axis=0) for rows in clusters]), {}]
        for i, new in enumerate(as_documents(NEW)):
            scores = [
                weight
                * math.exp(
                    naive.log_predictive(
                        seen, sum(seen.values()), new, [ALPHA] * WORDS, ALPHA * WORDS
                    )
                )
                for weight, seen in zip(weights, words, strict=True)
            ]
            expected[d, i] = math.log(math.fsum(scores)) + naive.log_base(new)
    np.testing.assert_allclose(model.draw_log_predictives(NEW), expected, atol=1e-9)
    np.testing.assert_allclose(
        model.score_samples(NEW), np.log(np.exp(expected).mean(axis=0)), atol=1e-9
    )
    figure = expected.sum(axis=1).mean()
    assert model.mean_log_likelihood(NEW) == pytest.approx(figure, abs=1e-9)
    # Jensen: the paper's figure is below the posterior predictive.
    assert figure < model.score_samples(NEW).sum()
    assert model.score(NEW) == pytest.approx(model.score_samples(NEW).mean(), rel=1e-12)


@pytest.mark.parametrize("kind", ["nig", "py"])
def test_the_predictive_is_the_exact_one_with_enough_draws(kind):
    rows, new = X[:4], NEW[:3]
    model = mixture(kind, n_sweeps=4000, n_kept=3900, n_chains=1).fit(rows)
    likelihood = DirichletMultinomial(ALPHA)
    truth = Model(PRIORS[kind][0], likelihood)
    batch = likelihood.encode(rows)
    posterior = exact.run(truth, batch)
    expected = exact.log_predictive(truth, batch, posterior, likelihood.encode(new))
    np.testing.assert_allclose(model.score_samples(new), expected, atol=4e-3)


def test_convergence_is_measured_on_the_kept_draws():
    model = mixture(n_sweeps=300, n_kept=200, n_chains=4).fit(documents(9, 16, length=4))
    for name in ("log_likelihood", "n_clusters"):
        assert 0.9 < model.rhat_[name] < 1.2
        assert 20 < model.ess_[name] <= 4 * 200 * 3
    short = mixture(n_sweeps=3, n_kept=3, n_chains=1).fit(X)
    assert all(math.isnan(value) for value in [*short.rhat_.values(), *short.ess_.values()])


def test_a_likelihood_from_elsewhere_can_be_sampled():
    rows = np.array([[0], [1], [12], [14], [0], [13]])
    model = GibbsMixture("nig", PoissonGamma(0.5), n_sweeps=30, n_kept=10).fit(rows)
    assert model.assignments_.shape == (1, 10, 6)
    scores = np.exp(model.score_samples(np.arange(300)[:, None]))
    assert scores.sum() == pytest.approx(1.0, abs=1e-3)
    with pytest.raises(ValueError, match="has no compiled engine"):
        GibbsMixture("nig", PoissonGamma(0.5), engine="compiled").fit(rows)


# --- the joint distribution (Geweke 2004) ---------------------------------------------------------


def rows_given(labels, rng, length=3):
    """Return documents of `length` words drawn given their clusters, theta integrated out."""
    theta = rng.dirichlet(np.full(WORDS, ALPHA), size=labels.max() + 1)
    return rng.multinomial(length, theta[labels])


def summary(labels, rows):
    """Return clusters, their squared sizes, squared totals of words, and how alike two rows are."""
    sizes = np.bincount(labels)
    return [sizes.size, (sizes**2).sum(), (rows.sum(axis=0) ** 2).sum(), rows[0] @ rows[-1]]


def means_and_errors(draws, batches=40):
    """Return the means and their standard errors by batch means: draws may be correlated."""
    parts = np.array([part.mean(axis=0) for part in np.array_split(np.array(draws), batches)])
    return parts.mean(axis=0), parts.std(axis=0, ddof=1) / math.sqrt(batches)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dp", "nig", "stable", "py"])
def test_sampling_rows_and_assignments_in_turn_leaves_the_joint_distribution(kind):
    n, model = 7, model_of(kind)
    rng = np.random.default_rng((55, 0))
    direct = []
    for _ in range(4000):
        labels = model.prior.sample_partition(n, rng)
        direct.append(summary(labels, rows_given(labels, rng)))
    alternating = []
    labels, log_u = np.zeros(n, dtype=np.int64), math.nan
    for _ in range(8000):
        rows = rows_given(labels, rng)
        batch = model.likelihood.encode(rows)
        chain = gibbs.chain_at(model, batch, labels, log_u)
        log_u = gibbs.draw_auxiliary(model.prior, chain.state.masses, log_u, rng)
        chain.state.auxiliary = log_u
        gibbs.sweep(model, chain, batch, rng.random(n), model.kernel_arguments(batch))
        labels = chain.assignments
        alternating.append(summary(labels, rows))
    expected, expected_errors = means_and_errors(direct)
    found, errors = means_and_errors(alternating[100:])
    scores = (found - expected) / np.hypot(errors, expected_errors)
    assert np.abs(scores).max() < 4
    assert abs(found[0] - model.prior.expected_clusters(n)) < 4 * errors[0]
    # What the test is worth: differences of a tenth would be seen.
    assert (4 * np.hypot(errors, expected_errors) < 0.1 * expected).all()
