"""What the paper says about KOS, and whether it is so here."""

from typing import Any

import numpy as np

from tank2015.kos_exhibits import PAPER_LEVELS, curve, last, levels
from tank2015.kos_runs import PRIORS, sample, smooth, stream, tune
from tank2015.modelling import NAMES
from tank2015.showing import Claim
from tank2015.steps import Results, lead


def claims(found: Results) -> list[Claim]:
    """Judge the paper's sentences in their order."""
    return [
        *_better_prior(found),
        *_more_clusters(found),
        _small_clusters(found),
        _first_epoch(found),
        *_gibbs(found),
        _competitive(found),
        _levels(found),
        _grid(found),
        _alpha(found),
        _seconds(found),
    ]


def _mean(found: Results, method: str, prior: str, key: str = "log_predictive") -> float:
    return float(last(found, method, prior, key, split=0).mean())


def _better_prior(found: Results) -> list[Claim]:
    made = []
    for method in ("ADF", "EP", "Gibbs"):
        one, other = (
            last(found, method, prior, "log_predictive", split=0) for prior in ("nig", "dp")
        )
        here, leads_here = lead(one - other)
        splits, leads = lead(levels(found, method, "nig") - levels(found, method, "dp"))
        paper = PAPER_LEVELS[method, "nig"] - PAPER_LEVELS[method, "dp"]
        made.append(
            Claim.of(
                f"NIG predicts better than DP: {method}.",
                f"Table 1: {paper:+,.0f} nats",
                f"{here} on the table's split, {splits} over splits",
                leads_here and leads,
            )
        )
    return made


def _more_clusters(found: Results) -> list[Claim]:
    extra = {
        method: _mean(found, method, "nig", "clusters") - _mean(found, method, "dp", "clusters")
        for method in ("ADF", "EP", "Gibbs")
    }
    said = ", ".join(f"{value:+.1f} ({method})" for method, value in extra.items())
    paper = "Table 1: +12 (ADF), +10 (EP), +9 (Gibbs)"
    more, about_ten = min(extra.values()) > 0, all(5 <= n <= 20 for n in extra.values())
    return [
        Claim.of("NIG has more clusters than DP with all algorithms.", paper, said, more),
        Claim.of("These are about 10 clusters more.", paper, said, about_ten),
    ]


def _small_clusters(found: Results) -> Claim:
    def count(prior: str, key: str) -> float:
        runs = found.of(stream, prior=prior, split=0)
        return float(np.mean([one["ep"][key][-1] for one in runs]))

    small = {prior: count(prior, "small") for prior in NAMES}
    large = {prior: count(prior, "clusters") - small[prior] for prior in NAMES}
    more_small, more_large = small["nig"] - small["dp"], large["nig"] - large["dp"]
    return Claim.of(
        "The additional clusters are small ones.",
        "no figure",
        f"after EP NIG has {more_small:+.1f} clusters of fewer than 10 documents and "
        f"{more_large:+.1f} larger ones than DP",
        more_small > 0 and more_small > more_large,
    )


def _first_epoch(found: Results) -> Claim:
    shares = {}
    for prior in NAMES:
        epochs, values = curve(found, prior, "log_predictive")
        mean = values.mean(axis=0)
        first = int(np.searchsorted(epochs, 1.0))
        shares[prior] = (mean[first] - mean[0]) / (mean[-1] - mean[0])
    return Claim.of(
        "EP goes on to improve, but most gains occur in the first epoch.",
        "Figure 3; Table 1: EP ahead of ADF by 3,488 (DP) and 3,393 (NIG)",
        f"EP ahead of ADF by {_gain(found, 'dp'):,.0f} (DP) and {_gain(found, 'nig'):,.0f} (NIG); "
        f"{shares['dp']:.0%} and {shares['nig']:.0%} of the rise from a tenth of the rows on is in "
        "the first epoch",
        min(shares.values()) > 0.5 and min(_gain(found, "dp"), _gain(found, "nig")) > 0,
    )


def _gain(found: Results, prior: str) -> float:
    return _mean(found, "EP", prior) - _mean(found, "ADF", prior)


