"""JSON lines: what records are, what they become, and what is rejected."""

import math

import numpy as np
import orjson
import pytest
from feeding import read_all, read_text, records_of, write

from bnpstream.sources import Options, open_source
from bnpstream.sources.formats import tokenizer
from bnpstream.sources.formats.fields import Fields


def lines(*records) -> bytes:
    return b"".join(orjson.dumps(record) + b"\n" for record in records)


def test_a_text_becomes_its_words(tmp_path):
    path = write(tmp_path, "a.jsonl", lines({"id": "x", "text": "The house, the House!"}))
    source = open_source(path)
    assert (source.schema.kind, source.schema.fields) == ("documents", {"id": "id", "text": "text"})
    assert read_all(source)[0] == [
        (0, "x", {"the": 2, "house": 2}, "The house, the House!"),
    ]


def test_no_record_is_rejected_because_memory_ran_out(tmp_path, monkeypatch):
    source = open_source(write(tmp_path, "a.jsonl", lines({"text": "rain"}, {"text": "wind"})))

    def without_memory(line):  # what orjson says then, as tests/faults/fault_points.py found
        raise orjson.JSONDecodeError("Not enough memory to allocate buffer for parsing", "", 0)

    monkeypatch.setattr(orjson, "loads", without_memory)
    with pytest.raises(MemoryError, match="Not enough memory"):
        read_all(source)


def test_counts_and_lists_of_words_are_taken_as_they_are(tmp_path):
    content = lines(
        {"counts": {"House": 2, "vote": 1, "none": 0}},
        {"counts": ["vote", "House", "vote"]},
        {"counts": {}},
        {"counts": {"vote": 3.0}},
    )
    schema, rows, rejects = read_text(tmp_path, "a.jsonl", content)
    assert schema.fields == {"counts": "counts"}
    assert rows == [{"House": 2, "vote": 1}, {"vote": 2, "House": 1}, {}, {"vote": 3}]
    assert all(type(count) is int for row in rows for count in row.values())
    assert rejects == []


def test_the_excerpt_of_counts_is_the_commonest_words(tmp_path):
    path = write(tmp_path, "a.jsonl", lines({"words": {"b": 1, "a": 7, "c": 3}}))
    [(_, _, _, excerpt)], _ = read_all(open_source(path))
    assert excerpt == "a c b"


def test_what_the_user_names_comes_first(tmp_path):
    record = {"text": "a text", "counts": {"word": 1}, "body": "the body", "size": 3}
    for options, row in [
        ({}, {"text": 1}),
        ({"text_field": "body"}, {"the": 1, "body": 1}),
        ({"counts_field": "counts"}, {"word": 1}),
        ({"columns": ("size", "body")}, [3.0, "the body"]),
    ]:
        assert read_text(tmp_path, "a.jsonl", lines(record), **options)[1] == [row]


def test_columns_come_in_order_of_first_appearance(tmp_path):
    content = lines({"b": None, "x": True}, {"a": 1, "b": 2.5}, {"x": None, "c": "red"})
    schema, rows, rejects = read_text(tmp_path, "a.jsonl", content)
    assert schema.names == ("b", "x", "a", "c")
    assert schema.types == ("number", "truth", "number", "label")
    assert rows == [[None, True, None, None], [2.5, None, 1.0, None], [None, None, None, "red"]]
    assert type(rows[1][2]) is float
    assert rejects == []


def test_numbers_alone_are_an_array_of_floats(tmp_path):
    content = lines({"id": 7, "a": 1, "b": 2**63}, {"a": None, "b": -0.5}, {"b": 3, "more": "x"})
    source = open_source(write(tmp_path, "a.jsonl", content), Options(columns=("b", "a")))
    [(batch, _)] = source.batches()
    assert batch.rows.dtype == np.float64
    np.testing.assert_array_equal(batch.rows, [[2.0**63, 1], [-0.5, math.nan], [3, math.nan]])
    assert batch.ids == [7, 1, 2]


