"""Texts as rows: the words of the command line, whatever the calls; which of them count."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer

from bnpstream import DocumentMixture, StreamingMixture
from bnpstream.engine.wording import BURST, uninformative
from bnpstream.sources.formats.tokenizer import count_words
from commands import run, run_json

FUNCTION = ["le", "для", "του", "und"]
TOPICS = [["pluie", "vent", "neige"], ["титул", "лига", "гол"], ["ψήφος", "βουλή", "νόμος"]]


def texts(n=150, case=0):
    """Return texts with words of one of three topics, in bursts, and function words among them."""
    rng = np.random.default_rng((43, case))
    found = []
    for i in range(n):
        topic = rng.permutation(TOPICS[i % 3])
        words = [*rng.choice(topic, 8, p=[0.7, 0.2, 0.1]), *rng.choice(FUNCTION, 8)]
        words += [f"rare{rng.integers(60)}"] if i % 2 else []
        found.append(" ".join(rng.permutation(words)).capitalize() + ", a.")
    return found


def same_bits(one, other):
    """Return whether two estimators have the same posterior over the same words."""
    assert one.topics_.size == other.topics_.size  # found by now
    (arrays, document), (others, other_document) = (
        (found.arrays, found.document["stream"]) for found in (one.to_tensors(), other.to_tensors())
    )
    del document["encoder"], other_document["encoder"]
    named = {name for name in arrays.keys() | others.keys() if not name.startswith("rare.")}
    same = all(arrays[name].tobytes() == others[name].tobytes() for name in named)
    return same and document == other_document


def model(**given):
    return DocumentMixture(engine="reference", prefix_rows=40, **given)


SETTINGS = [
    {},
    {"ngrams": 2},
    {"stop_words": "auto", "min_count": 3},
    {"stop_words": FUNCTION, "ngrams": 2, "min_count": 2},
    {"stop_words": "english", "spread": 30.0},
    {"stop_words": "auto", "spread": 30.0},
]


def test_texts_are_the_documents_of_their_words():
    rows = texts()
    counted = [count_words(text) for text in rows]
    assert same_bits(model().fit(rows), model().fit(counted))
    assert same_bits(model().fit(pd.Series(rows)), model().fit(np.array(rows)))
    assert same_bits(model().fit(iter(rows)), model().fit(counted))
    assert model().fit(rows).predict(iter(rows[:3])).size == 3
    plain = StreamingMixture(engine="reference", prefix_rows=40).fit(rows)
    assert same_bits(plain, model().fit(counted))
    fitted = model().fit(rows)
    assert plain.predict(rows[:9]).tolist() == fitted.predict(counted[:9]).tolist()
    assert plain.score_samples(rows[:9]).tobytes() == fitted.score_samples(counted[:9]).tobytes()


@pytest.mark.parametrize("given", SETTINGS, ids=str)
def test_neither_calls_nor_saving_matter(given, tmp_path):
    rows = texts()
    whole = model(**given).partial_fit(rows)
    parts = model(**given)
    for k, (start, stop) in enumerate([(0, 1), (1, 30), (30, 41), (41, 90), (90, 150)]):
        parts.partial_fit(rows[start:stop])
        parts.save(tmp_path / str(k))
        parts = DocumentMixture.load(tmp_path / str(k))
    assert same_bits(whole, parts)
    assert whole.vocabulary_.words == parts.vocabulary_.words
    later = texts(20, case=1)
    assert whole.score_samples(later).tobytes() == parts.score_samples(later).tobytes()


def test_a_text_model_is_saved_with_its_words(tmp_path):
    rows = texts()
    whole = StreamingMixture(engine="reference", prefix_rows=40).fit(rows)
    whole.save(tmp_path / "model")
    loaded = StreamingMixture.load(tmp_path / "model")
    assert loaded.predict(rows).tolist() == whole.predict(rows).tolist()
    assert loaded.top_features(3) == whole.top_features(3)
    assert same_bits(whole.partial_fit(rows[:5]), loaded.partial_fit(rows[:5]))


@pytest.mark.parametrize("min_count", [2, 5])
def test_words_count_from_their_occurrence_on(min_count):
    """The same as leaving them out by hand, document by document."""
    rows = [count_words(text) for text in texts()]
    seen, kept = {}, []
    for row in rows:
        for word, count in row.items():
            seen[word] = seen.get(word, 0) + count
        kept.append({word: x for word, x in row.items() if seen[word] >= min_count})
    assert sum(map(len, kept)) < sum(map(len, rows))
    found = model(spread=30.0, min_count=min_count).fit(rows)
    expected = model(spread=30.0).fit(kept)
    assert same_bits(found, expected)
    new = [{"pluie": 2, "nobody": 1}]
    assert found.score_samples(new).tolist() == expected.score_samples([{"pluie": 2}]).tolist()


@pytest.mark.parametrize("stop_words", ["english", ["the", "pluie"]])
def test_stop_words_are_left_out_alone_and_in_runs(stop_words):
    rows = ["the vent of pluie", "neige vent", "vent the neige", "pluie"] * 15
    words = model(stop_words=stop_words, ngrams=2, spread=20.0).fit(rows).vocabulary_.words
    if stop_words == "english":
        assert sorted(words) == ["neige", "neige vent", "pluie", "vent"]
    else:
        assert sorted(words) == ["neige", "neige vent", "of", "vent", "vent of"]


def naive_uninformative(documents):
    """Return the words, by the definition: the chance that a document misses all tokens."""
    total = sum(sum(row.values()) for row in documents)
    found = set()
    for word in {word for row in documents for word in row}:
        tokens = sum(row.get(word, 0) for row in documents)
        q = tokens / (total + 1)
        expected = sum(1 - (1 - q) ** sum(row.values()) for row in documents)
        n = sum(word in row for row in documents)
        if n >= 2 and np.exp(-BURST) * expected < n and expected < np.exp(-BURST) * tokens:
            found.add(word)
    return found


def test_words_that_tell_nothing_are_found_in_any_language():
    rows = [count_words(text) for text in texts()]
    found = uninformative(rows)
    assert found == set(FUNCTION)
    assert found == naive_uninformative(rows)
    words = set(model(stop_words="auto").fit(rows).vocabulary_.words)
    assert words.isdisjoint(FUNCTION)
    assert words > {word for topic in TOPICS for word in topic}


def test_what_tells_nothing_is_decided_by_the_prefix():
    """Words of later documents, however common, stay; so do those of a topic all share."""
    rows = texts(60)
    later = [f"{text} later" for text in rows]
    fitted = model(stop_words="auto").fit(rows + later)
    assert "later" in fitted.vocabulary_.words
    assert uninformative([{"w": 9}]) == frozenset()  # of one document, nothing is known
    assert uninformative([]) == frozenset()


def test_words_of_short_texts_are_not_taken_for_function_words():
    """A word that never comes twice in a text may be that of a topic, however common it is."""
    titles = [count_words(title) for title in ["rain in the spring", "bonds in the spring"] * 50]
    assert uninformative(titles) == {"in", "the", "spring"}  # all have them


def test_tfidf_is_refused_and_counts_are_named():
    weights = TfidfVectorizer().fit_transform(texts())
    for likelihood in ("auto", "multinomial"):
        with pytest.raises(ValueError, match="CountVectorizer"):
            StreamingMixture(likelihood=likelihood).partial_fit(weights)
    with pytest.raises(ValueError, match="sparse"):
        StreamingMixture().fit(csr_array(np.array([[0.5, 0.0], [0.0, 2.0]])))
    StreamingMixture(engine="reference").fit(csr_array(np.array([[1.0, 0.0], [0.0, 2.0]])))


def test_texts_and_columns_are_not_mixed_up():
    rows, table = texts(50), np.ones((4, 3))
    with pytest.raises(ValueError, match="likelihood is 'gaussian'"):
        StreamingMixture(likelihood="gaussian").fit(rows)
    with pytest.raises(ValueError, match=r"give its column of texts, such as X\['title'\]"):
        DocumentMixture().fit(pd.DataFrame({"title": rows}))
    with pytest.raises(ValueError, match="X is a matrix of numbers"):
        StreamingMixture(engine="reference", prefix_rows=20).fit(rows).predict(table)
    fitted = StreamingMixture(engine="reference").fit(np.random.default_rng(1).normal(size=(9, 3)))
    with pytest.raises(ValueError, match="holds texts, but earlier rows had columns"):
        fitted.predict(rows)
    assert fitted.fit(rows).n_clusters_ > 0
    assert not hasattr(fitted, "n_features_in_")
    with pytest.raises(ValueError, match="row 1 is not a text but 7"):
        model().fit(["one text", 7])
    for wrong in ({"ngrams": 0}, {"min_count": 0}, {"stop_words": "french"}, {"stop_words": [1]}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            model(**wrong).fit(rows)


def test_the_command_line_reads_the_same_words(tmp_path):
    rows = texts()
    source, stop = tmp_path / "feed.txt", tmp_path / "stop.txt"
    source.write_text("\n".join(rows) + "\n")
    stop.write_text("\n".join(FUNCTION) + "\n")
    for given, options in (
        ({"ngrams": 2, "stop_words": FUNCTION, "min_count": 2}, ["--stop-words", stop]),
        ({"ngrams": 2, "stop_words": "auto", "min_count": 2}, ["--stop-words", "auto"]),
    ):
        out = tmp_path / f"{given['stop_words']}"
        options = [*options, "--ngrams", 2, "--min-count", 2, "--prefix-rows", 40]
        run(
            "fit",
            source,
            "--format",
            "text",
            "--out",
            out,
            "--engine",
            "reference",
            "--quiet",
            *options,
        )
        loaded = DocumentMixture.load(out)
        assert same_bits(loaded, model(**given).partial_fit(rows).finish())
        lines = run("predict", out, source, "--json").splitlines()
        assert len(lines) == len(rows)
        described = run_json("clusters", out)["clusters"]
        assert not {word["name"] for c in described for word in c["lifted"]} & set(FUNCTION)


def test_the_command_line_refuses_what_has_no_words(tmp_path):
    table, source = tmp_path / "table.csv", tmp_path / "feed.txt"
    table.write_text("a,b\n1.5,2\n2,3\n")
    source.write_text("some words\nand others\n")
    said = run("fit", table, "--stop-words", "auto", code=2)
    assert "--stop-words is for texts" in said
    assert "--min-count is for texts" in run(
        "fit", source, "--hash-bits", 8, "--min-count", 2, code=2
    )
    assert "no texts to cut into words" in " ".join(
        run("fit", table, "--ngrams", 2, code=1).split()
    )
    assert "give auto, english, none, or a file" in " ".join(
        run("fit", source, "--stop-words", tmp_path / "none.txt", code=2).split()
    )
