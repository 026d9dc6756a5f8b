"""Plain text, words and their hashes."""

import subprocess
import sys
import unicodedata
from zlib import crc32

import pytest
from feeding import read_all, read_text, write

from bnpstream.sources import open_source
from bnpstream.sources.formats import tokenizer as tokens
from bnpstream.sources.formats.tokenizer import HashedWords, count_words


def test_every_line_is_a_document(tmp_path):
    content = "The house.\r\n\n   \n...\nA b cd\n\nlast line"
    path = write(tmp_path, "a.txt", content)
    source = open_source(path)
    assert (source.schema.format, source.schema.kind) == ("text", "documents")
    assert read_all(source)[0] == [
        (0, 0, {"the": 1, "house": 1}, "The house."),
        (1, 1, {}, "..."),
        (2, 2, {"cd": 1}, "A b cd"),
        (3, 3, {"last": 1, "line": 1}, "last line"),
    ]


def test_a_line_that_is_not_utf8_is_rejected(tmp_path):
    _, rows, [reject] = read_text(tmp_path, "a.txt", b"caf\xc3\xa9\n\ncaf\xe9 \n", format="text")
    assert rows == [{"café": 1}]
    assert (reject.line, reject.record, reject.beginning) == (3, 1, "caf\\xe9 ")
    assert "not UTF-8" in reject.reason


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    path = write(tmp_path, "a.txt", b"\xef\xbb\xbfone two\nthree\n")
    records, _ = read_all(open_source(path))
    assert [excerpt for *_, excerpt in records] == ["one two", "three"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't stop_me x2 7 42", ["don", "stop_me", "x2", "42"]),
        ("ÉCOLE Straße İstanbul", ["école", "straße", "i̇stanbul"]),
        (unicodedata.normalize("NFD", "café"), ["café"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("ΛΟΓΟΣ данные", ["λογος", "данные"]),
        ("", []),
    ],
)
def test_words_of_any_script(text, words):
    assert list(count_words(text)) == [unicodedata.normalize("NFC", word) for word in words]


def test_ascii_and_other_texts_are_cut_alike():
    text = "Some words, 3 of_them; and-then a b c."
    with_accent = count_words(text + " é")
    assert with_accent == count_words(text)


def test_a_hash_is_the_same_in_every_process():
    module = "bnpstream.sources.formats.tokenizer"
    code = f"from {module} import HashedWords as H; print(H(1 << 20)['straße'])"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {b"%d\n" % (crc32("straße".encode()) % (1 << 20))}


def test_the_memory_of_hashes_is_bounded(monkeypatch):
    monkeypatch.setattr(tokens, "CACHED_WORDS", 10)
    hashed = HashedWords(64)
    for i in range(100):
        assert hashed[str(i)] == crc32(str(i).encode()) % 64
        assert len(hashed) <= 10
