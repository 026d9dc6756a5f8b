"""What a source gives: batches of rows and rejects, and their schema."""

import sys
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, overload

from bnpstream.sources.options import Options as Options

Kind = Literal["counts", "table", "documents"]
"""Rows are a csr_array of counts, an array of cells, or a sequence of counts by word."""

BEGINNING = 200
"""Characters kept of a rejected record."""
_SHOWN = 80
"""Characters of it shown in messages."""
SHORT = 16
"""Longest vector whose mean people can read."""


class Place(NamedTuple):
    """The place of a record.

    Examples
    --------
    >>> print(Place("words.txt", 7))
    words.txt, line 7
    >>> print(Place("kafka://words", spot={"partition": 3, "offset": 17}))
    kafka://words, partition 3, offset 17
    """

    source: str
    """Name of the file or other source; "-" for standard input."""
    line: int | None = None
    """Line where it starts, from 1; in a file without lines, the number of the record."""
    spot: Any = None
    """For sources without lines: JSON that identifies the record, such as an offset."""

    def __str__(self) -> str:
        if self.line is not None:
            return f"{self.source}, line {self.line}"
        if isinstance(self.spot, dict):
            return ", ".join([self.source, *(f"{name} {x}" for name, x in self.spot.items())])
        return f"{self.source}, {self.spot}"


class Lines(Sequence[Place]):
    """Places that are lines of one file; each place is made on demand.

    Parameters
    ----------
    source : str
        Name of the file.
    lines : sequence of int
        First line of each record.
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
    """As in `Place`; so are `line` and `spot`."""
    line: int | None
    record: int
    """Number of the record in the whole source, from 0."""
    reason: str
    beginning: str
    """Its first characters."""
    spot: Any = None
    is_part: bool = False
    """Whether only a line was left out of a record, which is used without it."""

    @classmethod
    def at(cls, place: Place, record: int, reason: str, beginning: str) -> Self:
        """Return the reject of a record at a place."""
        return cls(place.source, place.line, record, reason, beginning, place.spot)

    @property
    def place(self) -> Place:
        """Return its place."""
        return Place(self.source, self.line, self.spot)

    def error(self) -> ValueError:
        """Return an error to raise if rejects are not allowed."""
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
    r"""Return the first characters of a record, whatever its bytes; line ends are left out.

    Examples
    --------
    >>> beginning(b"caf\xc3\xa9 \xff\r\n")
    'café \\xff'
    """
    if isinstance(record, bytes):
        # No UTF-8 character takes more than four bytes.
        record = record[: 4 * BEGINNING].rstrip(b"\r\n").decode("utf-8", errors="backslashreplace")
    return record[:BEGINNING]


@dataclass(frozen=True)
class Records:
    """A batch: rows in order, and the rejects among them.

    Parameters
    ----------
    rows : csr_array, ndarray, list of dict, or Bags
        One row per valid record, see `Kind`.
    numbers : list of int
        Number of each of these records in the whole source, from 0; rejects are numbered too.
    ids : list of str or int
        Id of each record; its number if it has none.
    excerpts : list of str
        Beginning of each record, for people to read; empty if rows speak for themselves.
    rejects : list of Reject
        Records among them that could not be used.
    times : list of float
        Time of each record, in seconds; empty without a time field.
    places : sequence of Place
        Place of each record; empty for rows without a source.
    is_whole : bool
        Whether it must remain a batch of its own.
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
        """Return some of the valid records, without rejects."""
        return Records(
            self.rows[rows],
            self.numbers[rows],
            self.ids[rows],
            self.excerpts[rows],
            times=self.times[rows],
            places=self.places[rows],
        )

    def between(self, first: int, stop: int) -> "Records":
        """Return the records with numbers in a range, including rejects.

        Rejects before all of these go with the first record.
        """
        kept = self.part(slice(*(bisect_left(self.numbers, end) for end in (first, stop))))
        least = first if first > 0 else -sys.maxsize
        kept.rejects.extend(reject for reject in self.rejects if least <= reject.record < stop)
        return kept

    def end(self, before: int = 0) -> int:
        """Return the number after the last record, or `before` if that is larger.

        A reject may belong to a record of an earlier batch.
        """
        return max(
            [before, *(n + 1 for n in self.numbers[-1:]), *(r.record + 1 for r in self.rejects)]
        )

    def refused(self, reason: str, name: str = "") -> Reject:
        """Return the first record as a reject; `name` is used for rows without a source."""
        number = self.numbers[0]
        place = self.places[0] if self.places else Place(name, number + 1)
        return Reject.at(place, number, reason, self.excerpts[0] if self.excerpts else "")


@dataclass(frozen=True)
class Schema:
    """What the records of a source are: determined once, then kept for resuming and predicting.

    Parameters
    ----------
    format : str
        Name of the format.
    kind : Kind
        Kind of rows.
    n_features : int, optional
        Columns of counts or of a table; None for documents.
    names : tuple of str, optional
        Names of the columns.
    types : tuple of str, optional
        Type of each column of a table: "number", "truth" or "label".
    fields : dict
        For formats with named fields or columns: which hold "id", "text", "counts", "vector",
        "time". A CSV file adds its "delimiter", and "header" if it has one.
    ngrams : int
        Longest phrases counted as words.
    left_out : dict
        Columns that could be in the table but are not, with reasons.
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
        """Return whether records are vectors with texts that describe them."""
        return {"vector", "text"} <= self.fields.keys()

    @property
    def has_nameless_columns(self) -> bool:
        """Return whether rows are long vectors without column names, whose numbers mean little."""
        return self.kind == "table" and self.names is None and (self.n_features or 0) > SHORT
