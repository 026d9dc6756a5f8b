"""Agreement with labels."""

import numpy as np

from bnpstream.evaluation import agreement, majority_labels


def test_a_perfect_match_has_ones_whatever_the_names():
    scores = agreement([0, 0, 1, 2], [7, 7, 3, 5])
    np.testing.assert_allclose(scores, 1.0)


def test_one_cluster_for_all_has_the_commonest_label_as_purity():
    scores = agreement([0, 0, 0, 1], [1, 1, 1, 1])
    assert scores.purity == 0.75
    np.testing.assert_allclose(scores[:2], 0.0, atol=1e-12)


def test_majority_labels_count_every_cluster():
    labels = np.array([2, 2, 0, 1, 1])
    clusters = np.array([0, 0, 0, 3, 3])
    majority, shares = majority_labels(labels, clusters, n_clusters=4)
    np.testing.assert_array_equal(majority, [2, -1, -1, 1])
    np.testing.assert_allclose(shares, [2 / 3, np.nan, np.nan, 1.0])
