"""A grid tried on a prefix: each prior once, judged by rows it did not learn from, in any order."""

import math
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.neighbors import KernelDensity

import naive
from bnpstream import (
    DirichletMultinomial,
    DocumentMixture,
    GeneralizedGamma,
    PitmanYor,
    StreamingMixture,
    dirichlet_process,
    normalized_inverse_gaussian,
    normalized_stable,
)
from bnpstream.search import distinct, grid_search, paper_grid
from bnpstream.search.grid_search import split
from bnpstream.search.grids import CONCENTRATIONS, TILTS

COUNTS = [3.0, 1.0, 1.0]


def documents(n, seed=0, words=12, topics=3):
    rng = np.random.default_rng((71, seed))
    shares = rng.dirichlet(np.full(words, 0.3), size=topics)
    return csr_array(rng.multinomial(9, shares[rng.integers(topics, size=n)]))


def small_grid(alphas=(0.1, 0.5)):
    return paper_grid(alphas=alphas, concentrations=(1.0, 100.0), tilts=(1.0, 100.0))


@pytest.mark.parametrize("sigma", [0.0, 0.25, 0.5, 0.8])
def test_what_is_left_out_is_the_same_prior_as_one_that_is_kept(sigma):
    every = [GeneralizedGamma(a, sigma, tau) for a, tau in product(CONCENTRATIONS[:-1], TILTS)]
    kept = distinct(every)
    rules = np.array([prior.predictive_rule(COUNTS) for prior in kept])
    for prior in every:
        distance = np.abs(rules - prior.predictive_rule(COUNTS)).max(axis=1)
        assert distance.min() < 1e-8, prior
    # and no two of those kept are the same
    gaps = np.abs(rules[:, None] - rules).max(axis=2)
    assert gaps[~np.eye(len(kept), dtype=bool)].min() > 1e-6
    again = paper_grid((sigma,), None, CONCENTRATIONS[:-1])["prior"]
    assert len(again) == len(kept)
    for prior in again:
        assert np.abs(rules - prior.predictive_rule(COUNTS)).max(axis=1).min() < 1e-8


def test_the_papers_grid_has_fewer_priors_than_points():
    every = paper_grid()["prior"]
    priors = [prior for prior in every if not prior.learn]
    assert [prior for prior in every if prior.learn] == [
        dirichlet_process(1.0).learning(),
        normalized_inverse_gaussian(1.0).learning(),
    ]
    assert [sum(prior.discount == sigma for prior in priors) for sigma in (0.0, 0.5)] == [4, 11]
    paper = normalized_inverse_gaussian(10.0, tilt=100.0)  # its choice on KOS
    assert any(distinct([paper, prior]) == [paper] for prior in priors)
    assert "likelihood" not in paper_grid(alphas=None)


def test_priors_that_differ_in_anything_else_are_kept():
    stable = normalized_stable(0.5)
    values = [
        dirichlet_process(1.0),
        GeneralizedGamma(1.0, 0.0, tilt=7.0),  # the same: tau drops out
        dirichlet_process(1.0).learning(),
        GeneralizedGamma(1.0, 0.0, cluster_count="plain"),
        normalized_inverse_gaussian(1.0),
        GeneralizedGamma(1.0, 0.5, auxiliary="quadrature"),
        stable,
        GeneralizedGamma(9.0, 0.5, tilt=0.0),  # the same: a drops out
        PitmanYor(1.0, 0.5),
        PitmanYor(1.0, 0.5),  # the same
        PitmanYor(1.0, 0.4),
        "nig",
        "learn",
        "nig",  # the same
    ]
    kept = distinct(values)
    same = (1, 7, 9, 13)
    assert kept == [value for i, value in enumerate(values) if i not in same]
    named = [{"prior": value} for value in values]
    assert len(distinct(named, lambda one: one["prior"])) == len(kept)


def oracle_scores(train, rest, prior, alpha, epsilon):
    """Return the log predictives of rows after a pass over others, the slow way."""
    known = naive.Prior("nggp", prior.concentration, prior.discount, prior.tilt)
    base = [alpha] * train.shape[1]

    def as_document(row):
        return {int(word): int(row[word]) for word in np.flatnonzero(row)}

    state = naive.empty_state()
    for row in train.toarray():
        document = as_document(row)
        response = naive.respond(state, document, known, base, epsilon, 1e-4, 4)
        state = naive.absorb(state, document, response)
    return [
        naive.respond(state, as_document(row), known, base, epsilon, 0.0).log_evidence
        for row in rest.toarray()
    ], len(state.masses)


