"""How clusters are described: the largest of many values."""

import numpy as np
import pytest

from bnpstream.likelihoods.features import WordFeatures
from bnpstream.likelihoods.telling import Telling


class Clusters:
    """Two clusters of words whose probabilities are given."""

    weights = np.array([0.25, 0.75])

    def __init__(self, means, telling=((), ())):
        self.means, self.words = means, telling

    def mean(self, k):
        return self.means[k]

    def telling(self, n):
        return [Telling(np.array(words[:n], int), np.zeros(n)) for words in self.words]


@pytest.mark.parametrize("n_words", [5, 63, 700])
@pytest.mark.parametrize("n", [1, 8, 20])
def test_words_are_those_of_a_sort(n_words, n):
    """The likeliest words, by sorting all; and those that tell the cluster apart, as they are."""
    rng = np.random.default_rng((12, n_words))
    means = rng.dirichlet(np.full(n_words, 0.3), size=2)
    telling = [rng.permutation(n_words)[:4].tolist() for _ in means]
    names = [f"w{j}" for j in range(n_words)]
    features = WordFeatures(names, Clusters(means, telling))
    overall = 0.25 * means[0] + 0.75 * means[1]
    for k in (0, 1):
        found = features.of(k, n)
        by_value = sorted(range(n_words), key=lambda j: -means[k, j])[:n]
        assert [word.name for word in found.likely] == [names[j] for j in by_value]
        assert [word.name for word in found.lifted] == [names[j] for j in telling[k][:n]]
        lifts = [means[k, j] / overall[j] for j in telling[k][:n]]
        assert [word.lift for word in found.lifted] == pytest.approx(lifts)


def test_words_that_share_the_last_place():
    """Any of them may be shown, each at most once, and nothing below them."""
    means = np.tile(np.where(np.arange(640) % 3 == 0, 0.004, 0.0005), (2, 1))
    means[:, 7] = 0.1
    found = WordFeatures([str(j) for j in range(640)], Clusters(means)).of(0, 10)
    assert found.likely[0].name == "7"
    assert len({word.name for word in found.likely}) == 10
    assert all(word.value == 0.004 for word in found.likely[1:])
