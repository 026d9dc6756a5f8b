"""Downloads one file, continuing where an earlier download stopped.

The bytes so far are kept in NAME.part, and their origin in NAME.part.json: the address, the
size, and the mark by which the server identifies the version of the file. The server is asked for
the rest of that version. If it now has another, or cannot send a part, everything is sent again.
"""

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import gaierror
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from requests import Response

_AT_ONCE = 1 << 16
_SECONDS = 30
_OK, _PARTIAL, _NOT_FOUND, _UNSATISFIABLE, _ERRORS = 200, 206, 404, 416, 400
ANOTHER = "give the address of a copy (base_url in Python, --from on the command line)"


class FetchError(OSError):
    """A file could not be fetched; the message says what to do."""


class Step(NamedTuple):
    """The progress of a download."""

    file: str
    stage: str
    """"downloading" or "checking"."""
    done: int
    """Bytes."""
    total: int | None
    """Bytes, if the server says how many."""


Progress = Callable[[Step], None]


class _Origin(NamedTuple):
    """The origin of a partial download."""

    url: str
    total: int | None
    mark: str | None
    """A strong ETag, else the time of the last change."""


@contextmanager
def downloaded(url: str, target: Path, progress: Progress) -> Iterator[tuple[Path, int]]:
    """Download one file over HTTP; yield it, and how many of its bytes were there before.

    When the block ends, the file gets its name. If the block raises FetchError because the file is
    not the right one, nothing is kept.

    Parameters
    ----------
    url : str
        Its address.
    target : Path
        Final path of the file; partial downloads are kept beside it.
    progress : callable
        Takes a `Step`.
    """
    part = target.with_name(f"{target.name}.part")
    origin_path = target.with_name(f"{target.name}.part.json")
    with _opened_alone(part) as file:
        have = _complete(
            file,
            url,
            origin_path,
            lambda done, total: progress(Step(target.name, "downloading", done, total)),
        )
        file.flush()
        os.fsync(file.fileno())
        try:
            yield part, have
        except FetchError:
            part.unlink()
            origin_path.unlink(missing_ok=True)
            raise
        part.replace(target)
        origin_path.unlink(missing_ok=True)


def _complete(
    file: IO[bytes], url: str, origin_path: Path, tell: Callable[[int, int | None], None]
) -> int:
    """Add the missing bytes to a partial download; return how many were there before."""
    origin = _read_origin(origin_path)
    have = file.seek(0, os.SEEK_END) if origin is not None and origin.url == url else 0
    if origin is not None and have and have == origin.total:
        return have
    response = _get(url, have, origin)
    try:
        if have and not _goes_on(response, have, origin):
            have = 0
            if response.status_code != _OK:
                response.close()
                response = _get(url)
        if not have:
            file.truncate(0)
            length = response.headers.get("Content-Length")
            total = None if length is None else int(length)
            origin = _Origin(url, total, _mark(response.headers))
            # Cut short by a crash, it is unreadable, and the download starts again.
            origin_path.write_text(json.dumps(origin._asdict()))
        _receive(response, file, have, tell)
    finally:
        response.close()
    return have


def _receive(
    response: "Response", file: IO[bytes], have: int, tell: Callable[[int, int | None], None]
) -> None:
    """Write what the server sends to a partial download."""
    from urllib3.exceptions import HTTPError

    length = response.headers.get("Content-Length")
    total = have + int(length) if length is not None else None
    tell(have, total)
    # As sent: some servers call a .gz file a text that is compressed for the transfer.
    chunks = response.raw.stream(_AT_ONCE, decode_content=False)
    cause = None
    try:
        for chunk in chunks:
            file.write(chunk)
            have += len(chunk)
            tell(have, total)
    except HTTPError as error:
        cause = error
    if cause is not None or (total is not None and have < total):  # urllib3 1 does not report it
        of = "" if total is None else f" of {total:,}"
        raise FetchError(
            f"{response.url}: the connection broke after {have:,}{of} bytes, which are kept: "
            "fetch again to continue"
        ) from cause


def _read_origin(path: Path) -> _Origin | None:
    try:
        return _Origin(**json.loads(path.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


@contextmanager
def _opened_alone(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for appending, and keep other processes from doing the same."""
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # If the other process has just finished, this is its file under the final name.
            alone = os.path.samestat(os.fstat(file.fileno()), path.stat())
        except (BlockingIOError, FileNotFoundError):
            alone = False
        if not alone:
            raise FetchError(f"{path}: another process is fetching this file: wait for it")
        try:
            yield file
        finally:
            if file.tell() == 0:
                path.unlink(missing_ok=True)


def _requests() -> ModuleType:
    """Import requests, which is slow and may be missing."""
    try:
        import requests
    except ImportError as error:
        raise ImportError(
            "bnpstream.datasets.fetch downloads with requests, which is missing: "
            "pip install 'bnpstream[fetch]'",
            name="requests",
        ) from error
    return requests


def _get(url: str, have: int = 0, origin: _Origin | None = None) -> "Response":
    """Request a file from some byte on; raise FetchError if the request fails."""
    requests = _requests()
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if origin is not None and origin.mark is not None:
            headers["If-Range"] = origin.mark
    try:
        response: Response = requests.get(url, headers=headers, stream=True, timeout=_SECONDS)
    except requests.RequestException as error:
        raise FetchError(
            f"{url}: {_reason(error, url)}: check the network and the address, then fetch again, "
            f"or {ANOTHER}"
        ) from error
    status = response.status_code
    if status < _ERRORS or (have and status == _UNSATISFIABLE):
        return response
    response.close()
    if status == _NOT_FOUND:
        raise FetchError(f"{url}: the server has no such file (404): {ANOTHER}")
    raise FetchError(
        f"{url}: the server answers {status} {response.reason}: try again later, or {ANOTHER}"
    )


def _reason(error: BaseException, url: str) -> str:
    """Return in a few words why there is no answer."""
    host = urlsplit(url).netloc
    if isinstance(error, _requests().Timeout):
        return f"{host} does not answer within {_SECONDS} seconds"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, gaierror):
            return f"unknown host {host}, or no network"
        if isinstance(cause, ConnectionRefusedError):
            return f"{host} refuses the connection"
        cause = cause.__cause__ or cause.__context__
    return f"cannot connect to {host} ({error})"


def _goes_on(response: "Response", have: int, origin: _Origin | None) -> bool:
    """Return whether the answer is the rest of the file that was partly downloaded."""
    sent = re.fullmatch(
        r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", "").strip()
    )
    if response.status_code != _PARTIAL or sent is None or origin is None:
        return False
    first, total = sent.groups()
    same_size = origin.total is None or total in ("*", str(origin.total))
    # A server that ignores If-Range would send the rest of another file.
    mark = _mark(response.headers)
    return int(first) == have and same_size and (mark is None or mark == origin.mark)


def _mark(headers: Any) -> str | None:
    """Return what identifies a version of a file; a weak ETag does not."""
    tag: str | None = headers.get("ETag")
    if tag is not None and not tag.startswith("W/"):
        return tag
    changed: str | None = headers.get("Last-Modified")
    return changed
