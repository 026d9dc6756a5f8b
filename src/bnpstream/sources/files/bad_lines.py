"""What readers of line-based files share: all lines of a small file, and describing bad lines."""

from os import PathLike

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.records import Reject

__all__ = ["broken", "read_lines", "show", "unexpected_line"]

_SHOWN = 80


def read_lines(path: str | PathLike[str]) -> list[bytes]:
    r"""Return the lines of a file, plain, gzip or zstd, without their ends.

    Raises
    ------
    ValueError
        If packed data turn out to be truncated or damaged.

    Examples
    --------
    >>> import gzip
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "words")
    ...     n_bytes = path.write_bytes(gzip.compress(b"senate\r\nhouse\n"))
    ...     read_lines(path)
    [b'senate', b'house']
    """
    with ByteReader(str(path)) as file:
        lines = b"".join(file.blocks()).split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def show(line: bytes, most: int) -> str:
    r"""Return the first characters of a line as text, whatever it is.

    Examples
    --------
    >>> show(b"na\xefve words\r\n", 8)
    'na\\xefve'
    """
    # A character is at most four bytes.
    return line[: 4 * most].rstrip(b"\r\n").decode("utf-8", errors="backslashreplace")[:most]


def unexpected_line(
    path: str | PathLike[str], number: int, line: bytes, expected: str
) -> ValueError:
    r"""Describe a line that is not what was expected, as an error to raise.

    Examples
    --------
    >>> unexpected_line("docword.txt", 7, b"3 1\n", "three whole numbers")
    ValueError("docword.txt, line 7: '3 1': expected three whole numbers")
    """
    text = show(line, _SHOWN + 1)
    return broken(Reject(str(path), number, 0, f"expected {expected}", text))


def broken(reject: Reject) -> ValueError:
    """Describe a reject as an error to raise, where there are to be none."""
    text = reject.beginning
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return ValueError(f"{reject.source}, line {reject.line}: {shown!r}: {reject.reason}")
