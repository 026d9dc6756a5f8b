"""What readers of line-based files share: opening plain or gzip files, and describing bad lines."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from os import PathLike
from pathlib import Path

__all__ = ["open_bytes", "unexpected_line"]

_GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def open_bytes(path: str | PathLike[str]) -> Iterator[BufferedIOBase]:
    """Open a file for reading, through gzip if its first bytes say so.

    Raises
    ------
    ValueError
        If gzip data turn out to be truncated or damaged, whenever that is noticed.

    Examples
    --------
    >>> import gzip
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "words")
    ...     n_bytes = path.write_bytes(gzip.compress(b"senate"))
    ...     with open_bytes(path) as file:
    ...         file.read()
    b'senate'
    """
    with Path(path).open("rb") as file:
        if not file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
            yield file
            return
        try:
            with gzip.open(file) as unzipped:
                yield unzipped
        except EOFError as error:
            raise ValueError(
                f"{path}: the gzip data are truncated, the file ends before they do: fetch it again"
            ) from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"{path}: the gzip data are damaged ({error}): fetch it again"
            ) from error


def unexpected_line(
    path: str | PathLike[str], number: int, line: bytes, expected: str
) -> ValueError:
    r"""Describe a line that is not what was expected, as an error to raise.

    Examples
    --------
    >>> unexpected_line("docword.txt", 7, b"3 1\n", "three whole numbers")
    ValueError("docword.txt, line 7: '3 1': expected three whole numbers")
    """
    text = line.rstrip(b"\r\n").decode("utf-8", errors="backslashreplace")
    shown = text if len(text) <= 80 else text[:80] + "..."
    return ValueError(f"{path}, line {number}: {shown!r}: expected {expected}")
