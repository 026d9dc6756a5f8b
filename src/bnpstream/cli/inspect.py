"""Commands that read a run: evaluate, predict, clusters, lineage, report."""

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.markup import escape
from rich.table import Table

from bnpstream._visible import visible
from bnpstream.cli.output import print_json, print_numbers, say, write_line
from bnpstream.cli.page import Page
from bnpstream.likelihoods.features import Feature
from bnpstream.mixture import survivor
from bnpstream.runs.description import (
    ClusterDescription,
    RunDescription,
    TopicDescription,
    document_of,
)
from bnpstream.runs.options import OptionError
from bnpstream.runs.overview import Run, guess_image_shape
from bnpstream.runs.score import evaluate, predict, source_for
from bnpstream.runs.understanding import told, understood
from bnpstream.sources.files.lines import read_lines

HEADS = ("means", "most unusual"), ("distinctive", "most likely")
"""Headings of the lists of columns and of words of a cluster."""

TITLES = 2
"""Typical records per cluster or topic in the table, if rows are vectors of texts."""

PER_TOPIC = 3
"""Clusters per topic in the table, by default."""

REJECTS = 10
"""Invalid records that predict names; the others are counted."""


def _opened(folder: Path, coarse: int | None) -> Run:
    """Return a run, with its clusters merged into `coarse` groups if given."""
    run = Run(folder)
    return run if coarse is None else run.coarsened(coarse)


def run_evaluate(
    run: Path,
    source: list[str] | None,
    labels: Path | None,
    label_field: str | None,
    coarse: int | None,
    as_json: bool,
    format: str | None,
) -> None:
    """Print how well a run predicts records."""
    if labels is not None and label_field is not None:
        raise OptionError("--labels and --label-field both give the true labels: give one of them")
    fitted = _opened(run, coarse)
    truth = None
    if labels is not None:  # any text is a label
        lines = read_lines(labels)
        truth = np.array([line.decode(errors="backslashreplace") for line in lines], np.str_)
    records = source_for(fitted, source or ["-"], label_field, format=format)
    found = understood(records.schema, fitted.model.posterior.model.likelihood)
    if label_field is not None:
        found["fields"]["label"] = found["fields"].pop("id")
        if label_field in (records.schema.names or ()):
            say(
                f"warning: the run clusters by the column {label_field!r} too, so agreement with "
                "it says little: fit again with --columns and leave it out",
                err=True,
            )
    say(told(found), err=True)
    scores = asdict(evaluate(fitted, records, truth, is_labelled=label_field is not None))
    if as_json:
        print_json(scores | {"schema": found})
    elif scores["tokens"] is not None:
        print_numbers(scores)
    else:
        rows = {"documents": "rows", "per_document": "per_row"}
        print_numbers({rows.get(name, name): value for name, value in scores.items()})


def run_predict(
    run: Path, source: list[str] | None, coarse: int | None, as_json: bool, format: str | None
) -> None:
    """Print the cluster and topic of each record, one line each."""
    fitted = _opened(run, coarse)
    if not as_json:
        say("record\tid\tcluster\tposition\ttopic\tprobability\tnovelty\tnovelty_quantile")
    given, n_found, n_rejects = source_for(fitted, source or ["-"], format=format), 0, 0
    for records, found in predict(fitted, given):
        n_found, n_rejects = n_found + len(found), n_rejects + len(records.rejects)
        for reject in records.rejects[: max(REJECTS + len(records.rejects) - n_rejects, 0)]:
            say(f"{reject.place}: {reject.reason}", err=True)
        for one in found:
            if as_json:
                others = [{"cluster": id, "probability": share} for id, share in one.alternatives]
                told = {name: value for name, value in one._asdict().items() if value is not None}
                write_line(told | {"alternatives": others})
            else:
                id, place = visible(one.id, in_line=True), f"{one.cluster}\t{one.position}"
                quantile = "-" if one.novelty_quantile is None else f"{one.novelty_quantile:.4f}"
                shares = f"{one.probability:.4f}\t{one.novelty:.4f}\t{quantile}"
                say(f"{one.record}\t{id}\t{place}\t{one.topic}\t{shares}")
    sys.stdout.flush()
    if n_rejects > REJECTS:
        say(f"{n_rejects:,} invalid records in all", err=True)
    if n_rejects > 0 and n_found == 0:
        raise ValueError(
            f"{given}: no valid records; it was read as {given.schema.format}, like the records of "
            "the run: give --format if it is something else"
        )


