"""The synthetic corpus: one corpus for any blocks, with the statistics that it promises."""

import re
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chi2

from bnpstream.datasets import Dataset, synthetic_corpus, synthetic_corpus_blocks
from bnpstream.priors import PitmanYor

# So large a concentration gives each document its own cluster, and makes documents independent.
ALL_APART = PitmanYor(concentration=1e12, discount=0.0)


def assert_same(first: Dataset, other: Dataset) -> None:
    assert first.counts.shape == other.counts.shape
    for name in ("data", "indices", "indptr"):
        ours, theirs = getattr(first.counts, name), getattr(other.counts, name)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)
    assert np.array_equal(first.labels, other.labels)


def word_frequencies(n_words: int) -> np.ndarray:
    """Return Zipf's law with a shift of 32 ranks."""
    weights = np.array([1 / (rank + 32) for rank in range(1, n_words + 1)])
    return weights / weights.sum()


def share_of_equal_pairs(counts: np.ndarray) -> float:
    """Return the share of pairs of tokens of one row that are the same word."""
    lengths = counts.sum(axis=1)
    return (counts * (counts - 1)).sum() / (lengths * (lengths - 1)).sum()


def test_shapes_and_types():
    corpus = synthetic_corpus(n_documents=2000, n_words=300, mean_length=2.0)
    assert isinstance(corpus.counts, sparse.csr_array)
    assert corpus.counts.dtype == np.int64
    assert corpus.counts.indices.dtype == corpus.counts.indptr.dtype == np.int32
    assert corpus.counts.shape == (2000, 300)
    assert corpus.counts.has_canonical_format
    assert corpus.counts.data.min() == 1
    assert corpus.counts.sum(axis=1).min() == 1
    assert corpus.labels.dtype == np.intp
    assert corpus.feature_names is None
    first_rows = np.unique(corpus.labels, return_index=True)[1]
    assert np.all(np.diff(first_rows) > 0)


def test_a_seed_fixes_everything():
    first, again, other = (synthetic_corpus(200, 500, seed=seed) for seed in (5, 5, 6))
    assert_same(first, again)
    assert not np.array_equal(first.counts.toarray(), other.counts.toarray())
    assert not np.array_equal(first.counts.sum(axis=1), other.counts.sum(axis=1))
    assert not np.array_equal(first.labels, other.labels)


@pytest.mark.parametrize("block_rows", [1, 7, 100, 1000])
def test_rows_do_not_depend_on_blocks(block_rows):
    blocks = list(synthetic_corpus_blocks(200, 500, block_rows=block_rows, seed=3))
    sizes = [block.counts.shape[0] for block in blocks]
    assert sum(sizes) == 200
    assert all(size == block_rows for size in sizes[:-1])
    joined = Dataset(
        sparse.vstack([block.counts for block in blocks], format="csr"),
        np.concatenate([block.labels for block in blocks]),
        feature_names=None,
    )
    assert_same(joined, synthetic_corpus(200, 500, seed=3))


def test_the_first_rows_do_not_depend_on_the_rest():
    whole, part = synthetic_corpus(1500, 500), synthetic_corpus(1100, 500)
    assert_same(Dataset(whole.counts[:1100], whole.labels[:1100], None), part)


def test_a_block_does_not_keep_its_tokens_alive():
    block = next(synthetic_corpus_blocks(100, 500))
    assert block.counts.nnz < block.counts.sum()
    for array in (block.counts.data, block.counts.indices):
        owner = array if array.base is None else array.base
        assert owner.size == array.size


