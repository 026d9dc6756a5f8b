"""Commands that read a run: evaluate, predict, clusters, lineage, report."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from bnpstream.cli.output import print_json, print_numbers, write_line
from bnpstream.cli.page import Page
from bnpstream.likelihoods.features import Feature
from bnpstream.mixture import survivor
from bnpstream.runs.description import ClusterDescription
from bnpstream.runs.overview import Run, guess_image_shape
from bnpstream.runs.score import evaluate, predict, source_for
from bnpstream.sources.files.lines import read_lines


def _opened(folder: Path, coarse: int | None) -> Run:
    """Return a run, its clusters merged into so many if they are to be coarse."""
    run = Run(folder)
    return run if coarse is None else run.coarsened(coarse)


def run_evaluate(
    run: Path,
    source: list[str] | None,
    labels: Path | None,
    coarse: int | None,
    as_json: bool,
    format: str | None,
) -> None:
    """Print how well a run predicts records."""
    fitted = _opened(run, coarse)
    truth = None
    if labels is not None:  # any text is a label
        lines = read_lines(labels)
        truth = np.array([line.decode(errors="backslashreplace") for line in lines], np.str_)
    records = source_for(fitted, source or ["-"], format=format)
    (print_json if as_json else print_numbers)(asdict(evaluate(fitted, records, truth)))


def run_predict(
    run: Path, source: list[str] | None, coarse: int | None, as_json: bool, format: str | None
) -> None:
    """Print where records belong: a line each."""
    fitted = _opened(run, coarse)
    if not as_json:
        print("record\tid\tcluster\tposition\tprobability\tnovelty")
    for records, found in predict(fitted, source_for(fitted, source or ["-"], format=format)):
        for reject in records.rejects:
            print(f"{reject.place}: {reject.reason}", file=sys.stderr)
        for one in found:
            if as_json:
                others = [{"cluster": id, "probability": share} for id, share in one.alternatives]
                write_line(one._asdict() | {"alternatives": others})
            else:
                numbers = f"{one.probability:.4f}\t{one.novelty:.4f}"
                print(f"{one.record}\t{one.id}\t{one.cluster}\t{one.position}\t{numbers}")
    sys.stdout.flush()


def run_clusters(
    run: Path, id: int | None, top: int | None, words: int, coarse: int | None, as_json: bool
) -> None:
    """Print clusters, the heaviest first."""
    fitted = _opened(run, coarse)
    found = fitted.describe(n_features=words)
    clusters = found.clusters[:top]
    if id is not None:
        clusters = [cluster for cluster in found.clusters if cluster.id == id]
        if not clusters:
            lives_on = survivor(id, fitted.events() + fitted.model.stream.lineage)
            became = "it died" if lives_on is None else f"it lives on as {lives_on}"
            born = 0 <= id < fitted.model.posterior.state.next_id
            raise ValueError(
                f"there is no cluster {id}: {became if born else 'there never was'}; "
                "see bnpstream lineage"
            )
    if as_json:
        documents = [_as_json(cluster) for cluster in clusters]
        print_json(documents[0] if id is not None else documents)
    elif id is not None:
        _print_one(clusters[0], found.kind)
    else:
        _print_all(clusters, found.n_clusters, found.kind)


def _as_json(cluster: ClusterDescription) -> dict[str, Any]:
    document = asdict(cluster)
    for name in ("likely", "lifted", "exemplars"):
        document[name] = [one._asdict() for one in getattr(cluster, name)]
    return document


def _print_all(clusters: list[ClusterDescription], total: int, kind: str) -> None:
    title = f"{total:,} clusters" + (f", the {len(clusters)} heaviest" * (len(clusters) < total))
    table = Table(title=title, title_justify="left")
    for name in ("id", "weight", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("most likely" if kind == "words" else "means", ratio=1)
    table.add_column("more than elsewhere" if kind == "words" else "unusual", ratio=1)
    for cluster in clusters:
        table.add_row(
            str(cluster.id),
            f"{cluster.weight:.1%}",
            f"{cluster.size:,.0f}",
            _features(cluster.likely, kind),
            _features(cluster.lifted, kind),
        )
    Page().print(table)


def _features(features: list[Feature], kind: str) -> str:
    if kind == "words":
        return escape(" ".join(feature.name for feature in features))
    return escape(", ".join(f"{feature.name} {feature.value:.3g}" for feature in features))


def _print_one(cluster: ClusterDescription, kind: str) -> None:
    console = Page()
    born = "" if cluster.born is None else f", born at row {cluster.born:,}"
    console.print(
        f"cluster {cluster.id}: {cluster.weight:.2%} of the stream, {cluster.size:,.1f} rows{born}"
    )
    heads = ("probability", "lift") if kind == "words" else ("mean", "deviations")
    for title, features in (("most likely", cluster.likely), ("most lifted", cluster.lifted)):
        table = Table(title=title, title_justify="left")
        table.add_column("word" if kind == "words" else "column")
        for head in heads:
            table.add_column(head, justify="right")
        for feature in features:
            table.add_row(escape(feature.name), f"{feature.value:.4g}", f"{feature.lift:.3g}")
        console.print(table)
    for exemplar in cluster.exemplars:
        console.print(f"record {exemplar.id}: {exemplar.excerpt}", markup=False, highlight=False)


def run_lineage(run: Path, id: int | None, as_json: bool) -> None:
    """Print births, merges, deaths and retirements."""
    fitted = Run(run)
    events = fitted.events()
    if id is not None:
        last = fitted.model.posterior.state.next_id - 1
        if not 0 <= id <= last:
            raise ValueError(f"no cluster has had the id {id}; ids so far are 0 to {last}")
        lives_on = survivor(id, events)
        events = [event for event in events if id in (event.id, event.into)]
        if as_json:
            own = [event.record() for event in events]
            print_json({"id": id, "lives_on_as": lives_on, "events": own})
            return
        fate = "is gone" if lives_on is None else f"lives on as {lives_on}"
        print(f"cluster {id} is there" if lives_on == id else f"cluster {id} {fate}")
    if as_json:
        for event in events:
            write_line(event.record())
        sys.stdout.buffer.flush()
        return
    for event in events:
        into = "" if event.into is None else f" into {event.into}"
        print(f"row {event.n_observations:,}: {event.kind} of {event.id}{into} ({event.mass:.2f})")


def run_report(run: Path, out: Path | None, image: str | None) -> None:
    """Write the page about a run, and say where it is."""
    fitted = Run(run)
    shape = guess_image_shape(fitted.schema)
    if image is not None:
        sides = image.lower().split("x")
        if len(sides) != 2 or not all(side.isdecimal() for side in sides):
            raise ValueError(f"--image {image}: give HEIGHTxWIDTH, such as 8x8")
        shape = (int(sides[0]), int(sides[1]))
    from bnpstream.report import write_report  # needs matplotlib and jinja2

    path = write_report(
        fitted.describe(n_features=20, image_shape=shape, with_tree=True),
        out or run / "report.html",
    )
    Page().print(f"report: {path}", soft_wrap=True, markup=False, highlight=False)