def run_clusters(
    run: Path,
    id: int | None,
    topic: int | None,
    top: int | None,
    per_topic: int | None,
    words: int,
    coarse: int | None,
    as_json: bool,
) -> None:
    """Print topics, largest first, with their clusters."""
    fitted = _opened(run, coarse)
    found = fitted.describe(n_features=words)
    shown = [one for one in found.topics if topic in (None, one.id)][:top]
    if not shown:
        raise ValueError(f"topic {topic} does not exist; see bnpstream clusters and lineage")
    if per_topic is None and topic is None and not as_json:
        per_topic = PER_TOPIC
    listed = {id for one in shown for id in one.clusters[:per_topic]}
    clusters = [cluster for cluster in found.clusters if cluster.id in listed]
    if id is not None:
        clusters = [cluster for cluster in found.clusters if cluster.id == id]
        if not clusters:
            lives_on = survivor(id, fitted.events() + fitted.model.stream.lineage)
            became = "it was dropped" if lives_on is None else f"it is now part of {lives_on}"
            born = 0 <= id < fitted.model.posterior.state.next_id
            raise ValueError(
                f"cluster {id} does not exist: {became if born else 'no cluster ever had this id'}"
                "; see bnpstream lineage"
            )
    if as_json:
        documents = [document_of(cluster, found.kind) for cluster in clusters]
        topics = [document_of(one, found.kind) for one in shown]
        print_json(documents[0] if id is not None else {"topics": topics, "clusters": documents})
    elif id is not None:
        _print_one(clusters[0], found.kind)
    else:
        kind: str = found.kind
        if fitted.schema.has_texts_beside_vectors:
            kind = "titles"
        elif fitted.schema.has_nameless_columns:
            kind = "vectors"
        if coarse is None:
            _print_all(found, shown, clusters, kind, is_one=topic is not None)
        else:
            _print_groups(found, top, kind)


