"""Runs on corpora of the New York Times, and on one that is drawn in their place."""

import dataclasses
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bnpstream import StreamingMixture
from bnpstream.datasets import (
    load_nyt8447,
    load_nytimes,
    prune_corpus,
    synthetic_corpus,
)
from tank2015.modelling import fixed_prior, mixture, tuned, tuning_found, watched
from tank2015.steps import Found

ALPHA = 0.5
PRIORS = {"dp": (1000.0, 1.0), "nig": (100.0, 100.0)}
"""a and tau of the paper."""
TUNING = 0.05
"""Share of the corpus that the supplement tunes on; it predicts a twentieth of that."""
MODELS = {"dp": "DP", "nig": "NIG", "learnt": "NIG, learnt base measure"}
N_TOPICS, N_TOPIC_WORDS = 4, 10


class Plan(NamedTuple):
    """Documents to predict, documents between two looks, and orders to stream in."""

    n_held_out: int
    every: int
    n_orders: int


PLANS = {"nyt8447": Plan(1000, 500, 10), "drawn": Plan(5000, 5000, 2), "uci": Plan(5000, 5000, 1)}


class Parts(NamedTuple):
    """A corpus that was pruned and split."""

    tune: Any
    train: Any
    held_out: Any
    words: list[str] | None
    every: int
    found: Found


@lru_cache(maxsize=1)
def _parts(
    corpus: str, n_documents: int, docword: str | None = None, vocab: str | None = None
) -> Parts:
    """Return the parts of a corpus after the paper's pipeline, in a random order."""
    if corpus == "uci":
        raw = load_nytimes(docword, vocab)
    elif corpus == "nyt8447":
        raw = load_nyt8447()
        raw = dataclasses.replace(raw, counts=raw.counts[:n_documents])
    else:
        raw = synthetic_corpus(n_documents=n_documents)
    pruned = prune_corpus(raw)
    n = pruned.counts.shape[0]
    plan = PLANS[corpus]
    n_held_out = min(plan.n_held_out, n // 5)  # of a corpus that was cut short
    every = min(plan.every, n // 8)
    order = np.random.default_rng(0).permutation(n)
    n_tune = round(TUNING * n)
    return Parts(
        pruned.counts[order[n_held_out : n_held_out + n_tune]],
        pruned.counts[order[n_held_out + n_tune :]],
        pruned.counts[order[:n_held_out]],
        pruned.feature_names,
        every,
        {
            "documents": [int(raw.counts.shape[0]), n],
            "words": [int(raw.counts.shape[1]), int(pruned.counts.shape[1])],
            "tokens": int(pruned.counts.sum()),
            "tuned": n_tune,
            "streamed": n - n_tune - n_held_out,
            "held_out": n_held_out,
            "held_out_tokens": int(pruned.counts[order[:n_held_out]].sum()),
            "every": every,
        },
    )


def describe(**source: Any) -> Found:
    """Count documents and words before and after pruning."""
    return _parts(**source).found


def tune(prior: str, **source: Any) -> Found:
    """Search the paper's grid."""
    return tuning_found(tuned(prior, _parts(**source).tune, ALPHA, held_out=TUNING))


def stream(model: str, order: int, **source: Any) -> Found:
    """Stream the corpus once in some order, looking at it as often as the paper does."""
    parts = _parts(**source)
    rows = parts.train[np.random.default_rng(order).permutation(parts.train.shape[0])]
    if model == "learnt":
        learner = StreamingMixture("nig")
    else:
        learner = mixture(fixed_prior(model, *PRIORS[model]), ALPHA)
    marks = [*range(parts.every, rows.shape[0], parts.every), rows.shape[0]]
    curve = watched(learner, rows, parts.held_out, marks)
    if order > 0:  # the rest is looked at once
        return {"curve": curve}
    found = {"curve": curve, "weights": -np.sort(-learner.weights_)}
    if parts.words is not None:
        heaviest = np.argsort(-learner.weights_, kind="stable")[:N_TOPICS]
        topics = {k: _likeliest(learner.means_[k], parts.words) for k in heaviest}
        found["topics"] = [
            {
                "weight": float(learner.weights_[k]),
                "words": [[word, 100 * share] for word, share in topic],
                "coherence": _coherence(topic, parts),
            }
            for k, topic in topics.items()
        ]
        common = np.asarray(parts.held_out.sum(axis=0)).ravel().argsort()[::-1][:N_TOPIC_WORDS]
        found["coherence_of_common"] = _coherence([(parts.words[w], 0.0) for w in common], parts)
    return found


def _likeliest(mean: Any, words: Any) -> list[tuple[str, float]]:
    """Return the likeliest words of a topic, as the paper shows them, and their probabilities."""
    return [(words[w], float(mean[w])) for w in np.argsort(-mean, kind="stable")[:N_TOPIC_WORDS]]


def _coherence(topic: Any, parts: Parts) -> float:
    """Return the mean normalized pointwise mutual information of a topic's words.

    It is 0 where words are in held-out documents independently of each other, and 1 where they
    are always together.
    """
    assert parts.words is not None
    columns = [parts.words.index(word) for word, _ in topic]
    there = (parts.held_out[:, columns].toarray() > 0).astype(float)
    smoothing = 1.0 / len(there)
    single = there.mean(axis=0) + smoothing
    both = there.T @ there / len(there) + smoothing
    scores = np.log(both / np.outer(single, single)) / -np.log(both)
    return float(scores[np.triu_indices(len(columns), 1)].mean())
