"""A posterior within a budget: what goes, that it is recorded, and that calls do not matter."""

import numpy as np
import pytest

from bnpstream import (
    DirichletMultinomial,
    DocumentMixture,
    StreamingMixture,
    normalized_inverse_gaussian,
)
from bnpstream.datasets import synthetic_corpus
from bnpstream.engine.checks import require_bytes
from bnpstream.inference.budget import Budget, keep_within
from bnpstream.inference.retirement import retire
from bnpstream.mixture import Event, MixtureState, Model, SiteBuffer, survivor
from bnpstream.priors import PitmanYor
from states import assert_free_slots_are_zero, bits

MANY = PitmanYor(30.0, discount=0.5)
CORPUS = synthetic_corpus(
    900, n_words=300, mean_length=40, word_concentration=20, prior=MANY, seed=3
).counts
WIDE = synthetic_corpus(
    400, n_words=20_000, mean_length=80, word_concentration=20, prior=MANY, seed=4
).counts


def mixture(**options):
    return StreamingMixture("nig", DirichletMultinomial(0.05), **options)


def blobs(n, case=0):
    rng = np.random.default_rng((7, case))
    return 50.0 * rng.normal(size=(60, 2))[rng.integers(60, size=n)] + rng.normal(size=(n, 2))


@pytest.mark.parametrize("most", [2, 7, 40])
def test_there_are_never_more_clusters(most):
    model = mixture(max_clusters=most).partial_fit(CORPUS[:300])
    free = mixture().partial_fit(CORPUS[:300])
    assert free.n_clusters_ > 40
    assert model.absorbed_.rows.n_clusters.max() == most  # what is allowed is used
    assert_free_slots_are_zero(model.state_)
    born = [event.id for event in model.lineage_ if event.kind == "birth"]
    alive = {survivor(id, model.lineage_) for id in born} - {None}
    assert alive == set(model.cluster_ids_.tolist())
    gone = sum(event.mass for event in model.lineage_ if event.kind == "retire")
    assert model.state_.masses.sum() + gone == pytest.approx(300)
    assert model.state_.total_mass == pytest.approx(model.state_.masses.sum())
    assert np.isin(model.label_ids_, model.cluster_ids_).all()
    assert np.array_equal(model.cluster_ids_[model.labels_], model.label_ids_)
    assert np.isfinite(model.score(CORPUS[300:320]))


