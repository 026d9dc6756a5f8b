"""Trends and exemplars do not depend on batches, and follow merges and deaths."""

import numpy as np
import pytest

from bnpstream.likelihoods import Categorical, DiagonalGaussian, OpenVocabulary, Vocabulary
from bnpstream.mixture import Event
from bnpstream.runs.exemplars import Exemplars
from bnpstream.runs.trend import BINS, Trend


def rows(n):
    rng = np.random.default_rng(n)
    return rng.integers(9, size=n), rng.normal(size=n), np.arange(n) // 7


@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 129, 5000])
def test_any_batches_give_the_same_bits(n):
    ids, evidence, clusters = rows(n)
    whole = Trend()
    whole.add(ids, evidence, clusters)
    parts, rng, start = Trend(), np.random.default_rng(0), 0
    while start < n:
        stop = start + int(rng.integers(1, 90))
        parts.add(ids[start:stop], evidence[start:stop], clusters[start:stop])
        parts, start = Trend.of(parts.arrays()), stop
    for name, array in whole.arrays().items():
        assert array.tobytes() == parts.arrays()[name].tobytes(), name


@pytest.mark.parametrize("n", [1, 64, 65, 1000, 5000])
def test_bins_count_what_happened_in_them(n):
    ids, evidence, clusters = rows(n)
    trend = Trend()
    trend.add(ids, evidence, clusters)
    assert trend.n_bins <= BINS < 2 * trend.n_bins or n < BINS
    ends = trend.ends()
    assert ends[-1] == n
    for i, (start, stop) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        assert trend.evidence[i] == pytest.approx(evidence[start:stop].sum())
        assert trend.clusters[i] == clusters[stop - 1]
        for id in range(9):
            assert trend.counts(id)[i] == np.sum(ids[start:stop] == id)


def test_trends_follow_merges_and_deaths():
    trend = Trend()
    trend.add(np.array([0, 1, 2, 3, 1]), np.zeros(5), np.ones(5, int))
    trend.follow([Event("merge", 1, 2, 5, 2.0), Event("death", 0, None, 5, 0.0)])
    assert trend.counts(2) == [0, 1, 1, 0, 1]
    assert trend.counts(3) == [0, 0, 0, 1, 0]
    assert trend.counts(0) == trend.counts(1) == [0] * 5
    assert trend.arrays()["trend.ids"].tolist() == [2, 3]


def describe(row):
    return row, f"d{row}", "text"


def test_the_best_exemplars_are_kept_whatever_the_batches():
    rng = np.random.default_rng(0)
    ids, shares, scores = rng.integers(4, size=500), rng.random(500), rng.normal(size=500)
    whole, parts = Exemplars(), Exemplars()
    whole.add(ids, shares, scores, describe)
    for start in range(0, 500, 37):
        part = slice(start, start + 37)
        parts.add(
            ids[part], shares[part], scores[part], lambda row, start=start: describe(row + start)
        )
        parts = Exemplars.from_document(parts.document())
    assert whole.document() == parts.document()
    for id in range(4):
        own = np.flatnonzero((ids == id) & (shares >= 0.5))
        best = own[np.argsort(-scores[own])][:3]
        assert [one.record for one in whole.of(id)] == best.tolist()


def test_exemplars_follow_merges_and_deaths():
    found = Exemplars()
    ids, scores = np.array([0, 0, 1, 1, 2]), np.array([1.0, 5.0, 3.0, 4.0, 9.0])
    found.add(ids, np.ones(5), scores, describe)
    found.follow([Event("merge", 0, 1, 5, 2.0), Event("death", 2, None, 5, 0.0)])
    assert [one.score for one in found.of(1)] == [5.0, 4.0, 3.0]
    assert found.of(0) == found.of(2) == []


def test_long_documents_of_likely_words_are_typical():
    documents = [{"a": 5}, {"a": 50}, {"a": 25, "b": 25}]
    likelihood = Vocabulary(OpenVocabulary(10.0)).likelihood
    assert likelihood.n_tokens(documents) == 105
    measured = likelihood.typicality(documents)
    same_mean = np.array([-10.0, -100.0, -100.0])
    one, long, mixed = measured.scores(same_mean)
    assert long > one
    # log h(x) is no merit: fifty tokens of two words can be put in order in many ways
    assert mixed < long


def test_rows_with_missing_cells_come_last():
    table = np.array([[1.0, np.nan], [1.0, 2.0]])
    scores = DiagonalGaussian().typicality(table).scores(np.array([5.0, -900.0]))
    assert scores[1] > scores[0]
    labels = np.array([[None, "a"], ["b", "a"]], object)
    assert Categorical().typicality(labels).scores(np.zeros(2)).tolist() == [-1000.0, 0.0]
