"""Removes rare and frequent words from a corpus, and then short documents."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bnpstream.datasets.base import Dataset


@dataclass(frozen=True, eq=False)
class PrunedCorpus(Dataset):
    """Hold what remains of a corpus, and its place in the corpus.

    Attributes
    ----------
    documents : array of intp, shape (n,)
        Rows of the corpus that remain, in order.
    words : array of intp, shape (V,)
        Columns of the corpus that remain, in order.
    """

    documents: NDArray[np.intp]
    words: NDArray[np.intp]


def prune_corpus(
    corpus: Dataset,
    min_documents: int = 20,
    max_share: float = 0.9,
    min_words: int = 20,
    drop: Collection[str] | Callable[[str], bool] = (),
) -> PrunedCorpus:
    """Remove rare and frequent words, then documents that have become short.

    The defaults are those of the paper for the New York Times: words in fewer than 20 documents or
    in more than 90 % of them are removed, then documents with fewer than 20 remaining words. It
    also removes "terms resulting from obvious errors in data acquisition" without naming them:
    these can be given as `drop`. Documents are removed once; a word may then be in fewer than
    `min_documents` of those that remain.

    Parameters
    ----------
    corpus : Dataset
        Word counts, one row per document; not changed.
    min_documents : int, default 20
        A word stays if it is in at least this many documents.
    max_share : float, default 0.9
        A word stays if it is in at most this share of all documents, including empty ones.
    min_words : int, default 20
        A document stays if at least this many of its tokens remain.
    drop : collection of str, or callable, optional
        Words to remove whatever their frequency, or a function that says whether to remove a word.

    Returns
    -------
    PrunedCorpus
        What remains, and which documents and words these are.

    Raises
    ------
    ValueError
        If nothing remains, or if words are to be dropped from a corpus without feature names.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> counts = np.array([[1, 2, 0, 3], [1, 0, 0, 4], [1, 1, 1, 0], [1, 0, 0, 0]])
    >>> words = ["the", "rain", "hapax", "zzz_snow"]
    >>> corpus = Dataset(sparse.csr_array(counts), labels=None, feature_names=words)
    >>> left = prune_corpus(corpus, min_documents=2, min_words=2)
    >>> left.feature_names, left.documents, left.counts.toarray().tolist()
    (['rain', 'zzz_snow'], array([0, 1]), [[2, 3], [0, 4]])
    >>> prune_corpus(corpus, 2, 0.9, 1, drop=lambda word: word[:4] == "zzz_").feature_names
    ['rain']
    """
    counts, names = _canonical(corpus.counts), corpus.feature_names
    n_documents = counts.shape[0]
    n_containing = np.bincount(counts.indices, minlength=counts.shape[1])
    # Divided, because 0.29 * 100 is less than 29.
    stays = (n_containing >= min_documents) & (n_containing / max(n_documents, 1) <= max_share)
    stays &= ~_dropped(names, counts.shape[1], drop)
    words = np.flatnonzero(stays)
    if words.size == 0:
        raise ValueError(
            f"none of the {stays.size:,} words remains: none is in at least {min_documents} "
            f"documents (min_documents) and in at most {max_share:g} of all {n_documents:,} "
            "(max_share), apart from those in drop: allow more"
        )
    counts = counts[:, words]
    lengths: NDArray[np.int64] = counts.sum(axis=1)
    documents = np.flatnonzero(lengths >= min_words)
    if documents.size == 0:
        raise ValueError(
            f"none of the {n_documents:,} documents remains: the longest has {lengths.max()} of "
            f"the remaining {words.size:,} words, but min_words is {min_words}: give a smaller one"
        )
    return PrunedCorpus(
        counts[documents],
        None if corpus.labels is None else corpus.labels[documents],
        None if names is None else [names[j] for j in words.tolist()],
        documents,
        words,
    )


def _canonical(counts: sparse.csr_array[np.int64]) -> sparse.csr_array[np.int64]:
    """Return counts with one entry per word of a document, and no zeros."""
    if counts.has_canonical_format and np.all(counts.data):
        return counts
    counts = counts.copy()
    counts.sum_duplicates()
    counts.eliminate_zeros()
    return counts


def _dropped(
    names: list[str] | None, n_words: int, drop: Collection[str] | Callable[[str], bool]
) -> NDArray[np.bool_]:
    """Return, for each column, whether its word is to be dropped."""
    if isinstance(drop, str):
        raise ValueError(f"drop is {drop!r}: give a list of words, or a function")
    if not callable(drop) and not drop:
        return np.zeros(n_words, dtype=np.bool_)
    if names is None:
        raise ValueError("drop names words, but this corpus has no feature_names: add them")
    chosen = drop if callable(drop) else set(drop).__contains__
    return np.fromiter((bool(chosen(name)) for name in names), np.bool_, count=n_words)
