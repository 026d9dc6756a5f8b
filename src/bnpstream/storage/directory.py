"""The run directory: settings, the last two checkpoints, and logs."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
from msgspec import convert

from bnpstream.storage.files import (
    RunError,
    locked,
    make_folder,
    require_file,
    sweep_up,
    sync_folder,
    write_json,
    writer_of,
)
from bnpstream.storage.logs import JsonLines, Mark, read_logged
from bnpstream.storage.order import Ordered, OrderLog
from bnpstream.storage.tensors import (
    FORMAT,
    DamagedError,
    MissingError,
    Tensors,
    check_format,
    read_tensors,
    write_tensors,
)

CONFIG, STATE, PREVIOUS = "config.json", "state.safetensors", "previous.safetensors"
NAMES = "features.json"
"""Names of the columns; a file of their own, as there may be very many."""
ORDER = "order.jsonl"
"""How batches were put together since the last checkpoint, for sources where this varies."""
LOGS = {"trace": 4, "lineage": None, "rejects": 4}
"""Files of JSON lines, and the number of full segments of each that are kept; None keeps all."""


def is_run(folder: Path) -> bool:
    """Return whether a directory holds a run."""
    return (folder / CONFIG).exists()


def has_checkpoint(folder: Path) -> bool:
    """Return whether a run has reached its first checkpoint."""
    return (folder / STATE).exists() or (folder / PREVIOUS).exists()


def read_config(folder: Path) -> dict[str, Any]:
    """Read the settings of a run."""
    path = folder / CONFIG
    if not folder.is_dir():
        raise RunError(f"{folder}: no such run directory")
    require_file(path)
    try:
        config: dict[str, Any] = json.loads(path.read_bytes())
        if not isinstance(config, dict):
            raise ValueError("it is not a JSON object")
    except FileNotFoundError:
        raise RunError(
            f"{folder}: not a run directory, as it has no {CONFIG}: give the --out of a run"
        ) from None
    except (ValueError, RecursionError, OSError) as error:
        raise RunError(f"{path}: cannot be read: {error}: restore it from a copy") from error
    check_format(path, config.get("format"))
    return config


def read_names(folder: Path) -> list[str] | None:
    """Return the names of a run's columns, or None if they have none."""
    require_file(folder / NAMES)
    try:
        names: list[str] | None = orjson.loads((folder / NAMES).read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise RunError(f"{folder / NAMES}: cannot be read: {error}: restore it") from error
    return names


def checkpoint_path(folder: Path) -> Path:
    """Return the file of the last checkpoint, or of the previous one if that was removed."""
    state, previous = folder / STATE, folder / PREVIOUS
    return previous if previous.exists() and not state.exists() else state


def read_checkpoint(folder: Path) -> Tensors:
    """Read the last checkpoint: state.safetensors, or the previous one if that was removed."""
    while has_checkpoint(folder):
        path = checkpoint_path(folder)
        try:
            return read_tensors(path)
        except MissingError:
            continue  # a process that writes to the run has just renamed it
        except DamagedError as error:
            if path.name == PREVIOUS:
                raise
            raise RunError(f"{error}; {_way_out(folder)}") from error
    writing = writer_of(folder)
    advice = (
        "it was stopped before the first one: continue with --resume"
        if writing is None
        else f"process {writing} is writing to the run: wait for the first one"
    )
    raise RunError(f"{folder}: no checkpoint yet: {advice}")


def _way_out(folder: Path) -> str:
    """Say whether the checkpoint before a damaged one is sound."""
    try:
        found = read_tensors(folder / PREVIOUS)
    except RunError:
        return "there is no intact checkpoint before it: start again with another --out"
    rows = found.document.get("rows", "an earlier row")
    return (
        f"the checkpoint before it, at row {rows}, is intact: remove {STATE} to continue from there"
    )


def save_run(folder: Path, config: dict[str, Any], tensors: Tensors) -> None:
    """Save settings and a state of a model that was fitted elsewhere."""
    if is_run(folder) and "source" in read_config(folder):
        raise RunError(f"{folder}: is the directory of a run: save to another directory")
    make_folder(folder)
    with locked(folder):
        if is_run(folder):
            sweep_up(folder, (CONFIG, NAMES, STATE))
        write_json(folder / CONFIG, {"format": FORMAT, **config})
        write_tensors(folder / STATE, tensors)


class RunWriter:
    """A run directory that only this process writes to.

    Parameters
    ----------
    folder : Path
        The directory.
    marks : dict
        Ends of the files of JSON lines at a checkpoint; empty for a new run.
    """

    def __init__(self, folder: Path, marks: dict[str, Mark]) -> None:
        self.folder, self._marks = folder, marks
        self._previous = marks
        self._order: OrderLog | None = None
        self._saved_records = 0
        with ExitStack() as stack:
            stack.enter_context(locked(folder))
            if is_run(folder):  # otherwise the contents are not ours
                sweep_up(folder, (CONFIG, NAMES, STATE))
            self.logs: dict[str, JsonLines] = {}
            if (folder / ORDER).exists():
                self._order = OrderLog(folder / ORDER)
                stack.callback(self._order.close)
            for name, keep in LOGS.items():
                log = JsonLines(folder / f"{name}.jsonl", marks.get(name, Mark()), keep=keep)
                stack.callback(log.close)
                self.logs[name] = log
            self._stack = stack.pop_all()

    @classmethod
    def create(
        cls, folder: Path, config: dict[str, Any], others: dict[str, Any] | None = None
    ) -> "RunWriter":
        """Create a run directory; RunError if there is one already.

        Parameters
        ----------
        folder : Path
            The directory.
        config : dict
            Settings.
        others : dict, optional
            Further files: names, and contents as JSON.
        """
        if is_run(folder):
            raise RunError(
                f"{folder}: already holds a run: give --resume to continue it, or another --out"
            )
        logs = [f"{name}.jsonl" for name in LOGS]
        left = [name for name in (STATE, PREVIOUS, *logs) if _has_content(folder / name)]
        if left:
            raise RunError(
                f"{folder}: has a {left[0]} but no {CONFIG}: restore that from a copy, "
                "or give another --out"
            )
        make_folder(folder)
        writer = cls(folder, {})
        try:
            for name, content in (others or {}).items():
                write_json(folder / name, content)
            write_json(
                folder / CONFIG, {"format": FORMAT, **config}
            )  # last, because it makes the directory a run
        except BaseException:
            writer.close()
            raise
        return writer

    @classmethod
    def resume(cls, folder: Path, marks: dict[str, Mark]) -> "RunWriter":
        """Open a run to continue from a checkpoint; log entries after it are cut off."""
        return cls(folder, marks)

    def note_order(self, batch: Ordered) -> None:
        """Save how a batch was put together, before it is answered."""
        if self._order is None:
            self._order = OrderLog(self.folder / ORDER)
            self._stack.callback(self._order.close)
            sync_folder(self.folder)
        self._order.append(batch)

    def batches_after(self, records: int) -> list[Ordered]:
        """Return the batches answered after a checkpoint with this many records."""
        found = [] if self._order is None else self._order.batches
        return [batch for batch in found if batch.records >= records]

    def checkpoint(self, tensors: Tensors) -> None:
        """Save a state and the ends of the files of JSON lines, in one atomic step.

        The previous checkpoint is kept.
        """
        marks = {name: log.sync() for name, log in self.logs.items()}
        document = {**tensors.document, "marks": marks}
        state, previous = self.folder / STATE, self.folder / PREVIOUS
        fresh = self.folder / f"{STATE}.new"
        write_tensors(fresh, Tensors(tensors.arrays, document))
        if state.exists():
            state.replace(previous)
        fresh.replace(state)
        sync_folder(self.folder)
        for name, log in self.logs.items():
            log.forget(self._previous.get(name, Mark()))
        if self._order is not None:
            self._order.rotate(self._saved_records)
        self._saved_records = sum(int(document.get(name, 0)) for name in ("rows", "rejects"))
        self._previous, self._marks = self._marks, marks

    def close(self) -> None:
        """Close all files and release the lock."""
        self._stack.close()

    def __enter__(self) -> "RunWriter":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def marks_of(document: dict[str, Any]) -> dict[str, Mark]:
    """Return the ends of the files of JSON lines at a checkpoint."""
    return convert(document.get("marks", {}), dict[str, Mark])


def read_log(folder: Path, name: str, marks: dict[str, Mark]) -> Iterator[dict[str, Any]]:
    """Yield the records of a file of JSON lines up to a checkpoint."""
    return read_logged(folder / f"{name}.jsonl", marks.get(name, Mark()))
