"""The documentation of installed packages, clustered with default settings."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bnpstream.cli.demo.steps import print_paths, report, stream_into
from bnpstream.cli.output import print_json
from bnpstream.datasets import Docstring, docstrings
from bnpstream.evaluation import agreement
from bnpstream.runs.description import RunDescription
from bnpstream.runs.options import ModelOptions, Pace
from bnpstream.runs.overview import Run
from bnpstream.runs.score import predict, source_for

WORDS = 5
"""Words per topic."""
SHOWN = 15
"""Topics in the table."""


def run_text(out: Path, console: Console, as_json: bool) -> None:
    """Cluster the documentation of installed packages with default settings."""
    texts, source, folder = docstrings(), out / "docstrings.jsonl", out / "run"
    console.print(
        f"Clustering {len(texts):,} descriptions of functions and classes of the installed NumPy, "
        "SciPy and scikit-learn in one pass, with default settings. The model sees text only.\n"
    )
    lines = [orjson.dumps({"id": one.name, "text": one.text}) for one in texts]
    source.write_bytes(b"\n".join(lines) + b"\n")
    feed = stream_into(folder, source, ModelOptions(), Pace())
    run = Run(folder)
    described = run.describe(n_features=20, with_tree=True)
    topics = [
        prediction.topic
        for _, found in predict(run, source_for(run, [str(source)]))
        for prediction in found
    ]
    result = {
        "rows": feed.n_rows,
        "seconds": described.seconds,
        "n_topics": len(described.topics),
        "n_clusters": described.n_clusters,
        "log_evidence_per_row": described.log_evidence / feed.n_rows,
        "topic_nmi": agreement(np.array([one.module for one in texts]), np.array(topics)).nmi,
        "topics": _topics(described, texts, topics),
        "run": str(folder),
        "report": report(described, out, console),
    }
    if as_json:
        print_json(result)
    else:
        _print(result, console)


def _topics(
    described: RunDescription, texts: list[Docstring], topics: list[int]
) -> list[dict[str, Any]]:
    """Return topics, largest first, with the module that most of their texts come from."""
    found = []
    for topic in described.topics:
        modules = Counter(
            one.module for one, id in zip(texts, topics, strict=True) if id == topic.id
        )
        module, count = modules.most_common(1)[0] if modules else (None, 0)
        found.append(
            {
                "id": topic.id,
                "share": topic.weight,
                "words": [feature.name for feature in topic.lifted[:WORDS]],
                "module": module,
                "module_share": count / modules.total() if modules else None,
            }
        )
    return found


def _print(result: dict[str, Any], console: Console) -> None:
    title = f"{result['n_topics']} topics, {result['n_clusters']} clusters"
    table = Table(title=title, title_justify="left")
    table.add_column("topic", justify="right")
    table.add_column("share", justify="right")
    table.add_column("distinctive words")
    table.add_column("mostly from")
    for topic in result["topics"][:SHOWN]:
        origin = "" if topic["module"] is None else f"{topic['module']} {topic['module_share']:.0%}"
        words = escape(", ".join(topic["words"]))
        table.add_row(str(topic["id"]), f"{topic['share']:.2%}", words, origin)
    console.print(table)
    n_smaller = result["n_topics"] - SHOWN
    if n_smaller > 0:
        console.print(f"and {n_smaller} smaller topics: see the report")
    evidence = f"{result['log_evidence_per_row']:.4g} nats, one-step-ahead prediction"
    summary = Table(show_header=False, box=None)
    summary.add_row("agreement of topics with modules", f"NMI {result['topic_nmi']:.3f}")
    summary.add_row("log evidence per row", evidence)
    summary.add_row("time", f"{result['seconds']:.1f} s")
    console.print(summary)
    print_paths(result, console)
