"""One loop with a window: ADF where it holds nothing, EP where it holds everything."""

import pickle

import numpy as np
import pytest
from revisit_cases import ENGINES, PRIORS, bits, documents, kernel_of
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from bnpstream import DirichletMultinomial, StreamingMixture
from bnpstream.datasets import bars
from bnpstream.inference import adf
from bnpstream.inference import window as windows

engines = pytest.mark.parametrize("engine", ENGINES)
priors = pytest.mark.parametrize("kind", PRIORS)
FEW_PRIORS = ["dp", "nig", "py"]
few_priors = pytest.mark.parametrize("kind", FEW_PRIORS)
X = documents(50, rows=60)


def mixture(kind="nig", engine="compiled", **options):
    return StreamingMixture(PRIORS[kind][0], DirichletMultinomial(0.3), engine=engine, **options)


def everything(model):
    """Return the bits of posterior, sites and rows held, and the events."""
    sites, held = model.window_.sites, model.window_
    rows = [] if held.n_rows == 0 or not held.keep_rows else held.batch().statistics.toarray()
    return (
        bits(model.state_),
        [[part.tobytes() for part in sites.row(i)] for i in range(sites.n_visited)],
        np.asarray(rows).tobytes(),
        model.lineage_,
    )


def streamed(model, cuts, rows=X, finish=True):
    for part in np.split(rows, cuts):
        model.partial_fit(part)
    return model.finish() if finish else model


# --- the two ends ---------------------------------------------------------------------------------


@pytest.mark.kernel
@engines
@priors
def test_a_window_of_none_gives_the_bits_of_adf(kind, engine):
    rows = X[:24]
    stream = mixture(kind, engine).partial_fit(rows[:1]).stream_
    model, settings = stream.model, stream.visits
    batch = model.likelihood.encode(rows)
    state = adf.init(model, batch.n_statistics)
    list(adf.run(model, state, batch, settings, kernel_of(model, batch, engine)))
    for found in (
        mixture(kind, engine, revisit=0, n_revisits=3, tol=0.0).fit(rows),
        streamed(mixture(kind, engine, revisit=0), [13, 14], rows),
        mixture(kind, engine, n_passes=1).fit(rows),
        mixture(kind, engine, keep_sites=True).fit(rows),
    ):
        assert bits(found.state_) == bits(state)
        assert found.epochs_ == []
    assert bits(mixture(kind, engine, revisit=20).fit(rows).state_) != bits(state)


@pytest.mark.kernel
@engines
@priors
def test_a_window_of_all_rows_and_finish_gives_the_bits_of_ep(kind, engine):
    rows = X[:24]
    for n_revisits, tol in ((1, 1e-4), (3, 0.0), (9, 0.05)):
        expected = mixture(kind, engine, n_passes=n_revisits + 1, tol=tol).fit(rows)
        assert 1 <= len(expected.epochs_) <= n_revisits
        for size, cuts in ((24, []), (24, [1, 9, 23]), (25, []), (10_000, [12])):
            model = mixture(kind, engine, revisit=size, n_revisits=n_revisits, tol=tol)
            found = model.fit(rows) if not cuts else streamed(model, cuts, rows)
            assert bits(found.state_) == bits(expected.state_)
            assert found.epochs_ == expected.epochs_  # all in the one call of `fit` or `finish`
            assert found.lineage_ == expected.lineage_
        smaller = mixture(kind, engine, revisit=23, n_revisits=n_revisits, tol=tol).fit(rows)
        assert bits(smaller.state_) != bits(expected.state_)


@few_priors
@pytest.mark.parametrize("merge_threshold", [-2.0, 0.0])
def test_a_window_of_all_rows_merges_as_ep_does(kind, merge_threshold):
    options = {"merge_threshold": merge_threshold, "tol": 0.0}
    expected = mixture(kind, n_passes=4, **options).fit(X)
    found = mixture(kind, revisit=len(X), n_revisits=3, **options).fit(X)
    assert bits(found.state_) == bits(expected.state_)
    assert found.lineage_ == expected.lineage_
    if merge_threshold < 0:
        assert any(event.kind == "merge" for event in found.lineage_)


