"""DP and NIG on the same splits and orders of KOS, at the same threshold and at others."""

from typing import Any

import numpy as np

from tank2015.differences import over_splits, signed, text_of
from tank2015.kos_exhibits import PAPER_ERRORS, PAPER_LEVELS
from tank2015.kos_runs import PRIORS, ordered
from tank2015.modelling import NAMES, THRESHOLD, fixed_prior, mixture
from tank2015.parts import KOS_ALPHA
from tank2015.showing import Claim, Show, spread
from tank2015.steps import Found, Results, Step, each

LOW = 0.05
"""A threshold that only a prior with a discount below it can have."""
DP, NIG, DP_LOW = (("dp", THRESHOLD), ("nig", THRESHOLD), ("dp", LOW))
KEYS, DIGITS = ("log_predictive", "clusters"), (0, 1)


def pair(prior: str, epsilon: float, split: int, order: int, n_epochs: int, n_rows: int) -> Found:
    """Run ADF, and EP if there is more than one epoch."""
    rows, held_out = ordered(split, n_rows, order)
    given = {"new_cluster_threshold": epsilon, "keep_sites": n_epochs > 1}
    model = mixture(fixed_prior(prior, *PRIORS[prior]), KOS_ALPHA, **given).fit(rows)

    def ends() -> Found:
        score = float(model.score_samples(held_out).sum())
        return {"log_predictive": score, "clusters": model.n_clusters_}

    found = {"adf": ends()}
    if n_epochs > 1:
        model.refine(rows, n_passes=n_epochs - 1)
        found["ep"] = ends()
    return found


def steps(settings: Any) -> list[Step]:
    """Return every prior and threshold on every split in every order."""
    over = {"split": list(range(settings.n_splits)), "order": list(range(settings.n_orders))}
    return [
        step
        for (prior, epsilon), n_epochs in zip(
            (DP, NIG, DP_LOW), (settings.n_epochs, settings.n_epochs, 1), strict=True
        )
        for step in each(
            pair,
            prior=prior,
            epsilon=epsilon,
            **over,
            n_epochs=n_epochs,
            n_rows=settings.n_rows,
        )
    ]


def _ends(found: Results, which: tuple[str, float], method: str, key: str) -> Any:
    """Return numbers at the end, a row per split and a column per order."""
    runs = found.of(pair, prior=which[0], epsilon=which[1])
    return np.array([one[method][key] for one in runs]).reshape(found.settings.n_splits, -1)


def report(found: Results, show: Show) -> list[Claim]:
    """Show means and differences; judge which prior predicts better."""
    epochs = f"EP, {found.settings.n_epochs} epochs"
    lines = [("adf", "ADF", DP), ("adf", "ADF", NIG), ("adf", "ADF", DP_LOW)]
    lines += [("ep", epochs, DP), ("ep", epochs, NIG)]
    rows = []
    for method, name, which in lines:
        values = [_ends(found, which, method, key) for key in KEYS]
        more = [values[i] - _ends(found, DP, method, key) for i, key in enumerate(KEYS)]
        levels = [spread(*over_splits(one), d) for one, d in zip(values, DIGITS, strict=True)]
        leads = [signed(*over_splits(one), d) for one, d in zip(more, DIGITS, strict=True)]
        rows.append(
            (name, NAMES[which[0]], which[1], *levels, *(leads if which != DP else ("", "")))
        )
    show.table(
        "pairs",
        (
            "method",
            "prior",
            "epsilon",
            "log predictive",
            "clusters",
            "ahead of DP at the same rows",
            "more clusters than DP",
        ),
        rows,
        f"{found.settings.n_splits} splits x {found.settings.n_orders} orders, both priors on the "
        "same rows in the same order. Standard errors are those of the mean over splits and "
        "orders, with a random effect of each split.",
    )
    return _claims(found)


def _claims(found: Results) -> list[Claim]:
    def apart(one: Any, other: Any, method: str = "adf") -> Any:
        ends = [_ends(found, which, method, "log_predictive") for which in (one, other)]
        return ends[0] - ends[1]

    made = []
    size = f"{found.settings.n_splits} splits x {found.settings.n_orders} orders"
    few = f", {found.settings.n_epochs} epochs"  # not the sentence of 50 epochs
    for method, name, epochs in (("adf", "ADF", ""), ("ep", "EP", few)):
        lead = over_splits(apart(NIG, DP, method))
        paper = PAPER_LEVELS[name, "nig"] - PAPER_LEVELS[name, "dp"]
        error = np.hypot(PAPER_ERRORS[name, "nig"], PAPER_ERRORS[name, "dp"])
        made.append(
            Claim.ahead(
                f"NIG predicts better than DP: {name}{epochs}.",
                f"Table 1: {paper:+,.0f} nats, {paper / error:.1f} of its standard errors",
                f"{text_of(lead, 0)} nats over {size}",
                [lead],
            )
        )
    prior, low = over_splits(apart(NIG, DP)), over_splits(apart(NIG, DP_LOW))
    threshold = over_splits(apart(DP_LOW, DP))
    more = "more" if abs(threshold[0]) > abs(prior[0]) else "less"
    made.append(
        Claim.ahead(
            "NIG predicts better than DP at any threshold: ADF.",
            "Table 1; the paper does not give its threshold",
            f"NIG at epsilon {THRESHOLD}, the least that it can have, is ahead of DP at "
            f"{THRESHOLD} by {text_of(prior, 0)} nats and at {LOW} by {text_of(low, 0)}, over "
            f"{size}; the threshold changes DP by {text_of(threshold, 0)} nats, so it matters "
            f"{more} than the prior",
            [prior, low],
        )
    )
    return made
