"""Data to try things on: the paper's synthetic sets, digits, and corpora found on disk."""

from bnpstream.datasets.bars import bars, bars_components
from bnpstream.datasets.base import Dataset
from bnpstream.datasets.corpus import synthetic_corpus, synthetic_corpus_blocks
from bnpstream.datasets.digits import digits
from bnpstream.datasets.local import find, load_20news, load_kos, load_nyt8447
from bnpstream.datasets.powerlaw import powerlaw_documents

__all__ = [
    "Dataset",
    "bars",
    "bars_components",
    "digits",
    "find",
    "load_20news",
    "load_kos",
    "load_nyt8447",
    "powerlaw_documents",
    "synthetic_corpus",
    "synthetic_corpus_blocks",
]
