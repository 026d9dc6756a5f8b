"""Words of texts: the compiled loop against its definition, for any characters and any splits."""

import pickle
import sys
import unicodedata
from copy import deepcopy

import numpy as np
import pytest

from bnpstream import DocumentMixture, normalized_inverse_gaussian
from bnpstream.kernels.text import lexicon
from bnpstream.kernels.text.bags import Bags
from bnpstream.likelihoods import OpenVocabulary, Vocabulary
from bnpstream.sources.formats import tokenizer
from bnpstream.sources.formats.rows import DocumentRows, TextRows
from bnpstream.sources.formats.tokenizer import TextCounter, count_words
from bnpstream.sources.records import Schema
from bnpstream.sources.stack import stacked

PIECES = [
    *"abcXYZ019__   .,-'\t\n\x00\x1c\x85\xa0",
    *("the", "The", "THE", "word7", "a_b"),
    *(
        "é",
        "e\u0301",
        "É",
        "ß",
        "ẞ",
        "İ",
        "\u0131",
        "ΛΟΓΟΣ",
        "ς",
        "\u017f",
        "\u212a",
        "\u212b",
        "ﬁ",
        "ǆ",
    ),
    *("\u0301", "\u0345", "\u093f", "हिन्दी", "\u20dd", "\u200d", "\ufe0f"),
    *(
        "漢字",
        "한",
        "\u1112\u1161\u11ab",
        "٣",
        "²",
        "Ⅷ",
        "\u2028",
        "😀",
        "\U0001d518",
        "𐐀",
        "\U000e0101",
    ),
    *("\ud800", "\udfff", "\udc00\ud800"),
]
"""Cases, accents and marks, digits of all kinds, signs, and surrogates that are alone."""


@pytest.fixture(autouse=True)
def many(monkeypatch):
    """Let all texts be counted by the compiled loop."""
    monkeypatch.setattr(tokenizer, "PLAIN_TEXTS", 0)


def drawn(case, n=60, length=25):
    """Return texts of any characters; some are ASCII, some are empty, one has a long word."""
    rng = np.random.default_rng((97, case))
    texts = ["", "x" * 3000 + "é" * 3000]
    for _ in range(n):
        pieces = PIECES[: 30 if rng.random() < 0.4 else None]
        chosen = rng.integers(len(pieces), size=rng.poisson(length))
        texts.append("".join(pieces[i] for i in chosen))
    return texts


def split(rows, case):
    """Return rows in a few parts, some of them single ones."""
    rng = np.random.default_rng((98, case))
    ends = np.unique(np.append(rng.integers(1, len(rows), size=5), [1, len(rows)]))
    return [rows[start:stop] for start, stop in zip([0, *ends[:-1]], ends, strict=True)]


def listed(documents):
    """Return documents with their words in order."""
    return [list(document.items()) for document in documents]


def same_batches(one, other):
    names = ("indptr", "columns", "values", "log_base")
    return all(
        getattr(one, name).dtype == getattr(other, name).dtype
        and getattr(one, name).tobytes() == getattr(other, name).tobytes()
        for name in names
    )


def test_every_character_is_taken_as_by_the_definition():
    characters = map(chr, range(sys.maxunicode + 1))
    spelled = [f"x{c}y {c}{c} a{c} {c}b,{c}" for c in characters]
    texts = [" ".join(spelled[start : start + 64]) for start in range(0, len(spelled), 64)]
    found = TextCounter()(texts)
    assert listed(found) == listed(map(count_words, texts))


def test_marks_of_all_planes_are_known():
    everything = map(chr, range(sys.maxunicode + 1))
    marks = [c for c in everything if unicodedata.category(c) in ("Mn", "Mc", "Me")]
    assert tokenizer._marks() == marks


@pytest.mark.kernel
@pytest.mark.parametrize("case", range(8))
def test_words_are_those_of_the_definition(case):
    texts = drawn(case)
    count = TextCounter()
    found = [document for part in split(texts, case) for document in count(part)]
    assert listed(found) == listed(map(count_words, texts))
    assert len(count([])) == 0


@pytest.mark.kernel
def test_a_lexicon_that_runs_out_of_room_is_lengthened(monkeypatch):
    monkeypatch.setattr(lexicon, "FIRST_WORDS", 2)
    monkeypatch.setattr(lexicon, "FIRST_BYTES", 1)
    texts = drawn(11)[::-1]
    bags = TextCounter()(texts)
    assert bags.words.size > 100
    assert len(set(bags.words.spelled(range(bags.words.size)))) == bags.words.size
    assert listed(bags) == listed(map(count_words, texts))


def test_the_memory_of_words_is_bounded(monkeypatch):
    monkeypatch.setattr(tokenizer, "CACHED_WORDS", 40)
    texts, count, vocabulary = drawn(12), TextCounter(), Vocabulary(OpenVocabulary(50.0))
    plain, lexicons = Vocabulary(OpenVocabulary(50.0)), {}
    for text in texts:
        bags = count([text])
        lexicons[id(bags.words.lexicon)] = bags.words.lexicon
        assert listed(bags) == listed([count_words(text)])
        vocabulary.add(bags)
        plain.add([count_words(text)])
        assert same_batches(vocabulary.batch(bags), plain.batch([count_words(text)]))
    assert vocabulary.words == plain.words
    assert len(lexicons) > 3


