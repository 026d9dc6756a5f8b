"""Corpora that are never shipped: where they are on this disk, and how they are read."""

import os
from pathlib import Path

from bnpstream.datasets.base import Dataset
from bnpstream.streams import read_docword, read_vocabulary

__all__ = ["find", "load_kos"]

_VARIABLE = "BNPSTREAM_DATA"
_PROJECT_ROOT = Path(__file__).resolve().parents[3]


def find(name: str) -> Path:
    """Return the folder of a corpus below the data directory.

    The data directory is what the environment variable ``BNPSTREAM_DATA`` says; where that is not
    set, it is ``../shared/data`` seen from the root of a checkout.

    Parameters
    ----------
    name : str
        The folder, such as "kos".

    Returns
    -------
    Path
        The folder, which exists.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.

    Examples
    --------
    >>> find("no-such-corpus")
    Traceback (most recent call last):
    FileNotFoundError: no data set 'no-such-corpus': there is no folder ...
    """
    setting = os.environ.get(_VARIABLE)
    data = Path(setting) if setting else _PROJECT_ROOT.parent / "shared" / "data"
    folder = data / name
    if not folder.is_dir():
        raise FileNotFoundError(
            f"no data set {name!r}: there is no folder {folder}; "
            f"set the environment variable {_VARIABLE} to the directory that holds {name!r}"
        )
    return folder


def load_kos() -> Dataset:
    """Read the KOS blog corpus of the UCI repository.

    Returns
    -------
    Dataset
        Counts of shape (3430, 6906), no labels, and the words as feature names.

    Raises
    ------
    FileNotFoundError
        If the folder "kos" is not where `find` looks, or lacks a file.
    """
    folder = find("kos")
    return Dataset(
        read_docword(folder / "docword.kos.txt.gz"),
        labels=None,
        feature_names=read_vocabulary(folder / "vocab.kos.txt"),
    )
