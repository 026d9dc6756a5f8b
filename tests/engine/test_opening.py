"""The first rows of a table are settled before its stream goes on."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import adjusted_rand_score

from bnpstream import Gaussian, StreamingMixture
from bnpstream.engine.encoder import FixedColumns
from bnpstream.engine.labels import labels_of
from bnpstream.engine.opening import SWEEPS
from bnpstream.engine.settings import Settings
from bnpstream.engine.stream import Stream
from bnpstream.priors import NAMED_PRIORS


def drawn(seed, n=450, K=3, D=2, apart=12.0):
    """Return rows of K Gaussians with covariances of their own, centres on a line and around it."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(K, D)) + apart * np.arange(K)[:, None]
    of = rng.integers(K, size=n)
    shapes = np.eye(D) + 0.4 * rng.normal(size=(K, D, D))
    return centres[of] + np.einsum("nij,nj->ni", shapes[of], rng.normal(size=(n, D))), of


@pytest.mark.parametrize("D", [1, 2, 5])
@pytest.mark.parametrize("K", [1, 3, 6])
def test_separated_clusters_are_found_as_many_as_they_are(D, K):
    for seed in range(4):
        rows, of = drawn(seed, n=700, K=K, D=D)
        model = StreamingMixture().fit(rows)
        assert np.sum(model.weights_ > 0.01) <= 2 * K
        assert model.topics_.size <= model.n_clusters_
        if K > 1:
            assert adjusted_rand_score(of, model.labels_) > 0.9


@pytest.mark.parametrize("half_life", [None, 400.0])
def test_splits_and_saves_change_no_bit(tmp_path, half_life):
    rows, _ = drawn(5, n=640)
    whole = StreamingMixture(prefix_rows=200, half_life=half_life).partial_fit(rows)
    for ends in ([1, 199, 200, 201, 640], [150, 500, 640]):
        parts = StreamingMixture(prefix_rows=200, half_life=half_life)
        for start, stop in zip([0, *ends[:-1]], ends, strict=True):
            parts.partial_fit(rows[start:stop])
            parts.save(tmp_path / "model")
            parts = StreamingMixture.load(tmp_path / "model")
        np.testing.assert_array_equal(parts.state_.statistics, whole.state_.statistics)
        np.testing.assert_array_equal(parts.state_.masses, whole.state_.masses)
        assert parts.prior_ == whole.prior_
        assert parts.lineage_ == whole.lineage_


def test_the_rows_are_let_go_afterwards():
    rows, _ = drawn(1, n=300)
    model = StreamingMixture(prefix_rows=200).partial_fit(rows)
    assert model.stream_.window.n_rows == 0


def test_it_finds_what_several_passes_find():
    rows, _ = drawn(3, n=200)
    several = StreamingMixture(n_passes=SWEEPS + 1).fit(rows)
    once = StreamingMixture().fit(rows)
    assert adjusted_rand_score(several.labels_, once.labels_) == 1.0


def test_nothing_is_revisited_where_all_is_given_or_merges_are_not_wanted():
    rows, _ = drawn(2, n=300)
    likelihood = Gaussian(mean=rows.mean(axis=0), covariance=np.eye(2))
    given = StreamingMixture(likelihood=likelihood).fit(rows)
    unmerged = StreamingMixture(merge_threshold=None).fit(rows)
    for model in (given, unmerged):
        assert {event.kind for event in model.lineage_} == {"birth"}


def test_rows_that_came_later_keep_the_cluster_they_arrived_in():
    rows, _ = drawn(4, n=900, apart=4.0)
    stream = Stream(NAMED_PRIORS["dp"], FixedColumns(Gaussian()), Settings())
    given = stream.check(rows)
    last = stream.absorb(given)
    labels = labels_of(stream, given)
    assert last.n_revised == 500
    now = stream.posterior.assigned(stream.view(rows))[1]
    np.testing.assert_array_equal(labels.ids[:500], now[:500])
    arrived = last.absorbed.rows.ids
    np.testing.assert_array_equal(labels.ids[500:], arrived[500:])
    assert (arrived[:500] != now[:500]).any()


def test_a_narrow_cluster_within_a_wide_one_is_found_whatever_comes_first():
    """Breast cancer in the order of its file: malignant, wide, tumours lead."""
    rows, labels = load_breast_cancer(return_X_y=True)
    found = StreamingMixture().fit(rows).predict(rows)
    assert adjusted_rand_score(labels, found) > 0.7
