"""Data to try things on: the paper's synthetic sets, digits, docstrings, and text corpora."""

from bnpstream.datasets.bars import bars, bars_components
from bnpstream.datasets.base import Dataset
from bnpstream.datasets.corpus import synthetic_corpus, synthetic_corpus_blocks
from bnpstream.datasets.digits import digits
from bnpstream.datasets.docstrings import Docstring, docstrings
from bnpstream.datasets.download import FetchError
from bnpstream.datasets.fetch import fetch
from bnpstream.datasets.local import (
    data_directory,
    find,
    load_20news,
    load_kos,
    load_nyt8447,
    load_nytimes,
)
from bnpstream.datasets.powerlaw import powerlaw_documents
from bnpstream.datasets.prune import PrunedCorpus, prune_corpus

__all__ = [
    "Dataset",
    "Docstring",
    "FetchError",
    "PrunedCorpus",
    "bars",
    "bars_components",
    "data_directory",
    "digits",
    "docstrings",
    "fetch",
    "find",
    "load_20news",
    "load_kos",
    "load_nyt8447",
    "load_nytimes",
    "powerlaw_documents",
    "prune_corpus",
    "synthetic_corpus",
    "synthetic_corpus_blocks",
]
