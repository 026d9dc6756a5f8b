"""The log of records to learn: they are on disk before they are acknowledged."""

import fcntl
import os
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import orjson

from bnpstream.runs.start import settings_of
from bnpstream.serve.api import RefusedError
from bnpstream.storage import RunError, is_run, read_config
from bnpstream.storage.files import disk_errors, open_own, sync_folder

NAME = "inbox.jsonl"
MOST_RECORD_BYTES = 1 << 20
"""A longer line would be rejected on reading."""
REMEMBERED = 1_000_000
"""Number of ids remembered, to recognise records that are sent again."""


class Logged(NamedTuple):
    """What happened to records."""

    new: int
    known: int
    """Records known from before; they are not learnt twice."""
    behind: int
    """Records in the log, up to the last of these."""


class Inbox:
    """Appends records to the log of a run; one process at a time.

    Parameters
    ----------
    folder : Path
        The run directory; it need not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        check_run(folder)
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._file = open_own(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise RunError(f"{self.path}: another server writes to it: stop that one") from None
        sync_folder(folder)
        self._lock, self._is_torn = Lock(), False
        self.n_records = 0
        self._places: dict[bytes, int] = {}
        self._read()

    def _read(self) -> None:
        """Read the ids in the log, and end a line that a crash has left unfinished.

        That line was not acknowledged, and becomes a reject. It is not cut away: to a learner
        that has read it, the log would look like a different one.
        """
        with self.path.open("rb") as file:
            for line in file:
                self._is_torn = not line.endswith(b"\n")
                if not line.isspace():
                    try:
                        self._remember(orjson.dumps(orjson.loads(line)["id"]))
                    except (ValueError, LookupError, TypeError):
                        self.n_records += 1

    def _remember(self, id: bytes) -> None:
        self.n_records += 1
        self._places[id] = self.n_records
        if len(self._places) > REMEMBERED:
            del self._places[next(iter(self._places))]

    def append(self, values: list[Any]) -> Logged:
        """Append records with new ids, and flush them to disk."""
        ids = [_id_of(value, i) for i, value in enumerate(values)]
        with self._lock:
            fresh: dict[bytes, bytes] = {}
            for id, value in zip(ids, values, strict=True):
                if id not in self._places and id not in fresh:
                    fresh[id] = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
            if fresh:
                self._write(b"".join(fresh.values()))
            for id in fresh:
                self._remember(id)
            behind = max(self._places[id] for id in ids)
            return Logged(len(fresh), len(values) - len(fresh), behind)

    def _write(self, lines: bytes) -> None:
        data = b"\n" + lines if self._is_torn else lines
        with disk_errors(self.path):
            self._is_torn = True  # until all of it is written
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        self._is_torn = False

    def close(self) -> None:
        """Release the log."""
        os.close(self._file)


def check_run(folder: Path) -> None:
    """Raise RunError if a run learns from anything but requests."""
    if not is_run(folder):
        return
    config = read_config(folder)
    settings_of(folder, config)
    paths = config["source"]["paths"]
    if paths != [str((folder / NAME).resolve())]:
        raise RunError(
            f"{folder}: reads {', '.join(map(str, paths))}, but --learn needs a run that learns "
            "from requests alone: name a new directory"
        )


def _id_of(value: Any, place: int) -> bytes:
    """Return the id of a record."""
    id = value.get("id") if isinstance(value, dict) else None
    if type(id) not in (str, int):
        raise RefusedError(
            400, f'record {place}: give an object with an "id", a string or a whole number, which '
            "identifies a record that is sent again"
        )  # fmt: skip
    if len(orjson.dumps(value)) >= MOST_RECORD_BYTES:
        raise RefusedError(413, f"record {place}: larger than {MOST_RECORD_BYTES} bytes")
    return orjson.dumps(id)
