"""The table of statistics against a dict of dicts: dense, hashed, growing, and rows that move.

Where a table is hashed is decided in Python, so narrow tables can be hashed too.
"""

import numpy as np
import pytest

from bnpstream.kernels.statistics import table as tables
from bnpstream.kernels.statistics.table import (
    DENSE_UP_TO,
    EMPTY,
    END,
    N_COLUMNS,
    NOTHING,
    claim,
    empty_table,
    gather,
    grow_row,
    has_room,
    lengthened,
    locate,
    scatter,
    take_row,
    with_capacity,
)
from states import from_python

claim, has_room, locate, grow_row = map(from_python, (claim, has_room, locate, grow_row))

pytestmark = pytest.mark.kernel

LAYOUTS = ["dense", "hashed"]


def table_of(layout, capacity, n_columns, monkeypatch):
    """Return an empty table that is stored as asked for."""
    monkeypatch.setattr(tables, "DENSE_UP_TO", n_columns if layout == "dense" else 0)
    table = empty_table(capacity, n_columns)
    assert (table.keys.size > 0) == (layout == "hashed")
    return table


def is_dense(table, k):
    return table.sizes[k] == table.shape[N_COLUMNS]


def read(table):
    """Return the whole table through `gather`."""
    out = np.full((table.starts.size, int(table.shape[N_COLUMNS])), np.nan)
    gather(table, np.arange(len(out)), np.arange(out.shape[1]), out)
    return out


def assert_holds(table, oracle):
    """The table reads as the oracle does, and keeps what its docstrings promise."""
    expected = np.zeros((table.starts.size, int(table.shape[N_COLUMNS])))
    for k, row in oracle.items():
        expected[k, list(row)] = list(row.values())
    assert np.array_equal(read(table), expected)
    assert table.sizes.size == table.starts.size == table.filled.size
    assert table.shape[END] <= table.values.size
    if table.keys.size == 0:
        assert np.array_equal(table.values.reshape(expected.shape), expected)
        return
    assert table.keys.size == table.values.size
    assert (table.values[NOTHING], table.keys[NOTHING]) == (0.0, EMPTY)
    rows = sorted((table.starts[k], table.sizes[k]) for k in oracle if table.sizes[k] > 0)
    ends = [NOTHING + 1, *(start + size for start, size in rows)]
    assert all(start >= end for (start, _), end in zip(rows, ends, strict=False))
    assert ends[-1] <= table.shape[END]
    for k in range(table.starts.size):
        start, size, row = table.starts[k], table.sizes[k], oracle.get(k, {})
        keys = table.keys[start : start + size]
        taken = sorted(keys[keys != EMPTY].tolist())
        if is_dense(table, k):
            assert taken == []
        else:
            assert taken == sorted(row)
            assert table.filled[k] == len(row)
            assert 4 * len(row) <= 3 * size
            assert size & (size - 1) == 0
    # Nothing is left behind where rows were: every number and every key belongs to a row.
    hashed = [len(oracle[k]) for k in oracle if not is_dense(table, k)]
    assert np.count_nonzero(table.values) == np.count_nonzero(expected)
    assert np.count_nonzero(table.keys != EMPTY) == sum(hashed)


