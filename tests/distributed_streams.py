"""What the tests of distributed streams share: a small corpus, and the bits of a model."""

import numpy as np

from bnpstream import PitmanYor, StreamingMixture
from bnpstream.datasets import synthetic_corpus
from bnpstream.mixture.snapshot import state_arrays

N_ROWS, PART = 900, 100
PREFIX = 150


def corpus():
    """Return documents of some forty clusters, which keep on coming."""
    prior = PitmanYor(4.0, discount=0.4)
    return synthetic_corpus(N_ROWS, 120, 40.0, 20.0, prior, seed=5).counts


def blocks(rows=None, size=PART):
    rows = corpus() if rows is None else rows
    return [rows[start : start + size] for start in range(0, rows.shape[0], size)]


def learning(**settings):
    """Return a model that learns prior and base measure, several times within the corpus."""
    return StreamingMixture(**({"prefix_rows": PREFIX} | settings))


def serial(model, parts):
    for part in parts:
        model.partial_fit(part)
    return model.finish()


def fingerprint(model):
    """Return the bits of a posterior, what was learnt, and its history."""
    base = getattr(model.likelihood_, "alpha", None)
    learner = model.stream_.learner
    return (
        {name: x.tobytes() for name, x in state_arrays(model.state_).items()},
        repr(model.prior_),
        None if base is None else np.asarray(base).tobytes(),
        None if learner is None else (learner.n_next, learner.scale),
        model.lineage_,
    )
