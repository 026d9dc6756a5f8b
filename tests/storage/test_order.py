"""Batches that were told of are known after a kill, whichever checkpoint is gone on from."""

import pytest

from bnpstream.runs.read_ahead import read_ahead
from bnpstream.sources import Records
from bnpstream.storage import Ordered
from bnpstream.storage.order import OrderLog

BATCHES = [Ordered(10 * i, [[0, 4], [1, 6]], {"records": 10 * i + 10}) for i in range(5)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "order.jsonl"


def written(path, batches):
    log = OrderLog(path)
    for batch in batches:
        log.append(batch)
    return log


def read(path):
    log = OrderLog(path)
    log.close()
    return log.batches


def test_batches_are_read_as_they_were_written(path):
    log = written(path, BATCHES)
    assert read(path) == BATCHES  # on the disk at once
    log.append(BATCHES[3])
    log.close()
    assert path.read_bytes().count(b"\n") == 5  # a repetition is not written again


@pytest.mark.parametrize("left", range(1, 30))
def test_a_line_without_an_end_was_told_to_nobody(path, left):
    written(path, BATCHES).close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + lines[4][:left])
    assert read(path) == BATCHES[:4]
    written(path, BATCHES[4:]).close()
    assert read(path) == BATCHES


def test_two_checkpoints_can_be_gone_on_from(path):
    log = written(path, BATCHES[:2])
    log.rotate(0)
    log.append(BATCHES[2])
    log.close()
    assert read(path) == BATCHES[:3]
    log = written(path, BATCHES[3:4])
    log.rotate(20)
    log.append(BATCHES[4])
    log.close()
    assert read(path) == BATCHES[2:]  # those before the last checkpoint but one are gone


def test_a_later_batch_takes_the_place_of_those_it_overlaps(path):
    other = Ordered(10, [[1, 3]], {"records": 13})
    written(path, [*BATCHES[:3], other]).close()
    assert read(path) == [BATCHES[0], other]


def test_whole_batches_are_not_joined():
    def batch(first, n, *, is_whole):
        numbers = list(range(first, first + n))
        return Records([{} for _ in numbers], numbers, list(numbers), is_whole=is_whole), first + n

    items = [batch(3 * i, 3, is_whole=i < 4) for i in range(8)]
    sizes = []
    for records, _ in read_ahead(iter(items), 1024):
        sizes.append(len(records))
        assert len(sizes) > 4 or len(records) == 3
    assert sum(sizes) == 24
