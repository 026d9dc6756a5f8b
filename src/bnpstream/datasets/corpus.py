"""A synthetic corpus of any size, drawn in bounded memory, without a table of clusters by words.

The words of cluster k have probabilities G_k ~ Dirichlet(c m), where m are the overall word
frequencies. By Sethuraman's construction

    G_k = sum_j w_j delta(word_kj),    w the sticks of Beta(1, c),    word_kj ~ m,

so a token is an atom j drawn from w, and then the word of (k, j). That word is computed from a hash
of k and j whenever it is needed, and never stored. All clusters share one draw of w. So each G_k
by itself is a Dirichlet draw; clusters share the weights of their atoms, but not the words that
these fall on.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bnpstream.datasets.base import Dataset, require_positive
from bnpstream.priors import PitmanYor, Prior

# About 1,500 clusters in 266,000 documents; the largest has a tenth of them.
_PRIOR = PitmanYor(concentration=10.0, discount=0.4)
# The word of rank r has frequency 1 / (r + shift), normalised: 32 fits the KOS corpus best.
_RANK_SHIFT = 32
# Standard deviation of log length: .7 in KOS, .8 in nyt8447, .95 in 20 Newsgroups.
_LENGTH_SPREAD = 0.8
# J sticks of Beta(1, c) leave about exp(-J / c), which is 2^-53 with J = 37 c.
_ATOMS_PER_CONCENTRATION = 37


class _Source(NamedTuple):
    """What tokens are drawn from: cumulative probabilities, names of words, key of the hash."""

    atom_edges: NDArray[np.float64]
    word_edges: NDArray[np.float64]
    word_ids: NDArray[np.int32]
    key: np.uint64


def synthetic_corpus(
    n_documents: int = 266_000,
    n_words: int = 7_841,
    mean_length: float = 210.0,
    word_concentration: float = 300.0,
    prior: Prior = _PRIOR,
    seed: int = 0,
) -> Dataset:
    """Draw a corpus with power laws of words and of clusters.

    By default it has the size of the paper's New York Times corpus: 266,000 documents of 7,841
    words, about 35 million pairs of a document and a word. Word frequencies follow Zipf's law with
    Mandelbrot's shift, in a random order of words; document lengths are log-normal.
    The first rows do not depend on `n_documents`.

    Parameters
    ----------
    n_documents : int, default 266000
        Number of rows.
    n_words : int, default 7841
        Size of the vocabulary.
    mean_length : float, default 210.0
        Mean sum of a row, before rounding to a whole number of at least 1.
    word_concentration : float, default 300.0
        c of the Dirichlet(c m) of the words in a cluster; m are the overall word frequencies.
        The smaller, the less the clusters overlap.
    prior : Prior, default PitmanYor(concentration=10.0, discount=0.4)
        The clusters are a partition drawn from it.
    seed : int, default 0
        The same seed gives the same documents.

    Returns
    -------
    Dataset
        Counts of shape (n_documents, n_words); labels number the clusters as they appear.

    See Also
    --------
    synthetic_corpus_blocks : The same rows, one block at a time, in bounded memory.

    Examples
    --------
    >>> from bnpstream import PitmanYor
    >>> prior = PitmanYor(1.0, discount=0.2).with_expected_clusters(100, n=500)
    >>> corpus = synthetic_corpus(n_documents=500, n_words=1000, prior=prior)
    >>> corpus.counts.shape, bool(60 < corpus.labels.max() + 1 < 140)
    ((500, 1000), True)
    """
    blocks = list(
        synthetic_corpus_blocks(n_documents, n_words, mean_length, word_concentration, prior, seed)
    )
    return Dataset(
        sparse.vstack([block.counts for block in blocks], format="csr"),
        np.concatenate([block.labels for block in blocks if block.labels is not None]),
        feature_names=None,
    )


def synthetic_corpus_blocks(
    n_documents: int = 266_000,
    n_words: int = 7_841,
    mean_length: float = 210.0,
    word_concentration: float = 300.0,
    prior: Prior = _PRIOR,
    seed: int = 0,
    block_rows: int = 1024,
) -> Iterator[Dataset]:
    """Yield the rows of `synthetic_corpus` in order, in blocks.

    Memory holds one block and the labels, however many documents, words and clusters there are.

    Parameters
    ----------
    n_documents, n_words, mean_length, word_concentration, prior, seed
        As in `synthetic_corpus`.
    block_rows : int, default 1024
        Rows per block; the last block may have fewer. The rows do not depend on it.

    Yields
    ------
    Dataset
        The next rows, and their labels.

    Examples
    --------
    >>> blocks = synthetic_corpus_blocks(n_documents=500, n_words=1000, block_rows=200)
    >>> [block.counts.shape for block in blocks]
    [(200, 1000), (200, 1000), (100, 1000)]
    """
    require_positive(
        n_documents=n_documents,
        n_words=n_words,
        mean_length=mean_length,
        word_concentration=word_concentration,
        block_rows=block_rows,
    )
    # One source of randomness each, used in the order of rows, so that blocks do not matter.
    for_source, for_labels, for_lengths, for_tokens = (
        np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(4)
    )
    source = _make_source(n_words, word_concentration, for_source)
    labels = prior.sample_partition(n_documents, for_labels)
    log_median = np.log(mean_length) - _LENGTH_SPREAD**2 / 2
    for start in range(0, n_documents, block_rows):
        clusters = labels[start : start + block_rows]
        noise = for_lengths.standard_normal(clusters.size)
        lengths = np.rint(np.exp(log_median + _LENGTH_SPREAD * noise)).astype(np.int64)
        bounds = np.concatenate([[0], np.cumsum(np.maximum(lengths, 1))])
        uniforms = for_tokens.random(int(bounds[-1]))
        words = _draw_words(np.repeat(clusters, np.diff(bounds)), uniforms, source)
        yield Dataset(_count_words(words, bounds, n_words), clusters, feature_names=None)


def _make_source(n_words: int, word_concentration: float, rng: np.random.Generator) -> _Source:
    """Draw what all documents share."""
    n_atoms = int(_ATOMS_PER_CONCENTRATION * max(word_concentration, 1.0))
    # 1 - Beta(1, c) is Beta(c, 1).
    left = np.cumprod(rng.beta(word_concentration, 1.0, n_atoms))
    word_edges = np.cumsum(1.0 / (np.arange(1, n_words + 1) + _RANK_SHIFT))
    return _Source(
        atom_edges=np.subtract(1.0, left, dtype=np.float64),
        word_edges=word_edges / word_edges[-1],
        word_ids=rng.permutation(n_words).astype(np.int32),
        key=rng.integers(1 << 63, dtype=np.uint64),
    )


def _draw_words(
    clusters: NDArray[np.intp], uniforms: NDArray[np.float64], source: _Source
) -> NDArray[np.int32]:
    """Return the words of tokens, given the cluster and a uniform number for each."""
    # The rest of the sticks is one more atom.
    atoms = np.searchsorted(source.atom_edges, uniforms, side="right")
    pairs = (clusters.astype(np.uint64) << np.uint64(32)) + atoms.astype(np.uint64)
    quantiles = _hash(source.key + pairs)
    return source.word_ids[np.searchsorted(source.word_edges, quantiles, side="right")]


def _hash(numbers: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return a pseudorandom number in [0, 1) for each.

    This is the mixing function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    """
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    # The upper 53 bits fill a double's mantissa.
    return (mixed >> np.uint64(11)).astype(np.float64) / 2**53


def _count_words(
    words: NDArray[np.int32], bounds: NDArray[np.int64], n_words: int
) -> sparse.csr_array[np.int64]:
    """Gather tokens into rows of counts; row i has those from bounds[i] to bounds[i + 1]."""
    counts = sparse.csr_array(
        (np.ones(words.size, dtype=np.int64), words, bounds.astype(np.int32)),
        shape=(bounds.size - 1, n_words),
    )
    counts.sum_duplicates()
    # `sum_duplicates` leaves views of arrays with an entry for every token.
    return counts.copy()