# --- batches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("merge_threshold", [None, -1.0])
@pytest.mark.parametrize(("size", "n_revisits"), [(1, 1), (2, 2), (7, 1), (7, 2), (40, 2)])
@few_priors
def test_any_split_into_batches_gives_the_same_bits(kind, size, n_revisits, merge_threshold):
    model = mixture(
        kind, revisit=size, n_revisits=n_revisits, tol=0.0, merge_threshold=merge_threshold
    )
    before = everything(clone(model).partial_fit(X))
    whole = clone(model).fit(X)
    assert len(whole.epochs_) > 1
    row_by_row = range(1, len(X)) if (size, n_revisits) == (7, 2) else range(size, size + 3)
    for cuts in (row_by_row, [1, 6, 7, 8, 40, 41, 59]):
        parts, epochs = clone(model), []
        for part in np.split(X, cuts):
            epochs += parts.partial_fit(part).epochs_
        assert everything(parts) == before
        epochs += parts.finish().epochs_
        assert everything(parts) == everything(whole)
        assert epochs == whole.epochs_


@few_priors
def test_any_split_gives_the_same_bits_in_the_reference_engine(kind):
    model = mixture(kind, "reference", revisit=7, n_revisits=2, tol=0.0, merge_threshold=-1.0)
    whole = clone(model).partial_fit(X)
    finished = everything(clone(model).fit(X))
    for cuts in (range(20, 30), [6, 7, 8, 40, 41]):
        parts = streamed(clone(model), cuts, finish=False)
        assert everything(parts) == everything(whole)
        assert everything(parts.finish()) == finished


@pytest.mark.parametrize(
    "options",
    [{"merge_threshold": -1.0, "merge_every": 7}, {"keep_sites": True, "merge_threshold": -1.0}],
    ids=str,
)
def test_any_split_gives_the_same_bits_with_merges_and_no_window(options):
    model = mixture("nig", **options)
    whole = clone(model).fit(X)
    assert any(event.kind == "merge" for event in whole.lineage_)
    for cuts in (range(1, len(X)), [6, 7, 8, 40, 41]):
        assert everything(streamed(clone(model), cuts)) == everything(whole)


def test_fit_is_partial_fit_and_finish_and_forgets_what_came_before():
    model = mixture("nig", revisit=20, n_revisits=2)
    once = clone(model).fit(X)
    assert everything(clone(model).fit(X[:33]).fit(X)) == everything(once)
    assert everything(clone(model).partial_fit(X[:33]).fit(X)) == everything(once)
    assert everything(clone(model).partial_fit(X).finish()) == everything(once)


def test_labels_are_those_of_the_posterior_after_the_revisits():
    for options in ({"revisit": 20}, {"n_passes": 4}, {"merge_threshold": -1.0, "merge_every": 9}):
        model = mixture("nig", **options).fit(X)
        np.testing.assert_array_equal(model.label_ids_, model.predict_ids(X))
        ranks = np.unique(model.predict(X), return_inverse=True)[1]
        np.testing.assert_array_equal(model.labels_, ranks)  # without gaps
        assert set(model.predict_ids(X)) <= set(model.cluster_ids_)
    model = mixture("nig", revisit=20).partial_fit(X[:50]).partial_fit(X[50:])
    np.testing.assert_array_equal(model.labels_, model.predict(X[50:]))
    assert model.log_evidence_.shape == (10,)


def test_evidence_is_that_of_the_first_visits():
    """Revisits do not count twice; what was seen one step ahead stays as it was."""
    model = mixture("nig", revisit=20, n_revisits=3, tol=0.0)
    seen = [model.partial_fit(X[i : i + 1]).log_evidence_[0] for i in range(len(X))]
    assert model.total_log_evidence_ == pytest.approx(sum(seen), rel=1e-12)
    total = model.total_log_evidence_
    assert model.finish().total_log_evidence_ == total
    assert len(model.epochs_) == 3
    assert model.n_samples_seen_ == len(X)


# --- refine ---------------------------------------------------------------------------------------


@pytest.mark.kernel
@engines
@few_priors
def test_refine_gives_the_bits_of_more_passes(kind, engine):
    rows = X[:24]
    for passes in (1, 4):
        expected = mixture(kind, engine, n_passes=passes + 1).fit(rows)
        for cuts in ([], [1, 15]):
            model = streamed(mixture(kind, engine, keep_sites=True), cuts, rows, finish=False)
            model.refine(rows, passes)
            assert bits(model.state_) == bits(expected.state_)
            assert model.epochs_ == expected.epochs_
            np.testing.assert_array_equal(model.labels_, expected.labels_)
    more = mixture(kind, engine, keep_sites=True, n_passes=3, tol=0.0).fit(rows).refine(rows, 2)
    assert bits(more.state_) == bits(mixture(kind, engine, n_passes=5, tol=0.0).fit(rows).state_)


