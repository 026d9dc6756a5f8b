"""Corpora that are never shipped: where they are on this disk, and how they are read."""

import os
from pathlib import Path
from typing import Literal

from bnpstream.datasets.base import Dataset
from bnpstream.streams import read_docword, read_labels, read_lda_c, read_vocabulary

__all__ = ["find", "load_20news", "load_kos", "load_nyt8447"]

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


def load_nyt8447() -> Dataset:
    """Read 8447 articles of the New York Times.

    They are not a part of the UCI repository's set of that name: the vocabulary is their own.

    Returns
    -------
    Dataset
        Counts of shape (8447, 3012), no labels, and the words as feature names. Ten of the words
        never occur.

    Raises
    ------
    FileNotFoundError
        If the folder "nyt8447" is not where `find` looks, or lacks a file.
    """
    folder = find("nyt8447")
    words = read_vocabulary(folder / "nyt.tokens.gz")
    return Dataset(
        read_lda_c(folder / "nyt.ldac.gz", n_words=len(words)), labels=None, feature_names=words
    )


def load_20news(split: Literal["train", "test"] = "train") -> Dataset:
    """Read the 20 Newsgroups corpus, split by date.

    Documents are sorted by label: shuffle them to make a stream. There is no stop list.

    Parameters
    ----------
    split : {"train", "test"}, default "train"
        The earlier documents, or the later ones.

    Returns
    -------
    Dataset
        Counts of shape (11269, 61188) or (7505, 61188), with the same columns; labels 0..19, the
        newsgroups in alphabetical order; and the words as feature names.

    Raises
    ------
    FileNotFoundError
        If the folder "20news" is not where `find` looks, or lacks a file.
    ValueError
        If `split` is another word, or if there is not one label a document.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split is {split!r}: give 'train' or 'test'")
    folder = find("20news")
    counts = read_docword(folder / f"docword.20news.{split}.txt.gz")
    path = folder / f"labels.20news.{split}.txt.gz"
    labels = read_labels(path) - 1  # the files count from 1
    if labels.size != counts.shape[0]:
        raise ValueError(
            f"{path}: {labels.size} labels for {counts.shape[0]} documents: fetch both files again"
        )
    return Dataset(counts, labels, read_vocabulary(folder / "vocab.20news.txt.gz"))
