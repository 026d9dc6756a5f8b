"""What merging does, by its threshold and by how often it happens."""

from itertools import product
from typing import Any

from bnpstream.plots.style import BLUE, ORANGE, tidy
from tank2015.beyond_streams import STREAMS, paper_prior, parts, streamed
from tank2015.differences import ahead, beyond_noise, from_zero, signed, text_of
from tank2015.showing import Claim, Show, spread
from tank2015.steps import Found, Results, Step, each, mean_and_error

SELDOM, OFTEN = 1000, 100
"""Documents between merges."""
STYLES = {("DP", SELDOM): (BLUE, "-", "o"), ("DP", OFTEN): (BLUE, "--", "^")}
STYLES |= {("NIG", SELDOM): (ORANGE, "-", "s"), ("NIG", OFTEN): (ORANGE, "--", "v")}


def merge(stream: str, prior: str, odds: float, every: int, order: int, scale: float) -> Found:
    """Stream with merges."""
    settings = {"merge_threshold": odds, "merge_every": every}
    return streamed(stream, scale, order, paper_prior(stream, prior), **settings)


def never_merge(stream: str, prior: str, order: int, scale: float) -> Found:
    """Stream without."""
    return streamed(stream, scale, order, paper_prior(stream, prior), merge_threshold=None)


def steps(settings: Any) -> list[Step]:
    """Return every threshold, often and seldom, for every prior, stream and order."""
    scales = {"kos": settings.scale, "powerlaw": settings.merge_scale}
    orders, odds = list(range(settings.n_repeats)), list(settings.merge_odds)
    return [
        step
        for stream, scale in scales.items()
        for which in [{"stream": stream, "prior": ["DP", "NIG"]}]
        for rest in [{"order": orders, "scale": scale}]
        for step in (
            *each(never_merge, **which, **rest),
            *each(merge, **which, odds=odds, every=[SELDOM, OFTEN], **rest),
        )
    ]


def report(found: Results, show: Show) -> list[Claim]:
    """Draw what merges cost; judge the paper's sentence and its practice."""
    never = {
        (stream, prior, key): found.values(never_merge, key, stream=stream, prior=prior)
        for stream in STREAMS
        for prior in ("DP", "NIG")
        for key in ("log_predictive", "clusters", "seconds")
    }
    merged = {
        (stream, prior, odds, every, key): found.values(
            merge, key, stream=stream, prior=prior, odds=odds, every=every
        )
        for stream in STREAMS
        for prior, every in STYLES
        for odds in found.settings.merge_odds
        for key in ("log_predictive", "clusters", "seconds")
    }
    costs = {
        setting[:-1]: ahead(values, never[*setting[:2], "log_predictive"])
        for setting, values in merged.items()
        if setting[-1] == "log_predictive"
    }
    _draw(found.settings.merge_odds, never, merged, costs, show)
    rows = [
        (STREAMS[stream], prior, "never", "", *_cells(never, stream, prior), "")
        for stream in STREAMS
        for prior in ("DP", "NIG")
    ]
    rows += [
        (STREAMS[stream], prior, every, f"{odds:g}", *_cells(merged, *setting), signed(*cost))
        for setting, cost in costs.items()
        for stream, prior, odds, every in [setting]
    ]
    documents = parts("powerlaw", found.settings.merge_scale).rows.shape[0]
    show.table(
        "merges",
        (
            "stream",
            "prior",
            "documents between merges",
            "log odds above",
            "nats per document",
            "clusters",
            "seconds",
            "ahead of never",
        ),
        rows,
        "Section 3.3 of the paper: merges of clusters that share one of the last documents, by the "
        f"model's log odds. Epsilon .5, the paper's hyperparameters, {documents:,} documents of "
        "the power law.",
    )
    return _claims(found.settings.merge_odds[0], costs, never, merged)


def _cells(numbers: Any, *setting: Any) -> list[tuple[float, str]]:
    digits = {"log_predictive": 3, "clusters": 1, "seconds": 2}
    return [spread(*mean_and_error(numbers[*setting, key]), d) for key, d in digits.items()]


def _draw(levels: Any, never: Any, merged: Any, costs: Any, show: Show) -> None:
    figure, panels = show.panels(2, 2, size=(5.8, 5.0))
    places, names = range(len(levels) + 1), ["never", *(f"{odds:g}" for odds in levels)]
    for row, (stream, title) in zip(panels, STREAMS.items(), strict=True):
        for (prior, every), (colour, line, mark) in STYLES.items():
            style = {"color": colour, "linestyle": line, "marker": mark, "markersize": 4}
            label = f"{prior}, every {every:,} documents"
            leads = [(0.0, 0.0), *(costs[stream, prior, odds, every] for odds in levels)]
            clusters = [never[stream, prior, "clusters"]]
            clusters += [merged[stream, prior, odds, every, "clusters"] for odds in levels]
            row[0].errorbar(places, *zip(*leads, strict=True), capsize=2, **style, label=label)
            row[1].plot(places, [values.mean() for values in clusters], **style)
        row[0].set_ylabel("ahead of no merges,\nnats per document")
        row[1].set_ylabel("clusters")
        from_zero(row[1])
        for ax in row:
            tidy(ax).set(xlabel="merges at log odds above", title=title)
            ax.set_xticks(places, names)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    show.figure(
        "merges",
        figure,
        "Section 3.3 of the paper: effect of merges on prediction (left) and clusters (right), "
        "from no merges to merges at even odds.",
    )


def _claims(highest: float, costs: Any, never: Any, merged: Any) -> list[Claim]:
    def said(odds: float, every: int) -> str:
        return "; ".join(
            f"{title}, {prior}: {text_of(costs[stream, prior, odds, every])} nats per document, "
            f"{never[stream, prior, 'clusters'].mean():.0f} to "
            f"{merged[stream, prior, odds, every, 'clusters'].mean():.0f} clusters"
            for stream, title in STREAMS.items()
            for prior in ("DP", "NIG")
        )

    often = {key: costs[*key, 0.0, OFTEN] for key in product(STREAMS, ("DP", "NIG"))}
    seldom = {key: costs[*key, highest, SELDOM] for key in often}
    return [
        Claim.of(
            "Frequent merging degrades the predictions of NGG models, as it removes their many "
            "small clusters.",
            "Section 3.3, no figure",
            f"even odds, every {OFTEN} documents: {said(0.0, OFTEN)}",
            all(often[s, "NIG"][0] < 0 and beyond_noise(often[s, "NIG"]) for s in STREAMS),
        ),
        Claim.of(
            "Merging only above a conservatively large threshold does no such harm.",
            "Section 3.3, the paper's practice; its threshold and similarity are not given",
            f"log odds {highest:g}, every {SELDOM:,} documents: {said(highest, SELDOM)}",
            not any(seldom[s, "NIG"][0] < 0 and beyond_noise(seldom[s, "NIG"]) for s in STREAMS),
        ),
    ]