def test_a_column_without_any_value_or_with_nested_ones_is_left_out(tmp_path):
    content = lines({"a": 1, "empty": None, "deep": {"x": 1}, "list": [1]})
    assert read_text(tmp_path, "a.jsonl", content)[0].names == ("a",)
    asked = read_text(tmp_path, "a.jsonl", content, columns=("empty", "a"))
    assert (asked[0].types, asked[1]) == (("number", "number"), [(None, 1.0)])
    with pytest.raises(ValueError, match="'deep' does not hold numbers"):
        read_text(tmp_path, "a.jsonl", content, columns=("deep",))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": 1, "text": ', "not JSON"),
        (b'["text"]', "not a JSON object"),
        (b'{"id": 1}', "has no field 'text'"),
        (b'{"text": 3}', "column 'text' is not a string"),
        (b'{"text": "\xff"}', "not UTF-8: invalid start byte at byte 11"),
        (b'{"text": "' + b"x" * 200 + b'"}', "longer than 100 bytes"),
        (b'{"text": NaN}', "not JSON"),
    ],
)
def test_a_bad_text_record_is_rejected_and_the_stream_goes_on(tmp_path, line, reason):
    content = b'{"text": "one"}\n\n' + line + b'\n{"text": "two"}'
    path = write(tmp_path, "a.jsonl", content)
    records, [reject] = read_all(open_source(path, Options(max_line_bytes=100)))
    assert [(number, row) for number, _, row, _ in records] == [(0, {"one": 1}), (2, {"two": 1})]
    assert (reject.source, reject.line, reject.record) == (path, 3, 1)
    assert reason in reject.reason
    assert reject.beginning.startswith(line[:8].decode())


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ({"a": -1}, "the count of 'a' is negative: -1"),
        ({"a": 1.5}, "not a whole number"),
        ({"a": True}, "is not a number"),
        ({"a": "1"}, "is not a number"),
        ({"a": 2**60}, "too large"),
        (["a", 1], "not a string"),
        ("a", "neither an object nor a list"),
        (None, "neither an object nor a list"),
    ],
)
def test_bad_counts_are_rejected(tmp_path, field, reason):
    content = lines({"counts": {"a": 1}}, {"counts": field}, {"counts": {"b": 1}})
    _, rows, [reject] = read_text(tmp_path, "a.jsonl", content)
    assert rows == [{"a": 1}, {"b": 1}]
    assert reason in reject.reason


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"size": "3", "colour": "red"}, "column 'size' has '3', not a number"),
        ({"size": True}, "column 'size' has 'True', not a number"),
        ({"colour": 3}, "column 'colour' has '3', not a label"),
        ({"sold": 0}, "column 'sold' has '0', not a truth"),
        ({"size": [1]}, "not a number"),
        ({"other": 1}, "has none of the columns"),
        ({}, "has none of the columns"),
    ],
)
def test_bad_cells_are_rejected(tmp_path, record, reason):
    good = {"size": 1, "colour": "red", "sold": True}
    content = lines(good, good, record, good)
    _, rows, [reject] = read_text(tmp_path, "a.jsonl", content, columns=tuple(good))
    assert rows == [[1.0, "red", True]] * 3
    assert (reject.line, reject.record) == (3, 2)
    assert reason in reject.reason


def test_infinite_numbers_are_rejected(tmp_path):
    content = b'{"a": 1}\n{"a": 1e999}\n{"a": Infinity}\n{"a": 2}\n'
    _, rows, rejects = read_text(tmp_path, "a.jsonl", content)
    assert rows == [(1.0,), (2.0,)]
    assert [reject.line for reject in rejects] == [2, 3]


