"""The two streams that choices are compared on, and the priors that are."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bnpstream import GeneralizedGamma
from bnpstream.priors import Prior
from tank2015.modelling import mixture, watched
from tank2015.parts import (
    KOS_ALPHA,
    KOS_SIZE,
    POWERLAW_ALPHA,
    Parts,
    kos_parts,
    powerlaw_parts,
)
from tank2015.steps import Found

STREAMS = {"powerlaw": "power law", "kos": "KOS"}
ALPHAS = {"powerlaw": POWERLAW_ALPHA, "kos": KOS_ALPHA}
STRENGTHS = {("powerlaw", 0.0): 100.0, ("powerlaw", 0.5): 1000.0**0.5}
STRENGTHS |= {("kos", 0.0): 100.0, ("kos", 0.5): 100.0}
"""The paper's choices for both streams, by discount: a tau^sigma, which is all that matters."""
DISCOUNTS = {"DP": 0.0, "NIG": 0.5}


def parts(stream: str, scale: float) -> Parts:
    """Return a stream, or some share of it."""
    if stream == "kos":
        return kos_parts(round(scale * KOS_SIZE))
    return powerlaw_parts(scale)


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