def test_few_texts_are_counted_in_python(monkeypatch):
    monkeypatch.setattr(TextCounter, "n_texts", 0)
    monkeypatch.setattr(tokenizer, "PLAIN_TEXTS", 40)
    texts = drawn(14, n=28)
    parts = [TextCounter()(part) for part in (texts, texts, texts)]
    assert [type(part) for part in parts] == [list, Bags, Bags]
    assert parts[0] == parts[1] == parts[2]
    assert stacked(parts) == parts[0] * 3
    assert stacked(parts[::-1]) == parts[0] * 3


def test_bags_read_like_a_list_of_counts():
    texts = drawn(13)
    documents, count = [count_words(text) for text in texts], TextCounter()
    bags = count(texts)
    assert bags == documents
    assert documents == bags
    assert bags != documents[:-1]
    assert (bags[3], bags[-1]) == (documents[3], documents[-1])
    for part in (
        slice(2, 7),
        slice(None),
        slice(5, 5),
        slice(7, 3),
        slice(-4, None),
        slice(0, 999),
    ):
        assert bags[part] == documents[part]
    with pytest.raises(IndexError):
        bags[len(bags)]
    with pytest.raises(ValueError, match="steps of 2"):
        bags[::2]
    for other in (pickle.loads(pickle.dumps(bags)), deepcopy(bags)):
        assert other == documents
        assert type(other) is list
    assert Bags.joined([bags[:9], bags[9:], count(texts)]) == documents * 2
    turned = TextCounter()(texts[::-1])  # numbers words otherwise
    assert Bags.joined([bags, turned]) == documents + documents[::-1]


@pytest.mark.kernel
@pytest.mark.parametrize("case", range(4))
def test_words_get_the_numbers_that_they_have_as_dicts(case):
    texts, count = drawn(case, n=40), TextCounter()
    later = [*drawn(case + 20, n=10), "The senate, zz"]
    one, other = (Vocabulary(OpenVocabulary(50.0)) for _ in range(2))
    for i, part in enumerate(split(texts, case)):
        bags, documents = count(part), [count_words(text) for text in part]
        seen = count(later)
        if i % 2:  # words that come otherwise are known as well
            one.add([{"zz": 1, "senate": 2}])
            other.add([{"zz": 1, "senate": 2}])
        assert same_batches(one.batch(seen), other.batch([count_words(text) for text in later]))
        one.add(bags)
        other.add(documents)
        assert one.words == other.words
        assert one.likelihood.alpha.tobytes() == other.likelihood.alpha.tobytes()
        assert same_batches(one.batch(bags), other.batch(documents))
        entries, expected = (v.likelihood.entries(x) for v, x in ((one, bags), (other, documents)))
        for found, wanted in zip(entries.typicality(), expected.typicality(), strict=True):
            assert found.tobytes() == wanted.tobytes()
        assert one.likelihood.n_tokens(bags) == other.likelihood.n_tokens(documents)


@pytest.mark.parametrize("prefix_rows", [10, 100])
def test_texts_and_their_counts_make_the_same_stream(prefix_rows):
    texts, count = [*drawn(31, n=60), *drawn(32, n=40)], TextCounter()
    documents = [count_words(text) for text in texts]
    prior = normalized_inverse_gaussian(2.0, 3.0)
    one, other = (DocumentMixture(prior, prefix_rows=prefix_rows) for _ in range(2))
    for part in split(texts, 1):
        one.partial_fit(count(part))
    other.partial_fit(documents)
    other.finish()
    one.finish()
    assert one.vocabulary_.words == other.vocabulary_.words
    assert one.state_.masses.tobytes() == other.state_.masses.tobytes()
    assert one.state_.arrays.totals.tobytes() == other.state_.arrays.totals.tobytes()
    scores = one.score_samples(count(drawn(33)))
    assert scores.tobytes() == other.score_samples([count_words(t) for t in drawn(33)]).tobytes()


@pytest.mark.parametrize(
    "schema",
    [
        Schema("text", "counts", 64),
        Schema("text", "counts", 4, ("the", "école", "word7", "the")),
    ],
)
def test_columns_of_texts_are_those_of_their_counts(schema, monkeypatch):
    monkeypatch.setattr(tokenizer, "CACHED_WORDS", 60)
    from_texts, from_counts = TextRows(schema), DocumentRows(schema)
    for part in split(["The école", *drawn(41)], 2):
        found, expected = from_texts(part), from_counts([count_words(text) for text in part])
        for name in ("data", "indices", "indptr"):
            one, other = getattr(found, name), getattr(expected, name)
            assert one.dtype == other.dtype
            assert one.tolist() == other.tolist()
        assert found.shape == expected.shape
