"""Both engines from the same posterior, once rows have faded; memory that does not grow."""

import pickle

import numpy as np
import pytest
from fading_cases import KINDS, changing, mixture
from scipy.sparse import csr_array

from bnpstream import DirichletMultinomial, DocumentMixture
from bnpstream.inference import adf
from bnpstream.kernels.arrays import NO_MASS
from bnpstream.likelihoods import Likelihood
from bnpstream.mixture import MixtureState, log_joint
from states import assert_free_slots_are_zero, compiled_respond


@pytest.mark.kernel
@pytest.mark.parametrize("prior", ["dp", "nig"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("half_life", [7, 150])
def test_engines_agree_row_by_row_while_rows_fade(kind, prior, half_life):
    """The compiled cache has followed every tick, its bounds are still bounds."""
    family, rows = KINDS[kind]
    model = mixture(prior, family, half_life=half_life, engine="compiled")
    batch = family.encode(rows)
    for i in range(rows.shape[0] - 1):
        model.partial_fit(rows[i : i + 1])
        stream, state = model.stream_, model.state_
        settings, whole = stream.visits, stream.model
        assert state._cache is not None
        part = batch.part(i + 1, i + 2)
        found = compiled_respond(whole, whole.kernel_arguments(part), state, 0, settings)
        expected = adf.respond(whole, state, part.row(0), settings)
        assert found.opens == expected.opens
        np.testing.assert_allclose(found.responsibilities, expected.responsibilities, atol=1e-10)
        assert found.log_evidence == pytest.approx(expected.log_evidence, abs=1e-9)
    assert_free_slots_are_zero(state)
    retired = sum(event.kind == "retire" for event in model.lineage_)
    assert retired > 0 or half_life > 100


@pytest.mark.kernel
@pytest.mark.parametrize("kind", ["words", "wide words"])
@pytest.mark.parametrize("thin", [False, True])
def test_bounds_stay_bounds_when_rows_fade(kind, thin):
    """What the screen rules out of documents half of whose words a cluster lacks is out."""
    family, rows = KINDS[kind]
    model = mixture("dp", family, engine="compiled").partial_fit(rows)
    rng, state, whole = np.random.default_rng((74, 9)), model.state_, model.stream_.model
    words = rng.permutation(rows.shape[1])
    mixed = csr_array(rows)[rng.permutation(90)] + csr_array(rows)[:, words]
    batch = family.encode(mixed)
    kernel, cut = whole.kernel_arguments(batch), np.log(1e-4)
    state.cache(family)
    for _ in range(4):
        state.fade(0.1, family, thin=thin)
        found = log_joint(whole, state, batch, kernel, log_cut=cut)
        exact = log_joint(whole, state, batch, None)
        kept = exact >= exact.max(axis=1, keepdims=True) + cut
        np.testing.assert_allclose(found[kept], exact[kept], rtol=1e-10)
        assert kept.sum() > len(batch)


@pytest.mark.kernel
@pytest.mark.parametrize("kind", KINDS)
def test_engines_end_alike(kind):
    family, rows = KINDS[kind]
    ends = [
        mixture("dp", family, half_life=9, engine=engine).partial_fit(rows)
        for engine in ("compiled", "reference")
    ]
    np.testing.assert_allclose(*(model.log_evidence_ for model in ends), rtol=1e-8)
    np.testing.assert_allclose(*(model.weights_ for model in ends), rtol=1e-7)
    kinds = [[event[:4] for event in model.lineage_] for model in ends]
    assert kinds[0] == kinds[1]


def drifting(n_rows, columns, number):
    """Return documents of two topics whose words are others in every hundred rows."""
    rng = np.random.default_rng((74, number))
    topic, phase = rng.integers(0, 2, size=n_rows), np.arange(n_rows) // 100
    words = 10 + (40 * phase + 20 * topic)[:, None] + rng.integers(0, 20, size=(n_rows, 8))
    words = np.hstack([words % columns, 5 * topic[:, None] + rng.integers(0, 5, size=(n_rows, 8))])
    place = np.repeat(np.arange(n_rows), 16)
    matrix = csr_array((np.ones(place.size), (place, words.ravel())), shape=(n_rows, columns))
    matrix.sum_duplicates()
    return matrix


def test_memory_is_bounded_however_the_vocabulary_drifts():
    rows = drifting(9000, 1 << 19, 1)
    sizes, cells = {}, {}
    for half_life in (None, 40):
        model = mixture("dp", DirichletMultinomial(0.05), half_life=half_life)
        sizes[half_life], cells[half_life] = [], []
        for start in range(0, 9000, 500):
            model.partial_fit(rows[start : start + 500])
            sizes[half_life].append(model.state_.nbytes)
            table = model.state_.arrays.table
            cells[half_life].append(int(table.filled.sum()))
        survivors = model.cluster_ids_
        values = np.abs(table.values[table.values != 0.0])
        if half_life is not None:
            assert values.min() > 0.5 * NO_MASS * 0.5  # two half-lives at most since it was cleared
    assert survivors.min() < 10  # a cluster that has lived all the time has forgotten words too
    assert max(cells[40][9:]) <= 1.1 * max(cells[40][:9])
    assert max(sizes[40][9:]) <= 1.5 * max(sizes[40][:9])
    assert cells[None][-1] > 3 * cells[40][-1]


def test_what_a_hashed_row_forgets_reads_as_zero_and_the_rest_as_before():
    likelihood, rng = DirichletMultinomial(0.1), np.random.default_rng((74, 2))
    state = MixtureState(20_000)
    batch = likelihood.encode(csr_array(rng.poisson(0.02, size=(2, 19_999))))
    for i in range(2):
        state.open()
        state.add(np.eye(2)[i][: i + 1], batch.row(i))
    old = state.statistics.copy()
    state._write(np.array([0]), np.arange(300, 700), np.full((1, 400), 1e-12))
    size = int(state.arrays.table.sizes[0])
    state.fade(0.5, likelihood, thin=True)
    expected = 0.5 * old
    expected[0, 300:700] = 0.0
    np.testing.assert_array_equal(state.statistics, expected)
    assert state.arrays.table.filled[0] == np.count_nonzero(expected[0])
    state.fade(1e-30, likelihood, thin=True)
    assert state.arrays.table.sizes[0] < size
    assert not state.statistics.any()
    state.add(np.array([1.0, 0.0]), batch.row(0))
    np.testing.assert_array_equal(state.statistics[0], batch.statistics.toarray()[0])


@pytest.mark.kernel
@pytest.mark.parametrize("columns", [301, 20_000])
def test_the_screen_of_faded_and_dropped_clusters_is_as_if_made_anew(columns):
    likelihood, rng = DirichletMultinomial(0.1), np.random.default_rng((74, columns))
    state = MixtureState(columns)
    batch = likelihood.encode(csr_array(rng.poisson(6.0 / columns, size=(80, columns - 1))))
    for i in range(80):
        state.open()
        state.add(np.eye(80)[i][: i + 1], batch.row(i))
    state.cache(likelihood)
    state.fade(0.5, likelihood, thin=False)
    words = [batch.row(i).columns[0] for i in range(80)]
    for slot in range(0, 80, 2):  # a word that the next fading clears away
        state._write(np.array([slot]), np.array(words[slot : slot + 1]), np.full((1, 1), 1e-12))
    for thin, dropped in [(True, [3, 78]), (True, [0, 5, 75])]:
        state.fade(0.4, likelihood, thin=thin)
        for slot in dropped:
            state.drop(slot)
        found, anew = state.cache(likelihood), pickle.loads(pickle.dumps(state)).cache(likelihood)
        assert found.levels.any()
        np.testing.assert_array_equal(found.levels, anew.levels)
        np.testing.assert_array_equal(found.heads, anew.heads)


def test_a_likelihood_from_elsewhere_fades():
    """By default the cache is made anew, and only what would soon underflow is cleared."""

    class Plain(DirichletMultinomial):
        faded_cache = Likelihood.faded_cache
        negligible = Likelihood.negligible

    rows = changing(11)
    found = mixture("dp", Plain(0.3), half_life=9).partial_fit(rows)
    expected = mixture("dp", half_life=9).partial_fit(rows)
    np.testing.assert_array_equal(found.log_evidence_, expected.log_evidence_)
    tiny = mixture("dp", Plain(0.3), half_life=0.01).partial_fit(rows)
    values = tiny.state_.statistics
    assert not ((values != 0.0) & (np.abs(values) < 1e-300)).any()


def test_documents_fade_too():
    rng = np.random.default_rng((74, 3))
    texts = [
        [f"w{word}" for word in rng.integers(20 * (i // 150), 20 * (i // 150) + 20, size=9)]
        for i in range(450)
    ]
    model = DocumentMixture(spread=40, half_life=20)
    for start in range(0, 450, 50):
        model.partial_fit(texts[start : start + 50])
    plain = DocumentMixture(spread=40).partial_fit(texts)
    assert model.n_clusters_ < plain.n_clusters_
    assert {event.kind for event in model.lineage_} == {"birth", "retire"}
    assert set(model.label_ids_) <= set(model.cluster_ids_)
    assert model.state_.arrays.table.filled.sum() < plain.state_.arrays.table.filled.sum()
    reference = DocumentMixture(spread=40, half_life=20, engine="reference").partial_fit(texts)
    whole = DocumentMixture(spread=40, half_life=20).partial_fit(texts)
    assert whole.total_log_evidence_ == model.total_log_evidence_
    assert reference.total_log_evidence_ == pytest.approx(model.total_log_evidence_, rel=1e-9)
    assert set(whole.label_ids_) <= set(whole.cluster_ids_)
