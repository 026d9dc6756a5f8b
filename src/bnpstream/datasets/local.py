"""Corpora that are not shipped: where they are on this disk, and how to read them."""

import os
from os import PathLike
from pathlib import Path
from typing import Literal

from bnpstream.datasets.base import Dataset
from bnpstream.datasets.catalogue import CORPORA
from bnpstream.sources import read_docword, read_labels, read_lda_c, read_vocabulary

VARIABLE = "BNPSTREAM_DATA"
_PROJECT_ROOT = Path(__file__).resolve().parents[3]


def data_directory() -> Path:
    """Return the directory that holds a folder for each corpus, whether or not it exists.

    It is the value of the environment variable ``BNPSTREAM_DATA``. If that is not set, it is
    ``../shared/data`` relative to the root of a checkout if that exists, and otherwise the user's
    cache: ``bnpstream`` in ``$XDG_CACHE_HOME``, or in ``~/.cache``.

    Examples
    --------
    >>> data_directory().is_absolute()
    True
    """
    setting = os.environ.get(VARIABLE)
    if setting:
        return Path(setting).absolute()
    shared = _PROJECT_ROOT.parent / "shared" / "data"
    if shared.is_dir():
        return shared
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification says to ignore relative paths.
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "bnpstream"


def find(name: str) -> Path:
    """Return the folder of a corpus in the `data_directory`.

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
    FileNotFoundError: no data set 'no-such-corpus': no folder ...
    """
    folder = data_directory() / name
    if not folder.is_dir():
        fetched = name in CORPORA and CORPORA[name].origin is None
        raise FileNotFoundError(
            f"no data set {name!r}: no folder {folder}; "
            f"set the environment variable {VARIABLE} to the directory that holds {name!r}"
            + (f", or download it: bnpstream datasets fetch {name}" if fetched else "")
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
        If the folder "kos" is not in the `data_directory`, or lacks a file.

    See Also
    --------
    fetch : Download it.
    """
    folder = find("kos")
    return _read_uci(folder / "docword.kos.txt.gz", folder / "vocab.kos.txt")


def load_nytimes(
    docword: str | PathLike[str] | None = None, vocab: str | PathLike[str] | None = None
) -> Dataset:
    """Read the New York Times corpus of the UCI repository.

    It takes 1.9 GB of memory during reading, and 0.9 GB afterwards.

    Parameters
    ----------
    docword, vocab : str or path, optional
        The files; by default those in the folder "nytimes" of the `data_directory`.

    Returns
    -------
    Dataset
        Counts of shape (300000, 102660), no labels, and the words as feature names.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If the number of words differs from the number of columns.

    See Also
    --------
    fetch : Download it.
    prune_corpus : Remove rare and frequent words, and short documents, as the paper does.
    """
    return _read_uci(
        find("nytimes") / "docword.nytimes.txt.gz" if docword is None else docword,
        find("nytimes") / "vocab.nytimes.txt" if vocab is None else vocab,
    )


def _read_uci(docword: str | PathLike[str], vocab: str | PathLike[str]) -> Dataset:
    words, counts = read_vocabulary(vocab), read_docword(docword)
    if len(words) != counts.shape[1]:
        raise ValueError(
            f"{vocab}: has {len(words)} words, but there are {counts.shape[1]} in {docword}: "
            "give two files of one corpus"
        )
    return Dataset(counts, labels=None, feature_names=words)


def load_nyt8447() -> Dataset:
    """Read 8447 articles of the New York Times.

    They are not part of the UCI repository's set of that name: the vocabulary differs.

    Returns
    -------
    Dataset
        Counts of shape (8447, 3012), no labels, and the words as feature names. Ten of the words
        never occur.

    Raises
    ------
    FileNotFoundError
        If the folder "nyt8447" is not in the `data_directory`, or lacks a file.
    """
    folder = find("nyt8447")
    words = read_vocabulary(folder / "nyt.tokens.gz")
    return Dataset(
        read_lda_c(folder / "nyt.ldac.gz", n_words=len(words)), labels=None, feature_names=words
    )


def load_20news(split: Literal["train", "test"] = "train") -> Dataset:
    """Read the 20 Newsgroups corpus, split by date.

    Documents are sorted by label: shuffle them to make a stream. Stop words are included.

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
        If the folder "20news" is not in the `data_directory`, or lacks a file.
    ValueError
        If `split` is unknown, or if the number of labels differs from that of documents.
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
