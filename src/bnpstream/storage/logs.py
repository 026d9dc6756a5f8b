"""Files of JSON lines that grow, are cut back to a checkpoint, and rotate."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from bnpstream.storage.files import RunError, disk_errors, intact, open_log, require_file

ROTATE_BYTES = 1 << 24


class Mark(NamedTuple):
    """An end of a file: the number of the current segment, and its length."""

    segment: int = 0
    length: int = 0


class JsonLines:
    """Appends records, one per line; a full segment is renamed and numbered.

    Once full, segment 3 of ``trace.jsonl`` is ``trace.000003.jsonl``; the current one has the plain
    name.

    Parameters
    ----------
    path : Path
        The file, ending in ".jsonl".
    mark : Mark
        Its end at a checkpoint; anything after it is cut off.
    keep : int or None
        Full segments to keep; None keeps all.
    rotate_bytes : int
        Length at which a segment is full.
    """

    def __init__(
        self,
        path: Path,
        mark: Mark = Mark(),  # noqa: B008  (it does not change)
        *,
        keep: int | None = None,
        rotate_bytes: int = ROTATE_BYTES,
    ) -> None:
        self.path, self.keep, self.rotate_bytes = path, keep, rotate_bytes
        self._cut(mark)
        self.segment, self._length = mark
        self._file = open_log(self.path)

    def _cut(self, mark: Mark) -> None:
        """Undo what was written after a checkpoint."""
        later = [number for number, _ in full_segments(self.path) if number >= mark.segment]
        if later:
            self.path.unlink(missing_ok=True)
            for number in later[1:]:
                segment_path(self.path, number).unlink()
            segment_path(self.path, later[0]).replace(self.path)
        found = self.path.lstat().st_size if os.path.lexists(self.path) else 0
        if found < mark.length:
            raise RunError(
                f"{self.path}: has {found} bytes, but the checkpoint was made when it had "
                f"{mark.length}: restore it from a copy, or start again with another --out"
            )
        if found > mark.length:
            with open_log(self.path) as file:
                os.truncate(file.fileno(), mark.length)

    def append(self, records: list[Any]) -> None:
        """Write records; they are on disk after `sync`."""
        if not records:
            return
        data = b"".join(
            orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY)
            for record in records
        )
        with disk_errors(self.path):
            if self._length >= self.rotate_bytes:
                self._rotate()
            self._file.write(data)
        self._length += len(data)

    def _rotate(self) -> None:
        self.sync()
        self._file.close()
        self.path.replace(segment_path(self.path, self.segment))
        self.segment, self._length = self.segment + 1, 0
        self._file = open_log(self.path)

    def flush(self) -> None:
        """Let others read what was written; it may be lost in a crash."""
        with disk_errors(self.path):
            self._file.flush()

    def sync(self) -> Mark:
        """Flush everything to disk; return the end."""
        with disk_errors(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
        return Mark(self.segment, self._length)

    def forget(self, oldest: Mark) -> None:
        """Remove full segments beyond those to keep, but none that a checkpoint may go back to."""
        if self.keep is None:
            return
        for number, path in full_segments(self.path):
            if number < min(oldest.segment, self.segment - self.keep):
                path.unlink()

    def close(self) -> None:
        """Close the file; records not yet synced may be lost."""
        with suppress(OSError):
            self._file.close()


def segment_path(path: Path, number: int) -> Path:
    """Return the path of a full segment."""
    return path.with_name(f"{path.stem}.{number:06d}.jsonl")


def full_segments(path: Path) -> list[tuple[int, Path]]:
    """Return the numbers and paths of all full segments, in order."""
    found = path.parent.glob(f"{path.stem}.[0-9][0-9][0-9][0-9][0-9][0-9].jsonl")
    return sorted((int(segment.name.split(".")[-2]), segment) for segment in found)


def read_logged(path: Path, mark: Mark) -> Iterator[dict[str, Any]]:
    """Yield the records up to a checkpoint; those of removed segments are missing."""
    for number, segment in full_segments(path):
        if number <= mark.segment:
            yield from _records(segment, mark.length if number == mark.segment else None)
    if path.exists() and all(number != mark.segment for number, _ in full_segments(path)):
        yield from _records(path, mark.length)


def _records(path: Path, length: int | None) -> Iterator[dict[str, Any]]:
    require_file(path)
    with intact(path), path.open("rb") as file:
        left = length if length is not None else path.stat().st_size
        for line in file:
            left -= len(line)
            if left < 0:
                return
            yield orjson.loads(line)


class Tail:
    """Reads what another process appends to a file of JSON lines, even if it is rotated or cut.

    Parameters
    ----------
    path : Path
        The file.
    most_bytes : int, optional
        Of existing contents, read only this much at the end.
    """

    def __init__(self, path: Path, most_bytes: int | None = None) -> None:
        self.path, self.most_bytes = path, most_bytes
        self._segment, self._offset, self._last = -1, 0, b""

    def read(self) -> tuple[bool, list[dict[str, Any]]]:
        """Return whether the file was cut, which voids earlier records, and the new records."""
        if not self.path.is_file():  # not there yet, or just being rotated
            return False, []
        full = full_segments(self.path)
        present = full[-1][0] + 1 if full else 0
        paths = {**dict(full), present: self.path}
        is_cut = self._segment >= 0 and not self._is_same(paths.get(self._segment))
        if is_cut or self._segment < 0:
            first = present if self.most_bytes is not None else min(paths)
            self._segment, self._offset, self._last = first, 0, b""
            if self.most_bytes is not None:
                self._offset = max(0, self.path.stat().st_size - self.most_bytes)
        records: list[dict[str, Any]] = []
        for number in sorted(number for number in paths if number >= self._segment):
            if number > self._segment:
                self._segment, self._offset, self._last = number, 0, b""
            with suppress(FileNotFoundError):  # just being rotated: next time
                records += self._added(paths[number])
        return is_cut, records

    def _is_same(self, path: Path | None) -> bool:
        """Return whether a segment still starts with what was read of it."""
        if path is None or not path.exists():
            return False
        with path.open("rb") as file:
            file.seek(self._offset - len(self._last))
            return file.read(len(self._last)) == self._last

    def _added(self, path: Path) -> list[dict[str, Any]]:
        """Return the records in whole lines after what was read."""
        with path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        lines = whole.split(b"\n")[:-1]
        if self._offset > 0 and not self._last:
            lines = lines[1:]  # the first line is incomplete
        self._offset += len(whole)
        self._last = (self._last + whole)[-256:]
        return [record for line in lines if (record := _object(line)) is not None]


def _object(line: bytes) -> dict[str, Any] | None:
    """Return the object on a line, or None if it holds none."""
    with suppress(orjson.JSONDecodeError):
        found = orjson.loads(line)
        return found if isinstance(found, dict) else None
    return None
