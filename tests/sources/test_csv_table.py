"""CSV and TSV: delimiters, headers, types, quotes, and what is rejected."""

import csv
import io
import math
import time

import numpy as np
import pytest
from feeding import read_all, read_text, write

from bnpstream.sources import Options, open_source


@pytest.fixture(autouse=True)
def limit_of_python():
    """Give every test the limit that a new process has."""
    csv.field_size_limit(131_072)


def test_types_are_found_from_the_cells(tmp_path):
    content = (
        "size,sold,colour,note,code\n1,true,red,,1\n-2.5e3,FALSE,3,NA,x\n NaN ,null,NA,nan,2\n"
    )
    schema, rows, rejects = read_text(tmp_path, "a.csv", content)
    assert schema.names == ("size", "sold", "colour", "code")  # no note was ever made
    assert schema.types == ("number", "truth", "label", "label")
    assert rows == [
        [1.0, True, "red", "1"],
        [-2500.0, False, "3", "x"],
        [None, None, None, "2"],
    ]
    assert rejects == []


def test_numbers_alone_are_an_array_of_floats(tmp_path):
    source = open_source(write(tmp_path, "a.csv", "a,b\n1,2\n,0.5\n-1e3,NaN\n"))
    [(batch, _)] = source.batches()
    assert batch.rows.dtype == np.float64
    np.testing.assert_array_equal(batch.rows, [[1, 2], [math.nan, 0.5], [-1000, math.nan]])
    assert batch.excerpts == []


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_python_writes_what_is_read(tmp_path, delimiter, end):
    rng = np.random.default_rng((602, ord(delimiter)))
    pieces = ["a", '"', ",", ";", "\n", "|", "\t", " ", "é", "word"]
    rows = [
        ["".join(rng.choice(pieces, 6)).strip() + "x", str(i), "y" + "".join(rng.choice(pieces, 3))]
        for i in range(200)
    ]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    writer.writerow(["first", "second", "third"])
    writer.writerows(rows)
    name = "a.tsv" if delimiter == "\t" else "a.csv"
    told = {"delimiter": delimiter, "columns": ("first", "second", "third")}
    _, found, rejects = read_text(tmp_path, name, text.getvalue(), **told)
    assert found == [[first, float(second), third] for first, second, third in rows]
    assert rejects == []


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_guessed(tmp_path, delimiter):
    lines = [["name", "size"], ['"a, b; c|d"', "1"], ["bad"], ["b", "2"], ["c", "3"]]
    content = "".join(delimiter.join(line) + "\n" for line in lines)
    schema, rows, rejects = read_text(tmp_path, "a.csv", content)
    assert schema.fields["delimiter"] == delimiter
    assert rows == [["a, b; c|d", 1.0], ["b", 2.0], ["c", 3.0]]
    assert [(reject.line, reject.reason) for reject in rejects] == [(3, "1 fields, not 2")]


@pytest.mark.parametrize(
    ("content", "options", "names"),
    [
        ("a,b\n1,2\n", {}, ("a", "b")),
        ("1,2\n3,4\n", {}, ("column1", "column2")),
        ("red,1\nblue,2\n", {}, ("column1", "column2")),
        ("colour,shape\nred,round\nblue,flat\n", {}, ("colour", "shape")),
        ("red,round\nblue,flat\nred,flat\n", {}, ("column1", "column2")),
        ("a,a\nb,c\n", {}, ("column1", "column2")),
        (",a,b\n0,1,x\n1,2,y\n", {}, ("a", "b")),
        ("2019,2020\n1,2\n", {"header": True}, ("2019", "2020")),
        ("a,b\nc,d\n", {"header": False}, ("column1", "column2")),
        ("1,size\n2,3\n", {"columns": ("size",)}, ("size",)),
    ],
)
def test_a_header_is_guessed(tmp_path, content, options, names):
    schema, rows, _ = read_text(tmp_path, "a.csv", content, **options)
    assert schema.names == names
    assert len(rows) == content.count("\n") - (not names[0].startswith("column"))


def test_a_column_called_id_has_the_ids_and_one_called_text_the_texts(tmp_path):
    content = 'id,text,size\na7,"The house,\nthe vote",1\n,none,2\n'
    path = write(tmp_path, "a.csv", content)
    records, _ = read_all(open_source(path))
    assert records == [
        (0, "a7", {"the": 2, "house": 1, "vote": 1}, "The house,\nthe vote"),
        (1, 1, {"none": 1}, "none"),
    ]
    records, [reject] = read_all(open_source(path, Options(id_field="id", columns=("size",))))
    assert records == [(0, "a7", (1.0,), None)]
    assert (reject.line, reject.reason) == (4, "column 'id', its id, is empty")
    schema, rows, _ = read_text(tmp_path, "a.csv", content, text_field="text", hash_bits=4)
    assert (schema.kind, schema.n_features, [sum(row) for row in rows]) == ("counts", 16, [4, 1])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1,red", "2 fields, not 3"),
        ("1,red,true,", "4 fields, not 3"),
        ("one,red,true", "column 'size' has 'one', not a finite number"),
        ("inf,red,true", "column 'size' has 'inf', not a finite number"),
        ("1e999,red,true", "column 'size' has '1e999', not a finite number"),
        ("1_000,red,true", "column 'size' has '1_000', not a finite number"),
        ("1,red,yes", "column 'sold' has 'yes', not true or false"),
        ('1,"red"x,true', "not CSV"),
        ('1,"red,true', "not CSV: unexpected end of data"),
    ],
)
def test_a_bad_record_is_rejected_and_the_stream_goes_on(tmp_path, line, reason):
    good = '1,"a\nb",true\n'
    # A thousand good ones first, which decide on the types.
    content = "size,colour,sold\n" + good * 1000 + line + "\n" + good + good
    _, rows, [reject] = read_text(tmp_path, "a.csv", content)
    assert rows == [[1.0, "a\nb", True]] * 1002
    assert (reject.line, reject.record, reject.beginning) == (2002, 1000, line)
    assert reason in reject.reason


