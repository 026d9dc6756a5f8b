"""What `DocumentMixture` promises: words are learnt as they come, batches do not matter."""

import math
import pickle

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.base import clone

from bnpstream import (
    DirichletMultinomial,
    DocumentMixture,
    StreamingMixture,
    normalized_inverse_gaussian,
)
from bnpstream.inference import adf
from bnpstream.likelihoods import OpenVocabulary, Vocabulary, vocabulary
from bnpstream.likelihoods.documents import LENGTH
from bnpstream.mixture import MixtureState, Model
from states import compiled_respond

NIG = normalized_inverse_gaussian(2.0, 3.0)
ENGINES = ["reference", "compiled"]
SETTINGS = adf.Settings(0.5, 1e-4)


def documents(case, rows=60, topics=5, words=400, length=40):
    """Return documents of topics, as dicts; new words come all along, and some are empty."""
    rng = np.random.default_rng((93, case))
    found = []
    for i in range(rows):
        reach = words * (i + 10) // (rows + 10)
        ranks = rng.geometric(0.02, size=rng.poisson(length)) % reach
        topic = rng.integers(topics)
        tokens = [f"w{topic * words + rank}" if rank % 3 else f"c{rank}" for rank in ranks]
        found.append({word: tokens.count(word) for word in dict.fromkeys(tokens)})
    found[3] = {}
    return found


def bits(model):
    """Return every byte of a model that means something."""
    state = model.state_
    parts = (
        model.stream_.posterior.statistics(np.arange(state.n_clusters)),
        model.vocabulary_.likelihood.alpha[: len(model.vocabulary_) + 1],
        state.masses,
        state.log_vacancy,
        state.ids,
        state.arrays.counters,
        state.arrays.totals,
    )
    return [model.vocabulary_.words, *(part.tobytes() for part in parts)]


def cluster_lengths(model):
    """Return how many words every cluster has, in the order of ids."""
    posterior = model.stream_.posterior
    return posterior.statistics(posterior.order)[:, -1]


def in_parts(model, rows, cuts):
    for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        model.partial_fit(rows[start:stop])
    return model


# --- what does not matter -------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("settings", [{"spread": 200.0}, {"prefix_rows": 25}, {}], ids=str)
def test_any_split_gives_the_same_bits(engine, settings):
    rows = documents(0)
    whole = DocumentMixture(NIG, engine=engine, **settings).partial_fit(rows)
    assert whole.n_clusters_ > 3
    for cuts in (range(1, 60), (7, 8, 38), (25,)):
        parts = in_parts(DocumentMixture(NIG, engine=engine, **settings), rows, cuts)
        assert bits(parts) == bits(whole)
    assert bits(DocumentMixture(NIG, engine=engine, **settings).fit(rows)) == bits(whole)


@pytest.mark.parametrize("engine", ENGINES)
def test_words_known_in_advance_give_the_same_bits(engine, monkeypatch):
    monkeypatch.setattr(vocabulary, "FIRST_CAPACITY", 8)  # arrays grow again and again
    rows = documents(1)
    growing = in_parts(DocumentMixture(NIG, spread=300.0, engine=engine), rows, (20, 40))
    known = DocumentMixture(NIG, spread=300.0, engine=engine).partial_fit(rows[:1])
    known.vocabulary_.add(rows)
    assert len(known.vocabulary_) > 250
    known.partial_fit(rows[1:])
    assert bits(known) == bits(growing)
    assert known.total_log_evidence_ == growing.total_log_evidence_


def test_lists_and_dicts_are_the_same():
    rows = documents(2)
    tokens = [[word for word, count in row.items() for _ in range(count)] for row in rows]
    one, other = (DocumentMixture(NIG).partial_fit(each) for each in (rows, iter(tokens)))
    assert bits(one) == bits(other)


def test_order_of_words_within_a_document_moves_the_last_bits_only():
    rows = documents(3)
    turned = [dict(reversed(row.items())) for row in rows]
    one, other = (DocumentMixture(NIG).partial_fit(each) for each in (rows, turned))
    np.testing.assert_allclose(other.log_evidence_, one.log_evidence_, atol=1e-9)
    assert np.array_equal(other.labels_, one.labels_)


# --- what the scores are --------------------------------------------------------------------------


def test_a_closed_vocabulary_with_the_same_alphas_scores_alike():
    """An independent path: dense rows, a column a word, and one for all that never came."""
    rows = documents(4)
    model = DocumentMixture(NIG, spread=100.0).partial_fit(rows)
    n = len(model.vocabulary_) + 1
    closed = DirichletMultinomial(model.vocabulary_.likelihood.alpha[:n])
    counts = np.zeros((len(rows), n))
    for i, row in enumerate(rows):
        for word, count in row.items():
            counts[i, model.vocabulary_.numbers[word]] = count
    other = StreamingMixture(NIG, closed).partial_fit(counts)
    np.testing.assert_allclose(other.log_evidence_, model.log_evidence_, atol=1e-9)
    assert np.array_equal(other.labels_, model.labels_)
    np.testing.assert_allclose(other.means_[:, 1:], model.means_, rtol=1e-9)
    np.testing.assert_allclose(other.weights_, model.weights_, rtol=1e-12)


