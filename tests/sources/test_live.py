"""Pipes and files that grow: every line is answered when it is there, and none is lost."""

import os
import queue
import threading
import time
from pathlib import Path
from zlib import crc32

import pytest
from feeding import records_of

from bnpstream.sources import Options, open_source
from bnpstream.sources.files import byte_reader as reading

PATIENCE = 300
THREADS = []


class Reading:
    """Reads a source in a thread; `next` gives what came."""

    def __init__(self, path, batch_rows=100, start=None, schema=None, **options):
        self._found = queue.Queue()
        follow = options.pop("follow", False)

        def read():
            try:
                source = open_source(path, Options(**options), schema, follow=follow)
                for batch, position in source.batches(batch_rows, start):
                    self._found.put((records_of(batch), position, batch.rejects))
                self._found.put(None)
            except Exception as error:
                self._found.put(error)

        # A followed file has no end, so the thread that reads it is ended by `poll_often`.
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        THREADS.append(thread)

    def next(self):
        return self._found.get(timeout=PATIENCE)

    def rows(self):
        return [row for _, _, row, _ in self.next()[0]]

    def is_quiet(self, seconds=0.3):
        try:
            self._found.get(timeout=seconds)
        except queue.Empty:
            return True
        return False


@pytest.fixture(autouse=True)
def poll_often(monkeypatch):
    """Look at files often; at the end no thread is left that does."""
    monkeypatch.setattr(reading, "POLL_SECONDS", 0.01)
    yield
    reading.POLL_SECONDS = None  # an error for whoever still waits
    while THREADS:
        THREADS.pop().join(timeout=1.0)


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize(
    ("format_", "lines"),
    [
        ("jsonl", [b'{"text": "aa"}\n', b'{"text": "bb"}\n', b'{"text": "cc"}']),
        ("text", [b"aa\n", b"bb\n", b"cc"]),
    ],
)
def test_a_pipe_is_answered_line_by_line(pipe, format_, lines):
    reading_ = Reading(str(pipe), format=format_)
    with pipe.open("wb", buffering=0) as feed:
        feed.write(lines[0])
        assert reading_.rows() == [{"aa": 1}]
        feed.write(lines[1][:-4])
        assert reading_.is_quiet()
        feed.write(lines[1][-4:] + lines[2])
        assert reading_.rows() == [{"bb": 1}]
        assert reading_.is_quiet()  # the last line may go on
    assert reading_.rows() == [{"cc": 1}]
    assert reading_.next() is None


def test_a_whole_line_does_not_wait_for_one_that_has_begun(pipe):
    reading_ = Reading(str(pipe), format="text")
    with pipe.open("wb", buffering=0) as feed:
        feed.write(b"aa\n")
        assert reading_.rows() == [{"aa": 1}]
        feed.write(b"bb\ncc\nbeg")
        assert reading_.rows() == [{"bb": 1}, {"cc": 1}]


def test_a_csv_pipe_waits_for_a_row_after_the_header(pipe):
    reading_ = Reading(str(pipe), format="csv")
    with pipe.open("wb", buffering=0) as feed:
        feed.write(b"size,colour\n")
        assert reading_.is_quiet(0.6)
        feed.write(b"1,red\n")
        assert reading_.rows() == [[1.0, "red"]]
        feed.write(b'2,"bl')
        assert reading_.is_quiet()
        feed.write(b'ue"\n')
        assert reading_.rows() == [[2.0, "blue"]]


def test_a_feed_may_begin_with_a_bad_record(pipe):
    reading_ = Reading(str(pipe))
    with pipe.open("wb", buffering=0) as feed:
        feed.write(b'{"text": \n')
        assert reading_.is_quiet(0.6)
        feed.write(b'{"text": "aa"}\n')
        records, position, [reject] = reading_.next()
        assert [row for _, _, row, _ in records] == [{"aa": 1}]
        assert (reject.line, position["records"]) == (1, 2)


def test_a_steady_feed_is_answered_at_once(pipe):
    """It is never quiet, but nobody waits until there is enough to look at."""
    reading_ = Reading(str(pipe))
    with pipe.open("wb", buffering=0) as feed:
        for _ in range(20 * PATIENCE):
            feed.write(b'{"text": "aa"}\n')
            if not reading_.is_quiet(0.05):
                break
        else:
            pytest.fail("nothing came")


