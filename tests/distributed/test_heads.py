"""The head of a stream: others wait for it, so it is no longer than it has to be."""

import gzip
import json
from dataclasses import replace

import dask
import numpy as np
import pytest
from scipy.sparse import coo_matrix, save_npz

from bnpstream import PitmanYor, StreamingMixture
from bnpstream.datasets import synthetic_corpus
from bnpstream.distributed import Reached, fit_stream, stream_partitions
from bnpstream.distributed.feed import SharedFeed
from bnpstream.distributed.partitions import READ_ROWS, read
from bnpstream.runs.options import ModelOptions, Pace
from bnpstream.runs.sharing import SharingOptions
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start
from bnpstream.sources import Records, Reject
from distributed_streams import fingerprint, learning

FIRST, N_ROWS = READ_ROWS + 900, READ_ROWS + 1500


@pytest.fixture(scope="module")
def rows():
    prior = PitmanYor(4.0, discount=0.4)
    return synthetic_corpus(N_ROWS, 120, 40.0, 20.0, prior, seed=6).counts.tocsr()


@pytest.fixture(scope="module")
def expected(client, rows):
    """Return what comes of partitions that were cut by hand."""
    parts = [rows[:READ_ROWS], rows[READ_ROWS:FIRST], rows[FIRST:]]
    return fingerprint(fit_stream(client, parts, learning()).model)


def write_docword(path, rows, stray=None):
    """Write a docword file; an entry of document 5 comes after those of document `stray`."""
    entries = rows.tocoo()
    triples = zip(entries.row + 1, entries.col + 1, entries.data, strict=True)
    lines = [f"{i} {word} {count:d}" for i, word, count in triples]
    if stray is not None:
        lines.insert(int(rows.indptr[stray]), "5 1 1")
    lines = [str(n) for n in (*rows.shape, len(lines))] + lines
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write("\n".join(lines) + "\n")


def as_partition(kind, folder, rows):
    if kind == "delayed":
        return dask.delayed(rows)
    if kind == "block":
        return rows
    path = folder / f"docword.{rows.shape[0]}.{'npz' if kind == 'npz' else 'txt.gz'}"
    (save_npz if kind == "npz" else write_docword)(path, rows)
    return str(path)


@pytest.mark.parametrize("kind", ["npz", "docword", "delayed", "block"])
def test_a_long_first_partition_is_absorbed_in_two_steps(client, rows, expected, kind, tmp_path):
    parts = [as_partition(kind, tmp_path, part) for part in (rows[:FIRST], rows[FIRST:])]
    steps = list(stream_partitions(client, parts, learning()))
    seen = [(s.partition, s.n_rows, s.reached.partitions, s.reached.records) for s in steps]
    assert seen == [
        (0, READ_ROWS, 0, READ_ROWS),
        (0, FIRST - READ_ROWS, 1, FIRST),
        (1, N_ROWS - FIRST, 2, N_ROWS),
    ]
    assert [step.reached.inside is None for step in steps] == [False, True, True]
    assert fingerprint(steps[-1].model.finish()) == expected


@pytest.mark.parametrize("kind", ["npz", "docword", "delayed", "block"])
def test_short_partitions_are_absorbed_in_one_step(client, rows, kind, tmp_path):
    parts = [as_partition(kind, tmp_path, rows[: 100 + i]) for i in range(4)]
    steps = list(stream_partitions(client, parts, learning()))
    assert [step.n_rows for step in steps] == [100, 101, 102, 103]
    assert all(step.reached.inside is None for step in steps)


def test_one_at_a_time_nobody_waits(client, rows):
    steps = list(stream_partitions(client, [rows[:FIRST], rows[FIRST:]], learning(), staleness=0))
    assert [step.n_rows for step in steps] == [FIRST, N_ROWS - FIRST]


@pytest.mark.parametrize("kind", ["docword", "block"])
def test_a_run_that_stopped_inside_a_partition_goes_on_there(
    client, rows, expected, kind, tmp_path
):
    parts = [as_partition(kind, tmp_path, part) for part in (rows[:FIRST], rows[FIRST:])]
    model, reached = learning(), Reached()
    for applied in stream_partitions(client, parts, model):
        reached = applied.reached
        break
    assert reached.inside.records == model.n_samples_seen_ == READ_ROWS
    result = fit_stream(client, parts, model, start=reached)
    assert result.n_rows == N_ROWS - READ_ROWS
    assert fingerprint(model) == expected


def test_a_rest_that_cannot_be_read_is_rejected(client, rows, tmp_path):
    path = tmp_path / "docword.txt.gz"
    write_docword(path, rows[:FIRST])
    whole = path.read_bytes()
    path.write_bytes(whole[: int(0.97 * len(whole))])
    result = fit_stream(client, [str(path), rows[FIRST:]], learning())
    assert result.n_rows == READ_ROWS + N_ROWS - FIRST
    assert result.unread == [str(path)]
    [reject] = result.rejects
    assert reject.record == READ_ROWS
    assert f"the partition from record {READ_ROWS} on cannot be read" in reject.reason


@pytest.fixture
def refused(tmp_path):
    """Return a file in which counts of a head, a rest and what follows are none."""
    counts = np.random.default_rng(3).poisson(5.0, size=READ_ROWS + 200).astype(float)
    counts[[10, READ_ROWS + 50, READ_ROWS + 150]] += 0.5
    path = tmp_path / "counts.csv"
    path.write_text("x\n" + "".join(f"{x:g}\n" for x in counts))
    return path


