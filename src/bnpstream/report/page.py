"""The report: made from templates, and written to a file."""

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bnpstream._visible import visible
from bnpstream.report.charts import bins_of, charts_of
from bnpstream.report.clusters import LISTED, bar_lengths, rows_of
from bnpstream.report.groups import groups_of
from bnpstream.report.phrases import (
    duration,
    excerpt,
    number,
    percent,
    setting,
    times,
    whole,
    word,
)
from bnpstream.report.pictures import HEIGHT
from bnpstream.report.topics import topic_rows
from bnpstream.runs.description import RunDescription
from bnpstream.storage.files import write_atomically

TEMPLATES = Path(__file__).parent / "templates"
REASONS = 20
"""Most reasons for rejects that are listed separately."""
NOUNS = {"words": "documents", "columns": "rows", "pixels": "images"}


class Fact(NamedTuple):
    """A number in the summary."""

    name: str
    value: str
    note: str


def write_report(description: RunDescription, path: str | Path) -> Path:
    """Write a self-contained HTML page about a run.

    The page is replaced at the end, so that it is never incomplete. The same description gives the
    same bytes.

    Parameters
    ----------
    description : RunDescription
        What the run found.
    path : path
        Path of the page.

    Returns
    -------
    Path
        Path of the page.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {path.parent} does not exist: create it first")
    if path.is_dir():
        raise IsADirectoryError(f"{path}: is a folder: name a file in it")
    page = render_report(description).encode("utf-8", "replace")  # half a surrogate pair: "?"
    write_atomically(path, lambda partial: partial.write_bytes(page))
    return path


def render_report(description: RunDescription) -> str:
    """Return the page as text."""
    run = description
    script = (TEMPLATES / "script.js").read_text(encoding="utf-8")
    return (
        environment()
        .get_template("page.html")
        .render(
            run=run,
            noun=NOUNS[run.kind],
            facts=list(_facts(run)),
            charts=charts_of(run),
            bins=bins_of(run),
            rows=rows_of(run),
            topics=topic_rows(run),
            groups=groups_of(run),
            unlisted=run.clusters[LISTED:],
            reject_bars=reject_bars(run),
            height=HEIGHT,
            style=Markup((TEMPLATES / "style.css").read_text(encoding="utf-8")),
            script=Markup(script),
            script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        )
    )


def environment(*folders: Path) -> Environment:
    """Return the template environment of the report, with further template folders."""
    made = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for phrase in (excerpt, number, percent, setting, times, whole, word):
        made.filters[phrase.__name__] = phrase
    return made


def _harmless(value: Any) -> Any:
    """Make strings harmless before they go into the page."""
    return visible(value) if type(value) is str else value


def _facts(run: RunDescription) -> Iterator[Fact]:
    """Yield the numbers of the summary."""
    speed = f"{whole(run.rows / run.seconds)} rows per second" if run.seconds > 0 else ""
    yield Fact(NOUNS[run.kind].capitalize(), whole(run.rows), f"of {whole(run.records)} records")
    if run.tokens is not None:
        a_row = f"{number(run.tokens / run.rows, 3)} per document" if run.rows else ""
        yield Fact("Words", whole(run.tokens), a_row)
    if run.topics:
        half = _half([topic.weight for topic in run.topics])
        yield Fact("Topics", whole(len(run.topics)), f"the largest {half} hold half of the stream")
    half = _half([cluster.weight for cluster in run.clusters])
    yield Fact("Clusters", whole(run.n_clusters), f"the largest {half} hold half of the stream")
    if run.rows:
        yield Fact(
            "Log evidence per row",
            number(run.log_evidence / run.rows),
            "nats, one-step-ahead prediction",
        )
    if run.tokens:
        per_word = number(run.log_evidence / run.tokens)
        yield Fact("Log evidence per word", per_word, "nats, one-step-ahead prediction")
    share = f"{percent(run.rejects / run.records)} of all records" if run.records else ""
    yield Fact("Rejected", whole(run.rejects), share)
    yield Fact("Time", duration(run.seconds), speed)


def _half(weights: list[float]) -> int:
    """Return how many of the largest hold half of the stream."""
    sums = accumulate(weights)
    return next((n for n, total in enumerate(sums, start=1) if total >= 0.5), len(weights))


def reject_bars(run: RunDescription) -> list[tuple[str, int, float]]:
    """Return the most frequent reasons with counts and bars; all others are added up."""
    ordered = sorted(run.reject_reasons, key=lambda reason: -reason[1])
    shown, rest = ordered[:REASONS], sum(count for _, count in ordered[REASONS:])
    if rest:
        shown.append(("other reasons", rest))
    lengths = bar_lengths([count for _, count in shown])
    return [(*reason, length) for reason, length in zip(shown, lengths, strict=True)]