def test_a_pipe_after_an_empty_file_loses_nothing(pipe):
    (pipe.parent / "empty").touch()
    reading_ = Reading([str(pipe.parent / "empty"), str(pipe)], format="text")
    with pipe.open("wb", buffering=0) as feed:
        feed.write(b"aa\nbb\n")
    assert reading_.rows() == [{"aa": 1}, {"bb": 1}]


def test_a_file_that_grows_is_followed(tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(b"aa\nbb\nbeg")
    reading_ = Reading(str(path), follow=True)
    records, position, _ = reading_.next()
    assert [row for _, _, row, _ in records] == [{"aa": 1}, {"bb": 1}]
    assert position["offset"] == 6
    assert reading_.is_quiet()
    with path.open("ab", buffering=0) as feed:
        feed.write(b"un\ncc\n")
        assert reading_.rows() == [{"begun": 1}, {"cc": 1}]
        feed.write(b"dd\n")
        records, position, _ = reading_.next()
    assert records == [(4, 4, {"dd": 1}, "dd")]
    head = crc32(path.read_bytes())
    assert tuple(position.values()) == (5, 0, 5, 5, path.stat().st_size, head)


def test_an_empty_file_is_waited_for(tmp_path):
    path = tmp_path / "a.log"
    path.touch()
    reading_ = Reading(str(path), follow=True)
    assert reading_.is_quiet()
    path.write_bytes(b"aa\n")
    assert reading_.rows() == [{"aa": 1}]


def test_a_file_that_is_cut_is_read_from_its_start(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "aa"}\n{"text": "bb"}\n{"tex')
    reading_ = Reading(str(path), follow=True)
    assert len(reading_.rows()) == 2
    path.write_bytes(b'{"text": "cc"}\nbad\n')
    records, position, rejects = reading_.next()
    while len(rejects) < 2:  # the rest of the old file, and the new one, may come apart
        more, position, others = reading_.next()
        records, rejects = records + more, rejects + others
    assert [(number, row) for number, _, row, _ in records] == [(3, {"cc": 1})]
    assert [(reject.record, reject.line) for reject in rejects] == [(2, 3), (4, 2)]
    assert tuple(position.values()) == (5, 0, 2, 2, 19, crc32(path.read_bytes()))


@pytest.mark.parametrize("format_", ["text", "csv"])
def test_a_file_that_is_replaced_is_read_to_its_end_first(tmp_path, format_):
    """As `logrotate` does: the writer goes on with the old file for a while."""
    header = "words,size\n" if format_ == "csv" else ""
    mark = ",1\n" if format_ == "csv" else "\n"
    path, old = tmp_path / "a", tmp_path / "a.1"
    path.write_text(f"{header}aa{mark}bb{mark}")
    options = {"text_field": "words"} if format_ == "csv" else {}
    reading_ = Reading(str(path), follow=True, format=format_, **options)
    assert reading_.rows() == [{"aa": 1}, {"bb": 1}]
    with path.open("a", buffering=1) as feed:
        path.rename(old)
        feed.write(f"cc{mark}")
        assert reading_.rows() == [{"cc": 1}]
        feed.write(f"dd{mark}"[:-1])  # its last line has no end
        time.sleep(0.1)
    Path(tmp_path / "new").write_text(f"{header}ee{mark}")
    (tmp_path / "new").rename(path)
    rows = reading_.rows()
    while len(rows) < 2:
        rows += reading_.rows()
    assert rows == [{"dd": 1}, {"ee": 1}]
    with path.open("a", buffering=1) as feed:
        feed.write(f"ff{mark}")
    records, position, _ = reading_.next()
    assert [(number, row) for number, _, row, _ in records] == [(5, {"ff": 1})]
    n_header = 1 if header else 0
    assert tuple(position.values()) == (
        *(6, 0, 2, 2 + n_header, path.stat().st_size),
        crc32(path.read_bytes()),
    )


def test_following_goes_on_after_a_break(tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(b"aa\nbb\n")
    source = open_source(str(path))
    *_, (_, position) = source.batches()
    with path.open("ab") as feed:
        feed.write(b"cc\n")
    assert Reading(str(path), start=position, schema=source.schema, follow=True).rows() == [
        {"cc": 1}
    ]
    # If it was replaced by a shorter one in the meantime, that one is read from its start.
    path.write_bytes(b"dd\n")
    reading_ = Reading(str(path), start=position, schema=source.schema, follow=True)
    records, position, _ = reading_.next()
    assert records == [(2, 2, {"dd": 1}, "dd")]
    assert tuple(position.values()) == (3, 0, 1, 1, 3, crc32(b"dd\n"))


@pytest.mark.parametrize("format_", ["text", "svmlight"])
def test_another_file_is_not_entered_in_its_middle(tmp_path, format_):
    """It was replaced while nobody read it, by one that is longer than what was read before."""
    path = tmp_path / "a.log"
    path.write_bytes(b"1 2:1\n" * 4)
    source = open_source(str(path), Options(format=format_, n_features=9))
    [(_, position)] = list(source.batches(100))
    path.write_bytes(b"1 3:1\n" * 7)
    with pytest.raises(ValueError, match=r"a\.log: does not start as it did .* start a new run"):
        list(source.batches(100, position))
    again = Reading(str(path), 100, position, source.schema, format=format_, follow=True)
    records, after, _ = again.next()
    assert [number for number, _, _, _ in records] == list(range(4, 11))
    assert (after["records"], after["in_file"], after["offset"]) == (11, 7, 42)


@pytest.mark.parametrize("format_", ["text", "svmlight"])
def test_positions_of_earlier_versions_are_entered(tmp_path, format_):
    path = tmp_path / "a.log"
    path.write_bytes(b"1 2:1\n" * 4)
    source = open_source(str(path), Options(format=format_, n_features=9))
    position = next(source.batches(1))[1]
    del position["head"]
    assert sum(len(records) for records, _ in source.batches(100, position)) == 3


@pytest.mark.parametrize("format_", ["text", "svmlight"])
def test_what_was_read_before_a_file_is_cut_is_known_by_its_own_beginning(tmp_path, format_):
    path = tmp_path / "a.log"
    path.write_bytes(b"1 2:1\n" * 2)
    reading_ = Reading(str(path), 100, n_features=9, format=format_, follow=True)
    assert reading_.next()[1]["head"] == crc32(b"1 2:1\n" * 2)
    path.write_bytes(b"1 3:1\n")
    assert reading_.next()[1]["head"] == crc32(b"1 3:1\n")


def test_only_the_last_file_is_followed(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.log").write_bytes(f"{name}{name}\n".encode())
    reading_ = Reading(str(tmp_path / "*.log"), follow=True)
    assert [reading_.rows(), reading_.rows()] == [[{"aa": 1}], [{"bb": 1}]]
    assert reading_.is_quiet()


@pytest.mark.parametrize("kind", ["pipe", "follow"])
def test_a_source_that_waits_can_be_stopped(tmp_path, pipe, kind):
    """What is not complete yet is no record."""
    path = pipe if kind == "pipe" else tmp_path / "a.log"
    if kind == "follow":
        path.write_bytes(b"aa\nbeg")
    writer = None
    found, sources, ended = queue.Queue(), queue.Queue(), threading.Event()

    def read():
        source = open_source(str(path), Options(format="text"), follow=kind == "follow")
        sources.put(source)
        for batch, _ in source.batches():
            found.put(batch.rows)
        ended.set()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    if kind == "pipe":
        writer = pipe.open("wb", buffering=0)
        writer.write(b"aa\nbeg")
    assert found.get(timeout=PATIENCE) == [{"aa": 1}]
    assert not ended.wait(0.2)
    sources.get().stop()
    assert ended.wait(1.0)
    assert found.empty()
    if writer is not None:
        writer.close()


def test_a_directory_in_place_of_a_followed_file_is_named(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("rain wind\nsnow ice\n")
    reading_ = Reading(str(path), follow=True, batch_rows=2)
    assert len(reading_.rows()) == 2
    path.unlink()
    path.mkdir()
    error = reading_.next()
    assert isinstance(error, IsADirectoryError)
    assert error.filename == str(path)
