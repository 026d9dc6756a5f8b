"""The charts of a run, each with a caption and an alternative text."""

from typing import NamedTuple

from markupsafe import Markup

from bnpstream.mixture.lineage import Kind
from bnpstream.plots import plot_clusters, plot_events, plot_evidence, plot_weights
from bnpstream.plots.events import count_events
from bnpstream.report.figures import chart
from bnpstream.report.phrases import number, percent, whole
from bnpstream.runs.description import RunDescription

DRAWN: tuple[Kind, ...] = ("birth", "merge", "death", "retire")
"""Kinds of events that the charts show."""


class Chart(NamedTuple):
    """A chart on the page."""

    title: str
    caption: str
    svg: Markup


def charts_of(run: RunDescription) -> list[Chart]:
    """Return the charts; none if there is nothing to draw."""
    if not run.bin_ends or not run.clusters:
        return []
    ends = run.bin_ends
    weights = [cluster.weight for cluster in run.clusters]
    events = run.cluster_events
    kinds = [event.kind for event in events]
    born, merged, died, retired = (whole(kinds.count(kind)) for kind in DRAWN)
    forgotten = f", {retired} retired" if "retire" in kinds else ""
    births = [event.n_observations for event in events if event.kind == "birth"]
    half = max(0, (run.bin_clusters[-1] + 1) // 2 - 1)
    halfway = (
        f"; {half + 1:,} had been born by row {whole(births[half])}" if half < len(births) else ""
    )
    return [
        Chart(
            "Clusters",
            f"{whole(run.bin_clusters[-1])} clusters after {whole(ends[-1])} rows{halfway}.",
            chart(
                "chart-clusters",
                f"Line: clusters against rows seen, up to {whole(max(run.bin_clusters))}.",
                lambda ax: plot_clusters(ends, run.bin_clusters, ax=ax),
            ),
        ),
        Chart(
            "One-step-ahead log predictive",
            "How well each row was predicted before it was absorbed; higher is better.",
            chart(
                "chart-evidence",
                "Points and line: log predictive against rows seen, from "
                f"{number(run.bin_evidence[0])} nats per row in the first bin to "
                f"{number(run.bin_evidence[-1])} in the last.",
                lambda ax: plot_evidence(ends, run.bin_evidence, ax=ax),
            ),
        ),
        Chart(
            "Cluster shares in order",
            "Clusters from the largest to the smallest; a straight line is a power law.",
            chart(
                "chart-weights",
                f"Log-log line: shares of {whole(len(weights))} clusters in order, from "
                f"{percent(max(weights))} to {percent(min(weights))}.",
                lambda ax: plot_weights(weights, ax=ax),
            ),
        ),
        Chart(
            "Births, merges and deaths",
            f"{born} born, {merged} merged into another, {died} dropped{forgotten}.",
            chart(
                "chart-events",
                f"Bars along the stream: {born} clusters born, {merged} merged, {died} dropped"
                f"{forgotten}.",
                lambda ax: plot_events(ends, events, ax=ax),
            ),
        ),
    ]


def bins_of(run: RunDescription) -> list[tuple[str, ...]]:
    """Return the numbers behind the charts, one line of the table per bin."""
    counts = count_events(run.bin_ends, run.events) if run.bin_ends else {}
    columns = (
        map(whole, run.bin_ends),
        map(whole, run.bin_clusters),
        map(number, run.bin_evidence),
        *(map(whole, counts.get(kind, ())) for kind in DRAWN),
    )
    return list(zip(*columns, strict=True))
