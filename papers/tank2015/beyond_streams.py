"""The two streams that choices are compared on, and the priors that are."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from bnpstream import GeneralizedGamma
from bnpstream.datasets import load_kos, powerlaw_documents
from bnpstream.priors import Prior
from tank2015.modelling import mixture, watched
from tank2015.steps import Found

STREAMS = {"powerlaw": "power law", "kos": "KOS"}
ALPHAS = {"powerlaw": 0.75, "kos": 0.1}
STRENGTHS = {("powerlaw", 0.0): 100.0, ("powerlaw", 0.5): 1000.0**0.5}
STRENGTHS |= {("kos", 0.0): 100.0, ("kos", 0.5): 100.0}
"""The paper's choices for both streams, by discount: a tau^sigma, which is all that matters."""
DISCOUNTS = {"DP": 0.0, "NIG": 0.5}


class Parts(NamedTuple):
    """The documents of a stream, by their use."""

    tuning: Any
    rows: Any
    held_out: Any
    labels: Any
    """True clusters of the rows, where they are known."""


@cache
def parts(stream: str, scale: float) -> Parts:
    """Return a stream, or some share of it.

    The power law has documents of its own to tune by; KOS is tuned by the first of its rows, a
    tenth of the corpus.
    """
    if stream == "kos":
        counts = load_kos().counts
        order = np.random.default_rng(0).permutation(counts.shape[0])
        n = round(scale * counts.shape[0])
        rows, held_out = counts[order[n // 5 : n]], counts[order[: n // 5]]
        return Parts(rows[: n // 10], rows, held_out, None)
    ends = np.cumsum([round(scale * size) for size in (1000, 7000, 2000)])
    drawn = powerlaw_documents(n_documents=int(ends[-1]), alpha=ALPHAS[stream], seed=0)
    order = np.random.default_rng(0).permutation(int(ends[-1]))
    tuning, rows, held_out = np.split(order, ends[:-1])
    assert drawn.labels is not None
    return Parts(
        drawn.counts[tuning], drawn.counts[rows], drawn.counts[held_out], drawn.labels[rows]
    )


def paper_prior(stream: str, prior: str, **ways: Any) -> GeneralizedGamma:
    """Return "DP" or "NIG" with the paper's hyperparameters for a stream."""
    sigma = DISCOUNTS[prior]
    return GeneralizedGamma(STRENGTHS[stream, sigma], sigma, **ways)


def streamed(
    stream: str,
    scale: float,
    order: int,
    prior: Prior,
    marks: Sequence[int] | None = None,
    **settings: Any,
) -> Found:
    """Stream documents in some order; return what was seen at the marks, or at the end.

    Log predictives are per held-out document.
    """
    part = parts(stream, scale)
    n = part.rows.shape[0]
    model = mixture(prior, ALPHAS[stream], **settings)
    rows = part.rows[np.random.default_rng(order).permutation(n)]
    found = watched(model, rows, part.held_out, [n] if marks is None else marks)
    curve = np.array(found["log_predictive"]) / part.held_out.shape[0]
    occupied = float(-np.expm1(model.state_.log_vacancy).sum())
    seen = {"log_predictive": curve, "clusters": found["clusters"]}
    if marks is None:
        seen = {key: values[-1] for key, values in seen.items()}
    return {**seen, "expected_clusters": occupied, "seconds": found["seconds_in_pass"]}
