"""Rows drawn from clusters: what rows out of sight share, against an integral."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import t
from sklearn.metrics import adjusted_rand_score

from bnpstream import Gaussian, StreamingMixture
from bnpstream.inference.drawn import alike, drawn_sites
from bnpstream.inference.merge import shared_pairs
from bnpstream.inference.topics import grouped_by_odds


def two_clusters(apart):
    """Return a posterior of two clusters in one column, with everything given."""
    rng = np.random.default_rng(1)
    rows = np.concatenate([rng.normal(size=300), apart + rng.normal(size=200)])[:, None]
    family = Gaussian(mean=[1.0], covariance=[[1.0]], mean_strength=0.05)
    model = StreamingMixture("dp", likelihood=family, n_passes=10).fit(rows)
    coarse = model.stream_.coarsened(model.stream_.posterior.merge_tree(2), 2)
    assert coarse.state.n_clusters == 2
    return coarse


def expected_entropy(stream):
    """Return the entropy of the choice between two clusters, by quadrature, no code shared."""
    state = stream.state
    n, total, squares = state.statistics[:, :3].T
    mean, kappa, nu = n * 0.0 + 1.0, 0.05, 4.0
    centre = (kappa * mean + total) / (kappa + n)
    Psi = 2.0 + squares + kappa * mean**2 - (kappa + n) * centre**2
    scale = np.sqrt(Psi * (kappa + n + 1.0) / (kappa + n) / (nu + n))

    def loss(x):
        joint = n * t.pdf(x, nu + n, centre, scale)
        q = joint / joint.sum()
        return float(-(joint * np.log(np.maximum(q, 1e-300))).sum())

    return quad(loss, -20.0, 30.0, points=[*centre], limit=400)[0]


@pytest.mark.parametrize("apart", [2.5, 4.0, 12.0])
def test_the_entropy_is_that_of_an_integral(apart):
    stream = two_clusters(apart)
    sites, weights = drawn_sites(stream.model, stream.state, stream.kernel)
    assert weights.sum() == pytest.approx(stream.state.masses.sum())
    pairs = shared_pairs(stream.state, sites, weights)
    expected = expected_entropy(stream)
    found = float(pairs.entropy.sum())
    assert found == pytest.approx(expected, abs=0.02 * stream.state.masses.sum())
    if apart > 10.0:
        assert found < 0.1


def test_clusters_that_overlap_are_not_taken_for_one():
    rng = np.random.default_rng(3)
    of = rng.integers(2, size=2000)
    rows = (3.2 * of + rng.normal(size=2000))[:, None]
    model = StreamingMixture().fit(rows)
    assert model.n_clusters_ == model.topics_.size == 2
    assert adjusted_rand_score(of, model.topic_labels_) > 0.6
    before = model.state_.masses.copy()
    assert alike(model.stream_.model, model.state_, model.stream_.kernel).max() + 1 == 2
    np.testing.assert_array_equal(model.state_.masses, before)
    assert grouped_by_odds(model.stream_.model, model.state_).max() == 0  # odds lack the entropy