def _print_groups(found: RunDescription, top: int | None, kind: str) -> None:
    """Print groups of clusters, which may be larger than topics."""
    console, table = Page(), Table(title=f"clusters merged into {len(found.clusters)} groups")
    table.title_justify = "left"
    for name in ("group", "clusters", "weight", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    for head in _shown(kind):
        table.add_column(head, ratio=1)
    for group in found.clusters[:top]:
        table.add_row(str(group.id), f"{group.n_merged:,}", *_cells(group, kind))
    console.print(table)
    if found.topics_found is not None:
        console.print(str(found.topics_found))
    if len(found.clusters[:top]) < len(found.clusters):
        rest = _count(len(found.clusters) - len(found.clusters[:top]), "smaller group")
        console.print(f"{rest} not shown; see --top")


def _print_all(
    found: RunDescription,
    topics: list[TopicDescription],
    clusters: list[ClusterDescription],
    kind: str,
    *,
    is_one: bool,
) -> None:
    title = f"{_count(len(found.topics), 'topic')}, {_count(found.n_clusters, 'cluster')}"
    if is_one:
        title = f"topic {topics[0].id}: {_count(len(topics[0].clusters), 'cluster')}"
    table = Table(title=title, title_justify="left")
    table.add_column("topic", no_wrap=True)
    for name in ("cluster", "weight", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    for head in _shown(kind):
        table.add_column(head, ratio=1)
    for topic in topics:
        table.add_section()
        table.add_row(str(topic.id), "", *_cells(topic, kind), style="bold")
        for cluster in clusters:
            if cluster.topic == topic.id:
                table.add_row("", str(cluster.id), *_cells(cluster, kind))
    console = Page()
    console.print(table)
    if found.topics_found is not None:
        console.print(str(found.topics_found))
    if is_one:
        _print_records(console, topics[0])
    elif len(topics) < len(found.topics):
        rest = _count(len(found.topics) - len(topics), "smaller topic")
        console.print(f"{rest} not shown; see --top")
    hidden = sum(len(topic.clusters) for topic in topics) - len(clusters)
    if hidden > 0:
        rest = _count(hidden, "smaller cluster")
        console.print(f"{rest} of these topics not shown; see --per-topic")


def _count(n: int, noun: str) -> str:
    """Return a number and its noun, in the plural unless the number is one."""
    return f"{n:,} {noun}" + "s" * (n != 1)


def _shown(kind: str) -> tuple[str, ...]:
    """Return the list in the table: what sets a cluster apart; one cluster shows both lists."""
    if kind in ("titles", "vectors"):
        return ("typical records",)
    return ("distinctive",) if kind == "words" else ("most unusual",)


def _cells(one: ClusterDescription | TopicDescription, kind: str) -> Iterator[str]:
    """Yield the cells of a cluster or a topic."""
    yield f"{one.weight:.1%}"
    yield f"{one.size:,.0f}"
    if kind == "titles":
        yield escape("; ".join(visible(typical.excerpt) for typical in one.exemplars[:TITLES]))
        return
    if kind == "vectors":
        yield escape(", ".join(visible(str(typical.id)) for typical in one.exemplars))
        return
    yield _features(one.lifted, kind)


def _lists(
    one: ClusterDescription | TopicDescription, kind: str
) -> tuple[list[Feature], list[Feature]]:
    """Return the features of a cluster or topic under `HEADS`, distinctive words first."""
    found = one.likely, one.lifted
    return found[::-1] if kind == "words" else found


def _features(features: list[Feature], kind: str) -> str:
    if kind == "words":
        return escape(" ".join(visible(feature.name) for feature in features))
    means = (f"{visible(feature.name)} {_number(feature.value)}" for feature in features)
    return escape(", ".join(means))


def _number(value: float) -> str:
    """Return a number with three digits, or all those before the point."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.3g}"


def _print_one(cluster: ClusterDescription, kind: str) -> None:
    console = Page()
    born = "" if cluster.born is None else f", born at row {cluster.born:,}"
    size = f"{cluster.weight:.2%} of the stream, {cluster.size:,.1f} rows"
    console.print(f"cluster {cluster.id}: {size}{born}, in topic {cluster.topic}")
    heads = ("probability", "lift") if kind == "words" else ("mean", "deviations")
    for title, features in zip(HEADS[kind == "words"], _lists(cluster, kind), strict=True):
        if not features:  # rows are vectors of texts
            continue
        table = Table(title=title, title_justify="left")
        table.add_column("word" if kind == "words" else "column")
        for head in heads:
            table.add_column(head, justify="right")
        for feature in features:
            table.add_row(
                escape(visible(feature.name)), f"{feature.value:.4g}", _number(feature.lift)
            )
        console.print(table)
    _print_records(console, cluster)


def _print_records(console: Page, one: ClusterDescription | TopicDescription) -> None:
    """Print typical records."""
    for exemplar in one.exemplars:
        told = visible(f"record {exemplar.id}: {exemplar.excerpt}")
        console.print(told, markup=False, highlight=False)


def run_lineage(run: Path, id: int | None, as_json: bool) -> None:
    """Print births, merges, splits, deaths and retirements of clusters and topics."""
    fitted = Run(run)
    events = fitted.events()
    if id is not None:
        last = fitted.model.posterior.state.next_id - 1
        if not 0 <= id <= last:
            raise ValueError(f"no cluster ever had the id {id}; ids so far are 0 to {last}")
        lives_on = survivor(id, events)
        events = [
            event
            for event in events
            if event.level == "cluster" and id in (event.id, event.into, *event.others)
        ]
        if as_json:
            own = [event.record() for event in events]
            print_json({"id": id, "lives_on_as": lives_on, "events": own})
            return
        fate = "was dropped" if lives_on is None else f"is now part of cluster {lives_on}"
        say(f"cluster {id} exists" if lives_on == id else f"cluster {id} {fate}")
    if as_json:
        for event in events:
            write_line(event.record())
        sys.stdout.buffer.flush()
        return
    for event in events:
        heirs = [] if event.into is None else [event.into, *event.others]
        into = f" into {' and '.join(map(str, heirs))}" if heirs else ""
        level = "topic " if event.level == "topic" else ""
        what = f"{event.kind} of {level}{event.id}{into} ({event.mass:,.1f} rows)"
        say(f"row {event.n_observations:,}: {what}")


def run_report(run: Path, out: Path | None, image: str | None) -> None:
    """Write the report about a run, and print its path."""
    fitted = Run(run)
    shape = guess_image_shape(fitted)
    if image is not None:
        sides = image.lower().split("x")
        if len(sides) != 2 or not all(side.isdecimal() for side in sides):
            raise ValueError(f"--image {image}: give HEIGHTxWIDTH, such as 8x8")
        shape = (int(sides[0]), int(sides[1]))
    from bnpstream.report import write_report  # here, as it needs matplotlib and jinja2
    from bnpstream.report.clusters import LISTED

    path = write_report(
        fitted.describe(n_features=20, image_shape=shape, with_tree=True, listed=LISTED),
        out or run / "report.html",
    )
    Page().print(f"report: {path}", soft_wrap=True, markup=False, highlight=False)
