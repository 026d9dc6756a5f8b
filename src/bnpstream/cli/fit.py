"""``bnpstream fit`` and ``bnpstream stream``."""

import os
import shlex
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import typer

from bnpstream.cli.answers import answer_lines
from bnpstream.cli.errors import INTERRUPTED, close_pipe
from bnpstream.cli.output import json_bytes, print_json, print_numbers, say
from bnpstream.cli.progress import ProgressDisplay
from bnpstream.engine.listing import topic_columns
from bnpstream.engine.portraits import TopicPortraits
from bnpstream.runs.exemplars import Exemplars
from bnpstream.runs.feed import Answer, Feed
from bnpstream.runs.mixture import Mixture
from bnpstream.runs.model_file import read_model_file
from bnpstream.runs.options import ModelOptions, Pace
from bnpstream.runs.sharing import PART_ROWS, STALENESS
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start
from bnpstream.runs.understanding import plain_family, told, understood, warnings_of
from bnpstream.sources import Options, Records
from bnpstream.sources.brokers.broker import Answer as SentAnswer
from bnpstream.storage import is_run

SHOWN_TOPICS, TOPIC_WORDS = 10, 8
SHOWN_REASONS = 5
PAUSE = 0.1
"""Seconds until a signal is noticed while waiting for a broker."""


def run_fit(source: list[str] | None, as_json: bool, **given: Any) -> None:
    """Absorb a source, save the run, and print what was found."""
    options = run_options(source or [], given | _blocks(given))
    if given["out"] is None:
        say("the run will not be saved: give --out to save it", err=True)
    if given["dask"] is None:
        feed, done = _run(options, given, answer=None)
        summary = summarize(feed, given["out"], done=done)
    else:
        from bnpstream.cli.cluster import run_on_cluster  # here, as it needs Dask

        feed, done, about = run_on_cluster(options, given)
        summary = {**summarize(feed, given["out"], done=done), "dask": about}
    if as_json:
        print_json(summary)
    else:
        _print(summary, feed)
    if not done:
        raise typer.Exit(INTERRUPTED)