def random_walk(rng, table, n_steps, widest, check_every=1):
    """Change table and oracle at random; return both, and what happened how often."""
    oracle, n_rows, seen = {}, 0, {"grown": 0, "compacted": 0, "dropped": 0, "dense": 0}
    for step in range(n_steps):
        D, capacity = int(table.shape[N_COLUMNS]), table.starts.size
        action = rng.choice(["set", "set", "set", "open", "drop", "widen", "room"])
        if action == "open" or n_rows == 0:
            n_rows += 1
            oracle[n_rows - 1] = {}
        k = int(rng.integers(n_rows))
        if action in ("set", "open"):
            columns = rng.choice(D, size=int(rng.integers(0, widest + 1)), replace=False)
            values = rng.normal(size=columns.size)
            before = table
            fits = bool(has_room(table, k, columns.size))
            table = scatter(table, k, columns, values)
            oracle[k].update(zip(columns.tolist(), values.tolist(), strict=True))
            seen["grown"] += not fits
            seen["compacted"] += table.values is not before.values
        elif action == "room" and not has_room(table, k, 40):
            while (wanted := grow_row(table, k, 40)) > 0:
                table = lengthened(table, wanted)
            assert has_room(table, k, 40)
        elif action == "drop":
            take_row(table, k, n_rows - 1)
            last = oracle.pop(n_rows - 1)
            if k != n_rows - 1:
                oracle[k] = last
            n_rows -= 1
            seen["dropped"] += 1
        if action == "widen" or n_rows + 1 >= capacity:
            table = with_capacity(table, capacity + int(rng.integers(1, 4)))
            assert table.starts.size > capacity
        seen["dense"] = max(seen["dense"], sum(is_dense(table, k) for k in range(n_rows)))
        if step % check_every == 0:
            assert_holds(table, oracle)
    return table, oracle, seen


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", range(6))
def test_any_sequence_of_changes_reads_as_a_dict_of_dicts(case, layout, monkeypatch):
    rng = np.random.default_rng((51, case))
    n_columns = [130, 200, 257, 300, 512, 513][case]
    table = table_of(layout, 3, n_columns, monkeypatch)
    table, oracle, seen = random_walk(rng, table, 120, [9, 40, 90][case % 3])
    assert_holds(table, oracle)
    assert seen["dropped"] > 5
    if layout == "hashed":
        assert seen["grown"] > 5
        assert seen["compacted"] > 1


@pytest.mark.parametrize("case", range(3))
def test_long_sequences_of_wide_rows_read_as_a_dict_of_dicts(case):
    """With the package's own limit: some rows stay hashed, some end dense."""
    rng = np.random.default_rng((52, case))
    table = empty_table(5, 8200 + 300 * case)
    table, oracle, seen = random_walk(rng, table, 250, [700, 1500, 3000][case], 10)
    assert_holds(table, oracle)
    assert seen["dense"] > 0
    assert any(0 < table.sizes[k] < table.shape[N_COLUMNS] for k in oracle)


def test_rows_are_hashed_beyond_the_limit_only():
    assert empty_table(2, DENSE_UP_TO).keys.size == 0
    table = empty_table(2, DENSE_UP_TO + 1)
    assert table.keys.size > 0
    assert not table.sizes.any()
    assert_holds(table, {})


