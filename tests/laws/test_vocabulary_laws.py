"""The base measure of a vocabulary that grows: proper, and the same however words are found."""

import itertools
import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from bnpstream.likelihoods import DirichletMultinomial, OpenVocabulary, Vocabulary
from bnpstream.likelihoods.documents import LENGTH, UNSEEN, DocumentBatch

BASES = [OpenVocabulary(50.0), OpenVocabulary(4000.0, 90.0), OpenVocabulary(0.5, 3.0)]
bases = pytest.mark.parametrize("base", BASES, ids=str)


def parts(case, words=400):
    """Return how many new words each of some documents brings."""
    rng = np.random.default_rng((91, case))
    return np.diff(np.sort(np.append(rng.integers(0, words, size=20), [0, words])))


@bases
@pytest.mark.parametrize("case", range(3))
def test_alphas_and_what_is_left_add_up_to_the_total(base, case):
    known, given = 0, []
    for new in parts(case).tolist():
        if new:
            given += [base.alpha(known, new)] * new
            known += new
        assert math.isclose(math.fsum(given) + base.rest(known), base.A, rel_tol=1e-12)
    assert min(given) > 0
    assert base.rest(10**12) < 1e-9 * base.A


@bases
def test_words_share_what_their_document_takes(base):
    for known, new in itertools.product((0, 3, 500), (1, 7, 2000)):
        taken = base.rest(known) - base.rest(known + new)
        assert math.isclose(new * base.alpha(known, new), taken, rel_tol=1e-9)


def test_a_quarter_is_left_after_spread_words():
    assert OpenVocabulary(70, 20.0).rest(70) == 5.0


@bases
def test_room_for_more_words_changes_nothing(base):
    documents = [{(i, j): 1 for j in range(i % 90 + 1)} for i in range(60)]  # 1830 words
    once, one_by_one = Vocabulary(base), Vocabulary(base)
    once.add(documents)
    for document in documents:
        one_by_one.add([document])
    assert once.words == one_by_one.words
    assert once.likelihood is not one_by_one.likelihood
    n = len(once) + 1
    assert n > 1024
    for name in ("alpha", "_log_alpha"):
        found = [getattr(each.likelihood, name)[:n].tobytes() for each in (once, one_by_one)]
        assert found[0] == found[1]
    total = math.fsum(once.likelihood.alpha[:n])
    assert math.isclose(total, base.A, rel_tol=1e-12)


def numbered(base=BASES[0]):
    vocabulary = Vocabulary(base)
    vocabulary.add([{"a": 1, "b": 2}, {"b": 1, "c": 3}])
    return vocabulary


def test_documents_of_known_and_unknown_words_have_probabilities_that_sum_to_one():
    """An unknown word is one of a kind: all of them together."""
    vocabulary = numbered()
    likelihood = vocabulary.likelihood
    statistics = np.array([[0.0, 2.5, 0.0, 1.0, 3.5], [0.0, 0.0, 0.0, 0.0, 0.0]])
    for length in (1, 2, 3):
        documents = [
            dict(zip("abc?", counts, strict=True))
            for counts in itertools.product(range(length + 1), repeat=4)
            if sum(counts) == length
        ]
        batch = likelihood.encode(documents)
        total = np.zeros(2)
        for i in range(len(batch)):
            row = batch.row(i)
            narrow = row._replace(columns=np.where(row.columns == LENGTH, 4, row.columns))
            total += np.exp(likelihood.log_predictive(statistics, narrow) + row.log_base)
        np.testing.assert_allclose(total, 1.0, rtol=1e-12)


def test_formulas_are_those_of_a_closed_vocabulary_with_one_word_for_all_unknown():
    vocabulary = numbered(BASES[1])
    likelihood = vocabulary.likelihood
    closed = DirichletMultinomial(likelihood.alpha[:4])
    statistics = np.random.default_rng((92, 0)).gamma(1.0, 5.0, size=(3, 4))
    statistics[:, UNSEEN] = 0.0
    statistics = np.column_stack([statistics, statistics.sum(axis=1)])
    for name in ("posterior_mean", "log_normalizer", "log_marginal"):
        found = getattr(likelihood, name)(statistics)
        np.testing.assert_allclose(found, getattr(closed, name)(statistics), rtol=1e-9)


def test_batches_hold_every_word_once_and_the_coefficient():
    documents = [{"c": 2, "?": 1, "a": 4, "!": 5}, {}, {"b": 1}]
    batch = numbered().likelihood.encode(documents)
    row = batch.row(0)
    assert row.columns.tolist() == [UNSEEN, 1, 3, LENGTH]
    assert row.values.tolist() == [6, 4, 2, 12]
    ways = math.factorial(12) / math.prod(map(math.factorial, (6, 4, 2)))
    assert math.isclose(row.log_base, math.log(ways), rel_tol=1e-12)
    assert batch.row(1).values.tolist() == [0]
    assert batch.row(1).log_base == 0.0
    assert len(batch) == 3
    whole = batch.statistics
    for i in range(3):
        part = batch.part(i, i + 1)
        assert part.row(0).columns.tolist() == batch.row(i).columns.tolist()
        assert part.log_base.tobytes() == batch.log_base[i : i + 1].tobytes()
        assert whole[[i]].sum() == 2 * batch.row(i).values[-1]


def test_order_within_a_document_does_not_matter_once_words_are_known():
    numbers = numbered().numbers
    one = DocumentBatch.of([{"a": 1, "b": 3, "c": 2}], numbers)
    other = DocumentBatch.of([{"c": 2, "a": 1, "b": 3}], numbers)
    assert one.columns.tobytes() == other.columns.tobytes()
    assert one.values.tobytes() == other.values.tobytes()


@pytest.mark.parametrize("name", ["spread", "total"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "many"])
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a number > 0, got"):
        OpenVocabulary(**{"spread": 10.0, name: value})


@bases
def test_marginals_of_sparse_rows_are_those_of_dense_ones(base):
    vocabulary = numbered(base)
    dense = np.array([[0.0, 2.5, 0.0, 1.0, 3.5], np.zeros(5), [0.0, 0.25, 7.0, 0.0, 7.25]])
    rows, columns = np.nonzero(dense)
    wide = np.array([0, 1, 2, 3, LENGTH])[columns]
    sparse = csr_array((dense[rows, columns], (rows, wide)), shape=(3, LENGTH + 1))
    found = vocabulary.likelihood.log_marginal_sparse(sparse)
    np.testing.assert_allclose(found, vocabulary.likelihood.log_marginal(dense), rtol=1e-12)
    vocabulary.add([{f"more {i}": 1 for i in range(2000)}])  # other words are no matter
    assert vocabulary.likelihood.log_marginal_sparse(sparse).tolist() == found.tolist()
