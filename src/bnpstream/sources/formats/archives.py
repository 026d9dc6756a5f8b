"""Arrays in a zip archive, read from their beginning on, some elements at a time."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from lzma import LZMAError
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

__all__ = ["UNREADABLE", "ArrayStream", "open_archive", "open_array"]

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
UNREADABLE = (
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    OverflowError,
    RecursionError,
    SyntaxError,
    TokenError,
    TypeError,
    ValueError,
)
"""What NumPy raises for headers of arrays that are none, or announce what cannot be."""
_DAMAGE = (EOFError, LZMAError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What zipfile raises for archives that are damaged, encrypted, or packed in ways unknown to it."""


class ArrayStream:
    """Gives the elements of an array in order. Objects are refused, so nothing is unpickled.

    Parameters
    ----------
    file : binary file
        Where the array begins, in NumPy's format.
    path : str
        What to call it in messages.

    Attributes
    ----------
    dtype : dtype
        What elements are.
    size : int
        How many there are.
    """

    def __init__(self, file: IO[bytes], path: str) -> None:
        self._file, self._path = file, path
        with _reporting(path):
            try:
                shape, _, self.dtype = _HEADERS[npy.read_magic(file)](file)
            except UNREADABLE as error:
                raise ValueError(f"{path}: not an array of numbers ({error})") from error
        self.size = int(np.prod(shape, dtype=object))
        if self.dtype.hasobject:
            raise ValueError(f"{path}: it holds Python objects, which are not loaded")

    def take(self, n: int) -> NDArray[Any]:
        """Return the next n elements.

        Raises
        ------
        ValueError
            If there are fewer, or the archive is damaged.
        """
        n_bytes = n * self.dtype.itemsize
        with _reporting(self._path):
            found = self._file.read(n_bytes) if n_bytes else b""
        if len(found) < n_bytes:
            raise ValueError(f"{self._path}: the array is cut short: write the file again")
        return np.frombuffer(found, dtype=self.dtype, count=n)


@contextmanager
def open_archive(path: str) -> Iterator[zipfile.ZipFile]:
    """Open an archive of arrays; ValueError if it is none, or is damaged."""
    with _reporting(path):
        try:
            with zipfile.ZipFile(path) as zipped:
                yield zipped
        except (MemoryError, OSError, OverflowError, TypeError, ValueError) as error:
            if path in str(error):
                raise
            raise ValueError(f"{path}: the archive is damaged ({error}): write it again") from error


def open_array(zipped: zipfile.ZipFile, name: str) -> ArrayStream:
    """Return an array of an archive; several may be taken from at the same time."""
    with _reporting(str(zipped.filename)):
        return ArrayStream(zipped.open(f"{name}.npy"), f"{zipped.filename}, {name}")


@contextmanager
def _reporting(path: str) -> Iterator[None]:
    """Say of damage where it is."""
    try:
        yield
    except _DAMAGE as error:
        raise ValueError(f"{path}: the archive is damaged ({error}): write it again") from error