OPTIONS = [
    {},
    {"revisit": 100},
    {"revisit": 64, "n_revisits": 2, "merge_threshold": 2.0},
    {"keep_sites": True},
    {"merge_threshold": 1.0, "merge_every": 90},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_calls_do_not_matter(options):
    whole = mixture(max_clusters=20, **options).partial_fit(CORPUS[:400])
    parts = mixture(max_clusters=20, **options)
    for start in range(0, 400, 53):
        parts.partial_fit(CORPUS[start : min(start + 53, 400)])
    assert bits(whole.state_) == bits(parts.state_)
    assert whole.lineage_ == parts.lineage_
    assert {"merge", "birth"} <= {event.kind for event in whole.lineage_}
    sites, again = whole.window_.sites, parts.window_.sites
    K = whole.n_clusters_
    assert np.array_equal(sites.matrix(K).toarray(), again.matrix(K).toarray())


@pytest.mark.kernel
@pytest.mark.parametrize("case", ["words", "cells"])
def test_engines_make_the_same_room(case):
    """From one posterior, and over a stream that is short enough not to amplify rounding."""
    rows = CORPUS[:120] if case == "words" else blobs(120)
    likelihood = DirichletMultinomial(0.05) if case == "words" else "diagonal"
    most = 12 if case == "words" else 6
    one, other = (
        StreamingMixture("nig", likelihood, max_clusters=most, engine=engine, prefix_rows=50)
        .partial_fit(rows)
        .finish()
        for engine in ("compiled", "reference")
    )
    assert [event[:4] for event in one.lineage_] == [event[:4] for event in other.lineage_]
    assert any(event.kind != "birth" for event in one.lineage_)
    np.testing.assert_allclose(one.state_.statistics, other.state_.statistics, atol=1e-8)


@pytest.mark.parametrize("kind", ["revisit", "weights"])
def test_sites_add_up_where_no_cluster_was_retired(kind):
    weights = np.random.default_rng(5).uniform(0.5, 2.0, 300) if kind == "weights" else None
    model = mixture(max_clusters=25, revisit="all").partial_fit(CORPUS[:300], sample_weight=weights)
    matrix = model.window_.sites.matrix(model.n_clusters_)
    given = np.ones(300) if weights is None else weights
    np.testing.assert_allclose(matrix.T @ given, model.state_.masses, rtol=1e-9)
    model.finish()
    assert model.n_clusters_ <= 25


def words_state():
    """Return four clusters: two alike, a light one near the first, an outlier as light."""
    counts = np.zeros((5, 12))
    counts[0, :4], counts[1, 4:8] = 50.0, 50.0
    counts[2, :4] = 3.0
    counts[3, 8:12] = 30.0
    counts[4, 4:8] = 40.0
    state = MixtureState(13)
    for _ in counts:
        state.open()
    masses = np.array([20.0, 20.0, 1.2, 1.0, 16.0])
    state.rebuild(np.column_stack([counts, counts.sum(axis=1)]), masses, -30.0 * masses)
    return Model(normalized_inverse_gaussian(1.0, 1.0), DirichletMultinomial(0.5)), state


def test_a_light_cluster_near_another_is_merged():
    model, state = words_state()
    assert keep_within(Budget(max_clusters=5), model, state, ()) == [
        Event("merge", 2, 0, 0, pytest.approx(1.2))
    ]
    assert state.n_clusters == 4


def apart_state(n_words):
    """Return three heavy clusters of words of their own, and a light one of `n_words`."""
    counts = np.zeros((4, 15))
    for k in range(3):
        counts[k, 4 * k : 4 * k + 4] = 400.0
    counts[3, 12:] = n_words / 3
    state = MixtureState(16)
    for _ in counts:
        state.open()
    masses = np.array([60.0, 50.0, 40.0, 1.0])
    state.rebuild(np.column_stack([counts, counts.sum(axis=1)]), masses, -30.0 * masses)
    return Model(normalized_inverse_gaussian(1.0, 1.0), DirichletMultinomial(0.5)), state


@pytest.mark.parametrize("n_words", [0.2, 60])
def test_an_outlier_that_is_far_from_everything_is_retired(n_words):
    model, state = apart_state(n_words)
    rows, outlier = state.rows(np.arange(3)), state.rows(np.array([3]))

    def odds(others, masses):
        """Return likelihood and prior terms by hand; everything is occupied for certain."""
        marginal = model.likelihood.log_marginal
        found = marginal(others + outlier) - marginal(others) - marginal(outlier)
        auxiliary = model.prior.solve_auxiliary(
            state.masses, state.log_vacancy, state.total_mass, np.nan
        )
        both = np.stack([np.ones(len(others)), masses])
        ones = np.ones(len(others))
        return found + model.prior.log_merge_odds(both, np.stack([ones, ones]), ones, 4, auxiliary)

    merging, retiring = -odds(rows, state.masses[:3]).max(), odds(outlier, np.ones(1))[0]
    assert retiring < merging
    (event,) = keep_within(Budget(max_clusters=4), model, state, ())
    assert (event.kind, event.id) == ("retire", 3)


def test_what_is_retired_leaves_the_sites():
    _, state = words_state()
    sites = SiteBuffer()
    sites.append(np.array([0, 3]), np.array([0.6, 0.4]))
    sites.append(np.array([4]), np.array([1.0]))
    total = state.total_mass
    event = retire(state, [sites], 3)
    assert event == Event("retire", 3, None, 0, 1.0)
    assert state.total_mass == pytest.approx(total - 1.0)
    matrix = sites.matrix(4).toarray()
    assert matrix.tolist() == [[0.6, 0, 0, 0], [0, 0, 0, 1.0]]  # the last cluster took its slot
    assert survivor(3, [event]) is None


@pytest.mark.parametrize(("rows", "memory"), [(CORPUS, "700kB"), (WIDE, "400kB")])
def test_memory_stays_within_its_budget(rows, memory):
    model, free = mixture(max_memory=memory), mixture()
    for start in range(0, rows.shape[0], 40):
        model.partial_fit(rows[start : start + 40])
        free.partial_fit(rows[start : start + 40])
        assert model.state_.nbytes <= require_bytes(memory)
    assert free.state_.nbytes > require_bytes(memory)
    assert any(event.kind in ("merge", "retire") for event in model.lineage_)
    whole = mixture(max_memory=memory).partial_fit(rows)
    assert bits(whole.state_) == bits(model.state_)


def test_documents_have_a_budget():
    rng = np.random.default_rng(6)
    texts = [
        [f"w{10 * k + j}" for j in rng.integers(10, size=8)] for k in rng.integers(40, size=300)
    ]
    model = DocumentMixture(spread=20, max_clusters=15).partial_fit(texts)
    assert model.absorbed_.rows.n_clusters.max() == 15
    assert np.array_equal(model.cluster_ids_[model.labels_], model.label_ids_)
    parts = DocumentMixture(spread=20, max_clusters=15)
    for start in range(0, 300, 70):
        parts.partial_fit(texts[start : start + 70])
    assert parts.lineage_ == model.lineage_
    assert np.array_equal(parts.weights_, model.weights_)


def test_saved_in_the_middle(tmp_path):
    model = mixture(max_clusters=10).partial_fit(CORPUS[:200])
    model.save(tmp_path / "model")
    again = StreamingMixture.load(tmp_path / "model")
    for one in (model, again):
        one.partial_fit(CORPUS[200:400])
    assert bits(model.state_) == bits(again.state_)
    assert model.lineage_ == again.lineage_


def test_fit_labels_rows_by_clusters_that_are_there():
    model = mixture(max_clusters=6).fit(CORPUS[:200])
    assert np.isin(model.label_ids_, model.cluster_ids_).all()
    assert np.array_equal(np.unique(model.labels_), np.arange(np.unique(model.label_ids_).size))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_clusters": 1}, "max_clusters must be a whole number >= 2, got 1"),
        (
            {"max_memory": "lots"},
            "max_memory must be a number of bytes, or a size such as .* got 'lots'",
        ),
        ({"max_memory": 0}, "max_memory must be a number of bytes, .* got 0"),
        ({"max_memory": "10kB"}, "max_memory is 10,000 bytes, but with 301 statistics"),
    ],
)
def test_impossible_budgets_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        mixture(**options).partial_fit(CORPUS[:20])