@pytest.mark.kernel
def test_scores_are_those_of_the_slow_way():
    rows = documents(40)
    result = grid_search(StreamingMixture(), rows, small_grid(), n_prefix=30, held_out=0.3)
    assert len(result.points) == 2 * (2 + 4)  # dp: 1 and 100; nig: 1, 10, 100 and 1000
    assert (result.n_train, result.n_held_out) == (21, 9)
    for point in result.points:
        prior, alpha = point.parameters["prior"], point.parameters["likelihood"].alpha
        epsilon = max(0.1, prior.discount)
        expected, n_clusters = oracle_scores(rows[:21], rows[21:30], prior, alpha, epsilon)
        assert point.scores == pytest.approx(expected, rel=1e-9)
        assert point.n_clusters == n_clusters
        assert point.score == pytest.approx(math.fsum(expected))
    assert result.best.score == max(point.score for point in result.points)
    assert result.n_tokens == 9 * 9


@pytest.mark.parametrize("n_jobs", [2, 3])
@pytest.mark.parametrize("seed", [None, 4])
def test_the_same_bits_for_any_number_of_jobs(n_jobs, seed):
    rows, grid = documents(300), small_grid((0.1, 0.5, "learn"))
    one = grid_search(StreamingMixture(), rows, grid, seed=seed)
    many = grid_search(StreamingMixture(), rows, grid, seed=seed, n_jobs=n_jobs)
    assert [p.scores.tobytes() for p in one.points] == [p.scores.tobytes() for p in many.points]
    assert [p.n_clusters for p in one.points] == [p.n_clusters for p in many.points]
    assert [repr(p.parameters) for p in one.points] == [repr(p.parameters) for p in many.points]
    assert one.best_index == many.best_index


def test_the_same_bits_in_any_order_of_points():
    rows, grid = documents(200), small_grid()
    turned = {name: values[::-1] for name, values in grid.items()}
    here, there = (
        {
            repr(sorted(p.parameters.items())): p.scores.tobytes()
            for p in grid_search(StreamingMixture(), rows, g).points
        }
        for g in (grid, turned)
    )
    assert here == there


def test_only_the_first_rows_are_looked_at_and_the_last_of_them_predicted():
    rows = np.arange(40.0).reshape(20, 2)
    train, rest = split(rows, 10, 0.2)
    assert train.tolist() == rows[:8].tolist()
    assert rest.tolist() == rows[8:10].tolist()
    spoilt = documents(60).toarray()
    spoilt[30:] = -1
    result = grid_search(StreamingMixture(), spoilt, small_grid(), n_prefix=30)
    clean = grid_search(StreamingMixture(), spoilt[:30], small_grid(), n_prefix=30)
    assert result.best.scores.tobytes() == clean.best.scores.tobytes()


def test_a_seed_holds_out_rows_anywhere_in_order():
    rows = np.arange(100)[:, None]
    train, rest = (part.ravel() for part in split(rows, 50, 0.2, seed=3))
    assert np.array_equal(np.sort(np.concatenate([train, rest])), np.arange(50))
    assert len(rest) == 10
    assert rest.min() < 40
    assert (np.diff(train) > 0).all()
    assert (np.diff(rest) > 0).all()
    assert np.array_equal(rest, split(rows, 50, 0.2, seed=3)[1].ravel())
    assert not np.array_equal(rest, split(rows, 50, 0.2, seed=4)[1].ravel())


@pytest.mark.parametrize("n", [2, 3, 7])
@pytest.mark.parametrize("held_out", [0.001, 0.5, 0.999])
def test_both_parts_have_a_row(n, held_out):
    train, rest = split(np.zeros((n, 1)), 100, held_out)
    assert len(train) >= 1
    assert len(rest) >= 1
    assert len(train) + len(rest) == n


def test_lags_are_compared_row_by_row():
    result = grid_search(StreamingMixture(), documents(150), small_grid())
    for point in result.points:
        difference = point.scores - result.best.scores
        lag = result.lag(point)
        assert lag.nats == pytest.approx(point.score - result.best.score, abs=1e-9)
        n = difference.size
        expected = math.sqrt(n * ((difference - difference.mean()) ** 2).sum() / (n - 1))
        assert lag.standard_error == pytest.approx(expected, abs=1e-9)
    table = result.table()
    scores = [record["log_likelihood"] for record in table]
    assert scores == sorted(scores, reverse=True)
    assert table[0]["behind"] == 0.0
    assert table[0]["param_prior"] == result.best.parameters["prior"]
    assert table[0]["per_row"] == pytest.approx(scores[0] / result.n_held_out)
    assert table[0]["per_token"] == pytest.approx(scores[0] / (9 * result.n_held_out))
    assert len(pd.DataFrame(table)) == len(result.points)


