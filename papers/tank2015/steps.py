"""What an experiment computes: pure functions of simple arguments, and what they found."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import orjson

Found = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A function that returns numbers by name, and the arguments to call it with.

    Arguments are numbers and words, so that they can be written down; a name that begins with
    "seconds" is a timing, which no two runs have in common.
    """

    job: Callable[..., Found]
    arguments: Found

    @property
    def name(self) -> str:
        """Return what people and files know it by."""
        given = ", ".join(f"{name}={value}" for name, value in self.arguments.items())
        return f"{self.job.__name__}({given})"


def each(job: Callable[..., Found], **values: Any) -> list[Step]:
    """Return a step for every combination of arguments; those given as lists vary."""
    lists = [value if isinstance(value, list) else [value] for value in values.values()]
    return [Step(job, dict(zip(values, chosen, strict=True))) for chosen in product(*lists)]


@dataclass
class Results:
    """What the steps of an experiment found, in their order."""

    settings: Any
    records: list[Found] = field(default_factory=list)

    def of(self, job: Callable[..., Found], **arguments: Any) -> list[Found]:
        """Return what a function found with these arguments, whatever the others were."""
        chosen = [
            record["found"]
            for record in self.records
            if record["step"] == job.__name__ and arguments.items() <= record["arguments"].items()
        ]
        if not chosen:
            raise LookupError(f"no step {job.__name__} with {arguments}")
        return chosen

    def one(self, job: Callable[..., Found], **arguments: Any) -> Found:
        """Return what a function found with these arguments: there must be one such step."""
        (found,) = self.of(job, **arguments)
        return found

    def values(self, job: Callable[..., Found], key: str, **arguments: Any) -> Any:
        """Return one number, or one curve, of every such step, stacked."""
        return np.array([found[key] for found in self.of(job, **arguments)])


def mean_and_error(values: Any) -> tuple[float, float]:
    """Return the mean over replicates and its standard error; of one replicate that is nan."""
    values = np.asarray(values, float)
    if len(values) < 2:
        return float(values.mean()), float("nan")
    return float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5)


class Journal:
    """Keeps finished steps on disk while an experiment runs, a line of JSON each.

    Parameters
    ----------
    path : Path
        The file. Lines of other code or other settings are of no use: they are dropped.
    fingerprint : str
        What the lines depend on.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path = path
        self.done: dict[str, Found] = {}
        head = orjson.dumps({"fingerprint": fingerprint})
        lines = path.read_bytes().split(b"\n") if path.exists() else []
        if lines and lines[0] == head:
            # What follows the last line feed was being written when the run was killed.
            records = [orjson.loads(line) for line in lines[1:-1]]
            self.done = {record["name"]: record for record in records}
        kept = [head, *(orjson.dumps(record) for record in self.done.values())]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(line + b"\n" for line in kept))

    def add(self, record: Found) -> None:
        """Bring a finished step to the disk."""
        with self.path.open("ab") as file:
            file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
            file.flush()
            os.fsync(file.fileno())
        self.done[record["name"]] = record

    def close(self) -> None:
        """Remove the file: all that it holds is in the results."""
        self.path.unlink()


def fingerprint(*parts: Any) -> str:
    """Return a hash of code and settings: of files by their contents, of the rest by its text."""
    digest = hashlib.sha256()
    for part in parts:
        for piece in _pieces(part):
            digest.update(piece)
    return digest.hexdigest()


def _pieces(part: Any) -> Iterator[bytes]:
    if not isinstance(part, Path):
        yield repr(part).encode()
        return
    for path in sorted(part.rglob("*.py")):
        yield path.relative_to(part).as_posix().encode()
        yield path.read_bytes()


def changes(before: Sequence[Found], after: Sequence[Found]) -> list[str]:
    """Return the names of steps whose numbers, timings aside, are not what they were."""
    known = {record["name"]: _untimed(record["found"]) for record in before}
    return [r["name"] for r in after if known.get(r["name"]) != _untimed(r["found"])]


def _untimed(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _untimed(v) for k, v in value.items() if not k.startswith("seconds")}
    return value
