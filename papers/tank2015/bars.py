"""Synthetic bars: whether components are found, and what merges remove."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bnpstream import DirichletMultinomial, StreamingMixture, normalized_inverse_gaussian
from bnpstream.datasets import bars, bars_components
from bnpstream.plots import plot_means
from bnpstream.plots.style import BLUE, ORANGE, tidy
from tank2015.differences import ahead
from tank2015.showing import Claim, Show, spread
from tank2015.steps import Found, Results, Step, each, mean_and_error

TITLE = "Figure 1: 200 images of 8 x 8 pixels, 50 counts each, of 16 bars with a baseline."

BASELINE = 0.5
"""What the paper calls an additive baseline, and does not give: with half of all counts spread
evenly over the image, clusters overlap enough for merges to matter."""
CLOSE = 0.2
"""Total variation between a posterior mean and a bar below which the bar is found; two bars are at
least .35 apart with the largest baseline used here."""
MERGE_ODDS = 5.0
"""A conservatively large threshold, as the paper says: 150 to 1."""


@dataclass(frozen=True)
class Settings:
    """Data sets, base measures of the robustness check, and other baselines to try."""

    n_seeds: int
    alphas: tuple[float, ...]
    baselines: tuple[float, ...]


FULL = Settings(20, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), (0.3, 0.4, 0.6))
SMALL = Settings(3, (0.1, 0.5, 0.9), (0.3,))


def recover(baseline: float, alpha: float, merge: bool, seed: int) -> Found:
    """Stream images once; compare the posterior means with the bars."""
    model = StreamingMixture(
        normalized_inverse_gaussian(concentration=1, tilt=1),
        DirichletMultinomial(alpha),
        new_cluster_threshold=0.5,
        max_responsibilities=None,
        keep_sites=True,
        merge_threshold=MERGE_ODDS if merge else None,
    )
    model.partial_fit(bars(seed=seed, baseline=baseline).counts).finish()
    truth = bars_components(baseline=baseline)
    distances = 0.5 * np.abs(model.means_[:, None] - truth).sum(axis=2)
    found: Found = {
        "recovered": int((distances.min(axis=0) < CLOSE).sum()),
        "clusters": model.n_clusters_,
        "extraneous": int((distances.min(axis=1) >= CLOSE).sum()),
    }
    if (seed, alpha, baseline) == (0, 0.5, BASELINE):
        found |= {"means": model.means_, "weights": model.weights_}
    return found


def steps(settings: Settings) -> list[Step]:
    """Return every base measure with every data set, with merges and without."""
    ways: dict[str, Any] = {"merge": [True, False], "seed": list(range(settings.n_seeds))}
    return [
        *each(recover, baseline=BASELINE, alpha=list(settings.alphas), **ways),
        *each(recover, baseline=list(settings.baselines), alpha=0.5, **ways),
    ]


def report(found: Results, show: Show) -> list[Claim]:
    """Draw the components; judge the paper's three sentences."""
    _draw_components(found, show)
    numbers = {
        (alpha, merge): _numbers(found, baseline=BASELINE, alpha=alpha, merge=merge)
        for alpha in found.settings.alphas
        for merge in (True, False)
    }
    others = {
        (baseline, merge): _numbers(found, baseline=baseline, alpha=0.5, merge=merge)
        for baseline in found.settings.baselines
        for merge in (True, False)
    }
    _draw_robustness(found.settings.alphas, numbers, show)
    rows = [(BASELINE, *setting, row) for setting, row in numbers.items()]
    rows += [(baseline, 0.5, merge, row) for (baseline, merge), row in others.items()]
    show.table(
        "robustness",
        ("baseline", "alpha", "merge", "bars found of 16", "clusters", "clusters that are no bar"),
        [
            (baseline, alpha, "yes" if merge else "no", *(spread(*v, 1) for v in row.values()))
            for baseline, alpha, merge, row in rows
        ],
        f"Means of {found.settings.n_seeds} data sets. A bar is found if a cluster's posterior "
        f"mean is within {CLOSE} of it in total variation. NIG with a = 1, tau = 1 (the paper "
        "does not say), threshold .5; merges where the log odds exceed 5, after the pass.",
    )
    with_merge, without = numbers[0.5, True], numbers[0.5, False]
    half = {"baseline": BASELINE, "alpha": 0.5}
    least = min(row["recovered"][0] for row in numbers.values())
    return [
        Claim.of(
            "With and without merges the algorithm learns the correct clusters.",
            "Figure 1",
            f"{with_merge['recovered'][0]:.1f} and {without['recovered'][0]:.1f} of 16 bars",
            min(with_merge["recovered"][0], without["recovered"][0]) >= 15.5,
        ),
        Claim.ahead(
            "Merge moves remove redundant and extraneous clusters.",
            "Figure 1",
            f"{without['clusters'][0]:.1f} clusters without merges, "
            f"{with_merge['clusters'][0]:.1f} with; "
            f"{without['extraneous'][0]:.1f} and {with_merge['extraneous'][0]:.1f} of them "
            "are no bar",
            [
                ahead(*(found.values(recover, key, **half, merge=merge) for merge in (False, True)))
                for key in ("clusters", "extraneous")
            ],
            unit="clusters",
        ),
        Claim.of(
            "Recovery of the bars is robust to alpha in [.1, .9].",
            "Supplement, section 3.1, no figure",
            f"at least {least:.1f} of 16 bars on average, whatever alpha",
            least >= 15.0,
        ),
    ]


def _numbers(found: Results, **arguments: Any) -> dict[str, tuple[float, float]]:
    return {
        key: mean_and_error(found.values(recover, key, **arguments))
        for key in ("recovered", "clusters", "extraneous")
    }


def _draw_components(found: Results, show: Show) -> None:
    figure, panels = show.panels(1, 2, size=(5.8, 5.0))
    for ax, merge in zip(panels, (True, False), strict=True):
        record = found.one(recover, baseline=BASELINE, alpha=0.5, merge=merge, seed=0)
        plot_means(record["means"], record["weights"], (8, 8), ax=ax)
        ax.set_title(f"{'with' if merge else 'without'} merges: {record['clusters']} clusters")
    show.figure(
        "components",
        figure,
        "Figure 1 of the paper: posterior mean components of one data set, alpha .5, with their "
        "share of the images.",
    )


def _draw_robustness(alphas: tuple[float, ...], numbers: Any, show: Show) -> None:
    figure, (left, right) = show.panels()
    for merge, colour, mark in ((True, BLUE, "o"), (False, ORANGE, "s")):
        style = {"color": colour, "marker": mark, "markersize": 4, "capsize": 2}
        label = "with merges" if merge else "without"
        for ax, key in ((left, "recovered"), (right, "clusters")):
            mean, error = np.array([numbers[alpha, merge][key] for alpha in alphas]).T
            ax.errorbar(alphas, mean, error, label=label, **style)
    left.set(xlabel="alpha", ylabel="bars found, of 16", ylim=(0, 17), yticks=range(0, 17, 4))
    right.set(xlabel="alpha", ylabel="clusters")
    right.set_ylim(bottom=0)
    right.axhline(16, color="#777777", linewidth=0.8, linestyle=":")
    for ax in (left, right):
        tidy(ax)
    left.legend(loc="lower left", frameon=False)
    show.figure(
        "robustness",
        figure,
        "Section 3.1 of the supplement: bars found and clusters by alpha. The dotted line is the "
        "true number.",
    )
