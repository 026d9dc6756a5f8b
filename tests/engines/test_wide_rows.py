"""Wide vocabularies, whose rows of statistics are hashed: the same results as with dense rows.

Where a table is hashed is decided in Python, so narrow tables can be hashed and wide ones dense.
"""

import pickle
from typing import NamedTuple

import numpy as np
import pytest
from row_by_row import Setup, compare
from scipy import sparse

import naive
from bnpstream import GibbsMixture, StreamingMixture
from bnpstream.inference import adf, ep, gibbs, merge, window
from bnpstream.inference.visits import visit
from bnpstream.kernels.statistics import table as tables
from bnpstream.kernels.statistics.table import DENSE_UP_TO
from bnpstream.likelihoods import DirichletMultinomial, Likelihood
from bnpstream.likelihoods import batch as batches
from bnpstream.mixture import MixtureState, Model, SiteBuffer
from bnpstream.mixture.window import Window
from bnpstream.priors import PitmanYor, normalized_inverse_gaussian
from states import assert_free_slots_are_zero, bits

WIDE = DENSE_UP_TO + 1000
"""Words. Half a row filled, it is dense."""
NARROW = 600
"""Words. Rows are hashed up to a size of 256, then dense."""
ENGINES = ["reference", "compiled"]

NIG = Setup(
    Model(normalized_inverse_gaussian(2.0, 3.0), DirichletMultinomial(0.02)),
    naive.Prior("nggp", 2.0, 0.5, 3.0),
    adf.Settings(0.5, 1e-4, 1.2),
)
PY = Setup(
    Model(PitmanYor(0.6, 0.2), DirichletMultinomial(0.05)),
    naive.Prior("py", 0.6, 0.2),
    adf.Settings(0.2, 1e-12, 0.9),
)
SETUPS = pytest.mark.parametrize("setup", [NIG, PY], ids=["nig", "py"])
MERGES = -2.0
"""Log odds: clusters are merged a little too eagerly, so that some are."""