def test_memory_holds_no_table_of_clusters_by_words():
    tracemalloc.start()
    blocks = synthetic_corpus_blocks(1000, 100_000, prior=ALL_APART, block_rows=100)
    n_clusters = 1 + max(block.labels.max() for block in blocks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_clusters == 1000
    # One bit an entry would be more.
    assert peak < n_clusters * 100_000 / 8


def test_defaults_have_the_pairs_of_the_paper():
    # 35 million in 266,000 documents. A seed draws common sticks, which move the mean by 1 %; the
    # lengths of 3,000 documents move it by another 1.5 %.
    corpus = synthetic_corpus(n_documents=3000)
    assert corpus.counts.nnz / 3000 == pytest.approx(35e6 / 266_000, rel=0.06)


def test_lengths_are_log_normal():
    n, mean = 20_000, 40.0
    corpus = synthetic_corpus(n, n_words=2, mean_length=mean, prior=PitmanYor(1.0, 0.0))
    lengths = corpus.counts.sum(axis=1)
    # A log-normal with standard deviation .8 of the log varies by sqrt(e^.64 - 1) of its mean.
    assert abs(lengths.mean() / mean - 1) < 3.5 * np.sqrt(np.expm1(0.64) / n)
    assert np.median(lengths) == pytest.approx(mean * np.exp(-0.32), rel=0.03)
    assert np.log(lengths).std() == pytest.approx(0.8, rel=0.03)


def test_words_follow_zipf_in_random_order():
    counts = synthetic_corpus(3000, n_words=1000, prior=ALL_APART).counts.sum(axis=0)
    by_rank = np.argsort(-counts)
    ranks = np.array([0, 9, 99, 499])
    shares = counts[by_rank[ranks]] / counts.sum()
    assert np.allclose(shares, word_frequencies(1000)[ranks], rtol=0.1, atol=0)
    # The correlation of two random orders of 1000 words is 0 +- .03.
    assert abs(np.corrcoef(by_rank, np.arange(1000))[0, 1]) < 0.12


@pytest.mark.parametrize("word_concentration", [10.0, 50.0])
def test_words_of_a_cluster_are_dirichlet(word_concentration):
    # Under Dirichlet(c m), two tokens agree with probability (1 + c sum m^2) / (1 + c).
    # All clusters of a seed share their sticks: average over seeds.
    n_words, n_seeds = 200, 40
    corpora = [
        synthetic_corpus(150, n_words, 50.0, word_concentration, ALL_APART, seed).counts.toarray()
        for seed in range(n_seeds)
    ]
    by_chance = (word_frequencies(n_words) ** 2).sum()
    within = np.array([share_of_equal_pairs(counts) for counts in corpora])
    expected = (1 + word_concentration * by_chance) / (1 + word_concentration)
    assert abs(within.mean() - expected) < 3.5 * within.std(ddof=1) / np.sqrt(n_seeds)


def test_clusters_are_independent_of_their_neighbours():
    # Documents k and k + 1 are clusters k and k + 1: their tokens agree by chance only.
    n_words, n_seeds = 200, 40
    shares = np.empty(n_seeds)
    for seed in range(n_seeds):
        counts = synthetic_corpus(150, n_words, 50.0, 10.0, ALL_APART, seed).counts.toarray()
        lengths = counts.sum(axis=1)
        shares[seed] = (counts[:-1] * counts[1:]).sum() / (lengths[:-1] * lengths[1:]).sum()
    by_chance = (word_frequencies(n_words) ** 2).sum()
    assert abs(shares.mean() - by_chance) < 3.5 * shares.std(ddof=1) / np.sqrt(n_seeds)


def test_documents_share_their_words_within_a_cluster_only():
    def heterogeneity(counts: np.ndarray) -> float:
        expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
        return float(((counts - expected) ** 2 / expected).sum())

    corpus = synthetic_corpus(300, 5, 400.0, word_concentration=20.0, prior=PitmanYor(3.0, 0.0))
    counts, n_clusters = corpus.counts.toarray(), corpus.labels.max() + 1
    assert n_clusters > 5
    within = sum(heterogeneity(counts[corpus.labels == k]) for k in range(n_clusters))
    assert 1e-3 < chi2.sf(within, (300 - n_clusters) * 4) < 1 - 1e-3
    assert heterogeneity(counts) > 3 * 299 * 4


@pytest.mark.parametrize("discount", [0.3, 0.6])
def test_number_of_clusters_grows_as_a_power_of_the_discount(discount):
    prior = PitmanYor(concentration=1.0, discount=discount)
    labels = synthetic_corpus(16_000, 2, 1.0, prior=prior).labels
    growth = (labels.max() + 1) / (labels[:1000].max() + 1)
    assert np.log(growth) / np.log(16) == pytest.approx(discount, abs=0.1)


@pytest.mark.parametrize(
    "name", ["n_documents", "n_words", "mean_length", "word_concentration", "block_rows"]
)
def test_bad_arguments_are_named(name):
    with pytest.raises(ValueError, match=re.escape(f"{name} is 0: give a value above 0")):
        next(synthetic_corpus_blocks(**{name: 0}))