@pytest.mark.parametrize("cell", ["inf", "1e999", "1_0", "one", "-Infinity"])
def test_bad_numbers_are_rejected_in_a_table_of_numbers_too(tmp_path, cell):
    content = "a,b\n" + "1,2\n" * 1000 + f"3,{cell}\n4,1e308\n1e308,1e308\n"
    _, rows, [reject] = read_text(tmp_path, "a.csv", content)
    assert rows[1000:] == [(4.0, 1e308), (1e308, 1e308)]
    assert reject.line == 1002


def test_a_quote_that_never_closes_spoils_one_line(tmp_path):
    content = 'note,size\nx,1\n"stray,2\n' + "".join(f"y,{i}\n" for i in range(2000))
    path = write(tmp_path, "a.csv", content)
    source = open_source(path, Options(max_line_bytes=1000))
    [reject] = next(source.batches(2))[0].rejects
    assert (reject.line, reject.beginning) == (3, '"stray,2')
    records, rejects = read_all(source)
    assert [row for _, _, row, _ in records] == [["x", 1.0]] + [
        ["y", float(i)] for i in range(2000)
    ]
    assert rejects == [reject]


def test_a_cell_of_many_lines_takes_little_time(tmp_path):
    """As long as the longest record may be, and with quotes in every line."""
    cell = 'say ""word"" here\n' * 50_000
    began = time.process_time()
    _, rows, rejects = read_text(tmp_path, "a.csv", f'id,text\n1,"{cell}"\n2,end\n')
    assert rows == [{"say": 50_000, "word": 50_000, "here": 50_000}, {"end": 1}]
    assert rejects == []
    assert time.process_time() - began < 5


def test_a_quote_that_never_closes_is_not_waited_for(tmp_path):
    content = 'note,size\nx,1\n"stray,2\n' + "y,1\n" * 1_000_000
    source = open_source(write(tmp_path, "a.csv", content), Options(max_line_bytes=1000))
    batches = source.batches(2)
    assert len(next(batches)[0].rejects) == 1
    assert source.progress() < 0.6  # what was looked at to find the types


def test_a_reject_names_the_first_line_of_its_record(tmp_path):
    content = 'a,b\n1,2\n3,4\n"x\ny\nz"\n5,6\n"x\ny",7,8\n'
    _, rows, rejects = read_text(tmp_path, "a.csv", content)
    assert rows == [(1, 2), (3, 4), (5, 6)]
    assert [(reject.line, reject.beginning) for reject in rejects] == [
        (4, '"x\ny\nz"'),
        (8, '"x\ny",7,8'),
    ]


def test_a_quote_inside_a_field_is_just_a_quote(tmp_path):
    _, rows, rejects = read_text(tmp_path, "a.csv", 'pipe,size\n5" wide,1\n6" wide,2\n')
    assert rows == [['5" wide', 1.0], ['6" wide', 2.0]]
    assert rejects == []


def test_a_long_field_in_quotes_is_read(tmp_path):
    """The limit of Python's csv module is 131072 characters."""
    content = 'id,text\n1,"' + "word " * 40_000 + '"\n2,end\n'
    _, rows, rejects = read_text(tmp_path, "a.csv", content)
    assert rows == [{"word": 40_000}, {"end": 1}]
    assert rejects == []
    _, rows, [reject] = read_text(tmp_path, "a.csv", content, max_line_bytes=1000)
    assert rows == [{"end": 1}]
    assert reject.reason == "longer than 1000 bytes"


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a,b\n1,2\n", {"columns": ("c",)}, "has no column 'c'; it has"),
        ("a,b\n1,2\n", {"text_field": "c"}, "has no column 'c'"),
        ("a,a\n1,2\n", {}, "the header has 'a' twice"),
        ("a,b\n1,2\n", {"columns": ("column1",)}, "has no column 'column1'; it has a, b"),
        ("a,b\n", {"header": True}, "no column holds numbers"),
        ("a,b\n1,2\n", {"delimiter": "::"}, "delimiter is '::': give one character"),
        ('a"b\n1"2\n', {"delimiter": '"'}, "give one character that neither quotes nor ends"),
        ("a,b\n1,2\n", {"delimiter": "\r"}, "give one character that neither quotes nor ends"),
        ("a,b\n1,2\n", {"counts_field": "a"}, "counts_field is for JSON lines"),
        (b"\xff\xfe\n", {}, "not CSV in UTF-8"),
    ],
)
def test_an_unclear_file_is_refused(tmp_path, content, options, message):
    with pytest.raises(ValueError, match=message):
        read_text(tmp_path, "a.csv", content, **options)


def test_headers_of_several_files_are_no_records(tmp_path):
    paths = [write(tmp_path, f"{i}.csv", f"\na,b\n{i},1\n") for i in range(3)]
    records, rejects = read_all(open_source(paths))
    assert [row for _, _, row, _ in records] == [(0, 1), (1, 1), (2, 1)]
    assert rejects == []
