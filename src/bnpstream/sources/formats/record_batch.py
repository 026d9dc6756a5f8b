"""Records of a batch, gathered one by one."""

from functools import partial
from typing import Any, NamedTuple

from bnpstream.sources.formats.document_rows import DocumentRows
from bnpstream.sources.formats.table_rows import gather_cells
from bnpstream.sources.records import Records, Reject, Schema, beginning

__all__ = ["Gatherer", "Parsed"]


class Parsed(NamedTuple):
    """What a record says."""

    row: Any
    """Counts by word, or cells of a table."""
    id: str | int | None = None
    """What the record calls itself, if it does."""
    excerpt: str | None = None
    time: float | None = None


class Gatherer:
    """Gathers records, and makes batches of them.

    Parameters
    ----------
    source : str
        Name of the file.
    schema : Schema
        What rows are.
    next_number : int
        Number of the next record in the whole source.
    """

    def __init__(self, source: str, schema: Schema, next_number: int) -> None:
        self._source = source
        self._rows_of = (
            partial(gather_cells, types=schema.types or ())
            if schema.kind == "table"
            else DocumentRows(schema)
        )
        self.next_number = next_number
        self._begin()

    def _begin(self) -> None:
        self._rows: list[Any] = []
        self._numbers: list[int] = []
        self._ids: list[str | int] = []
        self._excerpts: list[str] = []
        self._rejects: list[Reject] = []
        self._times: list[float] = []

    def __bool__(self) -> bool:
        return bool(self._rows or self._rejects)

    def add(self, parsed: Parsed) -> None:
        """Append a record."""
        row, id_, excerpt, time = parsed
        self._rows.append(row)
        self._numbers.append(self.next_number)
        self._ids.append(self.next_number if id_ is None else id_)
        if excerpt is not None:
            self._excerpts.append(excerpt)
        if time is not None:
            self._times.append(time)
        self.next_number += 1

    def reject(self, line: int, reason: str, record: bytes | str) -> None:
        """Note a record that cannot be used."""
        self._rejects.append(
            Reject(self._source, line, self.next_number, reason, beginning(record))
        )
        self.next_number += 1

    def take(self) -> Records:
        """Return what was gathered, and begin the next batch."""
        rows = self._rows_of(self._rows)
        records = Records(
            rows, self._numbers, self._ids, self._excerpts, self._rejects, self._times
        )
        self._begin()
        return records
