"""Corpora of the comparison with peers, and the one figure that every topic model can give.

Document completion: the tokens of a held-out document are dealt into two halves at random, once
and for all methods. A method sees the first half and gives shares theta of its clusters or topics;
the second half is scored token by token with sum_k theta_k phi_k(w), where phi_k are the word
probabilities at the end of training. What is reported is the mean log probability of a token.

The methods' own figures are not compared, since they are different quantities: scikit-learn and
gensim give a lower bound that includes the topics', tomotopy the joint with sampled topics, and
bnpstream the exact predictive of a whole document.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bnpstream.datasets import load_20news, load_kos

Rows = sparse.csr_array[np.int64]
Floats = NDArray[np.float64]

KOS_HELD_OUT = 686
LABELLED, COMPLETED = 1000, 400
"""Documents of 20 Newsgroups' test split to compare with labels, and to complete at every look:
the slowest peers take 20 and 5 ms for one."""
RAREST, COMMONEST = 5, 0.1
"""Words of 20 Newsgroups: in 5 training documents at least, and in a tenth of them at most. The
corpus has no stop list; KOS comes with the one and the other done."""


class Corpus(NamedTuple):
    """Documents to learn from, and held-out ones: whole, and the first of them in two halves."""

    name: str
    rows: Rows
    held_out: Rows
    labels: NDArray[np.intp] | None
    seen_half: Rows
    scored_half: Rows


def kos(n_documents: int | None) -> Corpus:
    """Return KOS, split as first in `papers/tank2015`."""
    counts = load_kos().counts
    order = np.random.default_rng(0).permutation(counts.shape[0])
    rows, held_out = counts[order[KOS_HELD_OUT:]], counts[order[:KOS_HELD_OUT]]
    return _corpus("KOS", rows[:n_documents], held_out, None, KOS_HELD_OUT)


def newsgroups(n_documents: int | None) -> Corpus:
    """Return 20 Newsgroups, shuffled, its vocabulary cut, and part of its test split."""
    train, test = load_20news("train"), load_20news("test")
    rng = np.random.default_rng(0)
    frequencies = (train.counts > 0).sum(axis=0)
    words = (frequencies >= RAREST) & (frequencies <= COMMONEST * train.counts.shape[0])
    rows = train.counts[:, words][rng.permutation(train.counts.shape[0])]
    chosen = rng.permutation(test.counts.shape[0])[:LABELLED]
    assert test.labels is not None
    held_out = test.counts[:, words][chosen]
    return _corpus("20 Newsgroups", rows[:n_documents], held_out, test.labels[chosen], COMPLETED)


CORPORA = {"kos": kos, "20news": newsgroups}


def _corpus(
    name: str, rows: Rows, held_out: Rows, labels: NDArray[np.intp] | None, n_completed: int
) -> Corpus:
    """Keep words that occur in training, since tomotopy knows no others, and deal the halves."""
    words = rows.sum(axis=0) > 0
    rows, held_out = rows[:, words], held_out[:, words]
    enough = held_out.sum(axis=1) >= 2
    held_out = held_out[enough]
    halves = _halves(held_out[:n_completed], np.random.default_rng(1))
    return Corpus(name, rows, held_out, None if labels is None else labels[enough], *halves)


def _halves(rows: Rows, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Deal the tokens of every document into a first half, the smaller if odd, and a second."""
    lengths: NDArray[np.int64] = rows.sum(axis=1)
    documents = np.repeat(np.arange(rows.shape[0]), lengths)
    words = np.repeat(rows.indices, rows.data)
    words = words[np.lexsort((rng.random(words.size), documents))]
    places = np.arange(words.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    first = places < np.repeat(lengths // 2, lengths)

    def count(tokens: NDArray[np.bool_]) -> Rows:
        ones = np.ones(tokens.sum(), dtype=np.int64)
        cells: Any = (ones, (documents[tokens], words[tokens]))
        return sparse.csr_array(cells, shape=rows.shape)

    return count(first), count(~first)


def completion(shares: Floats, word_probabilities: Floats, scored_half: Rows) -> float:
    """Return the mean log probability of a token of the second halves.

    Parameters
    ----------
    shares : ndarray of shape (n, K)
        theta, from the first halves.
    word_probabilities : ndarray of shape (K, V)
        phi.
    scored_half : csr_array of shape (n, V)
        The second halves.
    """
    total = 0.0
    for row, (start, end) in enumerate(pairwise(scored_half.indptr)):
        probabilities = shares[row] @ word_probabilities[:, scored_half.indices[start:end]]
        total += scored_half.data[start:end] @ np.log(probabilities)
    return float(total / scored_half.sum())
