"""What a source gives: records that became rows, records that did not, and what they are."""

import sys
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, overload

from bnpstream.sources.options import Options as Options

Kind = Literal["counts", "table", "documents"]
"""Rows are a csr_array of counts, an array of cells, or a sequence of counts by word."""

BEGINNING = 200
"""Characters of a rejected record that are kept."""
_SHOWN = 80
"""Characters of it that a message shows."""
SHORT = 16
"""Numbers of a vector whose means a person can read."""


class Place(NamedTuple):
    """Where a record is.

    Examples
    --------
    >>> print(Place("words.txt", 7))
    words.txt, line 7
    >>> print(Place("kafka://words", spot={"partition": 3, "offset": 17}))
    kafka://words, partition 3, offset 17
    """

    source: str
    """Name of the file, "-" for standard input; or of what else it came from."""
    line: int | None = None
    """Line it begins at, from 1; in a file without lines, the number of the record."""
    spot: Any = None
    """Where there are no lines: JSON that tells it from others, such as an offset."""

    def __str__(self) -> str:
        if self.line is not None:
            return f"{self.source}, line {self.line}"
        if isinstance(self.spot, dict):
            return ", ".join([self.source, *(f"{name} {x}" for name, x in self.spot.items())])
        return f"{self.source}, {self.spot}"


class Lines(Sequence[Place]):
    """Places that are lines of one file; a place is made when it is asked for.

    Parameters
    ----------
    source : str
        Name of the file.
    lines : sequence of int
        Line that every record begins at.
    """

    def __init__(self, source: str, lines: Sequence[int]) -> None:
        self._source, self._lines = source, lines

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, at: int) -> Place: ...

    @overload
    def __getitem__(self, at: slice) -> "Lines": ...

    def __getitem__(self, at: int | slice) -> "Place | Lines":
        if isinstance(at, slice):
            return Lines(self._source, self._lines[at])
        return Place(self._source, self._lines[at])


class Reject(NamedTuple):
    """A record that could not be used."""

    source: str
    """As in `Place`, and so are `line` and `spot`."""
    line: int | None
    record: int
    """Number of the record in the whole source, from 0."""
    reason: str
    beginning: str
    """The first characters of it."""
    spot: Any = None
    is_part: bool = False
    """Whether only a line was left out of a record that is used without it."""

    @classmethod
    def at(cls, place: Place, record: int, reason: str, beginning: str) -> Self:
        """Return the reject of a record at a place."""
        return cls(place.source, place.line, record, reason, beginning, place.spot)

    @property
    def place(self) -> Place:
        """Return where it is."""
        return Place(self.source, self.line, self.spot)

    def error(self) -> ValueError:
        """Describe it as an error to raise, where there are to be no rejects."""
        shown = self.beginning[:_SHOWN] + ("..." if len(self.beginning) > _SHOWN else "")
        return ValueError(f"{self.place}: {shown!r}: {self.reason}")

    def document(self) -> dict[str, Any]:
        """Return it as JSON, with a line or with a "place"."""
        document = self._asdict()
        spot = document.pop("spot")
        if not self.is_part:
            del document["is_part"]
        if self.line is None:
            del document["line"]
            document["place"] = spot
        return document


class UnusableError(ValueError):
    """Says why a record cannot become a row."""


def beginning(record: bytes | str) -> str:
    r"""Return the first characters of a record, whatever its bytes are; line ends are left out.

    Examples
    --------
    >>> beginning(b"caf\xc3\xa9 \xff\r\n")
    'café \\xff'
    """
    if isinstance(record, bytes):
        # No character of UTF-8 takes more than four bytes.
        record = record[: 4 * BEGINNING].rstrip(b"\r\n").decode("utf-8", errors="backslashreplace")
    return record[:BEGINNING]


@dataclass(frozen=True)
class Records:
    """A batch: rows in order, and what was rejected among them.

    Parameters
    ----------
    rows : csr_array, ndarray, list of dict, or Bags
        One row a record that is sound, see `Kind`.
    numbers : list of int
        Number of each of these records in the whole source, from 0; rejected records have one too.
    ids : list of str or int
        What each calls itself; where records have no id, their number.
    excerpts : list of str
        The beginning of each for a person to look at; empty where a row says it all.
    rejects : list of Reject
        Records between them that could not be used.
    times : list of float
        When each came, in seconds; empty where no field has it.
    places : sequence of Place
        Where each is; empty where rows are of no source.
    is_whole : bool
        Whether it has to stay a batch by itself.
    """

    rows: Any
    numbers: list[int]
    ids: list[str | int]
    excerpts: list[str] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    places: Sequence[Place] = field(default_factory=list)
    is_whole: bool = False

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, rows: slice) -> "Records":
        """Return some of the sound records, and none of the rejected."""
        return Records(
            self.rows[rows],
            self.numbers[rows],
            self.ids[rows],
            self.excerpts[rows],
            times=self.times[rows],
            places=self.places[rows],
        )

    def between(self, first: int, stop: int) -> "Records":
        """Return the records whose numbers are between, rejected ones included.

        What was rejected of records before all of these goes with the first of them.
        """
        kept = self.part(slice(*(bisect_left(self.numbers, end) for end in (first, stop))))
        least = first if first > 0 else -sys.maxsize
        kept.rejects.extend(reject for reject in self.rejects if least <= reject.record < stop)
        return kept

    def end(self, before: int = 0) -> int:
        """Return the number after the last record, or `before` if that is more.

        What is rejected may be of a record of an earlier batch.
        """
        return max(
            [before, *(n + 1 for n in self.numbers[-1:]), *(r.record + 1 for r in self.rejects)]
        )

    def refused(self, reason: str, name: str = "") -> Reject:
        """Return the first record as a reject; `name` is what rows of no source are from."""
        number = self.numbers[0]
        place = self.places[0] if self.places else Place(name, number + 1)
        return Reject.at(place, number, reason, self.excerpts[0] if self.excerpts else "")


@dataclass(frozen=True)
class Schema:
    """What the records of a source are: found once, then kept for resuming and predicting.

    Parameters
    ----------
    format : str
        Name of the format.
    kind : Kind
        What rows are.
    n_features : int, optional
        Columns of counts or of a table; None for documents.
    names : tuple of str, optional
        What the columns are called.
    types : tuple of str, optional
        "number", "truth" or "label" for every column of a table.
    fields : dict
        Where a format has named fields or columns: which hold "id", "text", "counts", "vector",
        "time". A CSV file adds its "delimiter", and "header" where it has one.
    ngrams : int
        Up to so many words in a row of a text are a word too.
    left_out : dict
        Columns that a table could have and does not, with the reason.
    """

    format: str
    kind: Kind
    n_features: int | None = None
    names: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    fields: dict[str, str] = field(default_factory=dict)
    ngrams: int = 1
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def has_texts_beside_vectors(self) -> bool:
        """Return whether records are vectors with texts, which say what a vector is about."""
        return {"vector", "text"} <= self.fields.keys()

    @property
    def has_nameless_columns(self) -> bool:
        """Return whether rows are long vectors without column names: single numbers say nothing."""
        return self.kind == "table" and self.names is None and (self.n_features or 0) > SHORT
