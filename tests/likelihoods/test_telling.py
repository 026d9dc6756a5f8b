"""Words that tell clusters apart: by the formula, naively; neither common nor rare words lead."""

import gzip
import json
from math import log

import numpy as np
import pytest
from scipy.sparse import csr_array

from bnpstream import DocumentMixture, StreamingMixture
from bnpstream.datasets.local import data_directory
from bnpstream.likelihoods.telling import DOUBT, explained, presences, telling_words

ENGLISH = """a about all also am an and any are as at be been but by can could did do does for from
had has have he her him his how i if in into is it its it's just like me more my no not of on one or
our out over said says she so some such than that the their them then there these they this to up
was we were what when which who will with would you your"""
FUNCTION_WORDS = set(ENGLISH.split())


def drawn(case, n_clusters=7, n_words=40):
    """Return counts and masses of clusters; some words are in none, some clusters in between."""
    rng = np.random.default_rng((41, case))
    rates = rng.gamma(0.3, size=(n_clusters, n_words)) * rng.gamma(0.5, size=n_words)
    rows = rng.uniform(0.2, 30.0, size=n_clusters)
    counts = np.where(rates > 0.05, rates * rows[:, None], 0.0)
    counts[:, 3] = 0.0
    return counts, rows


def naive(counts, rows, groups):
    """Return (score, word) of every group, straight from the formula; best first."""
    there = [[S * (x / S) / (1 + x / S) for x in row] for row, S in zip(counts, rows, strict=True)]
    members = [[k for k, other in enumerate(groups) if other == g] for g in range(max(groups) + 1)]
    sizes, n = [sum(rows[k] for k in own) for own in members], sum(rows)
    found = [[] for _ in members]
    for w in range(counts.shape[1]):
        having = [sum(there[k][w] for k in own) for own in members]
        overall = sum(having)
        if overall == 0.0:
            continue
        # Mutual information, cell by cell of the table of groups against having the word.
        information = sum(
            part / n * log(part * n / (size * total))
            for part, size, total in [
                *((x, S, overall) for x, S in zip(having, sizes, strict=True) if x > 0),
                *((S - x, S, n - overall) for x, S in zip(having, sizes, strict=True)),
            ]
        )
        q = overall / n
        U = information / -(q * log(q) + (1 - q) * log(1 - q))
        shares = [x / S for x, S in zip(having, sizes, strict=True)]
        Q = max((overall + DOUBT) / (n + DOUBT), sum(shares) / len(shares))
        for g, P in enumerate(shares):
            if P > 0:
                found[g].append((U * P * log(P / Q), w))
    return [sorted(scores, key=lambda pair: -pair[0]) for scores in found]


@pytest.mark.parametrize("case", range(4))
@pytest.mark.parametrize("n", [1, 5, 100])
def test_words_are_those_of_the_formula(case, n):
    counts, rows = drawn(case)
    for groups in (list(range(7)), [0, 1, 0, 2, 2, 2, 1]):
        given = None if groups == list(range(7)) else np.array(groups)
        found = telling_words(csr_array(counts), rows, n, given)
        for telling, expected in zip(found, naive(counts, rows, groups), strict=True):
            assert telling.words.tolist() == [w for _, w in expected[:n]]
            np.testing.assert_allclose(telling.scores, [s for s, _ in expected[:n]], rtol=1e-9)


def test_function_words_do_not_lead_where_most_rows_have_no_sentences():
    """Tables are most rows, and say "the" of every other group if only rows are counted."""
    the, vs, own = 0, 1, 2
    counts = np.zeros((7, 9))
    rows = np.array([900.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0])
    counts[0, vs] = 3600.0
    for k in range(1, 7):
        counts[k, the], counts[k, own + k] = 200.0, 12.0
    found = telling_words(csr_array(counts), rows, 1)
    assert [telling.words[0] for telling in found] == [vs, *(own + k for k in range(1, 7))]


def test_presences_of_geometric_counts():
    """Where words come in bursts, the rows that have a word are those that are expected."""
    rng = np.random.default_rng((41, 9))
    for rate in (0.1, 1.0, 6.0):
        counts = rng.geometric(1 / (1 + rate), size=20_000) - 1
        total = csr_array([[float(counts.sum())]])
        there = presences(total, np.array([20_000.0])).toarray()[0, 0]
        assert there == pytest.approx((counts > 0).sum(), rel=0.02)  # five standard deviations


def test_neither_common_nor_rare_words_lead():
    """A word of all rows that a cluster has twice as often, and words of one row, come last."""
    #                  common  topic  rare
    counts = np.array([[200.0, 30.0, 1.0], [100.0, 2.0, 0.0], [100.0, 1.0, 0.0]])
    (first, *_) = telling_words(csr_array(counts), np.full(3, 50.0), 3)
    assert first.words[0] == 1
    assert first.scores[0] > 5 * first.scores[1:].max()


def test_a_word_that_all_groups_have_equally_often_explains_nothing():
    present = csr_array(np.array([[5.0, 10.0, 1.0, 0.0], [10.0, 0.0, 9.0, 0.0]]))
    nothing, everything, between, never = explained(present, np.array([10.0, 20.0]))
    assert nothing == never == 0.0
    assert everything == pytest.approx(1.0, rel=1e-12)
    assert 0.05 < between < 0.2
    rng = np.random.default_rng((41, 7))  # whatever the rounding
    rows = rng.uniform(1.0, 9.0, size=12)
    assert not explained(csr_array(np.outer(rows, rng.uniform(size=300))), rows).any()


def test_the_only_cluster_is_described_by_its_frequent_words():
    (found,) = telling_words(csr_array([[9.0, 0.0, 20.0, 1.0]]), np.array([10.0]), 2)
    assert found.words.tolist() == [2, 0]
    assert found.scores.tolist() == [0.0, 0.0]


def test_no_words_and_no_clusters():
    assert telling_words(csr_array((0, 4)), np.zeros(0), 3) == []
    (found,) = telling_words(csr_array((1, 4)), np.ones(1), 3)
    assert found.words.size == found.scores.size == 0


def test_words_of_a_stream_are_those_of_its_posterior():
    """A growing vocabulary, whose unknown words and lengths are no words, and fixed columns."""
    texts = [["the", "cat", "dog"], ["the", "bond", "stock"], ["the", "dog", "cat", "cat"]] * 20
    model = DocumentMixture(spread=20).fit(texts)
    leads = {words[0][0] for words in model.top_words(2)}
    assert leads <= {"cat", "dog", "bond", "stock"}
    assert all("the" not in dict(words) for words in model.top_words(2))
    names = sorted({word for text in texts for word in text})
    rows = np.array([[text.count(name) for name in names] for text in texts])
    fixed = StreamingMixture(likelihood="multinomial").fit(csr_array(rows))
    assert all("the" not in dict(words) for words in fixed.top_features(2, names))


def articles():
    path = data_directory() / "newsarticles" / "articles.jsonl.gz"
    if not path.exists():
        pytest.skip(f"there is no {path}")
    with gzip.open(path) as file:
        return [json.loads(line)["text"] for line in file]


def test_words_of_prose_are_led_by_no_function_word():
    """In raw prose no cluster is led by one, though all have one as their likeliest word."""
    model = DocumentMixture().fit([text.lower().split() for text in articles()[:600]])
    words = model.vocabulary_.words
    heaviest = np.argsort(-model.weights_)[:40]
    assert all(words[model.means_[k].argmax()] in FUNCTION_WORDS for k in heaviest)
    telling = model._posterior.telling(1)
    assert not {words[telling[k].words[0]] for k in heaviest} & FUNCTION_WORDS
