"""Running experiments: steps in order, kept as they finish, then what they show."""

import dataclasses
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from joblib import Parallel, delayed

import bnpstream
from bnpstream.runs.start import versions
from bnpstream.storage.files import write_atomically
from tank2015.page import write_page
from tank2015.showing import Show
from tank2015.steps import Found, Journal, Results, changes, fingerprint

PAGE = ("bars", "powerlaw", "powerlaw-full", "kos", "kos-full", "nyt", "beyond")
"""In the order of the paper, and of the page."""
LONG = tuple(name for name in PAGE if name.endswith("-full"))
"""What takes hours: ``--full`` runs it."""
EXPERIMENTS = tuple(name for name in PAGE if name not in LONG)

HERE = Path(__file__).parent


class Progress(NamedTuple):
    """Where a run stands."""

    experiment: str
    step: str
    """The one that was finished last."""
    done: int
    total: int


def reproduce(
    name: str,
    out: Path,
    *,
    small: bool = False,
    n_jobs: int = 1,
    given: dict[str, Any] | None = None,
    tell: Callable[[Progress], None] = lambda progress: None,
) -> Found:
    """Run an experiment and write its results, figures, tables and the page into a folder.

    Steps that an interrupted run finished are not run again.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS` or `LONG`.
    out : Path
        Folder: the page is its README.md, everything else is in ``results``.
    small : bool
        Use the small settings, which take seconds.
    n_jobs : int
        Steps at a time, in processes; -1 for all cores. No number but timings depends on it.
    given : dict, optional
        Settings to replace.
    tell : callable
        Told before the first step and after every one.

    Returns
    -------
    results : dict
        What is in ``results/NAME.json``, with "changed" and "resumed": how many steps have other
        numbers than the file had before (None if there was none), and how many had been done.
    """
    experiment = import_module(f"tank2015.{name.replace('-', '_')}")
    settings = experiment.SMALL if small else experiment.FULL
    settings = dataclasses.replace(settings, **given or {})
    folder = out / "results"
    folder.mkdir(parents=True, exist_ok=True)
    steps = experiment.steps(settings)
    code = fingerprint(HERE, Path(bnpstream.__file__).parent, versions(), settings)
    journal = Journal(folder / f".{name}.steps.jsonl", code)
    resumed = sum(step.name in journal.done for step in steps)
    tell(Progress(name, "", resumed, len(steps)))
    waiting = [delayed(_run)(step) for step in steps if step.name not in journal.done]
    with (
        warnings.catch_warnings(),
        closing(Parallel(n_jobs=n_jobs, return_as="generator_unordered")(waiting)) as records,
    ):
        # Corpora that a process keeps look like a leak to joblib, which then starts another one.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
        for record in records:
            journal.add(record)
            tell(Progress(name, record["name"], len(journal.done), len(steps)))
    results = Results(settings, [journal.done[step.name] for step in steps])
    show = Show(folder, name)
    claims = experiment.report(results, show)
    document = {
        "experiment": name,
        "title": experiment.TITLE,
        "date": datetime.now(UTC).date().isoformat(),
        "settings": dataclasses.asdict(settings),
        "versions": versions(),
        "claims": [claim._asdict() for claim in claims],
        "exhibits": [exhibit._asdict() for exhibit in show.exhibits],
        "seconds": sum(record["seconds"] for record in results.records),
        "steps": results.records,
    }
    path = folder / f"{name}.json"
    before = orjson.loads(path.read_bytes())["steps"] if path.exists() else None
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    write_atomically(path, lambda partial: partial.write_bytes(text))
    write_page(out, PAGE)
    journal.close()
    changed = None if before is None else changes(before, results.records)
    return document | {"changed": changed, "resumed": resumed}


def _run(step: Any) -> Found:
    began = time.perf_counter()
    found = step.job(**step.arguments)
    record = {
        "name": step.name,
        "step": step.job.__name__,
        "arguments": step.arguments,
        "found": found,
        "seconds": time.perf_counter() - began,
    }
    # As it would come back from the disk: a resumed run must not differ from one that is not.
    return orjson.loads(orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY))  # type: ignore[no-any-return]
