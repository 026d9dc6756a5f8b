"""Both engines for measures known by their intensity: row by row, bits, and end to end."""

import numpy as np
import pytest
from numba import njit
from row_by_row import Setup, assert_alike, compare

import naive
from bnpstream import DiagonalGaussian, StreamingMixture
from bnpstream.inference import adf
from bnpstream.kernels.arrays import TOTAL_MASS
from bnpstream.kernels.measures.rules import make_space, rule_of, weights_of
from bnpstream.likelihoods import DirichletMultinomial
from bnpstream.mixture import Model, log_joint
from bnpstream.priors import GeneralizedGamma
from intensities import OTHERS, numerical
from states import bits, compiled_respond

WORDS = 30
NGGP = GeneralizedGamma(2.0, 0.25, 3.0)


def documents(number, rows=80, topics=6):
    """Return counts of a few overlapping topics, shape (rows, WORDS)."""
    rng = np.random.default_rng((33, number))
    theta = rng.dirichlet(np.full(WORDS, 0.3), size=topics)
    return rng.multinomial(rng.poisson(9, size=rows), theta[rng.integers(0, topics, size=rows)])


def advance(prior, counts, settings):
    """Advance by the reference; at every row compare what both engines would do next."""
    model = Model(prior, DirichletMultinomial(0.1))
    batch = model.likelihood.encode(counts)
    kernel, state = model.kernel_arguments(batch), adf.init(model, batch.n_statistics)
    for i in range(len(batch)):
        reference = adf.respond(model, state, batch.row(i), settings)
        found = compiled_respond(model, kernel, state, i, settings)
        assert_alike(found, reference)
        assert found.auxiliary == pytest.approx(reference.auxiliary, abs=1e-10, nan_ok=True)
        list(adf.run(model, state, batch.part(i, i + 1), settings))
    return model, state, batch


@pytest.mark.parametrize("cut", [1e-4, 0.0])
@pytest.mark.parametrize("cluster_count", ["expected", "plain"])
@pytest.mark.parametrize("name", OTHERS)
def test_engines_respond_alike(name, cluster_count, cut):
    prior = OTHERS[name]
    prior = type(prior)(prior.log_intensity, 1.5, cluster_count=cluster_count)
    model, state, batch = advance(prior, documents(1), adf.Settings(0.6, cut))
    assert state.n_clusters > 4
    scores = [log_joint(model, state, batch, k) for k in (None, model.kernel_arguments(batch))]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-10)


@pytest.mark.kernel
def test_engines_respond_alike_to_few_rows():
    advance(OTHERS["with_a_bump"], documents(2, rows=6), adf.Settings(0.3, 1e-4))


def test_weights_above_masses_do_not_mislead_the_screen():
    """s rho(s) rises, so r_m(u) > m; bounds of scores are made of masses."""
    prior = OTHERS["with_a_bump"]
    _, state, _ = advance(prior, documents(3, rows=300, topics=4), adf.Settings(0.1, 1e-4))
    ratios = prior._ratios(state.masses, np.array([state.auxiliary]))[0, 0, :-1]
    assert np.any(ratios > state.masses)


@pytest.mark.parametrize("cluster_count", ["expected", "plain"])
def test_nggp_by_its_intensity_responds_as_the_oracle_of_the_nggp(cluster_count):
    prior = GeneralizedGamma(2.0, 0.25, 3.0, cluster_count=cluster_count)
    oracle = naive.Prior("nggp", 2.0, 0.25, 3.0, cluster_count=cluster_count)
    # Hard counts: with plain K the general soft form needs masses of at least one.
    settings = adf.Settings(0.25, 1e-4 if cluster_count == "expected" else 1.0)
    model = Model(numerical(prior), DirichletMultinomial(0.1))
    compare(Setup(model, oracle, settings), documents(4), oracle_every=3)


def test_nggp_by_its_intensity_responds_as_the_oracle_on_kos(kos):
    prior = numerical(GeneralizedGamma(10.0, 0.5, 100.0))
    setup = Setup(
        Model(prior, DirichletMultinomial(0.1)),
        naive.Prior("nggp", 10.0, 0.5, 100.0),
        adf.Settings(0.5, 1e-4),
    )
    order = np.random.default_rng((33, 5)).permutation(kos.counts.shape[0])[:600]
    state = compare(setup, kos.counts[order], oracle_every=30)
    assert state.n_clusters > 25


