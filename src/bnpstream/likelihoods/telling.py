"""Words that tell groups of rows apart, for labelling clusters and topics."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import entr

from bnpstream.kernels.arrays import Floats, Integers

DOUBT = 5.0
"""Rows assumed to have every word, in addition to those of the stream: a word in two or three
rows may be rare by chance, and says little."""
ROUNDING = 1e-12
"""A share of uncertainty below this counts as zero."""


class Telling(NamedTuple):
    """The words that tell one group from the rest of the stream, most distinctive first."""

    words: Integers
    """Columns, shape (n,) or fewer."""
    scores: Floats
    """Nats by which each tells the group apart, decreasing."""


def presences(counts: csr_array, rows: NDArray[np.floating]) -> csr_array:
    """Return the expected number of rows of each cluster with each word.

    Words come in bursts, so counts within a cluster are assumed to be geometric: a word with r
    occurrences per row is in r / (1 + r) of the rows.

    Parameters
    ----------
    counts : csr_array of shape (K, V)
        Count of each word in each cluster.
    rows : ndarray of shape (K,)
        Rows in each cluster: its mass.

    Examples
    --------
    >>> presences(csr_array([[3.0, 1.0], [0.0, 4.0]]), np.array([1.0, 4.0])).toarray()
    array([[0.75, 0.5 ],
           [0.  , 2.  ]])
    """
    own = np.repeat(rows, np.diff(counts.indptr))
    values = own * counts.data / (own + counts.data)
    return csr_array((values, counts.indices, counts.indptr), shape=counts.shape)


def explained(present: csr_array, rows: NDArray[np.floating]) -> Floats:
    """Return U: the share of the uncertainty about which rows have a word that groups remove.

    U = I / H, where I is the mutual information of having the word and being in a group, and H the
    entropy of having it. It is 0 for a word that is equally frequent in all groups, and 1 for one
    that is in all rows of some groups and in no other row.

    Parameters
    ----------
    present : csr_array of shape (G, V)
        Rows of each group with each word.
    rows : ndarray of shape (G,)
        Rows in each group.

    Returns
    -------
    U : ndarray of shape (V,)
        0 for a word in no row, or in all.
    """
    n_rows, n_words = max(rows.sum(), np.finfo(float).tiny), present.shape[1]
    owner = np.repeat(np.arange(present.shape[0]), np.diff(present.indptr))
    words, weight = present.indices, rows[owner] / n_rows
    left = np.bincount(words, weight * _entropy(present.data / rows[owner]), minlength=n_words)
    before = _entropy(np.bincount(words, present.data, minlength=n_words) / n_rows)
    found: Floats = np.divide(before - left, before, out=np.zeros(n_words), where=before > 0.0)
    return np.where(found > ROUNDING, found, 0.0)


def _entropy(p: Floats) -> Floats:
    """Return -p log p - (1 - p) log(1 - p), in nats."""
    return entr(p) + entr(1.0 - p)


def telling_words(
    counts: csr_array, rows: NDArray[np.floating], n: int, groups: NDArray[np.integer] | None = None
) -> list[Telling]:
    """Return the n words that best tell each cluster, or group of clusters, apart.

    With P the share of a group's rows that have a word,

        score = U P log(P / Q),
        Q = max((rows of the stream with the word + 5) / (rows + 5), mean of P over groups).

    P log(P / Q) is the word's part of the divergence of the group from the stream, in rows rather
    than in tokens (`presences`): a word that most rows have cannot score, however often it occurs,
    nor can a word in a few rows. The mean over groups is for streams in which one large group
    differs from all others, such as tables without a sentence among prose: "the" is then rare among
    rows, but usual in a group. U is `explained`: how much the groups say about which rows have the
    word. Function words, in any language, are a little more frequent in some groups than in
    others, and so have a small U.

    Parameters
    ----------
    counts : csr_array of shape (K, V)
        Count of each word in each cluster of the stream.
    rows : ndarray of shape (K,)
        Rows in each cluster: its mass.
    n : int
        Words per group; fewer if it has no more. Words that are less frequent in the group than in
        the stream score below 0.
    groups : ndarray of shape (K,), optional
        Group of each cluster, from 0 on; by default each cluster is a group.

    Returns
    -------
    telling : list of Telling
        One per group.

    Examples
    --------
    >>> counts = csr_array(np.array([[90, 30, 0], [90, 0, 40], [80, 0, 50]]))  # the, dog, bond
    >>> rows = np.array([20.0, 20.0, 20.0])
    >>> [found.words.tolist() for found in telling_words(counts, rows, 2, np.array([0, 1, 1]))]
    [[1, 0], [2, 0]]
    """
    present, rows = presences(counts, rows), np.asarray(rows, np.float64)
    if groups is not None:
        shape = (int(np.max(groups, initial=-1)) + 1, len(groups))
        member = csr_array((np.ones(len(groups)), (groups, np.arange(len(groups)))), shape=shape)
        present, rows = member @ present, member @ rows
        present.sort_indices()
    owner = np.repeat(np.arange(present.shape[0]), np.diff(present.indptr))
    share, words = present.data / rows[owner], present.indices
    overall = np.bincount(words, present.data, minlength=counts.shape[1])
    typical = np.bincount(words, share, minlength=counts.shape[1]) / max(rows.size, 1)
    usual = np.maximum((overall + DOUBT) / (rows.sum() + DOUBT), typical)
    scores = explained(present, rows)[words] * share * np.log(share / usual[words])
    order = np.lexsort((-share, -scores, owner))  # otherwise, frequent words come first
    ranked, scores = words[order].astype(np.int64), scores[order]
    return [
        Telling(ranked[start:stop], scores[start:stop])
        for start, stop in zip(
            present.indptr[:-1].tolist(),
            np.minimum(present.indptr[:-1] + n, present.indptr[1:]).tolist(),
            strict=True,
        )
    ]
