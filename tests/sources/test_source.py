"""The chain of files: patterns, numbers that run on, progress, schemas from earlier runs."""

import subprocess
import sys
from pathlib import Path

import pytest
from feeding import read_all, write

from bnpstream.sources import FORMATS, Options, Schema, open_source
from bnpstream.sources.files.position import Position


def test_the_files_of_a_pattern_come_sorted_and_numbers_run_on(tmp_path):
    write(tmp_path, "b.jsonl.gz", '{"text": "bb"}\n{"text": "cc"}\n')
    write(tmp_path, "a.jsonl", '{"text": "aa"}\n')
    write(tmp_path, ".hidden.jsonl", '{"text": "hidden"}\n')
    (tmp_path / "c.jsonl").mkdir()
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep", "d.jsonl", '{"text": "dd"}\nbad\n')
    source = open_source([str(tmp_path / "*.jsonl*"), str(tmp_path / "**/d.jsonl")])
    records, [reject] = read_all(source)
    assert [(number, row) for number, _, row, _ in records] == [
        (0, {"aa": 1}),
        (1, {"bb": 1}),
        (2, {"cc": 1}),
        (3, {"dd": 1}),
    ]
    assert (Path(reject.source).name, reject.line, reject.record) == ("d.jsonl", 2, 4)
    assert [position["file"] for _, position in source.batches()] == [0, 1, 2]
    assert [Path(path).name for path in source.identity()["paths"]] == [
        "a.jsonl",
        "b.jsonl.gz",
        "d.jsonl",
    ]
    assert source.identity()["format"] == "jsonl"


def test_a_relative_pattern(tmp_path, monkeypatch):
    write(tmp_path, "a.txt", "aa\n")
    monkeypatch.chdir(tmp_path)
    assert open_source("*.txt").paths == ["a.txt"]
    assert open_source("./a.txt").identity() == {
        "paths": [str(tmp_path / "a.txt")],
        "format": "text",
    }


def test_a_name_with_brackets_is_a_name_if_it_is_there(tmp_path):
    assert open_source(write(tmp_path, "a[1].txt", "aa\n")).paths == [str(tmp_path / "a[1].txt")]


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ("none.txt", FileNotFoundError, "none.txt: no such file"),
        ("*.none", FileNotFoundError, "no file matches this pattern"),
        (".", IsADirectoryError, "it is a directory: name its files, such as .*/[*]"),
        ("empty.txt", ValueError, "empty.txt: nothing to read: the file is empty"),
        (["empty.txt", "other.txt"], ValueError, "all files are empty"),
        ([], ValueError, "no source"),
    ],
)
def test_nothing_to_read_is_said(tmp_path, names, error, message):
    for name in ("empty.txt", "other.txt"):
        write(tmp_path, name, "")
    paths = [str(tmp_path / name) for name in ([names] if isinstance(names, str) else names)]
    with pytest.raises(error, match=message):
        open_source(paths)


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(ValueError, match="unknown format 'xml'; give one of uci, lda-c"):
        open_source(write(tmp_path, "a.txt", "aa\n"), Options(format="xml"))


def test_an_empty_file_among_others_has_no_records(tmp_path):
    for i, content in enumerate(["", "id,size\n1,2\n", "", "size,id\n3,4\n", ""]):
        write(tmp_path, f"{i}.csv", content)
    records, _ = read_all(open_source(str(tmp_path / "*.csv")))
    assert [(number, id_, row) for number, id_, row, _ in records] == [
        (0, "1", (2,)),
        (1, "4", (3,)),
    ]


def test_a_source_that_was_looked_at_can_begin_anywhere(tmp_path):
    paths = [write(tmp_path, f"{i}.txt", f"word{i}\n") for i in range(3)]
    for at in range(3):
        records, _ = read_all(open_source(paths), start=Position(records=at, file=at)._asdict())
        assert [row for _, _, row, _ in records] == [{f"word{i}": 1} for i in range(at, 3)]


def test_resuming_where_files_were_added(tmp_path):
    write(tmp_path, "1.txt", "aa\nbb\n")
    source = open_source(str(tmp_path / "*.txt"))
    *_, (_, position) = source.batches()
    write(tmp_path, "2.txt", "cc\n")
    longer = open_source(str(tmp_path / "*.txt"), schema=source.schema)
    assert [row for _, _, row, _ in read_all(longer, start=position)[0]] == [{"cc": 1}]
    with pytest.raises(ValueError, match="file 4, but there are only 1"):
        next(source.batches(start=Position(records=9, file=3)._asdict()))