def test_refused_records_of_a_rest_have_their_line(client, refused):
    model = StreamingMixture(prior="dp", likelihood="poisson", prefix_rows=100)
    result = fit_stream(client, [str(refused)], model)
    assert [reject.line for reject in result.rejects] == [12, READ_ROWS + 52, READ_ROWS + 152]
    assert [reject.record for reject in result.rejects] == [10, READ_ROWS + 50, READ_ROWS + 150]
    assert result.n_rows == READ_ROWS + 197


def share(client, path, folder, interrupts, likelihood="poisson", **sharing):
    """Return a feed of a file whose first block is long, and whether it came to its end."""
    model = ModelOptions(likelihood=likelihood, prior="dp", prefix_rows=100)
    feed = start(folder, RunOptions((str(path),), model=model, sharing=SharingOptions()))
    feed.sharing = replace(feed.sharing, part_rows=READ_ROWS + 100, **sharing)
    with feed.writer:
        return feed, SharedFeed(client, feed).run(Pace(), interrupts, lambda status: None)


def test_the_driver_reads_a_file_whose_first_block_is_long(client, refused, tmp_path):
    feed, ended = share(client, refused, tmp_path / "run", Interrupts())
    assert (ended, feed.partitions.done) == (True, 2)
    position, rejects = feed.position, (tmp_path / "run" / "rejects.jsonl").read_text()
    assert (feed.records, position["offset"]) == (READ_ROWS + 200, refused.stat().st_size)
    lines = [json.loads(reject)["line"] for reject in rejects.splitlines()]
    assert lines == [12, READ_ROWS + 52, READ_ROWS + 152]
    assert feed.model.stream.n_rows == READ_ROWS + 197


def test_a_run_is_not_saved_inside_a_partition(client, refused, tmp_path):
    interrupts = Interrupts()
    interrupts.requested = True
    feed, ended = share(client, refused, tmp_path / "run", interrupts, settle_every=1)
    assert (ended, feed.partitions.done) == (False, 1)
    assert feed.records == READ_ROWS + 100


@pytest.mark.parametrize("after", [READ_ROWS + 50, READ_ROWS + 500])
def test_entries_of_earlier_documents_are_rejected_once(client, rows, tmp_path, after):
    path = tmp_path / "docword.txt.gz"
    write_docword(path, rows, stray=after)
    by_workers = fit_stream(client, [str(path)], learning())
    assert [reject.record for reject in by_workers.rejects] == [4]
    assert by_workers.reached.records == by_workers.n_rows == N_ROWS
    feed, _ = share(client, path, tmp_path / "run", Interrupts(), "multinomial")
    [reject] = (tmp_path / "run" / "rejects.jsonl").read_text().splitlines()
    assert json.loads(reject)["record"] == 4
    assert feed.records == feed.model.stream.n_rows == N_ROWS


def test_a_block_is_cut_with_all_that_was_rejected():
    n = READ_ROWS + 10
    strays = [Reject("docword", 1, record, "", "") for record in (-3, 5, READ_ROWS + 2)]
    block = Records(np.zeros((n, 1)), list(range(n)), list(range(n)), rejects=strays)
    head = read(block, None, None, head=True)
    rest = read(block, None, None, head.after)
    found = [[reject.record for reject in part.batches[0].rejects] for part in (head, rest)]
    assert found == [[-3, 5], [2]]
    assert (head.n_records, rest.n_records, rest.after) == (READ_ROWS, 10, None)


def test_all_kinds_of_rows_can_be_cut(client, rows, expected):
    pandas = pytest.importorskip("pandas")
    parts = [coo_matrix(rows[:FIRST]), rows[FIRST:].tobsr()]
    assert fingerprint(fit_stream(client, parts, learning()).model) == expected
    numbers = np.random.default_rng(4).normal(size=(READ_ROWS + 100, 1))
    frame = pandas.DataFrame(numbers, columns=["x"], index=np.linspace(9.0, 0.0, len(numbers)))
    model = StreamingMixture("dp", "gaussian", prefix_rows=100)
    steps = list(stream_partitions(client, [frame], model))
    assert [step.n_rows for step in steps] == [READ_ROWS, 100]


def test_a_partition_that_is_another_one_the_second_time_is_rejected(client, rows):
    model, reached = learning(), Reached()
    for applied in stream_partitions(client, [rows], model):
        reached = applied.reached
        break
    result = fit_stream(client, [rows[:1000]], model, start=reached)
    assert (result.n_rows, result.unread) == (0, ["partition 0"])
    assert (
        f"{READ_ROWS} of its records were absorbed, but now it has 1000" in result.rejects[0].reason
    )


def test_a_head_may_take_several_steps(client, rows):
    model = learning(prefix_rows=READ_ROWS + 100)
    steps = list(stream_partitions(client, [rows[:FIRST], rows[FIRST:]], model))
    assert [step.n_rows for step in steps] == [READ_ROWS, FIRST - READ_ROWS, N_ROWS - FIRST]
    assert model.n_samples_seen_ == N_ROWS


def test_it_settles_after_partitions_and_not_after_steps(client, rows):
    options = {"staleness": 2, "settle_every": 2}
    parts = [rows[:FIRST], *(rows[start : start + 150] for start in range(FIRST, N_ROWS, 150))]
    expected = fit_stream(client, parts, learning(), **options)
    model, reached = learning(), Reached()
    for applied in stream_partitions(client, parts, model, **options):
        reached = applied.reached
        if reached.partitions == 2:
            break
    rest = fit_stream(client, parts, model, **options, start=reached)
    assert rest.n_rows == 450
    assert fingerprint(rest.model) == fingerprint(expected.model)
