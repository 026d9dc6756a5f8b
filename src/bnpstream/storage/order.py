"""How batches were put together since the last checkpoint, so that they can be repeated."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from msgspec import convert

from bnpstream.storage.files import disk_errors, intact, open_log, require_file, sync_folder


class Ordered(NamedTuple):
    """A batch that was answered, or is about to be."""

    records: int
    """Number of records before it."""
    order: Any
    """How it was put together, in its source's own terms."""
    position: Any
    """Position after it."""


class OrderLog:
    """Batches since the last checkpoint but one; saved before they are answered.

    Unlike the other logs, it is not cut back to a checkpoint: it tells how to get from there to
    what was answered. A batch on an unfinished line has not been answered.

    Parameters
    ----------
    path : Path
        The file; a second file beside it holds what is older than the last checkpoint.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.batches: list[Ordered] = []
        """In order; a later batch replaces those that it overlaps."""
        with disk_errors(path):
            for one in (self._before, path):
                require_file(one)
                with intact(one):
                    for line in _whole_lines(one):
                        self._add(convert(orjson.loads(line), Ordered))
            self._file = open_log(self.path)

    @property
    def _before(self) -> Path:
        return self.path.with_name(f"{self.path.stem}.previous.jsonl")

    def _add(self, batch: Ordered) -> None:
        while self.batches and self.batches[-1].records >= batch.records:
            self.batches.pop()
        self.batches.append(batch)

    def append(self, batch: Ordered) -> None:
        """Save a batch, unless it is there."""
        if batch in self.batches:
            return
        self._add(batch)
        with disk_errors(self.path):
            self._file.write(orjson.dumps([*batch], option=orjson.OPT_APPEND_NEWLINE))
            self._file.flush()
            os.fsync(self._file.fileno())

    def rotate(self, records: int) -> None:
        """Start again after a checkpoint; `records` is the number at the previous one."""
        with disk_errors(self.path):
            self._file.close()
            self.path.replace(self._before)
            self._file = open_log(self.path)
            sync_folder(self.path.parent)
        self.batches = [batch for batch in self.batches if batch.records >= records]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _whole_lines(path: Path) -> list[bytes]:
    """Return the complete lines of a file, and remove an incomplete last one."""
    if not path.exists():
        return []
    data = path.read_bytes()
    length = data.rfind(b"\n") + 1
    if length < len(data):
        os.truncate(path, length)
    return data[:length].splitlines()
