"""Numbers out of lines of text: entries ``row column value``, and pairs ``id:value``.

A loop knows regular lines only. It stops at the beginning of the first other one, and whoever
called it has to find out what is wrong with it, if anything. The text ends with a line end, so no
number runs off it.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.jit.decorators import entry, inlined
from bnpstream.kernels.text.digits import (
    COLON,
    HASH,
    LOWER_D,
    LOWER_I,
    LOWER_Q,
    NEWLINE,
    ONES,
    RETURN,
    SPACE,
    TAB,
    after_blanks,
    is_blank,
    read_value,
    read_whole,
)

ALL_READ, IRREGULAR, NO_ROOM = 0, 1, 2
"""Why a loop stopped; a batch that is complete shows in `Progress.n_records`."""


class Progress(NamedTuple):
    """How far the text has been parsed."""

    status: int = ALL_READ
    at: int = 0
    """Bytes of the text behind it."""
    n_lines: int = 0
    """Lines of the file behind it."""
    n_records: int = 0
    """Records of the batch that are complete."""
    n_entries: int = 0
    """Entries of the batch."""
    n_seen: int = 0
    """Entries of the file."""


class Room(NamedTuple):
    """Where a batch is put: its entries, and how many there are up to the end of every record."""

    columns: NDArray[Any]
    values: NDArray[Any]
    ends: NDArray[np.int64]


class Rules(NamedTuple):
    """What is regular."""

    n_columns: int
    first_column: int
    """What the first column is called: 0 or 1."""
    values: int
    """What values are, `ONES` and so on."""
    max_line_bytes: int


@inlined
def _after_line(text: Any, at: int) -> int:
    """Return where the next line begins."""
    while text[at] != NEWLINE:
        at += 1
    return at + 1


@inlined
def _after_query(text: Any, at: int) -> int:
    """Return where ``qid:number`` ends if it comes next."""
    after = after_blanks(text, at)
    if text[after] == LOWER_Q and text[after + 1] == LOWER_I and text[after + 2] == LOWER_D:
        number, end = read_whole(text, after + 4) if text[after + 3] == COLON else (-1, at)
        return end if number >= 0 else at
    return at


@entry
def parse_entries(
    text: Any, start: Progress, before: int, announced: tuple[int, int], rules: Rules, room: Room
) -> tuple[int, int, int, int, int, int]:
    """Parse lines ``row column value``, sorted by row; rows count from 1.

    A row is complete when a later one begins. The line that begins a row of the next batch is left
    for it. `before` is how many rows come before this batch; `announced` are how many rows and
    entries the file has. Returns the numbers of `Progress`.
    """
    columns, values, ends = room
    n_rows, n_announced = announced
    _, at, n_lines, n_records, n_entries, n_seen = start
    line, status = at, ALL_READ
    while at < text.size:
        line, status = at, IRREGULAR
        at = after_blanks(text, at)
        if text[at] == NEWLINE:
            if at - line > rules.max_line_bytes:
                break
            at += 1
            n_lines += 1
            line, status = at, ALL_READ
            continue
        row, at = read_whole(text, at)
        row -= before + 1
        if row < n_records or row + before >= n_rows or not is_blank(text[at]):
            break
        if n_seen == n_announced:
            break
        done = min(row, ends.size)
        for record in range(n_records, done):
            ends[record] = n_entries
        n_records = done
        if row >= ends.size:
            status = ALL_READ
            break
        column, at = read_whole(text, after_blanks(text, at))
        column -= rules.first_column
        if column < 0 or column >= rules.n_columns or not is_blank(text[at]):
            break
        if n_entries == columns.size:
            status = NO_ROOM
            break
        columns[n_entries] = column
        if rules.values == ONES:
            values[n_entries] = 1
        else:
            start_of_value = after_blanks(text, at)
            is_regular, at = read_value(text, start_of_value, values, n_entries, rules.values)
            if not is_regular:
                break
        after = after_blanks(text, at)
        if text[after] != NEWLINE or after - line > rules.max_line_bytes:
            break
        at = after + 1
        n_lines += 1
        n_entries += 1
        n_seen += 1
        line, status = at, ALL_READ
    return status, line, n_lines, n_records, n_entries, n_seen


@entry
def parse_pairs(
    text: Any, start: Progress, has_labels: bool, rules: Rules, room: Room
) -> tuple[int, int, int, int, int, int]:
    """Parse lines ``lead id:value id:value ...``, a record each.

    The lead is the number of pairs. With labels it is anything, a query ``qid:number`` may follow,
    everything from ``#`` on is a comment, and blank lines are none. Returns the numbers of
    `Progress`.
    """
    columns, values, ends = room
    _, at, n_lines, n_records, n_entries, n_seen = start
    line, status = at, ALL_READ
    while at < text.size and n_records < ends.size:
        line, status, n_before = at, IRREGULAR, n_entries
        at = after_blanks(text, at)
        n_pairs = 0
        if has_labels:
            if text[at] == NEWLINE or text[at] == HASH:
                if text[at] == NEWLINE and at - line > rules.max_line_bytes:
                    break
                at = _after_line(text, at)
                n_lines += 1
                line, status = at, ALL_READ
                continue
            while text[at] not in (SPACE, TAB, RETURN, NEWLINE, HASH, COLON):
                at += 1
            at = _after_query(text, at)
        else:
            n_pairs, at = read_whole(text, at)
        is_regular = n_pairs >= 0
        while is_regular:
            after = after_blanks(text, at)
            if text[after] == NEWLINE or (has_labels and text[after] == HASH):
                break
            column, colon = read_whole(text, after)
            column -= rules.first_column
            is_regular = after > at and text[colon] == COLON and 0 <= column < rules.n_columns
            if not is_regular:
                break
            if n_entries == columns.size:
                status = NO_ROOM
                break
            columns[n_entries] = column
            is_regular, at = read_value(text, colon + 1, values, n_entries, rules.values)
            n_entries += 1
        if not is_regular or status == NO_ROOM:
            n_entries = n_before
            break
        at = _after_line(text, at)
        is_long = at - 1 - line > rules.max_line_bytes
        if is_long or (not has_labels and n_entries - n_before != n_pairs):
            n_entries = n_before
            break
        ends[n_records] = n_entries
        n_records += 1
        n_lines += 1
        line, status = at, ALL_READ
    return status, line, n_lines, n_records, n_entries, n_seen
