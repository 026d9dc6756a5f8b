"""What the two shortcuts in the rule for U cost: its mode for the integral, K for E[K']."""

from typing import Any

import numpy as np

from bnpstream import GeneralizedGamma
from bnpstream.plots.style import BLUE, GREEN, ORANGE, tidy
from tank2015.beyond_streams import STREAMS, paper_prior, streamed
from tank2015.differences import ahead, beyond_noise, from_zero, signed, text_of
from tank2015.showing import Claim, Show, spread
from tank2015.steps import Found, Results, Step, each, mean_and_error

WAYS = {
    "mode, E[K']": {"auxiliary": "mode", "cluster_count": "expected"},
    "integral, E[K']": {"auxiliary": "quadrature", "cluster_count": "expected"},
    "mode, K": {"auxiliary": "mode", "cluster_count": "plain"},
}
STRENGTH = 10.0
STYLES = {0.25: (GREEN, "^"), 0.5: (ORANGE, "o"), 0.75: (BLUE, "s")}


def approximate(stream: str, way: str, order: int, scale: float) -> Found:
    """Stream with NIG, U being treated in one of the ways."""
    return streamed(stream, scale, order, paper_prior(stream, "NIG", **WAYS[way]))


def chance_of_new(discount: float, n: int) -> Found:
    """Return the probability of a new cluster after a partition drawn from the prior.

    By the mode of log U and by the integral, which is exact for whole counts.
    """
    prior = GeneralizedGamma(STRENGTH, discount)
    labels = prior.sample_partition(n, np.random.default_rng(0))
    counts = np.bincount(labels).astype(float)
    surely = np.full(counts.size, -np.inf)
    mode = prior.solve_auxiliary(counts, surely, float(n), np.nan)
    return {
        "mode": np.exp(prior.log_weights(counts, surely, float(n), mode)[-1]),
        "exact": prior.predictive_rule(counts)[-1],
    }


def steps(settings: Any) -> list[Step]:
    """Return every way on every stream in every order, and the chances of a new cluster."""
    orders = list(range(settings.n_orders))
    sizes = [n for n in (1, 3, 10, 30, 100, 300, 1000) if n <= settings.n_partition]
    return [
        *each(chance_of_new, discount=list(STYLES), n=sizes),
        *each(
            approximate, stream=list(STREAMS), way=list(WAYS), order=orders, scale=settings.scale
        ),
    ]


def report(found: Results, show: Show) -> list[Claim]:
    """Draw the error of the mode; tabulate what the shortcuts cost."""
    _draw(found, show)
    exact, (short, *others) = "integral, E[K']", WAYS
    rows, differences = [], {}
    for stream, title in STREAMS.items():
        base = found.values(approximate, "log_predictive", stream=stream, way=short)
        for way in WAYS:
            values = {
                key: found.values(approximate, key, stream=stream, way=way)
                for key in ("log_predictive", "clusters", "expected_clusters", "seconds")
            }
            differences[stream, way] = ahead(values["log_predictive"], base)
            rows.append(
                (
                    title,
                    way,
                    spread(*mean_and_error(values["log_predictive"]), 3),
                    signed(*differences[stream, way]) if way != short else "",
                    spread(*mean_and_error(values["clusters"]), 1),
                    spread(*mean_and_error(values["expected_clusters"]), 1),
                    spread(*mean_and_error(values["seconds"]), 2),
                )
            )
    orders = " and ".join(
        f"{_between_orders(found, stream):.4f} ({title})" for stream, title in STREAMS.items()
    )
    show.table(
        "auxiliary",
        ("stream", "U and clusters", "nats per document", "ahead", "clusters", "E[K']", "seconds"),
        rows,
        "Section 3.1 and section 2.2 of the supplement: NIG with the paper's hyperparameters, "
        f"epsilon .5, {found.settings.n_orders} orders. 'Ahead' is the lead of the first method, "
        f"in the same orders. The standard deviation between orders is {orders} nats: "
        f"{_stricter(found, differences)}.",
    )
    gap = max(abs(one["mode"] / one["exact"] - 1.0) for one in found.of(chance_of_new))
    last = found.settings.n_partition
    late = max(abs(one["mode"] / one["exact"] - 1.0) for one in found.of(chance_of_new, n=last))

    def said(way: str) -> str:
        return " and ".join(
            f"{text_of(differences[stream, way])} ({title})" for stream, title in STREAMS.items()
        )

    def verdict(way: str) -> str:
        real = [t for s, t in STREAMS.items() if beyond_noise(differences[s, way])]
        return f"beyond two standard errors on {' and '.join(real)}" if real else "within the noise"

    levels = " and ".join(
        f"{found.values(approximate, 'log_predictive', stream=stream).mean():.0f}"
        for stream in STREAMS
    )
    return [
        Claim.of(
            "A delta function at the mode of U serves in place of the integral.",
            "Used throughout; the integral is left to future work",
            f"the integral is ahead by {said(exact)} nats per document, {verdict(exact)}; the "
            f"chance of a new cluster is off by {gap:.1%} at most, by {late:.2%} after {last} rows",
            not any(beyond_noise(differences[stream, exact]) for stream in STREAMS),
        ),
        Claim.reported(
            "Plain K for E[K'] leads to comparable performance.",
            "Supplement, section 2.2, no figure",
            f"plain K is ahead by {said(others[-1])} nats per document, {verdict(others[-1])}; the "
            f"log predictive is {levels} nats per document",
        ),
    ]


def _between_orders(found: Results, stream: str) -> float:
    """Return the standard deviation between orders of the first way."""
    values = found.values(approximate, "log_predictive", stream=stream, way=next(iter(WAYS)))
    return float(values.std(ddof=1))


def _stricter(found: Results, differences: Any) -> str:
    """Say which differences are larger than those between orders."""
    larger = [
        f"{way} on {STREAMS[stream]} ({differences[stream, way][0]:+.4f}) is beyond it"
        for stream, way in differences
        if abs(differences[stream, way][0]) > _between_orders(found, stream)
    ]
    return ", ".join(larger) or "no difference is beyond it"


def _draw(found: Results, show: Show) -> None:
    figure, ax = show.panels(1, size=(4.2, 3.2))
    for discount, (colour, mark) in STYLES.items():
        ones = [r for r in found.records if r["step"] == chance_of_new.__name__]
        ones = [r for r in ones if r["arguments"]["discount"] == discount]
        sizes = [r["arguments"]["n"] for r in ones]
        gaps = [100 * abs(r["found"]["mode"] / r["found"]["exact"] - 1.0) for r in ones]
        ax.semilogx(sizes, gaps, color=colour, marker=mark, markersize=5, label=f"sigma {discount}")
    tidy(ax).set(xlabel="rows so far", ylabel="error of the chance\nof a new cluster, per cent")
    from_zero(ax)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    show.figure(
        "auxiliary",
        figure,
        "Section 3.1 of the paper: relative error of the probability of a new cluster when U is at "
        f"its mode, against the exact rule. Partitions drawn from the prior, a = {STRENGTH:g}, "
        "tau = 1.",
    )
