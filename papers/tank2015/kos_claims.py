"""What the paper says about KOS, and whether it is so here."""

from typing import Any

import numpy as np

from tank2015.differences import ahead, apart, text_of
from tank2015.kos_exhibits import PAPER_ERRORS, PAPER_LEVELS, curve, last, levels, mixing
from tank2015.kos_runs import PRIORS, sample, smooth, stream, tune
from tank2015.modelling import NAMES
from tank2015.showing import Claim
from tank2015.steps import Results, mean_and_error


def claims(found: Results) -> list[Claim]:
    """Judge the paper's sentences in their order."""
    return [
        *_better_prior(found),
        *_more_clusters(found),
        _small_clusters(found),
        _first_epoch(found),
        *_gibbs(found),
        *_competitive(found),
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
        here = mean_and_error(one - other)
        splits = mean_and_error(levels(found, method, "nig") - levels(found, method, "dp"))
        paper = PAPER_LEVELS[method, "nig"] - PAPER_LEVELS[method, "dp"]
        error = np.hypot(PAPER_ERRORS[method, "nig"], PAPER_ERRORS[method, "dp"])
        made.append(
            Claim.ahead(
                f"NIG predicts better than DP: {method}.",
                f"Table 1: {paper:+,.0f} nats, {paper / error:.1f} of its standard errors",
                f"{text_of(here, 0)} nats on the table's split, {text_of(splits, 0)} over splits"
                + (mixing(found, "log_predictive") if method == "Gibbs" else ""),
                [here, splits],
            )
        )
    return made


def _more_clusters(found: Results) -> list[Claim]:
    extra = {}
    for method in ("ADF", "EP", "Gibbs"):
        one, other = (last(found, method, prior, "clusters", split=0) for prior in ("nig", "dp"))
        extra[method] = mean_and_error(one - other)
    said = ", ".join(f"{text_of(value, 1)} ({method})" for method, value in extra.items())
    said += mixing(found, "clusters")
    paper, more = "Table 1: +12 (ADF), +10 (EP), +9 (Gibbs)", list(extra.values())
    with_all = "NIG has more clusters than DP with all algorithms."
    return [
        Claim.ahead(with_all, paper, said, more, unit="clusters"),
        Claim.reported("These are about 10 clusters more.", paper, said),
    ]


def _small_clusters(found: Results) -> Claim:
    def extra(key: str) -> Any:
        counts = {
            prior: np.array([one["ep"][key][-1] for one in found.of(stream, prior=prior, split=0)])
            for prior in NAMES
        }
        return counts["nig"] - counts["dp"]

    small = extra("small")
    large = extra("clusters") - small
    return Claim.ahead(
        "The additional clusters are small ones.",
        "no figure",
        f"after EP NIG has {text_of(mean_and_error(small), 1)} clusters of fewer than 10 documents "
        f"and {text_of(mean_and_error(large), 1)} larger ones than DP",
        [mean_and_error(small), mean_and_error(small - large)],
        unit="clusters",
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
        Claim.reported(
            "Gibbs needs about three epochs to reach ADF.",
            "Figure 2 of the supplement",
            ", ".join(f"{n or 'more than there are'} ({NAMES[p]})" for p, n in needed.items()),
        ),
    ]


def _competitive(found: Results) -> list[Claim]:
    def ends(method: str, prior: str) -> Any:
        return last(found, method, prior, "log_predictive", split=0)

    best, others = ("Gibbs", "nig"), [(m, p) for m in ("ADF", "EP", "Gibbs") for p in NAMES]
    others.remove(best)
    leads = {key: apart(ends(*key), ends(*best)) for key in others}
    nearest = max(others, key=lambda key: leads[key][0])
    ahead = [(-mean, error) for mean, error in leads.values()]
    gap, rise = (apart(ends("Gibbs", "dp"), ends(m, "nig")) for m in ("EP", "ADF"))
    return [
        Claim.ahead(
            "Gibbs with NIG is best.",
            "Table 1: ahead of Gibbs-DP by 696 nats",
            f"ahead of {nearest[0]}-{NAMES[nearest[1]]}, the best of the others, by "
            f"{text_of(ahead[others.index(nearest)], 0)} nats{mixing(found, 'log_predictive')}",
            ahead,
        ),
        Claim.reported(
            "EP with NIG comes close to Gibbs with DP.",
            "Table 1: EP-NIG 31 nats behind Gibbs-DP, ADF-NIG 3,424",
            f"EP-NIG {text_of(gap, 0)} nats behind Gibbs-DP, ADF-NIG {text_of(rise, 0)}",
        ),
    ]


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
    return Claim.reported(
        "The grid chooses a = 100 for DP, and a = 10, tau = 100 for NIG.",
        "Supplement, section 3.1: a tau^sigma = 100 for both",
        f"a tau^sigma = {best['dp']:g} and {best['nig']:.3g}, on a tenth of the rows",
    )


def _alpha(found: Results) -> Claim:
    scores = {
        alpha: found.values(smooth, "log_predictive", alpha=alpha)
        for alpha in found.settings.alphas
    }
    said = ", ".join(f"{score.mean():,.0f} ({alpha:g})" for alpha, score in scores.items())
    leads = [ahead(scores[0.1], score) for alpha, score in scores.items() if alpha != 0.1]
    return Claim.ahead(
        "alpha = .1 gives the best overall fit.",
        "Supplement, section 3.1, no figure",
        f"ADF-NIG: {said}",
        leads,
    )


def _seconds(found: Results) -> Claim:
    adf = [one["adf"]["seconds_in_pass"] for one in found.of(stream, split=0)]
    gibbs = found.values(sample, "seconds_per_epoch", split=0)
    return Claim.reported(
        "An epoch of ADF takes longer than one of Gibbs.",
        "220 s and 160 s",
        f"{np.mean(adf):.2f} s and {np.mean(gibbs):.2f} s",
    )
