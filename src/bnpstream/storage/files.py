"""Files that are written whole or not at all, and a lock."""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO

import orjson


class RunError(Exception):
    """Something is wrong with a run directory; the message says what to do."""


WRONG = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Exceptions that invalid contents of a file lead to."""


@contextmanager
def intact(path: Path) -> Iterator[None]:
    """Blame a file if the code inside, which uses its contents, fails."""
    try:
        yield
    except RunError:
        raise
    except WRONG as error:
        raise RunError(
            f"{path}: not a valid file of bnpstream: {type(error).__name__}: {error}: "
            "restore it from a copy, or start again with another --out"
        ) from error


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` make a file beside `path`, flush it to disk, and rename it to `path`.

    A crash leaves the old file or the new one.
    """
    partial = path.with_name(f".{path.name}.{token_hex(8)}.partial")  # nobody can guess it
    try:
        os.close(open_own(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        write(partial)
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        partial.replace(path)
        sync_folder(path.parent)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def require_file(path: Path) -> None:
    """Raise RunError if something by this name is not a file: reading a pipe would never end."""
    if path.exists() and not path.is_file():
        raise RunError(f"{path}: is not a file: remove it, and restore the file from a copy")


def open_own(path: Path, flags: int) -> int:
    """Open a file of a run directory without following links, whose targets may be anybody's.

    Raises
    ------
    RunError
        If it is a link, a pipe or a directory.
    """
    try:  # a pipe would wait for a reader
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.EISDIR):
            require_file(path)
        if error.errno != errno.ELOOP:
            raise
        raise RunError(
            f"{path}: is a link, and links in a run directory are not followed: remove it"
        ) from error


def open_log(path: Path) -> BinaryIO:
    """Open a file of a run directory, new or not, to append to it."""
    return os.fdopen(open_own(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab")


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file, whole or not at all."""
    data = orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    with disk_errors(path):
        write_atomically(path, lambda partial: partial.write_bytes(data))


def sweep_up(folder: Path, names: Iterable[str]) -> None:
    """Remove half-written files that killed writers left behind."""
    partials = (f".{name}*.partial" for name in names)
    for pattern in (*partials, ".tmp??????", "*.safetensors.new"):
        for path in folder.glob(pattern):
            if path.is_file():
                path.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, and flush their names to disk."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path in missing:
            sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn disk errors about a file or folder into RunErrors that say what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTDIR):
            raise RunError(
                f"{path}: there is a file where a directory is needed: give another --out"
            ) from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "the disk is full: free some space, then continue with --resume"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            advice = "it cannot be written to: change its permissions, or give another --out"
        else:
            advice = f"{error.strerror or error}: correct that, then continue with --resume"
        raise RunError(f"{path}: {advice}; what was saved before is intact") from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep all other writers out of a folder."""
    path = folder / "lock"
    with disk_errors(path):
        handle = open_own(path, os.O_RDWR | os.O_CREAT)
    try:
        try:
            _take_lock(handle)
        except OSError:
            owner = os.pread(handle, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise RunError(
                f"{folder}: another process (number {owner}) is writing to this run: "
                "wait for it, or give another --out"
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def _take_lock(handle: int, *, glances: int = 500, pause: float = 0.002) -> None:
    """Lock a file; OSError if another process writes. Those that only look are waited for."""
    for _ in range(glances):
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # fails if there is a writer
            fcntl.flock(handle, fcntl.LOCK_UN)
            time.sleep(pause)
    return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def writer_of(folder: Path) -> str | None:
    """Return the number of the process that now writes to a folder, or None."""
    try:
        handle = os.open(
            folder / "lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        )
    except OSError:  # no lock, or something else by that name
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(handle, 32, 0).decode("ascii", "replace").strip() or "unknown"
    finally:
        os.close(handle)
    return None
