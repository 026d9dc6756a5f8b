"""A call that is interrupted loses no row and counts none twice."""

import numpy as np
import pytest

from bnpstream import DirichletMultinomial, StreamingMixture, normalized_inverse_gaussian
from bnpstream.datasets import bars
from bnpstream.inference import ahead, visits
from bnpstream.mixture.sites import totals

X = bars(n_images=120, seed=4).counts


def mixture(**settings):
    return StreamingMixture(
        normalized_inverse_gaussian(10, 100), DirichletMultinomial(0.1), **settings
    )


@pytest.fixture
def interrupted(monkeypatch):
    """Return a function after which the n-th block of rows is interrupted by Ctrl-C."""
    monkeypatch.setattr(visits, "RECORD_ROWS", 10)
    whole = visits._visit_compiled

    def after(blocks):
        left = iter(range(blocks))

        def visit(*arguments):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return whole(*arguments)

        monkeypatch.setattr(visits, "_visit_compiled", visit)

    yield after
    monkeypatch.setattr(visits, "_visit_compiled", whole)


def assert_sites_are_the_posterior(model, rows):
    batch = DirichletMultinomial(0.1).encode(rows)
    found = totals(model.window_.sites, batch, model.n_clusters_)
    state = model.state_
    for one, other in zip(found, (state.statistics, state.masses, state.log_vacancy), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_an_interrupted_fit_leaves_the_old_model(interrupted):
    model = mixture().fit(X[:50])
    weights, labels = model.weights_, model.labels_
    interrupted(3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    np.testing.assert_array_equal(model.weights_, weights)
    np.testing.assert_array_equal(model.labels_, labels)
    assert model.n_samples_seen_ == 50


def test_an_interrupted_sweep_leaves_every_row_with_its_site(interrupted):
    model = mixture(keep_sites=True).partial_fit(X)
    interrupted(5)
    with pytest.raises(KeyboardInterrupt):
        model.refine(X)
    assert model.window_.sites.n_visited == model.n_samples_seen_ == 120
    assert_sites_are_the_posterior(model, X)


def test_an_interrupted_stream_keeps_what_it_absorbed_in_the_window(interrupted):
    model = mixture(revisit=500).partial_fit(X[:30])
    interrupted(4)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[30:])
    assert model.window_.n_rows == model.n_samples_seen_ == 70
    assert_sites_are_the_posterior(model, X[:70])
    model.window_.batch()


def test_an_interrupted_pass_counts_whole_rows(interrupted):
    model, same = mixture().partial_fit(X[:30]), mixture().partial_fit(X[:50])
    interrupted(2)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[30:])
    assert model.n_samples_seen_ == 50
    np.testing.assert_array_equal(model.state_.masses, same.state_.masses)


def test_an_interrupted_look_ahead_leaves_nothing_behind(monkeypatch):
    """Sums of rows that did not come must not be taken for those of other rows."""
    monkeypatch.setattr(visits, "AHEAD_FROM", 0)
    model, same = mixture(n_jobs=2).partial_fit(X[:70]), mixture().partial_fit(X[:70])

    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ahead, "in_threads", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[70:])
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    np.testing.assert_array_equal(model.score_samples(X), same.score_samples(X))
    model.set_params(n_jobs=1).partial_fit(X[70:])
    np.testing.assert_array_equal(model.state_.masses, same.partial_fit(X[70:]).state_.masses)