def test_the_schema_of_an_earlier_run_is_used_without_looking(tmp_path):
    """Columns are found by name, whatever their order; a column that is not there is an error."""
    first = open_source(write(tmp_path, "a.csv", "id,size,colour\nx,1,red\ny,2,blue\n"))
    later = write(tmp_path, "b.csv", "colour,more,id,size\n3,?,z,4\n")
    [(_, id_, row, _)], _ = read_all(open_source(later, schema=first.schema))
    assert (id_, row) == ("z", [4.0, "3"])
    other = write(tmp_path, "c.csv", "size,weight\n1,2\n")
    with pytest.raises(ValueError, match=r"c\.csv: has no column 'colour'; it has size"):
        read_all(open_source(other, schema=first.schema))

    first = open_source(write(tmp_path, "a.jsonl", '{"size": 1, "colour": "red"}\n'))
    later = write(tmp_path, "b.jsonl", '{"colour": 3}\n{"more": 1, "colour": "blue"}\n')
    [(_, _, row, _)], [reject] = read_all(open_source(later, schema=first.schema))
    assert row == [None, "blue"]
    assert "not a label" in reject.reason


def test_a_vocabulary_is_part_of_the_schema(tmp_path):
    path = write(tmp_path, "a.txt", "house vote vote\n")
    vocab = write(tmp_path, "vocab", "vote\nsenate\n")
    schema = open_source(path, Options(vocab=vocab)).schema
    Path(vocab).unlink()
    assert read_all(open_source(path, Options(vocab=vocab), schema))[0][0][2] == (2, 0)


def test_progress_goes_from_nothing_to_all(tmp_path):
    paths = [write(tmp_path, f"{i}.txt.gz", "some words\n" * 1000) for i in range(4)]
    source = open_source(paths)
    assert source.progress() is None
    seen = [source.progress() for _ in source.batches(1000)]
    assert seen == [0.25, 0.5, 0.75, 1.0]
    assert source.n_records is None


def test_a_batch_needs_a_row(tmp_path):
    with pytest.raises(ValueError, match="batch_rows is 0"):
        next(open_source(write(tmp_path, "a.txt", "aa\n")).batches(0))


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_files_are_closed(tmp_path):
    paths = [write(tmp_path, f"{i}.txt", "some words\n" * 10) for i in range(3)]
    before = open_files()
    source = open_source(paths)
    read_all(source)
    assert next(source.batches(2))  # and no more
    with open_source(paths) as source:
        read_all(source, start=Position(records=20, file=2)._asdict())
    with open_source(paths):
        pass
    with pytest.raises(ValueError, match="no column"):
        open_source(write(tmp_path, "a.jsonl", "{}\n"))
    assert open_files() == before


def test_standard_input_is_replayed(tmp_path):
    code = """if True:
        import sys
        from bnpstream.sources import open_source
        from bnpstream.sources.files.position import Position
        source = open_source("-")
        replay = sys.argv[1] == "replay"
        start = Position(records=5, in_file=5, line=6)._asdict() if replay else None
        for batch, position in source.batches(4, start):
            print(batch.numbers, batch.rows, tuple(position.values()), source.progress())
    """
    content = b"aa\n\nbb\ncc\ndd\nee\nff\ngg"
    outputs = []
    for mode in ("whole", "replay"):
        command = [sys.executable, "-c", code, mode]
        with Path(write(tmp_path, "a", content)).open() as file:
            for stdin in ({"input": content}, {"stdin": file}):
                done = subprocess.run(command, capture_output=True, check=True, **stdin)
                outputs.append(done.stdout.decode().splitlines())
    assert outputs[0] == outputs[1]
    assert outputs[0] == [
        "[0, 1, 2, 3] [{'aa': 1}, {'bb': 1}, {'cc': 1}, {'dd': 1}] (4, 0, 4, 5, None, None) None",
        "[4, 5, 6] [{'ee': 1}, {'ff': 1}, {'gg': 1}] (7, 0, 7, 8, None, None) None",
    ]
    assert outputs[2] == outputs[3]
    assert outputs[2] == ["[5, 6] [{'ff': 1}, {'gg': 1}] (7, 0, 7, 8, None, None) None"]


def test_every_format_has_a_name_that_a_schema_can_have():
    for name in FORMATS:
        assert Schema(name, "counts").format == name


def test_importing_is_quick():
    """Neither the readers nor what they need are imported before they are used."""
    code = (
        "import sys, bnpstream.sources as s; s.open_source; s.Options;"
        "print([m for m in ('numpy', 'numba', 'pyarrow', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"[]\n"


@pytest.mark.parametrize(
    ("name", "content"), [("a.jsonl", '{"text": "aa"}\n'), ("a.csv", "x\n1\n")]
)
def test_records_with_fields_need_no_compiler(tmp_path, name, content):
    path = write(tmp_path, name, content)
    code = (
        f"import sys, bnpstream.sources as s; next(s.open_source({path!r}).batches());"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"False\n"