def test_a_budget_for_less_than_two_clusters_is_an_error():
    with pytest.raises(ValueError, match="max_memory is 9,000 bytes, but with"):
        mixture(max_memory=9_000).partial_fit(WIDE[:200])


def test_a_cluster_that_outgrows_the_budget_stays():
    """There is nothing to merge it with, and a stream is not to end."""
    texts = [[*"abcdefgh", *(f"w{i}.{j}" for j in range(20))] for i in range(600)]
    model = DocumentMixture(spread=200, max_memory="40kB")
    for start in range(0, 600, 50):
        model.partial_fit(texts[start : start + 50])
    assert model.n_samples_seen_ == 600
    assert model.n_clusters_ <= 2


@pytest.mark.parametrize(
    "options", [{"max_memory": "80kB"}, {"max_memory": "60kB", "half_life": 50}]
)
def test_a_budget_of_memory_does_not_notice_that_it_was_saved(options, tmp_path):
    rng = np.random.default_rng(8)
    texts = [
        [f"w{7 * k + j}" for j in rng.integers(30, size=20)] for k in rng.integers(60, size=400)
    ]
    whole = DocumentMixture("ngg", **options).partial_fit(texts)
    saved = DocumentMixture("ngg", **options)
    for start in range(0, 400, 45):
        saved.partial_fit(texts[start : start + 45]).save(tmp_path / str(start))
        saved = DocumentMixture.load(tmp_path / str(start))
    assert saved.total_log_evidence_ == whole.total_log_evidence_
    assert saved.lineage_ == whole.lineage_
    assert any(event.kind != "birth" for event in whole.lineage_)


def test_too_little_memory_is_refused_before_anything_is_learnt():
    counts = synthetic_corpus(80, 40, 20.0, 10.0, PitmanYor(3.0, discount=0.3), seed=1).counts
    with pytest.raises(ValueError, match="max_memory is 24,000 bytes, but with"):
        StreamingMixture(max_memory="24kB", prefix_rows=50).fit(counts)


@pytest.mark.kernel
@pytest.mark.parametrize("rows", [CORPUS, WIDE], ids=["dense", "hashed"])
def test_bounds_of_words_follow_a_merge(rows):
    """The screen of a merged posterior is what it would be if it were made anew."""
    model = mixture().partial_fit(rows[:150])
    state, likelihood = model.state_, model.stream_.likelihood
    made = state.cache(likelihood)
    for loser, winner in ((5, 2), (0, 7)):
        state.merge(loser, winner, -1.0)
    followed = state.cache(likelihood)
    assert followed is made
    arrays, K = state.arrays, state.n_clusters
    anew = likelihood.cache(arrays.table, arrays.masses, K)
    assert np.array_equal(followed.levels, anew.levels)
    for name in ("heads", "lengths", "log_lengths", "inverse_lengths"):
        assert np.array_equal(getattr(followed, name)[:K], getattr(anew, name)[:K])
    assert np.isneginf(followed.heads[K:]).all()