def documents(number, rows=50, n_words=WIDE, topics=6, length=60):
    """Return documents of topics with many words of their own and some in common, one empty.

    One has half the vocabulary, and makes its cluster's row dense.
    """
    rng = np.random.default_rng((81, number))
    own = n_words // topics
    theta = np.zeros((topics, n_words))
    for topic, words in enumerate(rng.permutation(n_words)[: own * topics].reshape(topics, own)):
        theta[topic, words] = rng.dirichlet(np.full(own, 0.3))
    theta = 0.8 * theta + 0.2 * rng.dirichlet(np.full(n_words, 20.0 / n_words))
    lengths = 1 + rng.poisson(rng.gamma(2.0, length / 2, size=rows))
    counts = rng.multinomial(lengths, theta[rng.integers(0, topics, size=rows)])
    counts[3] = 0
    counts[5, rng.permutation(n_words)[: n_words // 2]] += 1
    return sparse.csr_array(counts)


def is_hashed(state):
    return state.arrays.table.keys.size > 0


def sizes_of(state):
    return set(state.arrays.table.sizes[: state.n_clusters].tolist())


def store(layout, patch):
    """Let tables made from now on be stored as asked for, however wide they are."""
    limit = {"hashed": 0, "dense": 10**9}[layout]
    for module in (tables, batches):
        patch.setattr(module, "DENSE_UP_TO", limit)


def kernel_of(model, batch, engine):
    return model.kernel_arguments(batch) if engine == "compiled" else None


def absorb(setup, state, counts, engine, cuts=()):
    """Run one engine over counts cut into batches at some rows."""
    for start, stop in zip([0, *cuts], [*cuts, counts.shape[0]], strict=True):
        batch = setup.model.likelihood.encode(counts[start:stop])
        kernel = kernel_of(setup.model, batch, engine)
        list(adf.run(setup.model, state, batch, setup.settings, kernel))
    return state


def fitted(setup, counts, engine, cuts=()):
    return absorb(setup, MixtureState(counts.shape[1] + 1), counts, engine, cuts)


# --- row by row from the same state ---------------------------------------------------------------


@SETUPS
def test_oracle_and_both_engines_respond_alike(setup):
    state = compare(setup, documents(0), oracle_every=1)
    assert is_hashed(state)
    assert state.n_clusters > 5
    assert len(sizes_of(state)) > 2
    assert WIDE + 1 in sizes_of(state)


@pytest.mark.kernel
@SETUPS
def test_oracle_and_both_engines_respond_alike_where_narrow_rows_are_hashed(setup, monkeypatch):
    store("hashed", monkeypatch)
    state = compare(setup, documents(1, n_words=NARROW, rows=40, length=30), oracle_every=1)
    assert is_hashed(state)
    assert len(sizes_of(state)) > 2
    assert NARROW + 1 in sizes_of(state)


@pytest.mark.kernel
@SETUPS
def test_engines_absorb_alike(setup, monkeypatch):
    store("hashed", monkeypatch)
    batch = setup.model.likelihood.encode(documents(2, n_words=NARROW, rows=30))
    state = MixtureState(batch.n_statistics)
    for i in range(len(batch)):
        part, other = batch.part(i, i + 1), state.copy()
        list(adf.run(setup.model, state, part, setup.settings))
        kernel = setup.model.kernel_arguments(part)
        list(adf.run(setup.model, other, part, setup.settings, kernel))
        assert np.array_equal(other.ids, state.ids)
        for name in ("statistics", "masses", "total_mass", "log_evidence"):
            np.testing.assert_allclose(
                getattr(other, name), getattr(state, name), rtol=1e-10, atol=1e-10
            )
    np.testing.assert_allclose(
        state.statistics.sum(axis=0), batch.statistics.sum(axis=0), atol=1e-9
    )
    assert_free_slots_are_zero(state)
    assert_free_slots_are_zero(other)


@pytest.mark.kernel
@pytest.mark.parametrize("layout", ["dense", "hashed"])
def test_rebuilding_forgets_what_was_there(layout, monkeypatch):
    store(layout, monkeypatch)
    state = fitted(PY, documents(15, n_words=NARROW, rows=12, length=30), "compiled")
    K = state.n_clusters
    statistics = np.where(np.random.default_rng((84, 0)).random(state.statistics.shape) < 0.1, 7, 0)
    for given in (statistics.astype(float), sparse.csr_array(2.0 * statistics)):
        state.rebuild(given, np.arange(1.0, K + 1), np.full(K, -3.0))
        assert is_hashed(state) == (layout == "hashed")
        dense = given if isinstance(given, np.ndarray) else given.toarray()
        assert np.array_equal(state.statistics, dense)
        assert state.distance(given) == 0.0
        assert_free_slots_are_zero(state)


# --- identical bits -------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_any_split_into_batches_gives_the_same_bits(engine):
    counts = documents(3)
    whole = fitted(NIG, counts, engine)
    assert is_hashed(whole)
    for cuts in (range(1, 50), (7, 8, 38), (49,)):
        assert bits(fitted(NIG, counts, engine, cuts)) == bits(whole)


@pytest.mark.parametrize("engine", ENGINES)
def test_copies_and_pickles_carry_on_alike_and_apart(engine):
    counts = documents(4)
    whole, state = fitted(NIG, counts, engine), fitted(NIG, counts[:25], engine)
    before = bits(state)
    for other in (state.copy(), pickle.loads(pickle.dumps(state))):
        assert bits(other) == before
        assert bits(absorb(NIG, other, counts[25:], engine)) == bits(whole)
        assert bits(state) == before
    assert bits(absorb(NIG, state, counts[25:], engine)) == bits(whole)


class Run(NamedTuple):
    """What is left of a run: a posterior, and whatever else must be the same."""

    state: MixtureState
    other: object


def run_adf(setup, counts):
    return Run(fitted(setup, counts, "compiled"), None)


def first_pass(setup, counts):
    batch = setup.model.likelihood.encode(counts)
    state, found = MixtureState(batch.n_statistics), SiteBuffer(len(batch))
    kernel = setup.model.kernel_arguments(batch)
    list(visit(setup.model, state, batch, SiteBuffer(), found, setup.settings, kernel))
    return batch, state, found


def run_ep(setup, counts):
    batch, state, found = first_pass(setup, counts)
    kernel = setup.model.kernel_arguments(batch)
    posterior = (setup.model, state, batch, found)
    epochs = list(ep.run(*posterior, setup.settings, kernel, n_sweeps=3))
    assert max(epoch.drift for epoch in epochs) < 1e-9
    deaths = [event for epoch in epochs for event in epoch.events if event.kind == "death"]
    assert deaths
    return Run(state, epochs)


def run_window(setup, counts):
    state, kept = MixtureState(counts.shape[1] + 1), Window()
    schedule = window.Schedule(16, 2, merge_threshold=MERGES)
    kept.prepare(size=16, keep_rows=True)
    posterior = (setup.model, state, kept)
    rest = (setup.settings, schedule, setup.model.kernel_arguments)
    batch = setup.model.likelihood.encode(counts)
    outcomes = [*window.run(*posterior, batch, *rest), *window.finish(*posterior, *rest)]
    return Run(state, [outcome.events for outcome in outcomes])


def run_merges(setup, counts):
    batch, state, _ = first_pass(setup, counts)
    found = SiteBuffer()
    for slot in (0, 2):  # a row that two clusters share
        q = np.zeros(state.n_clusters)
        q[slot : slot + 2] = 0.5
        state.add(q, batch.row(slot))
        found.append(np.array([slot, slot + 1]), np.array([0.5, 0.5]))
    events = merge.merge_all(setup.model, state, found, -1e6)
    assert len(events) == 2
    return Run(state, events)


def run_gibbs(setup, counts):
    batch, rng = setup.model.likelihood.encode(counts), np.random.default_rng((82, 0))
    chain = gibbs.chain_at(setup.model, batch, np.arange(len(batch)) % 9, -0.5)
    kernel, path = setup.model.kernel_arguments(batch), []
    for _ in range(4):
        gibbs.sweep(setup.model, chain, batch, rng.random(len(batch)), kernel)
        path.append(chain.assignments.tolist())
    return Run(chain.state, path)


RUNS = {"adf": run_adf, "ep": run_ep, "window": run_window, "merges": run_merges}
RUNS |= {"gibbs": run_gibbs}
runs = pytest.mark.parametrize("run", RUNS)


def assert_same_bits_in_both_layouts(run, setup, counts, monkeypatch):
    found = {}
    for layout in ("dense", "hashed"):
        with monkeypatch.context() as patch:
            store(layout, patch)
            found[layout] = RUNS[run](setup, counts)
    assert [is_hashed(found[layout].state) for layout in ("dense", "hashed")] == [False, True]
    assert len(sizes_of(found["hashed"].state)) > 1
    assert bits(found["hashed"].state) == bits(found["dense"].state)
    assert found["hashed"].other == found["dense"].other
    assert_free_slots_are_zero(found["hashed"].state)


@runs
@SETUPS
def test_hashed_rows_give_the_same_bits_as_dense_ones(setup, run, monkeypatch):
    assert_same_bits_in_both_layouts(run, setup, documents(5), monkeypatch)


@pytest.mark.kernel
@runs
@SETUPS
def test_narrow_hashed_rows_give_the_same_bits_as_dense_ones(setup, run, monkeypatch):
    counts = documents(6, n_words=NARROW, rows=40, length=30)
    assert_same_bits_in_both_layouts(run, setup, counts, monkeypatch)


def test_many_clusters_of_hashed_rows_give_the_same_bits_as_dense_ones(monkeypatch):
    """More clusters than the first capacity: slots grow, rows move, space is used again."""
    rng = np.random.default_rng((83, 0))
    counts = sparse.lil_array((400, WIDE), dtype=int)
    for i in range(400):
        counts[i, i % 200 * 40 + rng.choice(40, size=12, replace=False)] = 6
    setup = NIG._replace(settings=adf.Settings(0.5, 1e-4))
    found = {}
    for layout in ("dense", "hashed"):
        with monkeypatch.context() as patch:
            store(layout, patch)
            found[layout] = fitted(setup, counts.tocsr(), "compiled")
    assert found["hashed"].n_clusters >= 150
    assert bits(found["hashed"]) == bits(found["dense"])
    assert found["hashed"].nbytes < 0.05 * found["dense"].nbytes


# --- what a user sees -----------------------------------------------------------------------------


def mixture(**settings):
    return StreamingMixture(NIG.model.prior, DirichletMultinomial(0.02), **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_passes": 3},
        {"revisit": 20, "merge_threshold": MERGES},
        {"merge_threshold": MERGES, "merge_every": 15},
    ],
    ids=["adf", "ep", "window", "merges"],
)
def test_estimator_reads_hashed_rows_as_dense_ones(settings, monkeypatch):
    counts, test = documents(7), documents(8, rows=12)
    found = {}
    for layout in ("dense", "hashed"):
        with monkeypatch.context() as patch:
            store(layout, patch)
            model = mixture(**settings).fit(counts)
        assert is_hashed(model.state_) == (layout == "hashed")
        found[layout] = [
            model.labels_,
            model.weights_,
            model.means_,
            model.predict(test),
            model.predict_proba(test),
            model.score_samples(test),
            *model.sample(2, random_state=1),
            *model.sample(25, random_state=2, length=30),
            model.sample(1, random_state=3)[0],
        ]
        top = model.top_features(5)
        assert len(top) == model.n_clusters_
    for hashed, dense in zip(found["hashed"], found["dense"], strict=True):
        assert np.array_equal(hashed, dense)
    means = found["hashed"][2]
    np.testing.assert_allclose(means.sum(axis=1), 1.0, rtol=1e-12)


def test_reference_estimator_agrees_with_the_compiled_one():
    counts, test = documents(9), documents(10, rows=12)
    models = [mixture(engine=engine).fit(counts) for engine in ENGINES]
    assert all(is_hashed(model.state_) for model in models)
    for name in ("weights_", "means_", "log_evidence_"):
        np.testing.assert_allclose(*(getattr(model, name) for model in models), atol=1e-8)
    scores = [model.score_samples(test) for model in models]
    np.testing.assert_allclose(*scores, atol=1e-8)
    assert np.array_equal(models[0].predict(test), models[1].predict(test))


def test_sites_can_be_refined():
    counts = documents(11)
    model = mixture(keep_sites=True).partial_fit(counts[:20]).partial_fit(counts[20:])
    assert is_hashed(model.state_)
    model.refine(counts, n_passes=2)
    again = mixture(n_passes=3, keep_sites=True).fit(counts)
    assert bits(model.state_) == bits(again.state_)
    other = counts.tolil()
    other[0, 0] += 1
    with pytest.raises(ValueError, match="these are different"):
        model.refine(other.tocsr())


def test_gibbs_mixture_runs_on_hashed_rows_as_on_dense_ones(monkeypatch):
    counts, test, found = documents(12, rows=30), documents(13, rows=6), []
    for layout in ("dense", "hashed"):
        with monkeypatch.context() as patch:
            store(layout, patch)
            model = GibbsMixture(
                NIG.model.prior, DirichletMultinomial(0.02), n_sweeps=6, n_kept=3, n_chains=2
            ).fit(counts)
            found.append((model.assignments_, model.log_likelihood_, model.score_samples(test)))
    for dense, hashed in zip(*found, strict=True):
        assert np.array_equal(dense, hashed)


class Urn(DirichletMultinomial):
    """The same likelihood as a user would write it: no formula of its own for the predictive."""

    log_predictive = Likelihood.log_predictive

    def kernel_parameters(self, n_statistics):
        return None


def test_likelihood_without_a_formula_for_its_predictive_takes_hashed_rows():
    counts = documents(14, rows=12)
    models = [
        StreamingMixture(NIG.model.prior, kind(0.02), engine="reference").fit(counts)
        for kind in (Urn, DirichletMultinomial)
    ]
    assert is_hashed(models[0].state_)
    np.testing.assert_allclose(*(model.log_evidence_ for model in models), rtol=1e-9)
    np.testing.assert_allclose(*(model.predict_proba(counts) for model in models), atol=1e-8)