def _blocks(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options about blocks that threads learn in parallel.

    They affect the result, so they belong to the model. A new run with several threads has
    staleness 1 by default; a resumed run keeps its own.
    """
    staleness, block_rows, jobs = given["staleness"], given["block_rows"], given["jobs"]
    if given["dask"] is not None:
        if jobs > 1 or block_rows is not None:
            raise typer.BadParameter(
                "--jobs and --block-rows set up local threads, --dask uses the workers of a "
                "cluster: give one or the other"
            )
        return {"staleness": None}
    if staleness is None and jobs > 1 and not _goes_on(given):
        staleness = STALENESS
    if block_rows is not None and not staleness and not _goes_on(given):
        raise typer.BadParameter("--block-rows needs --jobs 2 or more: give both")
    return {"staleness": staleness}


def _goes_on(given: dict[str, Any]) -> bool:
    """Return whether there is a run to resume."""
    return given["resume"] and given["out"] is not None and is_run(given["out"])


def run_stream(source: list[str] | None, **given: Any) -> None:
    """Absorb records and answer each with a line of JSON."""
    source = source or ["-"]
    if source == ["-"] and given["format"] is None and not _goes_on(given):
        given["format"] = "jsonl"
    if given["to"] is None:
        _mend_last_line()
    try:
        feed, done = _run(run_options(source, given), given, answer=_answering(given))
    except BrokenPipeError:
        close_pipe()
        say(
            "the output was closed by its reader; continue from the last checkpoint with --resume",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    if not given["quiet"]:
        summary = summarize(feed, given["out"], done=done)
        say(
            f"{summary['rows']:,} rows, {summary['topics']:,} topics, "
            f"{summary['clusters']:,} clusters, "
            f"{summary['rejects']:,} rejects, {summary['rows_per_second']:,.0f} rows/s",
            err=True,
        )
        if not done and given["out"] is not None:
            say(_interrupted(shlex.quote(str(given["out"]))), err=True)
    if not done:
        raise typer.Exit(INTERRUPTED)


def run_options(source: list[str], given: dict[str, Any]) -> RunOptions:
    """Return the options of a command as options of a run."""
    about_source = given_for(Options, given)
    if about_source["columns"] is not None:
        names = about_source["columns"].split(",")
        about_source["columns"] = tuple(name.strip() for name in names)
    about_model = given_for(ModelOptions, given)
    file = None if given.get("config") is None else read_model_file(given["config"])
    model = ModelOptions(**about_model) if file is None else file.overridden(about_model)
    return RunOptions(
        tuple(source),
        Options(**about_source),
        model,
        model_file=file,
        **{way: given[way] for way in ("follow", "wait", "start") if way in given},
    )


def given_for(record: type[Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a command that are fields of a settings class."""
    return {field.name: given[field.name] for field in fields(record) if field.name in given}


Answering = Callable[[Interrupts], AbstractContextManager[Answer]]


def _run(options: RunOptions, given: dict[str, Any], answer: Answering | None) -> tuple[Feed, bool]:
    """Run a feed to its end; return it, and False if a signal ended it."""
    pace, jobs = pace_of(given), given.get("jobs", 1)
    if jobs > 1 and pace.batch_rows == Pace.batch_rows:  # threads that encode need some rows each
        pace = replace(pace, batch_rows=PART_ROWS)
    feed = start(given["out"], options, resume=given["resume"])
    try:
        tell(feed, given)
        feed.model.learn_by(jobs)
        with (
            Interrupts() as interrupts,
            nullcontext() if answer is None else answer(interrupts) as answering,
            ProgressDisplay(quiet=given["quiet"], log_json=given["log_json"]) as progress,
        ):
            return feed, feed.run(pace, interrupts, progress, answering)
    finally:
        feed.close()


def tell(feed: Feed, given: dict[str, Any]) -> None:
    """Print what the records are taken for, and warn about unused columns, before the first row."""
    found = understood(feed.source.schema, feed.model.likelihood)
    for warning in warnings_of(found):
        say(f"warning: {warning}", err=True)
    if not given["quiet"]:
        said = {"schema": found}
        say(json_bytes(said).decode() if given["log_json"] else told(found), err=True)


def pace_of(given: dict[str, Any]) -> Pace:
    """Return the options of a command about how to feed a source."""
    if given["resume"] and given["out"] is None:
        raise typer.BadParameter("--resume needs --out, the run to continue")
    if given["strict"] and given["max_rejects"]:
        raise typer.BadParameter(
            "--strict allows no rejects and --max-rejects allows some: give one of them"
        )
    pace = Pace(**given_for(Pace, given))
    return replace(pace, max_rejects=0) if given["strict"] else pace


def _answering(given: dict[str, Any]) -> Answering:
    """Return a function that opens the destination of answers."""
    if given["to"] is None:
        return lambda interrupts: nullcontext(write_answers)
    from bnpstream.sources.brokers.outlet import open_sender  # here, as few need it

    @contextmanager
    def opened(interrupts: Interrupts) -> Iterator[Answer]:
        def pause(seconds: float) -> bool:
            until = time.monotonic() + seconds
            while not interrupts.requested and (left := until - time.monotonic()) > 0:
                time.sleep(min(left, PAUSE))
            return interrupts.requested

        with closing(open_sender(given["to"], wait=given["wait"], pause=pause)) as sender:
            yield lambda records, model: sender.send(_keyed_answers(records, model))

    return opened


def write_answers(records: Records, model: Mixture) -> None:
    """Write the answers for a batch, one line per row, and flush."""
    sys.stdout.buffer.write(answer_lines(records, model))
    sys.stdout.buffer.flush()


def _keyed_answers(records: Records, model: Mixture) -> list[SentAnswer]:
    """Return answers with a key each: the place of the record, or its number."""
    spots = [place.spot for place in records.places] or [None] * len(records)
    keys = [
        str(number) if spot is None else "/".join(map(str, spot.values()))
        for number, spot in zip(records.numbers, spots, strict=True)
    ]
    return list(map(SentAnswer, keys, answer_lines(records, model).splitlines()))


def _mend_last_line() -> None:
    """End the last line of a file to append answers to, if a killed process left it open."""
    handle = sys.stdout.fileno()
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        return
    try:
        with Path(f"/dev/fd/{handle}").open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            if size > 0:
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    os.write(handle, b"\n")
    except OSError:  # not readable: the last line is unknown
        return


def summarize(feed: Feed, out: Path | None, *, done: bool) -> dict[str, Any]:
    """Return the summary of a run as JSON."""
    status, model, schema = feed.status(), feed.model, feed.source.schema
    rows, columns = status.rows, None
    if schema.types is not None and schema.names is not None:
        columns = dict(zip(schema.names, schema.types, strict=True))
    evidence = model.log_evidence if rows > 0 else None
    likelihood = model.posterior.model.likelihood if rows > 0 else model.likelihood
    exemplars = feed.journal.exemplars if schema.has_texts_beside_vectors else None
    topics = topics_of(model, schema.names, exemplars) if rows > 0 else []
    tokens, settings = feed.journal.n_tokens, model.stream.settings
    staleness = settings.staleness
    return {
        "run": None if out is None else str(out),
        "finished": done,
        "rows": rows,
        "records": status.records,
        "rejects": status.rejects,
        "topics": len(topics),
        "largest_topics": topics[:SHOWN_TOPICS],
        "clusters": model.n_clusters if rows > 0 else 0,
        "tokens": tokens,
        "log_evidence": evidence,
        "log_evidence_per_row": None if evidence is None else evidence / rows,
        "log_evidence_per_token": evidence / tokens if evidence is not None and tokens else None,
        "seconds": feed.seconds + status.seconds,
        "seconds_compiling": feed.seconds_compiling,
        "seconds_in_pass": feed.seconds_in_pass,
        "rows_per_second": status.rows_per_second,
        "reject_reasons": dict(feed.journal.reasons.most_common()),
        "columns": columns,
        "schema": understood(schema, likelihood),
        "learnt": model.learnt() if rows > 0 else {},
        **({"staleness": staleness, "block_rows": settings.block_rows} if staleness > 0 else {}),
    }


def topics_of(
    model: Mixture, names: Sequence[str] | None, exemplars: Exemplars | None = None
) -> list[dict[str, Any]]:
    """Return the topics of a model as JSON, largest first.

    Parameters
    ----------
    model : Mixture
        The model.
    names : sequence of str, optional
        Names of the columns.
    exemplars : Exemplars, optional
        Typical records, if these describe topics better than columns do.
    """
    stream = model.stream.answering
    posterior = stream.posterior
    names = list(names or map(str, range(model.n_features or 0)))
    portraits = TopicPortraits(stream.topics, posterior)
    found = topic_columns(posterior, portraits, [], names, TOPIC_WORDS)
    if exemplars is not None:
        typical = [[one for id in ids for one in exemplars.of(id)] for ids in found["clusters"]]
        best = [max(some, key=lambda one: one.score, default=None) for some in typical]
        found["label"] = ["" if one is None else one.excerpt for one in best]
        found["words"] = [[] for _ in best]
    found["clusters"] = list(map(len, found["clusters"]))
    kept = ("id", "label", "words", "share", "clusters")
    return [dict(zip(kept, line, strict=True)) for line in zip(*map(found.get, kept), strict=True)]


def _interrupted(out: object, dask: dict[str, Any] | None = None) -> str:
    cluster = "" if dask is None else f" --dask {dask['cluster']}"
    return f"interrupted and saved; continue with --out {out}{cluster} --resume"


def _print(summary: dict[str, Any], feed: Feed) -> None:
    compiling, schema = summary["seconds_compiling"], feed.source.schema
    shown = {
        "rows": summary["rows"],
        "topics": summary["topics"],
        "clusters": summary["clusters"],
        "rejects": summary["rejects"],
        "log evidence per row": summary["log_evidence_per_row"],
        "log evidence per token": summary["log_evidence_per_token"],
        "seconds": f"{summary['seconds']:,.2f}",
        "seconds compiling": f"{compiling:,.2f}" if compiling > 0.0 else None,
        "rows per second": round(summary["rows_per_second"]),
    }
    print_numbers(shown)
    has_texts = schema.has_texts_beside_vectors
    for topic in summary["largest_topics"]:
        about = topic["label"]
        if schema.has_nameless_columns and not has_texts:
            about = f"{topic['clusters']:,} cluster{'s' * (topic['clusters'] != 1)}"
        elif summary["columns"] is None:
            about = " ".join(topic["words"]) or about
        say(f"topic {topic['id']}: {topic['share']:.1%}  {about}")
    if len(summary["largest_topics"]) < summary["topics"]:
        say(f"and {summary['topics'] - len(summary['largest_topics']):,} smaller topics")
    if feed.n_rows > 0 and feed.model.topics_found is not None:
        say(str(feed.model.topics_found))
    if schema.kind == "table" and feed.n_rows > 0:
        say(f"family: {plain_family(feed.model.posterior.model.likelihood)}")
    if summary["learnt"]:
        learnt = [f"{name.replace('_', ' ')} {x:.4g}" for name, x in summary["learnt"].items()]
        say(f"learnt: {', '.join(learnt)}")
    if "staleness" in summary:
        say(f"staleness {summary['staleness']}, blocks of {summary['block_rows']:,} rows")
    if "dask" in summary:
        about, unread = summary["dask"], len(summary["dask"]["unread"])
        say(
            f"dask: {about['partitions']:,} partitions, {about['workers']:,} workers, "
            f"staleness {about['staleness']}"
            + (f"; {unread:,} partitions could not be read" if unread else "")
        )
    for reason, count in list(summary["reject_reasons"].items())[:SHOWN_REASONS]:
        say(f"{count:,} rejected: {reason}")
    if summary["rejects"] > summary["rows"]:
        say("most records were rejected: check --format, --text-field and --columns")
    if summary["run"] is None:
        say("the run was not saved: give --out to save it")
        return
    run = shlex.quote(summary["run"])
    lines = [f"next: bnpstream clusters {run}", f"      bnpstream report {run}"]
    if not summary["finished"]:
        lines.insert(0, _interrupted(run, summary.get("dask")))
    for line in lines:
        say(line)
