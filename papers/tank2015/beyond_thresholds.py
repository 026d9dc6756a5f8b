"""What the opening threshold epsilon does to accuracy, clusters and speed."""

from itertools import pairwise
from typing import Any

from bnpstream.plots.style import BLUE, ORANGE, tidy
from tank2015.beyond_streams import DISCOUNTS, STREAMS, paper_prior, streamed
from tank2015.differences import ahead, beyond_noise, from_zero, text_of
from tank2015.showing import Claim, Show, spread
from tank2015.steps import Found, Results, Step, each, mean_and_error

STYLES = {"DP": (BLUE, "o"), "NIG": (ORANGE, "s")}
KEYS = {"log_predictive": 3, "clusters": 1, "expected_clusters": 1, "seconds": 2}


def truncate(stream: str, prior: str, epsilon: float, order: int, scale: float) -> Found:
    """Stream with some threshold."""
    chosen = paper_prior(stream, prior)
    return streamed(stream, scale, order, chosen, new_cluster_threshold=epsilon)


def steps(settings: Any) -> list[Step]:
    """Return every threshold for every prior, stream and order."""
    rest = {"order": list(range(settings.n_repeats)), "scale": settings.scale}
    return [
        step
        for prior, epsilons in _possible(settings).items()
        for step in each(truncate, stream=list(STREAMS), prior=prior, epsilon=epsilons, **rest)
    ]


def _possible(settings: Any) -> dict[str, list[float]]:
    """Return the thresholds of every prior: none is below its discount."""
    return {
        prior: [epsilon for epsilon in settings.epsilons if epsilon >= sigma]
        for prior, sigma in DISCOUNTS.items()
    }


def report(found: Results, show: Show) -> list[Claim]:
    """Draw the trade-off; judge the paper's sentence, part by part."""
    numbers = {
        (stream, prior, epsilon): {
            key: found.values(truncate, key, stream=stream, prior=prior, epsilon=epsilon)
            for key in KEYS
        }
        for stream in STREAMS
        for prior, epsilons in _possible(found.settings).items()
        for epsilon in epsilons
    }
    means = {
        setting: {key: mean_and_error(values) for key, values in one.items()}
        for setting, one in numbers.items()
    }
    _draw(_possible(found.settings), means, show)
    show.table(
        "epsilon",
        ("stream", "prior", "epsilon", "nats per document", "clusters", "E[K']", "seconds"),
        [
            (STREAMS[stream], prior, epsilon, *(spread(*one[k], d) for k, d in KEYS.items()))
            for (stream, prior, epsilon), one in means.items()
        ],
        "Section 3.3 of the paper: thresholds, all else as in the paper; means of "
        f"{found.settings.n_repeats} orders. Seconds are those of the pass.",
    )
    return _claims(_possible(found.settings), numbers, means)


def _draw(possible: dict[str, list[float]], means: Any, show: Show) -> None:
    figure, panels = show.panels(2, 2, size=(5.8, 4.6))
    for row, (stream, title) in zip(panels, STREAMS.items(), strict=True):
        for prior, (colour, mark) in STYLES.items():
            style = {"color": colour, "marker": mark, "markersize": 4, "capsize": 2}
            for ax, key in zip(row, ("log_predictive", "clusters"), strict=True):
                points = [means[stream, prior, epsilon][key] for epsilon in possible[prior]]
                mean, error = zip(*points, strict=True)
                ax.errorbar(possible[prior], mean, error, label=prior, **style)
        row[0].set_ylabel("nats per document")
        row[1].set_ylabel("clusters")
        from_zero(row[1])
        for ax in row:
            tidy(ax).set(xlabel="epsilon", xlim=(0, 1), title=title)
    panels[0, 0].legend(frameon=False, loc="lower left")
    show.figure(
        "epsilon",
        figure,
        "Section 3.3 of the paper: effect of the threshold for new clusters on prediction (left) "
        "and clusters (right); the work per row is proportional to the latter.",
    )


def _claims(possible: dict[str, list[float]], numbers: Any, means: Any) -> list[Claim]:
    settings = [(stream, prior) for stream in STREAMS for prior in possible]
    ends = {
        (stream, prior): [(stream, prior, possible[prior][place]) for place in (0, -1)]
        for stream, prior in settings
    }

    def said(key: str, digits: int) -> str:
        return "; ".join(
            f"{STREAMS[stream]}, {prior}, epsilon {least[2]} to {most[2]}: "
            f"{means[least][key][0]:,.{digits}f} to {means[most][key][0]:,.{digits}f}"
            for (stream, prior), (least, most) in ends.items()
        )

    costs = {
        setting: ahead(numbers[most]["log_predictive"], numbers[least]["log_predictive"])
        for setting, (least, most) in ends.items()
    }
    delays = {
        setting: ahead(numbers[most]["seconds"], numbers[least]["seconds"])
        for setting, (least, most) in ends.items()
    }
    kos = " and ".join(
        f"{prior} {text_of(delays['kos', prior])} s"
        + ("" if beyond_noise(delays["kos", prior]) else ", within the noise")
        for prior in possible
    )
    changes = "; ".join(
        f"{STREAMS[stream]}, {prior}: {text_of(cost)}" for (stream, prior), cost in costs.items()
    )
    return [
        Claim.ahead(
            "A larger threshold introduces fewer clusters.",
            "Section 3.3, no figure",
            said("clusters", 0) + _bends(possible, means),
            [
                ahead(numbers[least]["clusters"], numbers[most]["clusters"])
                for least, most in ends.values()
            ],
            unit="clusters",
        ),
        Claim.ahead(
            "A larger threshold leads to a worse variational approximation.",
            "Section 3.3, no figure",
            f"nats per document from the smallest to the largest: {changes}",
            [(-mean, error) for mean, error in costs.values()],
            unit="nats per document",
        ),
        Claim.reported(
            "A larger threshold leads to faster run times.",
            "Section 3.3, no figure",
            f"seconds of the pass: {said('seconds', 2)}; on KOS {kos}",
        ),
    ]


def _bends(possible: dict[str, list[float]], means: Any) -> str:
    """Say where clusters do not fall from every threshold to the next."""
    bent = []
    for stream, title in STREAMS.items():
        for prior, epsilons in possible.items():
            counts = [means[stream, prior, epsilon]["clusters"][0] for epsilon in epsilons]
            if any(later > earlier for earlier, later in pairwise(counts)):
                bent.append(f"{title}, {prior}")
    return f"; in between they do not always fall: {' and '.join(bent)}" if bent else ""