@pytest.mark.kernel
def test_engines_respond_alike_row_by_row(monkeypatch):
    monkeypatch.setattr(vocabulary, "FIRST_CAPACITY", 8)
    known, state = Vocabulary(OpenVocabulary(80.0)), MixtureState(LENGTH + 1)
    for row in documents(5, rows=40):
        known.add([row])
        model = Model(NIG, known.likelihood)
        batch = known.likelihood.encode([row])
        kernel = model.kernel_arguments(batch)
        reference = adf.respond(model, state, batch.row(0), SETTINGS)
        found = compiled_respond(model, kernel, state, 0, SETTINGS)
        assert found.opens == reference.opens
        np.testing.assert_allclose(
            found.responsibilities, reference.responsibilities, rtol=0, atol=1e-10
        )
        assert abs(found.log_evidence - reference.log_evidence) < 1e-10
        list(adf.run(model, state, batch, SETTINGS, kernel))
    assert len(known) > 200
    assert state.n_clusters > 3


@pytest.mark.parametrize("engine", ENGINES)
def test_unknown_words_count_as_what_is_left(engine):
    model = DocumentMixture(NIG, spread=100.0, engine=engine).partial_fit(documents(6))
    before = bits(model)
    base, J = model.vocabulary_.base, len(model.vocabulary_)
    row = {"w1": 2, "c3": 1}
    strange = {**row, "never": 2, "neither": 1}
    scores = model.log_joint([row, strange])[0]
    lengths = np.append(cluster_lengths(model), 0.0) + base.A
    rest = base.rest(J)
    expected = sum(math.log(rest + j) for j in range(3))  # all three tokens are of one kind
    expected -= gammaln(lengths + 6) - gammaln(lengths + 3)
    expected += math.log(math.factorial(6) / (math.factorial(3) * math.factorial(3)))
    np.testing.assert_allclose(scores[1] - scores[0], expected, rtol=1e-9)
    model.predict([strange]), model.predict_proba([strange])
    assert bits(model) == before
    assert model.predict_proba([strange, {}]).sum(axis=1) == pytest.approx(1.0)


def test_means_leave_room_for_unknown_words():
    model = DocumentMixture(NIG, spread=100.0).partial_fit(documents(7))
    assert model.means_.shape == (model.n_clusters_, len(model.vocabulary_))
    base, lengths = model.vocabulary_.base, cluster_lengths(model)
    left = base.rest(len(model.vocabulary_)) / (base.A + lengths)
    np.testing.assert_allclose(1.0 - model.means_.sum(axis=1), left, rtol=1e-9)


def test_top_words_are_words():
    rows = [{"cat": 5, "dog": 2}, {"stock": 9, "bond": 4}] * 5
    model = DocumentMixture(NIG, spread=20.0).partial_fit(rows)
    assert [[word for word, _ in top] for top in model.top_words(2)][:2] == [
        ["cat", "dog"],
        ["stock", "bond"],
    ]


def test_samples_are_documents():
    model = DocumentMixture(NIG, spread=300.0).partial_fit(documents(8))
    drawn, ids = model.sample(40, random_state=1, length=30)
    assert all(sum(row.values()) == 30 for row in drawn)
    words = set().union(*drawn)
    assert None in words
    assert words - {None} <= set(model.vocabulary_.words)
    assert set(ids.tolist()) <= {-1, *model.cluster_ids_.tolist()}


# --- the prefix -----------------------------------------------------------------------------------


def test_spread_is_the_number_of_words_in_the_prefix():
    rows = documents(9)
    model = DocumentMixture(NIG, total=30.0, prefix_rows=25)
    for stop in (10, 24, 25, 60):
        model.partial_fit(rows[model.n_samples_seen_ if hasattr(model, "state_") else 0 : stop])
        assert model.vocabulary_.base.spread == len(set().union(*rows[: min(stop, 25)]))
        assert model.provisional_ == (stop < 25)
        assert model.n_samples_seen_ == stop
        assert model.labels_.size == model.log_evidence_.size


def test_pickles_carry_on_alike():
    rows = documents(10)
    whole = DocumentMixture(NIG).partial_fit(rows)
    for cut in (30, 59):
        part = pickle.loads(pickle.dumps(DocumentMixture(NIG).partial_fit(rows[:cut])))
        assert bits(part.partial_fit(rows[cut:])) == bits(whole)
    unfitted = clone(whole)
    assert not hasattr(unfitted, "state_")


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("a string", "documents must be a list of documents.*got str"),
        ({"a": 1}, "documents must be a list of documents.*got dict"),
        ([], "documents is empty"),
        ([["a"], "cat dog"], r"document 1 is a string: split it"),
        ([["a"], {"b": -1}], r"document 1, word 'b' is -1: a count cannot be negative"),
        ([{"b": 0.5}], r"document 0, word 'b' is 0.5: a count cannot be a fraction"),
        ([{"b": math.nan}], r"document 0, word 'b' is nan: NaN is not a count"),
        ([{"b": "two"}], r"document 0, word 'b' is 'two': counts must be numbers"),
        ([["a", ["b"]]], r"document 0 contains something that cannot be a word"),
        ([["a"], 7], r"document 1 must be a list of words or a dict of counts, got 7"),
    ],
)
def test_bad_documents_are_named_and_change_nothing(bad, message):
    model = DocumentMixture(NIG).partial_fit(documents(11))
    before = bits(model)
    for method in (model.partial_fit, model.fit, model.predict):
        with pytest.raises(ValueError, match=message):
            method(bad)
    assert bits(model) == before


def test_zeros_are_no_words_and_whole_floats_are_counts():
    model = DocumentMixture(NIG).partial_fit([{"a": 0, "b": 2.0, "c": np.int64(1)}])
    assert model.vocabulary_.words == ["b", "c"]


@pytest.mark.parametrize(
    "settings", [{"spread": -1}, {"total": 0}, {"prefix_rows": 0}, {"engine": "fast"}], ids=str
)
def test_bad_parameters_are_named(settings):
    (name,) = settings
    with pytest.raises(ValueError, match=f"{name} must be"):
        DocumentMixture(**settings).partial_fit([["a"]])