def test_a_stream_goes_on_after_refine():
    model = mixture("nig", keep_sites=True).partial_fit(X[:40]).refine(X[:40], 2)
    model.partial_fit(X[40:]).refine(X)
    assert model.n_samples_seen_ == len(X)
    assert model.window_.n_rows == len(X)
    assert model.state_.total_mass <= len(X) + 1e-9
    assert model.epochs_[-1].n_rows == len(X)


def unchanged(model, call, match, error=ValueError):
    before, epochs = everything(model), model.epochs_
    labels = model.labels_.copy()
    with pytest.raises(error, match=match):
        call()
    assert everything(model) == before
    assert model.epochs_ == epochs
    np.testing.assert_array_equal(model.labels_, labels)


def test_refine_says_what_it_needs_and_changes_nothing():
    for options in ({}, {"n_passes": 2}, {"revisit": 100}):
        model = mixture("nig", **options).fit(X)
        unchanged(model, lambda m=model: m.refine(X), "keep_sites=True")
    model = mixture("nig", revisit=100).partial_fit(X)  # all sites are there, but not for long
    unchanged(model, lambda: model.refine(X), "keep_sites=True")
    kept = mixture("nig", keep_sites=True).fit(X)
    unchanged(kept, lambda: kept.refine(X[:-1]), "needs the 60 rows absorbed so far.*got 59")
    unchanged(kept, lambda: kept.refine(X[:, :-1]), "20 features|19 features")
    unchanged(kept, lambda: kept.refine(X, 0), "n_passes must be a whole number >= 1, got 0")
    unchanged(kept, lambda: kept.refine(X, 1.5), "n_passes must be a whole number >= 1, got 1.5")
    late = mixture("nig").partial_fit(X[:30]).set_params(keep_sites=True).partial_fit(X[30:])
    unchanged(late, lambda: late.refine(X), "sites of all rows: fit with keep_sites=True")
    with pytest.raises(NotFittedError):
        mixture(keep_sites=True).refine(X)
    with pytest.raises(NotFittedError):
        mixture(revisit=3).finish()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_passes": 0}, "n_passes must be a whole number >= 1, got 0"),
        ({"n_passes": 2.0}, "n_passes must be a whole number >= 1, got 2.0"),
        ({"revisit": -1}, "revisit must be a whole number >= 0, got -1"),
        ({"revisit": 0.5}, "revisit must be a whole number >= 0, got 0.5"),
        ({"n_revisits": 0}, "n_revisits must be a whole number >= 1, got 0"),
        ({"merge_every": 0}, "merge_every must be a whole number >= 1, got 0"),
        ({"tol": -1e-3}, r"tol must be in \[0, inf\), got -0.001"),
        ({"tol": np.nan}, r"tol must be in \[0, inf\), got nan"),
        ({"n_passes": 3, "revisit": 5}, "n_passes=3.*revisit=5.*give only one of them"),
        ({"keep_sites": True, "revisit": 5}, "keep_sites=True.*revisit=5.*give only one"),
        ({"prune_threshold": -0.1}, r"prune_threshold must be in \[0, 1\), got -0.1"),
    ],
    ids=str,
)
def test_bad_values_are_named_and_nothing_changes(options, match):
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=match):
            getattr(mixture(**options), method)(X)
        model = mixture("nig", revisit=20).partial_fit(X)
        before = model.get_params()
        model.set_params(**{"revisit": 0, **options})
        unchanged(model, lambda m=model, name=method: getattr(m, name)(X), match)
        model.set_params(**before)
        expected = mixture("nig", revisit=20).partial_fit(X).partial_fit(X)
        assert everything(model.partial_fit(X)) == everything(expected)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"tol": -1.0}, r"tol must be in \[0, inf\)"),
        ({"prune_threshold": -1.0}, r"prune_threshold must be in \[0, 1\)"),
        ({"new_cluster_threshold": 2.0}, "new_cluster_threshold"),
        ({"engine": "fast"}, "engine must be"),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["finish", "refine"])
