"""What the printed formula for U would have done."""

from typing import Any

import numpy as np

from bnpstream import GeneralizedGamma
from bnpstream.plots.style import BLUE, GREEN, ORANGE, PURPLE, stream_axes
from tank2015.beyond_streams import parts, streamed
from tank2015.differences import ahead, signed, text_of
from tank2015.modelling import thin
from tank2015.printed_rule import PrintedGeneralizedGamma, total_probability
from tank2015.showing import Claim, Show, spread
from tank2015.steps import Found, Results, Step, each, mean_and_error

TWINS = [(1.0, 1000.0), (10.0, 10.0), (100.0, 0.1)]
"""Three points (a, tau) of the paper's grid that are one prior; it chose the first."""
CORRECTED, *PRINTED = LABELS = ["corrected, all three", *(f"printed, a {a:g}" for a, _ in TWINS)]
STYLES = dict(zip(LABELS, [(BLUE, "-"), (GREEN, "--"), (ORANGE, "-."), (PURPLE, ":")], strict=True))
SHARE = 0.2
"""Of the power-law stream: the printed rule runs in NumPy only."""
FEW = 5
"""Rows whose partitions are summed."""


def _prior(a: float, tau: float, printed: bool) -> GeneralizedGamma:
    return (PrintedGeneralizedGamma if printed else GeneralizedGamma)(a, 0.5, tau)


def sum_partitions(a: float, tau: float, printed: bool) -> Found:
    """Sum the probabilities of all partitions of a few rows."""
    return {"total": total_probability(_prior(a, tau, printed), FEW)}


def seat(a: float, tau: float, printed: bool, scale: float, n_marks: int) -> Found:
    """Return the probability of a new cluster along the power-law stream, its clusters known."""
    labels, prior = parts("powerlaw", scale).labels, _prior(a, tau, printed)
    marks, chances, clusters = thin(labels.size, n_marks), [], []
    for n in marks:
        counts = np.unique(labels[:n], return_counts=True)[1].astype(float)
        surely = np.full(counts.size, -np.inf)
        mode = prior.solve_auxiliary(counts, surely, float(n), np.nan)
        chances.append(np.exp(prior.log_weights(counts, surely, float(n), mode)[-1]))
        clusters.append(counts.size)
    return {"documents": marks, "chance": chances, "clusters": clusters}


def misprint(a: float, tau: float, printed: bool, order: int, scale: float) -> Found:
    """Stream a part of the power law with either formula."""
    return streamed("powerlaw", scale * SHARE, order, _prior(a, tau, printed), engine="reference")


def steps(settings: Any) -> list[Step]:
    """Return both formulas with all twins; of the corrected one the twins are the same."""
    looks = {"scale": settings.scale, "n_marks": 2 * settings.n_marks}
    rest = {"order": list(range(settings.n_repeats)), "scale": settings.scale}
    return [
        step
        for a, tau in TWINS
        for step in (
            *each(sum_partitions, a=a, tau=tau, printed=[False, True]),
            *each(seat, a=a, tau=tau, printed=[False, True], **looks),
            *each(misprint, a=a, tau=tau, printed=[False, True], **rest),
        )
    ]


def report(found: Results, show: Show) -> list[Claim]:
    """Draw the chance of a new cluster; tabulate what becomes of the stream."""
    _draw(found, show)
    keys = ("log_predictive", "clusters")
    numbers = {
        (a, printed): {key: found.values(misprint, key, a=a, printed=printed) for key in keys}
        for a, _ in TWINS
        for printed in (False, True)
    }
    leads = {
        a: ahead(numbers[a, True]["log_predictive"], numbers[a, False]["log_predictive"])
        for a, _ in TWINS
    }
    totals = {
        (a, printed): found.one(sum_partitions, a=a, printed=printed)["total"]
        for a, printed in numbers
    }
    show.table(
        "printed",
        (
            "formula",
            "a",
            "tau",
            "nats per document",
            "ahead of corrected",
            "clusters",
            f"all partitions of {FEW}",
        ),
        [
            (
                "printed" if printed else "corrected",
                f"{a:g}",
                f"{tau:g}",
                spread(*mean_and_error(numbers[a, printed]["log_predictive"]), 3),
                signed(*leads[a]) if printed else "",
                spread(*mean_and_error(numbers[a, printed]["clusters"]), 1),
                (totals[a, printed], f"{totals[a, printed]:.4g}"),
            )
            for a, tau in TWINS
            for printed in (False, True)
        ],
        "Eqs. (6) and (21) of the paper: NIG on "
        f"{parts('powerlaw', found.settings.scale * SHARE).rows.shape[0]:,} documents of the power "
        "law, epsilon .5. The three pairs (a, tau) are the same prior. The last column is the "
        "summed probability of all partitions, which is one for a probability.",
    )
    off = ", ".join(f"{totals[a, True]:.3g}" for a, _ in TWINS)
    clusters = ", ".join(f"{numbers[a, True]['clusters'].mean():.0f}" for a, _ in TWINS)
    return [
        Claim.of(
            "p(U | z) has (U + tau)^(n - a K) in its denominator, Eqs. (6) and (21).",
            "A formula",
            f"partitions of {FEW} rows have summed probabilities {off} with it and 1 with "
            "n - sigma K; streams of a = 1, 10, 100 with the same a tau^sigma, one prior, get "
            f"{clusters} clusters, and {numbers[1.0, False]['clusters'].mean():.0f} with the "
            "corrected one; the printed one is ahead by "
            f"{', '.join(text_of(leads[a]) for a, _ in TWINS)} nats per document; the paper's grid "
            "chose a = 1, where the error does least",
            all(abs(totals[a, True] - 1.0) < 1e-6 for a, _ in TWINS),
        )
    ]


def _draw(found: Results, show: Show) -> None:
    figure, ax = show.panels(1, size=(5.8, 3.0))
    first = TWINS[0][0]
    curves = {CORRECTED: found.one(seat, a=first, printed=False)}
    curves |= {
        label: found.one(seat, a=a, printed=True)
        for label, (a, _) in zip(PRINTED, TWINS, strict=True)
    }
    for label, curve in curves.items():
        colour, line = STYLES[label]
        ax.plot(curve["documents"], curve["chance"], color=colour, linestyle=line, label=label)
    opened = np.diff(curves[CORRECTED]["clusters"]) / np.diff(curves[CORRECTED]["documents"])
    middles = np.convolve(curves[CORRECTED]["documents"], [0.5, 0.5], "valid")
    ax.plot(middles, opened, "o", color="#000000", markersize=3.5, label="share that was new")
    stream_axes(ax, curves[CORRECTED]["documents"][-1])
    ax.set(xlabel="documents", ylabel="chance of a new cluster", ylim=(0, 1.05))
    figure.legend(loc="outside right center", frameon=False)
    show.figure(
        "printed",
        figure,
        "Eq. (21) of the paper: prior probability of a new cluster along the power-law stream with "
        "its true clusters, by the corrected formula, which is the same for three pairs (a, tau) "
        "that are the same prior, and by the printed one, which is not. Dots are documents that "
        "did open one.",
    )