@pytest.mark.parametrize("n_columns", [130, 255, 256, 257, 1000])
def test_row_doubles_and_ends_dense_without_losing_a_number(n_columns, monkeypatch):
    """Columns come one by one, in an order of their own; sizes never shrink."""
    rng = np.random.default_rng((53, n_columns))
    table, oracle, sizes = table_of("hashed", 2, n_columns, monkeypatch), {1: {}}, []
    for column in rng.permutation(n_columns).tolist():
        table = scatter(table, 1, np.array([column]), np.array([column + 0.5]))
        oracle[1][column] = column + 0.5
        sizes.append(int(table.sizes[1]))
        if len(sizes) % 16 == 0:
            assert_holds(table, oracle)
    assert_holds(table, oracle)
    hashed = [2**j for j in range(6, 12) if 2 * 2**j <= n_columns]
    assert sorted(set(sizes)) == [*hashed, n_columns]
    assert sizes == sorted(sizes)
    # As long as it is hashed it is at most 3/4 full, and no larger than it must be.
    for filled, size in enumerate(sizes, start=1):
        assert size == n_columns or max(64, 4 * filled / 3) <= size <= max(64, 8 * filled / 3 + 2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_dense_row_takes_any_columns_where_it_is(layout, monkeypatch):
    table, columns = table_of(layout, 2, 300, monkeypatch), np.arange(300)
    table = scatter(table, 0, columns, columns + 1.0)
    assert is_dense(table, 0)
    start = table.starts[0]
    table = scatter(table, 0, columns[:290], columns[:290] + 5.0)
    assert (table.starts[0], is_dense(table, 0)) == (start, True)
    assert_holds(table, {0: {c: c + (5.0 if c < 290 else 1.0) for c in range(300)}})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_setting_again_replaces_and_takes_no_more_room(layout, monkeypatch):
    table = table_of(layout, 2, 300, monkeypatch)
    columns = np.array([299, 0, 64, 128, 192])
    for turn in range(40):
        table = scatter(table, 0, columns, np.arange(5.0) + turn)
        assert_holds(table, {0: dict(zip(columns.tolist(), np.arange(5.0) + turn, strict=True))})
    assert table.sizes[0] == (64 if layout == "hashed" else 300)


def test_columns_that_collide_are_told_apart(monkeypatch):
    """All of these have the same place in a row of 64, the last ones wrap around its end."""
    table, oracle = table_of("hashed", 3, 5000, monkeypatch), {0: {}, 1: {}}
    for turn, column in enumerate([63 + 64 * j for j in range(40)]):
        k = turn % 2
        table = scatter(table, k, np.array([column]), np.array([1.0 + turn]))
        oracle[k][column] = 1.0 + turn
        assert_holds(table, oracle)
    assert table.sizes.tolist() == [64, 64, 0]


def test_locate_reads_zero_for_what_a_row_lacks_and_changes_nothing(monkeypatch):
    table = table_of("hashed", 3, 5000, monkeypatch)
    table = scatter(table, 1, np.array([7, 71]), np.array([2.0, 3.0]))
    before = [part.copy() for part in table]
    columns, entries = np.array([7, 135, 71, 4999]), np.empty(4, np.uint64)
    for k, expected in [(0, [0, 0, 0, 0]), (1, [2.0, 0, 3.0, 0]), (2, [0, 0, 0, 0])]:
        locate(table, k, columns, 0, 4, entries)
        assert table.values[entries].tolist() == expected
    for part, copy in zip(table, before, strict=True):
        assert np.array_equal(part, copy)


def test_claim_takes_an_entry_of_its_own_for_every_column(monkeypatch):
    table = table_of("hashed", 2, 5000, monkeypatch)
    table = scatter(table, 0, np.array([7]), np.array([2.0]))
    columns, entries = np.array([0, 7, 71, 135, 8, 0]), np.empty(4, np.uint64)
    claim(table, 0, columns, 1, 5, entries)  # a part of a longer list
    assert len(set(entries.tolist())) == 4
    assert table.keys[entries].tolist() == [7, 71, 135, 8]
    assert table.values[entries].tolist() == [2.0, 0.0, 0.0, 0.0]
    assert_holds(table, {0: {7: 2.0, 71: 0.0, 135: 0.0, 8: 0.0}})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gather_reads_any_rows_and_columns_in_any_order(layout, monkeypatch):
    rng = np.random.default_rng((54, 0))
    table = table_of(layout, 6, 400, monkeypatch)
    for k in (0, 1, 2, 4):
        columns = rng.choice(400, size=[3, 60, 200, 40][k % 4], replace=False)
        table = scatter(table, k, columns, rng.normal(size=columns.size))
    whole = read(table)
    slots, columns = np.array([4, 0, 5, 4, 2]), np.array([399, 0, 17, 17, 250])
    out = np.full((5, 5), np.nan)
    gather(table, slots, columns, out)
    assert np.count_nonzero(whole) == 3 + 60 + 200 + 3
    assert np.array_equal(out, whole[slots][:, columns])


def test_space_that_rows_leave_behind_is_used_again(monkeypatch):
    """Rows come and go: the array never outgrows the most that lived at once by a quarter."""
    rng = np.random.default_rng((55, 0))
    table, most, lengths = table_of("hashed", 8, 2000, monkeypatch), 0, []
    for _ in range(300):
        k = int(rng.integers(6))
        if rng.random() < 0.4:
            take_row(table, k, 6)  # slot 6 is free: row k is emptied
        columns = rng.choice(2000, size=60, replace=False)
        table = scatter(table, k, columns, rng.normal(size=60))
        most = max(most, int(table.sizes.sum()))
        lengths.append(table.values.size)
    # While a row moves it is there twice.
    assert max(lengths) <= 1.25 * (1 + most + 2000)
    assert len(set(lengths)) > 3


def test_compacting_leaves_no_gap_and_no_row_behind(monkeypatch):
    rng = np.random.default_rng((56, 0))
    table, oracle = table_of("hashed", 7, 500, monkeypatch), {}
    for k in (4, 0, 5, 2, 0, 4):  # the last two rows move: they leave gaps
        columns, values = rng.choice(500, size=70, replace=False), rng.normal(size=70)
        table = scatter(table, k, columns, values)
        oracle.setdefault(k, {}).update(zip(columns.tolist(), values.tolist(), strict=True))
    live = int(table.sizes.sum())
    assert table.shape[END] > live + 1
    packed = lengthened(table, 0)
    assert packed.shape[END] == live + 1
    assert packed.values.size == live + 1 + (live + 1) // 4
    assert_holds(packed, oracle)
    assert_holds(table, oracle)