def test_finish_and_refine_name_bad_values_and_change_nothing(method, options, match):
    if method == "finish":
        model = mixture("nig", revisit=20, merge_threshold=-1.0).partial_fit(X)
        call = model.finish
    else:
        model = mixture("nig", keep_sites=True, merge_threshold=-1.0).partial_fit(X)
        call = lambda: model.refine(X)  # noqa: E731
    model.set_params(**options)
    unchanged(model, call, match)


def test_a_bad_row_changes_nothing_in_the_middle_of_a_window():
    model = mixture("nig", revisit=20).partial_fit(X)
    bad = X.copy()
    bad[40, 3] = -1
    unchanged(model, lambda: model.partial_fit(bad), "row 40, column 3")
    unchanged(model, lambda: model.partial_fit(X[:, :-1]), "20 features|19 features")


# --- what the window holds ------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_the_window_holds_at_most_its_size_and_freezes_the_older_half(size):
    model, held, frozen = mixture("nig", revisit=size), [], 0
    for i in range(40):
        model.partial_fit(X[i : i + 1])
        if len(held) == size:
            frozen += (size + 1) // 2
            held = held[(size + 1) // 2 :]
        held.append(X[i])
        assert model.window_.n_rows == len(held) <= size
        assert model.window_.sites.n_visited == len(held)
        rows = model.window_.batch().statistics.toarray()[:, :-1]
        np.testing.assert_array_equal(rows, held)
        assert frozen + len(held) == i + 1
    assert frozen > 0
    assert [epoch.n_rows for epoch in model.finish().epochs_] == [len(held)]
    assert model.window_.n_rows == 0
    assert model.finish().epochs_ == []  # nothing is left to do


def test_the_site_of_a_frozen_row_is_part_of_the_posterior_for_good():
    model = mixture("nig", revisit=10, n_revisits=2, prune_threshold=0.0).partial_fit(X[:10])
    model.partial_fit(X[10:11])  # the eleventh row froze five
    frozen = model.state_.copy()
    sites, batch = model.window_.sites, model.window_.batch()
    for i in range(sites.n_visited):
        slots, shares = sites.row(i)
        frozen.take_out(slots[slots >= 0], shares[slots >= 0], batch.row(i))
    assert frozen.total_mass == pytest.approx(5.0, abs=1e-9)
    np.testing.assert_allclose(frozen.statistics[:, :-1].sum(axis=0), X[:5].sum(axis=0), atol=1e-9)


def test_a_stream_goes_on_after_finish():
    model = mixture("nig", revisit=20).partial_fit(X[:33]).finish()
    assert model.window_.n_rows == 0
    model.partial_fit(X[33:])
    assert (model.window_.n_rows, model.n_samples_seen_) == (17, 60)
    dead = sum(event.mass for event in model.lineage_ if event.kind == "death")
    assert 60 - dead - 1e-9 < model.state_.total_mass < 60 + 1e-9


def test_rows_are_swept_when_the_next_one_comes():
    """A window that is exactly full waits: the stream may have ended."""
    model = mixture("nig", revisit=20, n_revisits=2, tol=0.0).partial_fit(X[:20])
    assert model.epochs_ == []
    assert model.window_.n_rows == 20
    model.partial_fit(X[20:21])
    assert [epoch.n_rows for epoch in model.epochs_] == [20, 20]
    assert model.window_.n_rows == 11


def test_without_revisits_sites_are_kept_for_merging_only():
    model = mixture("nig", merge_threshold=0.0, merge_every=25).partial_fit(X)
    assert not model.window_.keep_rows
    assert model.window_.n_rows == 60 - 2 * 25
    assert model.finish().window_.n_rows == 0


def test_a_schedule_merges_when_a_window_is_full_and_to_finish(monkeypatch):
    seen = []
    real = windows.merge_all

    def counting(model, state, sites, threshold, fading):
        seen.append((state.n_observations, sites.n_visited, threshold))
        return real(model, state, sites, threshold, fading)

    monkeypatch.setattr(windows, "merge_all", counting)
    mixture("nig", merge_threshold=2.5, merge_every=25).fit(X)
    assert seen == [(25, 25, 2.5), (50, 25, 2.5), (60, 10, 2.5)]
    seen.clear()
    mixture("nig", merge_threshold=2.5, revisit=40).fit(X)
    assert seen == [(40, 40, 2.5)] * 2 + [(60, 40, 2.5)] * 2
    seen.clear()
    mixture("nig", revisit=40).fit(X)
    assert seen == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"revisit": 20}),
        ({"merge_threshold": 0.0}, {"revisit": 20}),
        ({"keep_sites": True}, {"keep_sites": False, "revisit": 20}),
        ({"revisit": 20}, {"revisit": 30, "n_revisits": 3}),
        ({"revisit": 20}, {"revisit": 5}),
        ({"revisit": 20}, {"revisit": 0}),
        ({"revisit": 20}, {"revisit": 0, "merge_threshold": 0.0, "merge_every": 10}),
        ({"revisit": 20}, {"revisit": 0, "keep_sites": True}),
        ({"n_passes": 3, "keep_sites": True}, {"keep_sites": False}),
    ],
    ids=str,
)
def test_the_schedule_may_change_in_the_middle_of_a_stream(before, after):
    """Nothing crashes, every row is counted once, and the window obeys its new size."""
    model = mixture("nig", prune_threshold=0.0, **before).fit(X[:7]).partial_fit(X[7:30])
    model.set_params(**after).partial_fit(X[30:]).finish()
    assert model.n_samples_seen_ == len(X)
    assert model.state_.total_mass == pytest.approx(len(X), abs=1e-9)
    np.testing.assert_allclose(
        model.state_.statistics[:, :-1].sum(axis=0), X.sum(axis=0), atol=1e-9
    )


