"""A prior learnt from the clusters that it made."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln

from bnpstream import (
    DirichletMultinomial,
    DocumentMixture,
    GeneralizedGamma,
    NumericalMeasure,
    PitmanYor,
    StreamingMixture,
    dirichlet_process,
    normalized_inverse_gaussian,
)
from bnpstream.datasets import powerlaw_documents
from bnpstream.mixture import MixtureState
from bnpstream.priors import NAMED_PRIORS, normalized_stable
from bnpstream.search import learnt_prior

PRIORS = [
    dirichlet_process(3.0),
    normalized_inverse_gaussian(2.0, 5.0),
    GeneralizedGamma(0.7, 0.25, 1.0),
    normalized_stable(0.6),
    PitmanYor(1.5, 0.0),
    PitmanYor(-0.2, 0.5),
]
SIZES = np.array([7.0, 3.0, 1.0, 1.0])


def hard(sizes) -> MixtureState:
    """Return the posterior of a partition that is known."""
    state = MixtureState(2)
    for _ in sizes:
        state.open()
    sizes = np.asarray(sizes, float)
    state.rebuild(np.zeros((sizes.size, 2)), sizes, np.full(sizes.size, -np.inf))
    return state


def drawn(prior, n, seed) -> MixtureState:
    labels = prior.sample_partition(n, np.random.default_rng(seed))
    return hard(np.bincount(labels))


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_of_whole_counts_it_is_the_eppf(prior):
    nothing = np.full(SIZES.size, -np.inf)
    found = prior.log_partition(SIZES, nothing, SIZES.sum())
    assert found == pytest.approx(prior.log_eppf(SIZES), rel=1e-9)


def test_of_soft_counts_it_is_the_integral():
    """By adaptive quadrature, sharing no code: the formula of the soft EPPF."""
    a, sigma, tau = 2.0, 0.3, 1.5
    masses, vacancy = np.array([2.3, 1.4, 0.6]), np.array([-4.0, -2.0, -0.7])
    p = 1.0 - np.exp(vacancy)
    n = masses.sum()

    def joint(u):
        phi = a / sigma * ((u + tau) ** sigma - tau**sigma)
        sizes = np.maximum(masses / p, 1.0)
        log_kappa = math.log(a) + gammaln(sizes - sigma) - gammaln(1 - sigma)
        log_kappa += (sigma - sizes) * math.log(u + tau)
        return u ** (n - 1) * math.exp(p @ log_kappa - phi - gammaln(n))

    assert (masses / p > 1.0).all()  # no cluster that exists is smaller than one row
    whole = quad(joint, 0, np.inf, epsabs=0, limit=500)[0]
    found = GeneralizedGamma(a, sigma, tau).log_partition(masses, vacancy, n)
    assert found == pytest.approx(math.log(whole), rel=1e-8)


@pytest.mark.parametrize(
    ("make", "a"),
    [
        (dirichlet_process, 1.0),
        (dirichlet_process, 20.0),
        (dirichlet_process, 150.0),
        (normalized_inverse_gaussian, 20.0),  # below, a partition says little about it
        (normalized_inverse_gaussian, 150.0),
    ],
)
def test_a_concentration_is_found_again(make, a):
    found = [
        learnt_prior(make(1.0).learning(), drawn(make(a), 800, seed)).concentration
        for seed in range(4)
    ]
    assert abs(np.mean(np.log(found)) - math.log(a)) < 0.4


def test_the_concentration_is_the_top_of_a_fine_grid():
    state = drawn(dirichlet_process(8.0), 500, 1)
    K, n = state.n_clusters, state.total_mass
    grid = np.geomspace(0.1, 200, 20_000)
    height = K * np.log(grid) + gammaln(grid) - gammaln(grid + n) + np.log(grid) - 0.01 * grid
    found = learnt_prior(dirichlet_process(1.0).learning(), state).concentration
    assert found == pytest.approx(grid[height.argmax()], rel=0.02)


def test_a_discount_is_found_again():
    """A small one is hardly told from a concentration: few clusters speak of it."""
    found = {
        sigma: [
            learnt_prior(NAMED_PRIORS["py"], drawn(PitmanYor(1.0, sigma), 1500, seed)).discount
            for seed in range(4)
        ]
        for sigma in (0.1, 0.5, 0.75)
    }
    assert np.mean(found[0.1]) < 0.2
    assert np.mean(found[0.5]) == pytest.approx(0.5, abs=0.2)
    assert np.mean(found[0.75]) == pytest.approx(0.75, abs=0.1)
    stable = learnt_prior(NAMED_PRIORS["stable"], drawn(normalized_stable(0.7), 1500, 0))
    assert stable.discount == pytest.approx(0.7, abs=0.1)
    assert stable.tilt == 0.0


def test_a_discount_stays_within_what_opens_a_cluster():
    state = drawn(PitmanYor(1.0, 0.75), 2000, 0)
    assert learnt_prior(NAMED_PRIORS["py"], state, 0.3).discount <= 0.3
    kept = learnt_prior(NAMED_PRIORS["py"], state, 0.01)
    assert kept.discount == NAMED_PRIORS["py"].discount


def test_clusters_that_fade_do_not_let_a_concentration_run_away():
    """Of forty clusters a fifth of a row each is left: that is no forty clusters in eight rows."""
    state = hard([0.2] * 40 + [30.0])
    assert learnt_prior(NAMED_PRIORS["dp"], state).concentration < 10.0
    assert learnt_prior(NAMED_PRIORS["dp"], hard([1.0] * 50)).concentration <= 50.0


def test_what_is_fixed_stays_as_it_is():
    state = drawn(dirichlet_process(50.0), 1000, 0)
    prior = GeneralizedGamma(2.0, 0.4, 3.0)
    assert learnt_prior(prior, state) == prior
    only_a = learnt_prior(prior.learning("concentration"), state)
    assert replace(only_a, concentration=2.0) == prior.learning("concentration")
    assert learnt_prior(NAMED_PRIORS["dp"], hard([])) == NAMED_PRIORS["dp"]


def test_only_what_there_is_can_be_learnt():
    with pytest.raises(ValueError, match="GeneralizedGamma cannot learn 'tilt'"):
        dirichlet_process().learning("tilt")
    measure = NumericalMeasure(lambda s: -s - np.log(s))
    with pytest.raises(ValueError, match="NumericalMeasure cannot learn 'discount'"):
        measure.learning("discount")
    state = drawn(dirichlet_process(8.0), 300, 1)
    found = learnt_prior(measure.learning(), state).concentration
    expected = learnt_prior(dirichlet_process().learning(), state).concentration
    assert found == pytest.approx(expected, rel=0.05)


# --- in a stream ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def documents():
    return powerlaw_documents(n_documents=1500, seed=3).counts


@pytest.mark.parametrize("name", NAMED_PRIORS)
def test_any_split_and_any_stop_give_the_same_bits(name, documents, tmp_path):
    def made():
        return StreamingMixture(name, DirichletMultinomial(0.75), prefix_rows=100)

    rows = documents[:450]
    whole = made().partial_fit(rows)
    parts, start, rng = made(), 0, np.random.default_rng(0)
    while start < 450:
        stop = start + int(rng.integers(1, 60))
        parts.partial_fit(rows[start:stop])
        start = stop
    assert whole.prior_ == parts.prior_ != NAMED_PRIORS[name]
    half = made().partial_fit(rows[:230])
    half.save(tmp_path)
    loaded = StreamingMixture.load(tmp_path)
    assert loaded.prior_ == half.prior_
    loaded.partial_fit(rows[230:])
    for other in (parts, loaded):
        assert whole.prior_ == other.prior_
        assert whole.total_log_evidence_ == other.total_log_evidence_
        assert whole.state_.masses.tobytes() == other.state_.masses.tobytes()


def test_learning_predicts_better_than_a_wrong_concentration(documents):
    likelihood = DirichletMultinomial(0.75)
    learnt = StreamingMixture("dp", likelihood, prefix_rows=100).fit(documents)
    fixed = StreamingMixture(dirichlet_process(0.2), likelihood).fit(documents)
    assert learnt.total_log_evidence_ > fixed.total_log_evidence_ + 50.0
    assert learnt.prior_.concentration > 1.0


def test_a_short_stream_has_a_learnt_prior_when_it_ends(documents):
    model = StreamingMixture("dp", DirichletMultinomial(0.75)).partial_fit(documents[:200])
    assert model.prior_.concentration == 1.0
    expected = learnt_prior(model.prior_, model.state_)
    assert model.finish().prior_ == expected != NAMED_PRIORS["dp"]
    assert (
        StreamingMixture("dp", DirichletMultinomial(0.75)).fit(documents[:200]).prior_ == expected
    )


def test_a_prior_given_later_takes_over(documents):
    model = StreamingMixture("dp", DirichletMultinomial(0.75), prefix_rows=100)
    model.partial_fit(documents[:150])
    assert model.prior_.concentration != 1.0
    model.set_params(prior=dirichlet_process(5.0)).partial_fit(documents[150:400])
    assert model.prior_ == dirichlet_process(5.0)
    fixed = StreamingMixture(dirichlet_process(5.0), DirichletMultinomial(0.75))
    assert fixed.partial_fit(documents[:10]).prior_ == dirichlet_process(5.0)


def test_a_prior_given_later_is_learnt_and_saved(documents, tmp_path):
    model = StreamingMixture(dirichlet_process(1.0), DirichletMultinomial(0.75), prefix_rows=100)
    model.partial_fit(documents[:150]).set_params(prior="py").partial_fit(documents[150:180])
    assert model.prior_ == NAMED_PRIORS["py"]
    model.save(tmp_path)
    loaded = StreamingMixture.load(tmp_path)
    for each in (model, loaded):
        each.partial_fit(documents[180:450])
    assert model.prior_ == loaded.prior_ != NAMED_PRIORS["py"]
    assert model.total_log_evidence_ == loaded.total_log_evidence_


@pytest.mark.parametrize("cls", [StreamingMixture, DocumentMixture])
def test_a_prior_given_just_before_saving_is_not_undone(cls, documents, tmp_path):
    rows = documents[:300]
    if cls is DocumentMixture:
        cells = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        rows = [{str(j): 1 for j in documents.indices[start:stop]} for start, stop in cells]
    model = cls("dp", prefix_rows=50).partial_fit(rows[:200])
    model.set_params(prior=PitmanYor(3.0, 0.3)).save(tmp_path)
    loaded = cls.load(tmp_path)
    assert loaded.partial_fit(rows[200:]).prior_ == PitmanYor(3.0, 0.3)
    assert model.partial_fit(rows[200:]).prior_ == PitmanYor(3.0, 0.3)
    assert model.total_log_evidence_ == loaded.total_log_evidence_
