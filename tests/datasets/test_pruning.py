"""Pruning of corpora, against loops over dicts, and at the edges of what stays."""

import numpy as np
import pytest
from scipy import sparse

from bnpstream.datasets import Dataset, prune_corpus


def naive(documents, min_documents, max_share, min_words, drop):
    """Prune a list of dicts from word to count; return what is left by number of document."""
    containing = {}
    for document in documents:
        for word in document:
            containing[word] = containing.get(word, 0) + 1
    left = {}
    for i, document in enumerate(documents):
        kept = {
            word: count
            for word, count in document.items()
            if min_documents <= containing[word]
            and containing[word] / len(documents) <= max_share
            and word not in drop
        }
        if sum(kept.values()) >= min_words:
            left[i] = kept
    return left


def draw(seed, n_documents=300, n_words=60):
    """Draw counts of words that are in few documents to nearly all of them."""
    rng = np.random.default_rng((81, seed))
    shares = rng.beta(0.3, 0.5, size=n_words)
    present = rng.random((n_documents, n_words)) < shares
    return np.where(present, rng.integers(1, 6, size=present.shape), 0)


def as_dataset(counts, labels=None):
    names = [f"w{j}" for j in range(counts.shape[1])]
    return Dataset(sparse.csr_array(counts), labels, names)


def as_dicts(dataset):
    return [
        {name: count for name, count in zip(dataset.feature_names, row, strict=True) if count}
        for row in dataset.counts.toarray().tolist()
    ]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("limits", "drop"),
    [
        ((20, 0.9, 20), ()),
        ((30, 0.7, 10), ("w3", "w7", "not there")),
        ((1, 1.0, 0), {"w1"}),
        ((200, 0.98, 8), ()),
    ],
)
def test_it_is_what_loops_over_dicts_find(seed, limits, drop):
    corpus = as_dataset(draw(seed), labels=np.arange(300) % 7)
    expected = naive(as_dicts(corpus), *limits, drop)
    left = prune_corpus(corpus, *limits, drop=drop)
    assert left.documents.tolist() == list(expected)
    assert as_dicts(left) == list(expected.values())
    assert left.feature_names == [corpus.feature_names[j] for j in left.words]
    assert np.array_equal(left.labels, corpus.labels[left.documents])
    selected = corpus.counts.toarray()[np.ix_(left.documents, left.words)]
    assert np.array_equal(left.counts.toarray(), selected)
    assert isinstance(left.counts, sparse.csr_array)
    assert left.counts.dtype == np.int64
    assert np.array_equal(corpus.counts.toarray(), draw(seed))


def columns(n_documents, *n_containing):
    """Return a corpus whose words are in the first so many documents, twenty times each."""
    counts = np.zeros((n_documents, len(n_containing)), dtype=np.int64)
    for j, n in enumerate(n_containing):
        counts[:n, j] = 20
    return as_dataset(counts)


def test_words_at_the_limits_stay():
    corpus = columns(100, 19, 20, 90, 91, 100, 0)
    assert prune_corpus(corpus).feature_names == ["w1", "w2"]


@pytest.mark.parametrize("percent", range(1, 101))
def test_shares_are_exact(percent):
    # percent / 100 * 100 may be above or below percent.
    corpus = columns(100, percent, percent - 1, min(percent + 1, 100))
    left = prune_corpus(corpus, min_documents=0, max_share=percent / 100, min_words=0)
    assert left.feature_names == (["w0", "w1", "w2"] if percent == 100 else ["w0", "w1"])


def test_empty_documents_count_for_shares():
    corpus = columns(100, 90)
    assert prune_corpus(corpus).documents.tolist() == list(range(90))
    assert prune_corpus(corpus, min_words=0).documents.tolist() == list(range(100))


def test_documents_at_the_limit_stay():
    counts = np.full((40, 3), 7)
    counts[20:, 0] = 0
    counts[7, :] = 20, 0, 100
    counts[8, :] = 19, 0, 100  # the word that goes does not help
    counts[9, :] = 1, 19, 0
    corpus = as_dataset(counts)
    left = prune_corpus(corpus, 5, max_share=1.0, drop=["w2"])
    assert left.documents.tolist() == [7, 9]


def test_words_are_dropped_by_a_function():
    corpus = columns(100, 30, 40, 50)
    left = prune_corpus(corpus, drop=lambda word: word != "w1")
    assert left.feature_names == ["w1"]


def test_entries_that_are_zero_or_double_are_not_documents():
    plain = np.array([[1, 0], [2, 1], [0, 0]])
    data, row, column = [1, 2, -2, 1, 1, 1, 0], [0, 0, 0, 1, 1, 1, 2], [0, 1, 1, 0, 0, 1, 0]
    counts = sparse.csr_array(
        (np.array(data), np.array(column), np.searchsorted(row, np.arange(4))), shape=(3, 2)
    )
    assert np.array_equal(counts.toarray(), plain)
    found = [
        prune_corpus(Dataset(matrix, None, None), 1, 0.5, 0)
        for matrix in (counts, sparse.csr_array(plain))
    ]
    assert [left.words.tolist() for left in found] == [[1], [1]]
    assert found[0].feature_names is None
    assert counts.nnz == 7


def test_nothing_left_is_an_error():
    with pytest.raises(
        ValueError, match=r"none of the 2 words remains: none is in at least 20 documents"
    ):
        prune_corpus(columns(100, 19, 91))
    with pytest.raises(
        ValueError, match=r"none of the 1 words .*apart from those in drop: allow more"
    ):
        prune_corpus(columns(100, 50), drop=["w0"])
    with pytest.raises(
        ValueError, match=r"none of the 100 documents remains: the longest has 20 of the"
    ):
        prune_corpus(columns(100, 50), min_words=21)
    with pytest.raises(ValueError, match="none of the 3 words remains"):
        prune_corpus(Dataset(sparse.csr_array((0, 3), dtype=np.int64), None, None))


def test_words_to_drop_need_names():
    corpus = Dataset(columns(100, 50).counts, None, None)
    assert prune_corpus(corpus).counts.shape == (50, 1)
    with pytest.raises(ValueError, match="this corpus has no feature_names"):
        prune_corpus(corpus, drop=["w0"])
    with pytest.raises(ValueError, match="drop is 'w0': give a list of words, or a function"):
        prune_corpus(columns(100, 50), drop="w0")
