"""Arrays in a zip archive, read in order, some elements at a time."""

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
"""What NumPy raises for array headers that are invalid or announce the impossible."""
_DAMAGE = (EOFError, LZMAError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What zipfile raises for archives that are damaged, encrypted or compressed in unknown ways."""


class ArrayStream:
    """Gives the elements of an array in order. Objects are refused, so nothing is unpickled.

    Parameters
    ----------
    file : binary file
        Open at the start of the array, in NumPy's format.
    path : str
        Name for messages.

    Attributes
    ----------
    dtype : dtype
        Type of the elements.
    size : int
        Number of elements.
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
            raise ValueError(f"{path}: holds Python objects, which are not loaded")

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
    """Open an archive of arrays; ValueError if it is damaged or not an archive."""
    with _reporting(path):
        try:
            with zipfile.ZipFile(path) as zipped:
                yield zipped
        except (MemoryError, OSError, OverflowError, TypeError, ValueError) as error:
            if path in str(error):
                raise
            raise ValueError(f"{path}: the archive is damaged ({error}): write it again") from error


def open_array(zipped: zipfile.ZipFile, name: str) -> ArrayStream:
    """Return an array of an archive; several can be read at the same time."""
    with _reporting(str(zipped.filename)):
        return ArrayStream(zipped.open(f"{name}.npy"), f"{zipped.filename}, {name}")


@contextmanager
def _reporting(path: str) -> Iterator[None]:
    """Add the path to errors about damage."""
    try:
        yield
    except _DAMAGE as error:
        raise ValueError(f"{path}: the archive is damaged ({error}): write it again") from error
