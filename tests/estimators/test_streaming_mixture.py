"""The scikit-learn face: what a data scientist relies on."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_matrix, csc_array, csr_array, csr_matrix
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from bnpstream import (
    DirichletMultinomial,
    GeneralizedGamma,
    PitmanYor,
    StreamingMixture,
    dirichlet_process,
    normalized_inverse_gaussian,
)
from bnpstream.datasets import bars
from bnpstream.likelihoods.telling import telling_words

DATA = bars(n_images=150, seed=1)
X = DATA.counts
PRIORS = ["dp", "nig", "py", GeneralizedGamma(2.0, 0.3, 1.0, auxiliary="quadrature")]
STATE_PARTS = ["statistics", "masses", "log_vacancy", "ids"]


def same_bits(one: StreamingMixture, other: StreamingMixture) -> bool:
    parts = all(
        np.array_equal(getattr(one.state_, part), getattr(other.state_, part))
        for part in STATE_PARTS
    )
    return (
        parts
        and np.array_equal(one.state_.arrays.counters, other.state_.arrays.counters)
        and np.array_equal(one.state_.arrays.totals, other.state_.arrays.totals, equal_nan=True)
    )


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_any_split_gives_the_same_bits(prior, engine):
    whole = StreamingMixture(prior, DirichletMultinomial(0.1), engine=engine).fit(X)
    evidence = whole.log_evidence_
    for cuts in ([1], [149], [16, 17, 90], list(range(1, 150))):
        parts = StreamingMixture(prior, DirichletMultinomial(0.1), engine=engine)
        seen = [parts.partial_fit(X[rows]).log_evidence_ for rows in np.split(np.arange(150), cuts)]
        assert same_bits(whole, parts)
        assert np.array_equal(np.concatenate(seen), evidence)


def test_different_rows_give_different_bits():
    assert not same_bits(StreamingMixture().fit(X), StreamingMixture().fit(X[::-1]))


def test_fit_forgets_what_came_before():
    model = StreamingMixture().fit(X[:50]).fit(X)
    assert same_bits(model, StreamingMixture().fit(X))


@pytest.mark.parametrize("kind", [csr_matrix, csc_array, coo_matrix])
def test_every_kind_of_matrix_gives_the_same_bits(kind):
    expected = StreamingMixture().fit(X)
    assert same_bits(expected, StreamingMixture().fit(kind(X)))
    assert same_bits(expected, StreamingMixture().fit(X.toarray()))
    assert same_bits(expected, StreamingMixture().fit(X.toarray().tolist()))
    assert same_bits(expected, StreamingMixture().fit(X.toarray().astype(np.uint8)))


def test_evidence_is_the_score_before_the_row_is_absorbed():
    model = StreamingMixture("nig", DirichletMultinomial(0.1), min_responsibility=0.0)
    model.partial_fit(X[:100])
    ahead = model.score_samples(X[100:101])
    total = model.total_log_evidence_
    model.partial_fit(X[100:101])
    np.testing.assert_allclose(model.log_evidence_, ahead, rtol=1e-12)
    np.testing.assert_allclose(model.total_log_evidence_, total + ahead[0], rtol=1e-12)


def test_the_first_row_has_its_prior_predictive():
    likelihood = DirichletMultinomial(0.5)
    model = StreamingMixture("nig", likelihood).fit(X[:1])
    row = likelihood.encode(X[:1]).row(0)
    expected = likelihood.log_predictive(np.zeros((1, 65)), row)[0] + row.log_base
    np.testing.assert_allclose(model.log_evidence_, [expected], rtol=1e-12)
    assert model.n_clusters_ == 1
    np.testing.assert_array_equal(model.weights_, [1.0])


def test_probabilities_are_the_scores_normalised_over_known_clusters():
    model = StreamingMixture("nig").fit(X)
    proba = model.predict_proba(X)
    assert proba.shape == (150, model.n_clusters_)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), proba.argmax(axis=1))
    np.testing.assert_array_equal(model.predict_ids(X), model.cluster_ids_[model.predict(X)])


def test_public_arrays_are_in_order_of_id_whatever_the_slots():
    model = StreamingMixture("nig").fit(X)
    before = [model.weights_, model.means_, model.predict_proba(X), model.predict_ids(X)]
    order = np.random.default_rng(5).permutation(model.n_clusters_)
    for part in STATE_PARTS:
        getattr(model.state_, part)[:] = getattr(model.state_, part)[order].copy()
    # Without the screen of the slots as they were:
    model.stream_.resume(model.state_.copy(), model.window_, model.lineage_)
    assert (np.diff(model.cluster_ids_) > 0).all()
    after = [model.weights_, model.means_, model.predict_proba(X), model.predict_ids(X)]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-19)


def test_a_large_prediction_is_made_in_blocks(monkeypatch):
    model = StreamingMixture("nig").fit(X)
    expected = model.score_samples(X)
    monkeypatch.setattr("bnpstream.engine.posterior.SCORED_CELLS", 7 * (model.n_clusters_ + 1))
    np.testing.assert_array_equal(model.score_samples(X), expected)
    np.testing.assert_allclose(model.score(X), expected.mean(), rtol=1e-12)


def test_the_predictive_sums_to_one_over_all_documents():
    documents = np.array([[i, j, 4 - i - j] for i in range(5) for j in range(5 - i)])
    model = StreamingMixture("nig", DirichletMultinomial(0.3)).fit(documents[[0, 3, 7, 9]])
    np.testing.assert_allclose(logsumexp(model.score_samples(documents)), 0.0, atol=1e-12)


def test_predicting_changes_nothing():
    model = StreamingMixture("nig").fit(X)
    before = clone(model).fit(X)
    model.predict(X), model.predict_proba(X), model.score_samples(X), model.sample(3)
    assert same_bits(model, before)


def test_labels_are_the_clusters_at_arrival():
    model = StreamingMixture("nig").partial_fit(X[:100])
    first = model.predict_ids(X[100:101])
    model.partial_fit(X[100:])
    assert model.labels_.shape == (50,)
    assert model.cluster_ids_[model.labels_[0]] == first[0]
    assert model.labels_.max() < model.n_clusters_


def test_means_and_top_features():
    frame = pd.DataFrame(X.toarray(), columns=[f"pixel{i}" for i in range(64)])
    model = StreamingMixture("nig").fit(frame)
    np.testing.assert_allclose(model.means_.sum(axis=1), 1.0, rtol=1e-12)
    top = model.top_features(3)
    assert len(top) == model.n_clusters_
    means, counts = model.means_, model.state_.statistics[model._posterior.order, :64]
    for k, words in enumerate(
        telling_words(csr_array(counts), model.weights_ * model.state_.masses.sum(), 3)
    ):
        assert top[k] == [(f"pixel{j}", means[k, j]) for j in words.words]
    assert model.top_features(1, feature_names=list(range(64)))[0][0][0] == int(top[0][0][0][5:])
    numbers = StreamingMixture("nig", "gaussian").fit(X.toarray()[:, :9])
    (name, value), *_ = numbers.top_features(3)[0]
    assert (name, value) == (numbers.means_[0].argmax(), numbers.means_[0].max())
    with pytest.raises(ValueError, match="2 names, but there are 64 features"):
        model.top_features(1, feature_names=["a", "b"])


def test_samples_follow_the_predictive():
    model = StreamingMixture("nig", DirichletMultinomial(0.3)).fit(
        np.repeat([[3, 0, 0], [0, 0, 3]], 20, axis=0)
    )
    drawn, ids = model.sample(40_000, random_state=1, length=2)
    documents, counts = np.unique(drawn, axis=0, return_counts=True)
    expected = np.exp(model.score_samples(documents)) * 40_000
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()
    assert set(np.unique(ids)) <= {-1, *model.cluster_ids_.tolist()}
    share_new = (ids == -1).mean()
    assert 0 < share_new < 0.2
    again, _ = model.sample(40_000, random_state=1, length=2)
    np.testing.assert_array_equal(drawn, again)


def test_clone_and_pickle():
    model = StreamingMixture(normalized_inverse_gaussian(3, 2), DirichletMultinomial(0.2))
    assert repr(clone(model).get_params()) == repr(model.get_params())
    model.fit(X)
    copy = pickle.loads(pickle.dumps(model))
    assert same_bits(model, copy)
    assert same_bits(model.partial_fit(X), copy.partial_fit(X))


@pytest.mark.parametrize(
    "method", ["predict", "predict_ids", "predict_proba", "score_samples", "score"]
)
def test_asking_before_fitting_says_so(method):
    with pytest.raises(NotFittedError):
        getattr(StreamingMixture(), method)(X)


@pytest.mark.parametrize(
    ("prior", "threshold"), [("dp", 0.1), ("nig", 0.5), (PitmanYor(1, 0.05), 0.1)]
)
def test_default_threshold_is_a_tenth_or_the_discount(prior, threshold):
    model = StreamingMixture(prior, DirichletMultinomial(0.5)).partial_fit(X[:1])
    assert model.stream_.visits.new_cluster_threshold == threshold


def test_strings_stand_for_objects():
    assert same_bits(
        StreamingMixture("dp", "multinomial").fit(X),
        StreamingMixture(dirichlet_process(1.0).learning(), DirichletMultinomial()).fit(X),
    )


@pytest.mark.parametrize("most", [4, None])
def test_an_empty_document_changes_no_statistics_but_its_mass(most):
    model = StreamingMixture("dp", max_responsibilities=most).fit(X)
    statistics, masses = model.state_.statistics.copy(), model.state_.masses.sum()
    model.partial_fit(np.zeros((1, 64)))
    np.testing.assert_array_equal(model.state_.statistics, statistics)
    np.testing.assert_allclose(model.state_.masses.sum(), masses + 1, rtol=1e-14)
    if most is None:  # evidence is over the clusters that the row takes part in
        np.testing.assert_allclose(model.log_evidence_, [0.0], atol=1e-12)


def test_a_stream_may_begin_with_empty_documents():
    model = StreamingMixture("nig").fit(np.zeros((3, 4)))
    assert model.n_clusters_ >= 1
    assert model.predict(np.zeros((1, 4))).shape == (1,)