def _gibbs(found: Results) -> list[Claim]:
    first: dict[str, Any] = {}
    needed: dict[str, int | None] = {}
    for prior in NAMES:
        sweeps = found.values(sample, "log_predictive", prior=prior, split=0).mean(axis=0)
        adf = _mean(found, "ADF", prior)
        first[prior] = adf - sweeps[0]
        reached = np.flatnonzero(sweeps >= adf)
        looks = found.of(sample, prior=prior, split=0)[0]["sweeps"]
        needed[prior] = looks[reached[0]] if reached.size else None
    return [
        Claim.of(
            "After one epoch ADF is much better than Gibbs.",
            "Figure 2 of the supplement",
            f"by {first['dp']:,.0f} (DP) and {first['nig']:,.0f} (NIG) nats",
            min(first.values()) > 0,
        ),
        Claim.of(
            "Gibbs needs about three epochs to reach ADF.",
            "Figure 2 of the supplement",
            ", ".join(f"{n or 'more than there are'} ({NAMES[p]})" for p, n in needed.items()),
            all(n is not None and 2 <= n <= 4 for n in needed.values()),
        ),
    ]


def _competitive(found: Results) -> Claim:
    gap = _mean(found, "EP", "nig") - _mean(found, "Gibbs", "dp")
    best = _mean(found, "Gibbs", "nig")
    others = max(_mean(found, m, p) for m in ("ADF", "EP", "Gibbs") for p in NAMES)
    rise = _mean(found, "Gibbs", "dp") - _mean(found, "ADF", "nig")
    return Claim.of(
        "Gibbs with NIG is best; EP with NIG comes close to Gibbs with DP.",
        "Table 1: EP-NIG 31 nats behind Gibbs-DP, ADF-NIG 3,424",
        f"EP-NIG {-gap:,.0f} nats behind Gibbs-DP, ADF-NIG {rise:,.0f}; best is "
        f"{'Gibbs-NIG' if best == others else 'another'}",
        best == others and -gap < 0.25 * rise,
    )


def _levels(found: Results) -> Claim:
    """Compare the paper's numbers with what splits make of ours."""
    keys = list(PAPER_LEVELS)
    ours = np.array([levels(found, method, prior) for method, prior in keys])
    paper = np.array([PAPER_LEVELS[key] for key in keys])
    away = (paper - ours.mean(axis=1)) / ours.std(axis=1, ddof=1)
    return Claim.of(
        "The numbers of Table 1.",
        "-346,023 to -341,468",
        f"within one split's standard deviation ({ours.std(axis=1, ddof=1).mean():,.0f} nats) of "
        f"the mean over splits for {int((np.abs(away) < 1).sum())} of {len(keys)} methods; "
        f"the farthest is {np.abs(away).max():.1f} away",
        bool((np.abs(away) < 2).all()),
    )


def _grid(found: Results) -> Claim:
    best = {prior: found.one(tune, prior=prior)["best"] for prior in PRIORS}
    return Claim.of(
        "The grid chooses a = 100 for DP, and a = 10, tau = 100 for NIG.",
        "Supplement, section 3.1: a tau^sigma = 100 for both",
        f"a tau^sigma = {best['dp']:g} and {best['nig']:.3g}, on a tenth of the rows",
        all(abs(value / 100 - 1) < 1e-6 for value in best.values()),
    )


def _alpha(found: Results) -> Claim:
    scores = {
        alpha: float(found.values(smooth, "log_predictive", alpha=alpha).mean())
        for alpha in found.settings.alphas
    }
    best = max(scores, key=lambda alpha: scores[alpha])
    said = ", ".join(f"{score:,.0f} ({alpha:g})" for alpha, score in scores.items())
    return Claim.of(
        "alpha = .1 gives the best overall fit.",
        "Supplement, section 3.1, no figure",
        f"ADF-NIG: {said}",
        best == 0.1,
    )


def _seconds(found: Results) -> Claim:
    adf = [one["adf"]["seconds_in_pass"] for one in found.of(stream, split=0)]
    gibbs = found.values(sample, "seconds_per_epoch", split=0)
    return Claim.of(
        "An epoch of ADF takes longer than one of Gibbs.",
        "220 s and 160 s",
        f"{np.mean(adf):.2f} s and {np.mean(gibbs):.2f} s",
        bool(np.mean(adf) > np.mean(gibbs)),
    )