def test_the_best_estimator_has_seen_nothing_and_keeps_other_settings():
    rows = documents(200)
    given = StreamingMixture(min_responsibility=1e-3, revisit=20)
    result = grid_search(given, rows, small_grid(), n_prefix=100)
    best = result.best_estimator
    assert not hasattr(best, "state_")
    assert not hasattr(given, "state_")
    assert (best.revisit, best.min_responsibility) == (20, 1e-3)
    by_hand = StreamingMixture(**result.best.parameters, min_responsibility=1e-3, revisit=20)
    states = [model.fit(rows).state_.statistics.tobytes() for model in (best, by_hand)]
    assert states[0] == states[1]
    assert best.n_samples_seen_ == 200  # the rows of the prefix too


def test_data_frames_and_documents():
    table = documents(60).toarray()
    grid = small_grid((0.5,))
    expected = grid_search(StreamingMixture(), table, grid, seed=1)
    for frame in (pd.DataFrame(table), pl.DataFrame(table)):
        frame.columns = [f"w{j}" for j in range(12)]
        found = grid_search(StreamingMixture(), frame, grid, seed=1)
        assert found.best.scores.tobytes() == expected.best.scores.tobytes()
        assert found.n_tokens == expected.n_tokens == 12 * 9
    texts = [[f"w{j}" for j in np.repeat(np.arange(12), row)] for row in table]
    found = grid_search(DocumentMixture(), texts, {"prior": ["dp", "nig"]})
    assert found.n_tokens == 12 * 9
    assert len(found.points) == 2
    model = DocumentMixture(**found.best.parameters).fit(texts[:48])
    assert found.best.scores.tobytes() == model.score_samples(texts[48:]).tobytes()


def test_real_numbers_have_no_tokens_and_any_estimator_will_do():
    rng = np.random.default_rng((71, 9))
    rows = rng.normal(size=(80, 2)) + 6.0 * rng.integers(2, size=(80, 1))
    result = grid_search(StreamingMixture(prefix_rows=30), rows, paper_grid(alphas=None))
    assert result.n_tokens is None
    assert result.table()[0]["per_token"] is None
    other = grid_search(KernelDensity(), rows, {"bandwidth": [0.01, 1.0, 100.0]})
    assert other.best.parameters == {"bandwidth": 1.0}
    assert other.best.n_clusters is None


def test_points_are_told_in_order():
    told = []
    result = grid_search(
        StreamingMixture(),
        documents(50),
        small_grid(),
        n_jobs=2,
        on_point=lambda point, done, total: told.append((point, done, total)),
    )
    assert [one[0] for one in told] == result.points
    assert [one[1:] for one in told] == [(i + 1, 12) for i in range(12)]


def test_of_equal_points_the_first_is_the_best():
    same = {"prior": [PitmanYor(1.0, 0.0), dirichlet_process(1.0)]}
    result = grid_search(StreamingMixture(engine="reference"), documents(30), same)
    assert result.points[0].score == result.points[1].score
    assert result.best_index == 0
    assert result.order() == [0, 1]


def test_errors_name_what_is_wrong():
    rows, model = documents(30), StreamingMixture()
    with pytest.raises(ValueError, match=r"KMeans.*no score_samples"):
        grid_search(KMeans(), rows, {"n_clusters": [2]})
    with pytest.raises(ValueError, match="1 rows are too few for tuning"):
        grid_search(model, rows[:1], small_grid())
    with pytest.raises(ValueError, match=r"held_out must be a share in \(0, 1\), got 1.0"):
        grid_search(model, rows, small_grid(), held_out=1.0)
    with pytest.raises(ValueError, match=r"discount 0\.5.*with new_cluster_threshold=0.2"):
        grid_search(model, rows, {"prior": ["nig"], "new_cluster_threshold": [0.2]})
    with pytest.raises(ValueError, match="Invalid parameter 'priors'"):
        grid_search(model, rows, {"priors": ["nig"]})


def test_a_score_that_is_no_number_is_refused():
    class Broken(StreamingMixture):
        def score_samples(self, X):
            return np.append(super().score_samples(X)[:-1], np.nan)

    with pytest.raises(ValueError, match="scores held-out row 5 as nan"):
        grid_search(Broken(likelihood=DirichletMultinomial(0.1)), documents(30), {"prior": ["dp"]})


def test_on_kos_alpha_is_what_the_paper_chose_unless_it_is_learnt(kos):
    """The paper's .1 was found by repeated trials."""
    result = grid_search(StreamingMixture(), kos.counts, paper_grid((0.0,)), seed=0, n_jobs=2)
    by_alpha = {}
    for point in result.points:
        alpha = point.parameters["likelihood"].alpha
        by_alpha[alpha] = max(by_alpha.get(alpha, -np.inf), point.score)
    assert max(by_alpha, key=by_alpha.get) == "learn"
    assert by_alpha.pop("learn") > max(by_alpha.values()) + 3000
    assert max(by_alpha, key=by_alpha.get) in (0.05, 0.1, 0.2)