def test_an_id_that_was_named_has_to_be_there(tmp_path):
    content = lines({"id": "a", "key": 5, "text": "aa"}, {"text": "bb"}, {"id": 1.5, "text": "cc"})
    path = write(tmp_path, "a.jsonl", content)
    records, rejects = read_all(open_source(path))
    assert [id_ for _, id_, _, _ in records] == ["a", 1, 2]
    assert rejects == []
    empty = write(tmp_path, "b.jsonl", lines({"text": "aa"}, {"id": 0, "text": "bb"}, {"id": ""}))
    assert [id_ for _, id_, _, _ in read_all(open_source(empty))[0]] == [0, 0]
    records, rejects = read_all(open_source(path, Options(id_field="key")))
    assert [id_ for _, id_, _, _ in records] == [5]
    assert [reject.line for reject in rejects] == [2, 3]


def test_hashed_and_chosen_words_are_counts(tmp_path):
    content = lines({"text": "vote house vote"}, {"text": "..."}, {"text": "senate"})
    vocab = write(tmp_path, "vocab.txt", "senate\nvote\n")
    schema, rows, _ = read_text(tmp_path, "a.jsonl", content, vocab=vocab)
    assert (schema.kind, schema.n_features, schema.names) == ("counts", 2, ("senate", "vote"))
    assert rows == [(0, 2), (0, 0), (1, 0)]
    schema, rows, _ = read_text(tmp_path, "a.jsonl", content, hash_bits=3)
    assert (schema.kind, schema.n_features, schema.names) == ("counts", 8, None)
    assert [sum(row) for row in rows] == [3, 0, 1]
    twice = write(tmp_path, "twice.txt", "vote\nsenate\nvote\n")
    assert read_text(tmp_path, "a.jsonl", content, vocab=twice)[1] == [
        (2, 0, 0),
        (0, 0, 0),
        (0, 1, 0),
    ]
    with pytest.raises(ValueError, match="both given"):
        read_text(tmp_path, "a.jsonl", content, vocab=vocab, hash_bits=3)