# --- memory ---------------------------------------------------------------------------------------


def held_bytes(model):
    """Return the bytes of sites, rows and posterior."""
    sites = model.window_.sites.arrays
    rows = [
        part
        for batch in model.window_._parts
        for part in (
            batch.statistics.data,
            batch.statistics.indices,
            batch.statistics.indptr,
            batch.log_base,
        )
    ]
    return (
        sum(part.nbytes for part in sites),
        sum(part.nbytes if part.base is None else part.base.nbytes for part in rows),
        model.state_.nbytes,
    )


@pytest.mark.parametrize("batch", [1000, 130])
@pytest.mark.parametrize(
    "options", [{"revisit": 50}, {"merge_threshold": 0.0, "merge_every": 50}], ids=str
)
def test_memory_does_not_grow_with_the_stream(options, batch):
    source = bars(n_images=5000, seed=3)
    model = mixture("nig", **options)
    sizes = {}
    for start in range(0, 5000, batch):
        model.partial_fit(source.counts[start : start + batch])
        sizes[start + batch] = held_bytes(model)
        assert len(model.window_._parts) <= 3
    early = sizes[min(n for n in sizes if n >= 1000)]
    late = np.max([held for n, held in sizes.items() if n > 1000], axis=0)
    assert (late <= 2 * np.array(early)).all()
    assert early[0] > 0
    assert (early[1] > 0) == ("revisit" in options)  # rows are kept to be revisited only


# --- state ----------------------------------------------------------------------------------------


@engines
@few_priors
def test_a_pickle_in_the_middle_of_a_window_goes_on_with_the_same_bits(kind, engine):
    model = mixture(kind, engine, revisit=16, n_revisits=2, merge_threshold=-1.0)
    whole = clone(model).fit(X)
    for stop in (5, 16, 17, 29):
        other = pickle.loads(pickle.dumps(clone(model).partial_fit(X[:stop])))
        assert 0 < other.window_.n_rows <= 16
        assert everything(other.partial_fit(X[stop:]).finish()) == everything(whole)


def test_a_pickle_with_kept_sites_can_be_refined():
    kept = mixture("nig", keep_sites=True).fit(X)
    other = pickle.loads(pickle.dumps(kept))
    assert everything(other.refine(X, 3)) == everything(kept.refine(X, 3))


def test_predicting_in_the_middle_of_a_window_changes_nothing():
    model, other = (mixture("nig", revisit=16).partial_fit(X[:40]) for _ in range(2))
    model.predict(X), model.score_samples(X), model.sample(3), model.resolve_id(0)
    assert everything(model.partial_fit(X[40:])) == everything(other.partial_fit(X[40:]))
