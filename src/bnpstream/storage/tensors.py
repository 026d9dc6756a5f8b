"""One file of arrays and a JSON document, with a checksum: safetensors, never pickle."""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from bnpstream.storage.files import WRONG, RunError, disk_errors, require_file, write_atomically

FORMAT = 3
"""Version of the format, raised when older versions cannot read the files."""


class Tensors(NamedTuple):
    """The contents of a state file."""

    arrays: dict[str, NDArray[Any]]
    document: dict[str, Any]


class MissingError(RunError):
    """A file is missing."""


class DamagedError(RunError):
    """A file is damaged."""


def write_tensors(path: Path, tensors: Tensors) -> None:
    """Write arrays and a document to a file, in one atomic step."""
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.arrays.items()}
    text = json.dumps({"format": FORMAT, **tensors.document}, sort_keys=True)
    # One entry of metadata, because the order of several varies.
    metadata = {"bnpstream": json.dumps({"sha256": checksum(arrays, text), "document": text})}

    def write(partial: Path) -> None:
        partial.touch()
        mode = partial.stat().st_mode
        try:
            save_file(arrays, str(partial), metadata)
        except SafetensorError as error:  # only the text of the system error is left
            number = re.search(r"os error (\d+)", str(error))
            raise OSError(int(number[1]) if number else 0, str(error)) from error
        partial.chmod(mode)  # otherwise only the owner could read it

    with disk_errors(path):
        write_atomically(path, write)


def read_tensors(path: Path) -> Tensors:
    """Read arrays and document; MissingError or DamagedError if that fails."""
    with _reading(path):
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if "bnpstream" not in metadata:
            raise ValueError("not written by bnpstream")
        envelope = json.loads(metadata["bnpstream"])
        text, expected = envelope["document"], envelope["sha256"]
        document: dict[str, Any] = json.loads(text)
        version = document.get("format")
    check_format(path, version)
    if expected != checksum(arrays, text):
        raise DamagedError(f"{path}: is damaged: the checksum does not match the contents")
    return Tensors(arrays, document)


def read_document(path: Path) -> dict[str, Any]:
    """Read the document alone, quickly and unchecked, for watching a run."""
    with _reading(path):
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
        document: dict[str, Any] = json.loads(json.loads(metadata["bnpstream"])["document"])
    return document


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raise MissingError or DamagedError if the code inside cannot read a file."""
    require_file(path)
    try:
        yield
    except FileNotFoundError:
        raise MissingError(f"{path}: no such file") from None
    except (SafetensorError, OSError, *WRONG) as error:
        raise DamagedError(f"{path}: is damaged: {error}") from error


def check_format(path: Path, version: Any) -> None:
    """Raise RunError if a file was written by a version too new for this one."""
    if not isinstance(version, int) or not 1 <= version <= FORMAT:
        raise RunError(
            f"{path}: has format {version!r}, but this version reads 1 to {FORMAT}: "
            "install the version of bnpstream that wrote it, or a later one"
        )


def checksum(arrays: dict[str, NDArray[Any]], text: str) -> str:
    """Return a checksum of arrays, their names, types and shapes, and of a text."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
