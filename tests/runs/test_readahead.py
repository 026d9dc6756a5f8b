"""Reading ahead: the same records in the same order, joined where they are small."""

import threading
import time

import numpy as np
import pytest
from scipy.sparse import csr_array

from bnpstream.runs import read_ahead as reading
from bnpstream.runs.read_ahead import AHEAD, read_ahead
from bnpstream.sources import Place, Records, Reject

REJECT = Reject("-", 1, 0, "bad", "x")


def batch(start, n, kind="documents", rejects=0):
    numbers = list(range(start, start + n))
    rows = {
        "documents": [{"w": i + 1} for i in numbers],
        "counts": csr_array(np.array(numbers).reshape(n, 1) + 1),
        "table": np.array(numbers, float).reshape(n, 1) + 1,
    }[kind]
    excerpts, places = [str(i) for i in numbers], [Place("-", i + 1) for i in numbers]
    records = Records(rows, numbers, numbers, excerpts, [REJECT] * rejects, places=places)
    return records, {"records": start + n + rejects}


@pytest.mark.parametrize("kind", ["documents", "counts", "table"])
@pytest.mark.parametrize("sizes", [[3, 1, 4, 1, 5], [10, 10, 3], [0, 2, 0], [25, 1]])
def test_nothing_is_lost_or_moved(kind, sizes):
    items, start = [], 0
    for size in sizes:
        items.append(batch(start, size, kind, rejects=1))
        start += size + 1
    found = []
    n_rejects = 0
    for records, position in read_ahead(iter(items), 10):
        assert position["records"] > max(records.numbers, default=-1)
        found += records.numbers
        assert records.ids == records.numbers
        assert records.excerpts == [str(i) for i in records.numbers]
        assert [place.line for place in records.places] == [i + 1 for i in records.numbers]
        values = [row["w"] for row in records.rows] if kind == "documents" else records.rows
        values = values.toarray() if kind == "counts" and len(records) else values
        if len(records):
            assert np.ravel(values).tolist() == [i + 1 for i in records.numbers]
        n_rejects += len(records.rejects)
    assert position == items[-1][1]
    assert found == [number for records, _ in items for number in records.numbers]
    assert n_rejects == len(sizes)


def test_small_batches_that_wait_are_joined():
    read = threading.Event()

    def items():
        for i in range(20):
            yield batch(i, 1)
        read.set()

    batches = read_ahead(items(), 8)
    first, _ = next(batches)
    assert read.wait(300)
    rest = [len(records) for records, _ in batches]
    assert len(first) + sum(rest) == 20
    assert max(rest) == 8


def test_a_source_is_stopped_when_nobody_wants_more(monkeypatch):
    monkeypatch.setattr(reading, "PATIENCE", 60.0)
    stopped, ended = threading.Event(), threading.Event()

    def items():
        yield batch(0, 1)
        if stopped.wait(300):
            ended.set()

    batches = read_ahead(items(), 10, stopped.set)
    next(batches)
    batches.close()
    assert ended.is_set()


def test_memory_is_bounded_while_nobody_takes():
    made = []

    def items():
        for i in range(1000):
            made.append(i)
            yield batch(10 * i, 10)

    batches = read_ahead(items(), 10)
    next(batches)
    time.sleep(0.2)
    assert len(made) <= AHEAD + 3
    batches.close()


def test_errors_arrive_after_what_came_before_them():
    def items():
        yield batch(0, 2)
        raise ValueError("the file is damaged")

    batches = read_ahead(items(), 10)
    assert len(next(batches)[0]) == 2
    with pytest.raises(ValueError, match="the file is damaged"):
        next(batches)