def test_words_that_share_a_column_are_summed(tmp_path):
    path = write(tmp_path, "a.jsonl", lines({"text": "vote house senate bill"}))
    [(batch, _)] = open_source(path, Options(hash_bits=1)).batches()
    assert batch.rows.nnz <= 2
    assert batch.rows.sum() == 4
    assert batch.rows.has_canonical_format


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"[1]\n[2]\n", {"format": "jsonl"}, "not JSON objects: convert an array with `jq -c"),
        (b"{\n", {"format": "jsonl"}, "the first line is no JSON object"),
        (b'{"a": 1}', {"text_field": "body"}, "has no column 'body'; it has a"),
        (b'{"a": 1}', {"id_field": "key"}, "has no column 'key'"),
        (b'{"a": 1}', {"columns": ("b",)}, "has no column 'b'"),
        (b'{"a": [1]}', {}, "no column holds numbers"),
        (b'{"a": 1}', {"text_field": "a", "counts_field": "a"}, "give one of them"),
        (b"\n\n", {"format": "jsonl"}, "no records: the file is empty"),
    ],
)
def test_an_unclear_file_is_refused(tmp_path, content, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_text(tmp_path, "a.jsonl", content, **options)
    assert "give one" in message or "a.jsonl" in str(caught.value)


def test_the_types_of_a_first_bad_record_do_not_win(tmp_path):
    content = lines({"a": "n/a"}, {"a": 1}, {"a": 2})
    schema, rows, [reject] = read_text(tmp_path, "a.jsonl", content)
    assert schema.types == ("number",)
    assert rows == [(1.0,), (2.0,)]
    assert reject.line == 1


ODD = [
    b'{"id": "a", "text": "the house"}',
    b'{"text": "no id of its own", "id": null}',
    b'{"text": "the id is missing"}',
    b'{"id": 7, "text": "a number"}',
    b'{"id": true, "text": "a truth value"}',
    b'{"id": 1.5, "text": "a fraction"}',
    b'{"id": 123456789012345678901234567890, "text": "a long number"}',
    b'{"id": "a", "id": "b", "text": "twice", "text": "Twice, the last"}',
    b'{"id": "x", "text": null}',
    b'{"id": "x", "text": 3}',
    b'{"id": "x", "text": ["a", "list"]}',
    b'{"id": "x"}',
    b'{"id": "x", "text": ""}',
    b'{"id": "x", "text": "\\u00c9cole \\ud835\\udd18nter \\u0130\\u00df"}',
    b'{"id": "x", "text": "a lone \\ud800 surrogate"}',
    b'{"id": "x", "text": "control \x01 character"}',
    b'{"id": "x", "text": "escaped \\u0000\\n\\t control"}',
    '{"id": "é", "text": "Straße e\u0301cole हिन्दी"}'.encode(),
    b'{"id": "x", "text": "not UTF-8 \xff"}',
    b'{"id": "x", "text": "truncated',
    b'{"id": "x", "text": "more"} {"id": "y"}',
    b'["text", "id"]',
    b'"text"',
    b"3",
    b"null",
    b"no JSON",
    b"",
    b"   \t",
    b'{"id": "x", "text": "deep", "more": {"text": [1, {"a": null}]}}\r',
    b'{"id": "x", "text": "' + b"long " * 60 + b'"}',
]


@pytest.mark.parametrize("options", [{}, {"id_field": "id"}, {"max_line_bytes": 100}])
@pytest.mark.parametrize("batch_rows", [1, 3, 1024])
def test_texts_are_the_same_many_at_a_time_and_one_by_one(
    tmp_path, monkeypatch, options, batch_rows
):
    monkeypatch.setattr(tokenizer, "PLAIN_TEXTS", 0)
    rng = np.random.default_rng((99, batch_rows))
    content = [ODD[0], *(ODD[i] for i in rng.integers(len(ODD), size=300)), *ODD]
    path = write(tmp_path, "a.jsonl", b"\xef\xbb\xbf" + b"\n".join(content))
    settings = Options(text_field="text", **options)

    def read():
        found = []
        for batch, position in open_source(path, settings).batches(batch_rows):
            places = [tuple(place) for place in batch.places]
            found.append((records_of(batch), batch.rejects, places, position))
        return found

    together = read()
    monkeypatch.setattr(Fields, "text_and_id", None)
    assert read() == together
    assert {type(id) for records, *_ in together for _, id, *_ in records} == {str, int}
    assert any(len(records) > 1 for records, *_ in together) == (batch_rows > 1)


def test_reading_texts_goes_on_from_any_position(tmp_path):
    content = [ODD[i] for i in np.random.default_rng(99).integers(len(ODD), size=80)]
    path = write(tmp_path, "a.jsonl", b"\n".join(content))
    settings = Options(text_field="text", format="jsonl")
    whole, rejects = read_all(open_source(path, settings), 7)
    for _, position in open_source(path, settings).batches(7):
        after = position["records"]
        for start in (position, {**position, "line": 0, "offset": None}):
            records, rejected = read_all(open_source(path, settings), 7, start)
            assert records == [record for record in whole if record[0] >= after]
            assert rejected == [reject for reject in rejects if reject.record >= after]


@pytest.mark.parametrize(
    ("line", "twice"),
    [
        ('{"text": "a b", "text": "c"}', "text"),
        ('{"id": 1, "text": "a b", "id": 2}', "id"),
        ('{"counts": {"a": 1, "b": 2, "a": 3}}', "a"),
        ('{"size": 1, "note": "x:y", "size": 2}', "size"),
    ],
)
def test_a_key_that_occurs_twice_is_a_reject(tmp_path, line, twice):
    name = next(key for key in ("text", "counts", "size") if f'"{key}"' in line)
    value = {"text": '"a: \\"text\\" b"', "counts": '{"a": 1}', "size": "3"}[name]
    sound = f'{{"id": 7, "{name}": {value}}}\n'
    path = tmp_path / "a.jsonl"
    path.write_text(sound + line + "\n" + sound)
    [(batch, _)] = open_source(str(path)).batches()
    assert batch.numbers == [0, 2]
    assert (batch.rejects[0].line, batch.rejects[0].reason) == (2, f"{twice!r} occurs twice")
