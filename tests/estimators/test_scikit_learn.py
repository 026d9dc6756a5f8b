"""A native citizen of scikit-learn: its own checks, pipelines, searches, routing, frames."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn import config_context
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from bnpstream import DiagonalGaussian, DirichletMultinomial, StreamingMixture, dirichlet_process

ORDER = "it shuffles and repeats rows; what a stream leaves behind depends on their order"
CLASSIFIER = "takes whatever has predict_proba for a classifier of the y it made up"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": ORDER,
    "check_sample_weight_equivalence_on_sparse_data": ORDER,
    "check_estimator_sparse_array": CLASSIFIER,
    "check_estimator_sparse_matrix": CLASSIFIER,
}


@parametrize_with_checks(
    [
        StreamingMixture(),
        StreamingMixture(likelihood="diagonal"),
        StreamingMixture(likelihood="spherical", revisit=10),
        StreamingMixture(likelihood="gaussian", n_passes=3, merge_threshold=0.0),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def blobs(n=300, seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    centres = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0]])
    return centres[labels] + rng.normal(size=(n, 2)) + offset, labels


@pytest.mark.parametrize("kind", [csr_array, csr_matrix])
def test_sparse_reals_are_what_dense_ones_are(kind):
    """If a Gaussian is asked for; without, they may be tf-idf and are refused."""
    X, _ = blobs()
    dense, sparse = StreamingMixture().fit(X), StreamingMixture(likelihood="gaussian").fit(kind(X))
    assert (dense.predict_proba(X) == sparse.predict_proba(kind(X))).all()
    with pytest.raises(ValueError, match="sparse"):
        StreamingMixture().fit(kind(X))


def test_sparse_rows_give_a_probability_a_cluster():
    """What the check that takes us for a classifier would have looked at."""
    X, _ = blobs()
    model = StreamingMixture(likelihood="gaussian").fit(csr_array(X))
    assert model.predict(csr_array(X)).shape == (300,)
    assert model.predict_proba(csr_array(X)).shape == (300, model.n_clusters_)


def test_a_pipeline_with_a_scaler_finds_the_clusters():
    X, labels = blobs(offset=1e6)
    model = make_pipeline(StandardScaler(), StreamingMixture(n_passes=3)).fit(X)
    assert adjusted_rand_score(labels, model.predict(X)) > 0.95
    assert model.transform(X).shape == (300, model[-1].n_clusters_)


TEXTS = ["cat purr cat whisker", "dog bark dog bone"] * 40


@pytest.mark.parametrize(
    "vectorizer",
    [
        CountVectorizer(),
        HashingVectorizer(n_features=64, norm=None, alternate_sign=False),
    ],
)
def test_pipelines_of_words_find_the_topics(vectorizer):
    model = make_pipeline(vectorizer, StreamingMixture()).fit(TEXTS)
    found = model.predict(["whisker cat purr", "bone dog", "cat", "dog bark"])
    assert isinstance(model[-1].likelihood_, DirichletMultinomial)
    assert (found == [found[0], found[1], found[0], found[1]]).all()
    assert found[0] != found[1]


def test_a_search_chooses_by_predictive_score():
    X, _ = blobs()
    grid = {"prior": [dirichlet_process(0.1), dirichlet_process(50.0)], "likelihood": ["diagonal"]}
    search = GridSearchCV(StreamingMixture(), grid, cv=3).fit(X)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert search.best_score_ == scores.max()
    assert search.best_estimator_.score(X) == pytest.approx(
        search.best_estimator_.score_samples(X).mean()
    )


def test_copies_are_independent_and_say_the_same():
    X, _ = blobs()
    model = StreamingMixture(likelihood=DiagonalGaussian()).partial_fit(X[:200])  # prefix
    other = pickle.loads(pickle.dumps(model))
    fresh = clone(model)
    assert not hasattr(fresh, "state_")
    for m in (model, other):
        m.partial_fit(X[200:]).finish()
    assert (model.predict_proba(X) == other.predict_proba(X)).all()
    assert fresh.get_params()["likelihood"] is not model.likelihood


def test_frames_keep_their_names():
    X, _ = blobs()
    frame = pd.DataFrame(X, columns=["height", "width"])
    model = StreamingMixture().fit(frame).set_output(transform="pandas")
    out = model.transform(frame)
    assert model.feature_names_in_.tolist() == ["height", "width"]
    assert out.columns.tolist() == [f"cluster{id}" for id in model.cluster_ids_]
    assert out.columns.tolist() == model.get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["width", "height"]])


def test_weights_are_routed_through_a_pipeline():
    X, _ = blobs()
    weights = np.linspace(0.5, 2.0, len(X))
    with config_context(enable_metadata_routing=True):
        step = StreamingMixture().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), step)
        routed = pipeline.fit(X, sample_weight=weights)[-1]
    direct = StreamingMixture().fit(StandardScaler().fit_transform(X), sample_weight=weights)
    assert routed.state_.masses.tobytes() == direct.state_.masses.tobytes()
    assert routed.state_.total_mass == pytest.approx(weights.sum())


def test_labels_have_no_gaps_and_ids_stay_beside_them():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2)) * np.repeat([1.0, 5.0], 30)[:, None]
    for seed in range(5):
        model = StreamingMixture(n_passes=4).fit(X[np.random.default_rng(seed).permutation(60)])
        assert np.unique(model.labels_).tolist() == list(range(model.labels_.max() + 1))
        known, place = np.unique(model.label_ids_, return_inverse=True)
        assert np.isin(known, model.cluster_ids_).all()
        assert (place == model.labels_).all()
    model.partial_fit(X[:5])
    assert (model.cluster_ids_[model.labels_] == model.label_ids_).all()


def test_the_protocol_of_online_topic_models():
    """BERTopic's hook: partial_fit returns self; labels_ and probabilities_ are the batch's."""
    X, labels = blobs(n=900)
    model, found = StreamingMixture(prefix_rows=100), []
    for batch in np.split(X, 9):
        assert model.partial_fit(batch) is model
        assert model.labels_.shape == model.probabilities_.shape == (100,)
        assert ((model.probabilities_ > 0) & (model.probabilities_ <= 1)).all()
        found.append(model.label_ids_)
    assert adjusted_rand_score(labels, np.concatenate(found)) > 0.95


class WithOwnParameter(StreamingMixture):
    """A subclass with a constructor of its own, which calls that of its parent."""

    def __init__(self, prior="nig", extra=1):
        super().__init__(prior)
        self.extra = extra


def test_subclasses_may_have_constructors_of_their_own():
    model = clone(WithOwnParameter(extra=2))
    assert (model.prior, model.extra, model.revisit) == ("nig", 2, 0)
    assert model.get_params() == {"prior": "nig", "extra": 2}
    assert model.fit(np.eye(3, dtype=int)).n_samples_seen_ == 3
