"""Downloads and verifies corpora of the UCI repository (needs the extra ``bnpstream[fetch]``)."""

import errno
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple

from bnpstream.datasets.catalogue import CORPORA, UCI, CorpusFile
from bnpstream.datasets.download import ANOTHER, FetchError, Progress, Step, downloaded
from bnpstream.datasets.local import data_directory

_AT_ONCE = 1 << 20


class FetchedFile(NamedTuple):
    """A file that is present and verified."""

    path: Path
    n_bytes: int
    sha256: str
    hash_known: bool
    """Whether the hash was compared; if not, only the contents were checked."""
    resumed_from: int | None
    """Bytes left by an earlier download; None if the whole file was there already."""


class Fetched(NamedTuple):
    """A corpus that is present and verified."""

    folder: Path
    files: tuple[FetchedFile, ...]


class _Verdict(NamedTuple):
    """Result of checking a file."""

    sha256: str
    problem: str | None
    """What is wrong with it; None if it is right."""


def fetch(
    name: str,
    to: str | PathLike[str] | None = None,
    base_url: str = UCI,
    progress: Progress | None = None,
) -> Fetched:
    """Download a corpus of the UCI repository, unless it is there, and verify its files.

    An interrupted download continues where it stopped. A file gets its name only when it is
    complete and verified: by its hash if known, as for "kos"; otherwise it must decompress to its
    end, and have the header and the number of lines that UCI publishes.

    Parameters
    ----------
    name : {"kos", "nytimes"}
        The corpus.
    to : str or path, optional
        Directory in which to create the folder of the corpus; by default the one that `find`
        searches. If you choose another, set the environment variable ``BNPSTREAM_DATA`` to it.
    base_url : str, optional
        URL of a directory with the files; by default UCI's.
    progress : callable, optional
        Called with a `Step` again and again: file, stage, bytes so far, bytes in all.

    Returns
    -------
    Fetched
        The folder; and for each file its path, size and sha256, whether that was compared with a
        known one, and whether the file was there before.

    Raises
    ------
    ValueError
        If `name` is unknown.
    ImportError
        If requests is missing.
    FetchError
        If there is no network or no such file, if the contents are wrong, or if the disk refuses
        them. It is an OSError.

    Examples
    --------
    >>> fetch("enron")
    Traceback (most recent call last):
    ValueError: name is 'enron': give 'kos' or 'nytimes'
    """
    names = [repr(known) for known, corpus in CORPORA.items() if corpus.origin is None]
    if repr(name) not in names:
        raise ValueError(f"name is {name!r}: give {' or '.join(names)}")
    folder = (data_directory() if to is None else Path(to).absolute()) / name
    tell = progress or (lambda step: None)
    with _writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        return Fetched(
            folder,
            tuple(_fetch_file(folder, known, base_url, tell) for known in CORPORA[name].files),
        )


def _fetch_file(folder: Path, known: CorpusFile, base_url: str, tell: Progress) -> FetchedFile:
    path, url = folder / known.name, f"{base_url.rstrip('/')}/{known.name}"
    resumed_from: int | None = None
    if path.exists():
        verdict = _inspect(path, known, tell)
        if verdict.problem is not None:
            raise FetchError(
                f"{path}: already exists, but {verdict.problem}: move it away, then fetch again"
            )
    else:
        with downloaded(url, path, tell) as (part, resumed_from):
            verdict = _inspect(part, known, tell)
            if verdict.problem is not None:
                raise FetchError(
                    f"{known.name} from {url}: {verdict.problem}: what was downloaded is deleted; "
                    f"fetch again; if that fails too, {ANOTHER}"
                )
    return FetchedFile(
        path, path.stat().st_size, verdict.sha256, known.sha256 is not None, resumed_from
    )


def _inspect(path: Path, known: CorpusFile, tell: Progress) -> _Verdict:
    """Compare a file with what is known about it.

    With a known hash nothing else matters. Without one, the file must decompress to its end, and
    have the published header and number of lines.
    """
    size = path.stat().st_size
    tell(Step(known.name, "checking", size, size))
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if known.sha256 is not None:
        problem = f"its sha256 is {sha256}, expected {known.sha256}"
        return _Verdict(sha256, None if sha256 == known.sha256 else problem)
    # The name on disk may be that of a partial download.
    unpacked: Any = gzip.open if known.name.endswith(".gz") else Path.open
    try:
        with unpacked(path, "rb") as file:
            return _Verdict(sha256, _find_problem(file, known))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        return _Verdict(sha256, f"its gzip data are damaged or end early ({error})")


def _find_problem(file: IO[bytes], known: CorpusFile) -> str | None:
    n_lines, last = 0, b"\n"
    if known.header is not None:
        head = [file.readline(_AT_ONCE) for _ in known.header]
        if [line.strip() for line in head] != [b"%d" % number for number in known.header]:
            found = b" ".join(line.strip() for line in head)[:60].decode("ascii", "replace")
            expected = " ".join(map(str, known.header))
            return f"its header (D, W, NNZ) is {found!r}, expected {expected!r}"
        n_lines = len(head)
    while data := file.read(_AT_ONCE):
        n_lines += data.count(b"\n")
        last = data[-1:]
    n_lines += last != b"\n"
    if n_lines != known.n_lines:
        return f"it has {n_lines:,} lines, expected {known.n_lines:,}"
    return None


@contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    """Say what is wrong with a folder if files cannot be written there."""
    try:
        yield
    except FetchError:
        raise
    except OSError as error:
        another = "give another directory (to in Python, --to on the command line)"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "the disk is full: free some space, then fetch again to continue"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            advice = f"cannot be written to: change its permissions, or {another}"
        elif error.errno in (errno.EEXIST, errno.ENOTDIR):
            advice = f"there is a file where a directory is needed: {another}"
        else:
            advice = f"{error.strerror or error}: fix that, then fetch again"
        raise FetchError(f"{folder}: {advice}") from error
    finally:
        # Unless it contains something: `find` would take it for a corpus.
        with suppress(OSError):
            folder.rmdir()
