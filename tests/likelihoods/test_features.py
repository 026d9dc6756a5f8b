"""How clusters are described: the largest of many values."""

import numpy as np
import pytest

from bnpstream.likelihoods.features import EXPECTED, OFTEN, WordFeatures


class Clusters:
    """Two clusters of words whose probabilities are given."""

    weights = np.array([0.25, 0.75])

    def __init__(self, means, length):
        self.means, self.length = means, length

    def mean(self, k):
        return self.means[k]

    def statistic(self, k, column):
        assert column == -1
        return self.length


@pytest.mark.parametrize("n_words", [5, 63, 700])
@pytest.mark.parametrize("n", [1, 8, 20])
def test_words_are_those_of_a_sort(n_words, n):
    """The likeliest words, and the most lifted of those that occur often, by sorting all."""
    rng = np.random.default_rng((12, n_words))
    means, length = rng.dirichlet(np.full(n_words, 0.3), size=2), 3000.0
    names = [f"w{j}" for j in range(n_words)]
    features = WordFeatures(names, Clusters(means, length))
    overall = 0.25 * means[0] + 0.75 * means[1]
    for k in (0, 1):
        found = features.of(k, n)
        by_value = sorted(range(n_words), key=lambda j: -means[k, j])[:n]
        assert [word.name for word in found.likely] == [names[j] for j in by_value]
        often = [j for j in range(n_words) if means[k, j] >= max(OFTEN, EXPECTED / length)]
        by_lift = sorted(often, key=lambda j: -means[k, j] / overall[j])[:n]
        assert [word.name for word in found.lifted] == [names[j] for j in by_lift]


def test_words_that_share_the_last_place():
    """Any of them may be shown, each at most once, and nothing below them."""
    means = np.tile(np.where(np.arange(640) % 3 == 0, 0.004, 0.0005), (2, 1))
    means[:, 7] = 0.1
    found = WordFeatures([str(j) for j in range(640)], Clusters(means, 1e5)).of(0, 10)
    assert found.likely[0].name == "7"
    assert len({word.name for word in found.likely}) == 10
    assert all(word.value == 0.004 for word in found.likely[1:])
