"""Which format a file has, by its name and its first bytes."""

from bnpstream.streams.reading import ByteReader

__all__ = ["guess_format"]


def guess_format(file: ByteReader) -> str:
    """Return the name of the format of a file; bytes are only looked at."""
    raise ValueError(f"{file.path}: the format is not known: give --format")