def test_bits_do_not_depend_on_batches_nor_on_tables_made_before():
    """In batches of one row nothing is remembered of the row before."""
    counts = documents(6, rows=200, topics=12)
    whole = StreamingMixture(OTHERS["two_processes"]).partial_fit(counts)
    parts = StreamingMixture(OTHERS["two_processes"])
    for row in counts:
        parts.partial_fit(row[None])
    assert bits(whole.state_) == bits(parts.state_)
    copy = OTHERS["two_processes"].log_intensity
    anew = StreamingMixture(type(whole.prior)(lambda s: copy(s), 1.5)).partial_fit(counts)
    assert bits(whole.state_) == bits(anew.state_)


@njit
def _make_space(prior, capacity):
    return make_space(prior, capacity)


@njit
def _weights(prior, clusters, space):
    rule_of(prior, clusters, space)
    return weights_of(prior, clusters, space)


def weights_in_turn(prior, posteriors):
    """Return the weights of posteriors one after the other, from one memory."""
    space = _make_space(prior, posteriors[0].masses.size)
    return [_weights(prior, clusters, space).copy() for clusters in posteriors]


def test_what_is_remembered_follows_the_posterior():
    """Masses, vacancies or U may each change alone, and the row of the table come round again."""
    model = Model(OTHERS["two_processes"], DirichletMultinomial(0.1))
    batch = model.likelihood.encode(documents(10, rows=60))
    state, parameters = adf.init(model, batch.n_statistics), model.prior.kernel_parameters()
    list(adf.run(model, state, batch, adf.Settings(0.6, 1e-4)))
    first, K = state.arrays, state.n_clusters
    heavier, likelier, later = first.masses.copy(), first.log_vacancy.copy(), first.totals.copy()
    heavier[1] += 0.5
    likelier[:K] *= 0.1
    later[TOTAL_MASS] *= 1.5
    posteriors = [
        first,
        first._replace(masses=heavier),
        first._replace(log_vacancy=likelier),
        first._replace(totals=later),
        first,
    ]
    found = weights_in_turn(parameters, posteriors)
    for clusters, weights in zip(posteriors, found, strict=True):
        assert weights[:K].tobytes() == weights_in_turn(parameters, [clusters])[0][:K].tobytes()
    for k in range(1, 4):
        assert not np.array_equal(found[k][:K], found[0][:K])


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_revisits_and_predictions(engine):
    """EP and merges take clusters out and away: what is remembered of them must follow."""
    counts = documents(7, rows=60)
    found = [
        StreamingMixture(prior, engine=engine, n_passes=4, merge_threshold=0.0).fit(counts)
        for prior in (numerical(NGGP), NGGP)
    ]
    assert found[0].n_clusters_ == found[1].n_clusters_
    np.testing.assert_allclose(found[0].weights_, found[1].weights_, rtol=1e-7)
    np.testing.assert_allclose(
        found[0].score_samples(counts), found[1].score_samples(counts), atol=1e-7
    )


def test_rows_of_cells():
    rng = np.random.default_rng((33, 8))
    rows = rng.normal(size=(60, 2)) + 6.0 * rng.integers(0, 3, size=(60, 1))
    likelihood = DiagonalGaussian().informed(rows)
    scores = [
        StreamingMixture(OTHERS["generalized_dirichlet"], likelihood, engine=engine)
        .fit(rows)
        .log_evidence_
        for engine in ("compiled", "reference")
    ]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-8)


def test_integral_over_u_is_left_to_the_reference():
    prior = OTHERS["generalized_dirichlet"]
    prior = type(prior)(prior.log_intensity, 1.5, auxiliary="quadrature")
    counts = documents(9, rows=12)
    auto = StreamingMixture(prior).fit(counts)
    reference = StreamingMixture(prior, engine="reference").fit(counts)
    assert bits(auto.state_) == bits(reference.state_)
