"""The first rows: kept until a base measure can be learnt, whatever the calls they came in."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from bnpstream import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    DirichletMultinomial,
    Gaussian,
    Product,
    StreamingMixture,
)
from states import bits, everything

ROWS, PREFIX = 60, 25
CUTS = [[PREFIX], [PREFIX - 1], [PREFIX + 1], [1, 2, 24, 26, 40], list(range(1, ROWS)), [10, 20]]


def real():
    rng = np.random.default_rng((80, 1))
    return np.array([[-5, 0], [0, 5], [6, 6]])[np.arange(ROWS) % 3] + rng.normal(size=(ROWS, 2))


def frame():
    rng = np.random.default_rng((80, 2))
    z = np.arange(ROWS) % 3
    table = pd.DataFrame(
        {
            "size": np.array([1.0, 5.0, 9.0])[z] + 0.3 * rng.normal(size=ROWS),
            "colour": np.array(["red", "green", "blue"], dtype=object)[z],
            "sold": np.array([True, False, True])[z],
        }
    )
    table.loc[rng.random(ROWS) < 0.2, "size"] = np.nan
    table.loc[rng.random(ROWS) < 0.2, "colour"] = None
    return table


def holes():
    rows = real()
    rows[np.random.default_rng((80, 3)).random(rows.shape) < 0.2] = np.nan
    return rows


NAMED = Product(
    [
        ("number", DiagonalGaussian(), ["size"]),
        ("label", Categorical(), "colour"),
        ("truth", Bernoulli(), slice(2, 3)),
    ]
)
STREAMS = {
    "auto": ("auto", real),
    "auto with holes": ("auto", holes),
    "gaussian": ("gaussian", real),
    "half open": (Gaussian(mean=[0.0, 0.0]), real),
    "auto frame": ("auto", frame),
    "product": (NAMED, frame),
    "sparse": ("auto", lambda: csr_array(np.round(np.abs(real())))),
}
streams = pytest.mark.parametrize("stream", STREAMS)


def mixture(stream, **options):
    return StreamingMixture("nig", STREAMS[stream][0], prefix_rows=PREFIX, **options)


def rows_of(table, start, stop):
    return table.iloc[start:stop] if isinstance(table, pd.DataFrame) else table[start:stop]


def fed(model, table, cuts):
    """Absorb a table in parts; return what was said of every row as it came."""
    ends = [0, *cuts, table.shape[0]]
    said = []
    for start, stop in pairwise(ends):
        model.partial_fit(rows_of(table, start, stop))
        assert len(model.labels_) == stop - start
        said.append(model.log_evidence_)
    return said


@streams
@pytest.mark.parametrize("options", [{}, {"revisit": 20}, {"merge_threshold": 1.0}], ids=str)
def test_any_split_about_the_prefix_gives_the_same_bits(stream, options):
    table = STREAMS[stream][1]()
    whole = mixture(stream, **options).partial_fit(table)
    for cuts in CUTS:
        parts = mixture(stream, **options)
        fed(parts, table, cuts)
        assert bits(parts.state_) == bits(whole.state_)
        assert repr(parts.likelihood_) == repr(whole.likelihood_)
        assert parts.score_samples(table).tobytes() == whole.score_samples(table).tobytes()


def test_rows_beyond_the_prefix_do_not_change_what_is_learnt():
    """Until there are twice as many, and the scale is looked at again."""
    table = real()[: 2 * PREFIX - 1]
    one = mixture("gaussian").partial_fit(table)
    other = mixture("gaussian").partial_fit(np.vstack([table[:PREFIX], 1e3 + table[PREFIX:]]))
    assert repr(one.likelihood_) == repr(other.likelihood_)
    learnt, scale = Gaussian().informed(table[:PREFIX]), one.stream_.learner.scale
    np.testing.assert_array_equal(one.likelihood_.mean, learnt.mean)
    np.testing.assert_array_equal(one.likelihood_.covariance, scale * learnt.covariance)
    assert not np.array_equal(one.likelihood_.mean, Gaussian().informed(table).mean)


@streams
def test_a_throw_away_model_answers_while_the_prefix_fills(stream):
    """It says what `fit` of the same rows says; the stream goes on as if nobody had asked."""
    table = STREAMS[stream][1]()
    model, silent = mixture(stream), mixture(stream)
    for stop in (4, 11, PREFIX - 1):
        start = {4: 0, 11: 4}.get(stop, 11)
        for each in (model, silent):
            each.partial_fit(rows_of(table, start, stop))
        assert model.provisional_
        fresh = mixture(stream).fit(rows_of(table, 0, stop))
        assert bits(model.state_) == bits(fresh.state_)
        assert model.n_samples_seen_ == stop
        assert model.n_clusters_ == fresh.n_clusters_
        assert model.total_log_evidence_ == fresh.total_log_evidence_
        np.testing.assert_array_equal(model.weights_, fresh.weights_)
        np.testing.assert_array_equal(model.means_, fresh.means_)
        np.testing.assert_array_equal(model.label_ids_, fresh.label_ids_[start:])
        np.testing.assert_array_equal(model.probabilities_, fresh.probabilities_[start:])
        np.testing.assert_array_equal(model.log_evidence_, fresh.log_evidence_[start:])
        assert repr(model.likelihood_) == repr(fresh.likelihood_)
        later = rows_of(table, 30, 40)
        np.testing.assert_array_equal(model.predict(later), fresh.predict(later))
        np.testing.assert_array_equal(model.predict_proba(later), fresh.predict_proba(later))
        assert model.lineage_ == fresh.lineage_
    for each in (model, silent):
        each.partial_fit(rows_of(table, PREFIX - 1, ROWS))
        assert not each.provisional_
    assert bits(model.state_) == bits(silent.state_)


@pytest.mark.parametrize("options", [{}, {"revisit": 15}, {"keep_sites": True}], ids=str)
def test_finish_absorbs_what_was_kept(options):
    table = holes()[:10]
    model = mixture("auto", **options).partial_fit(table[:4]).partial_fit(table[4:])
    assert model.provisional_
    model.finish()
    assert not model.provisional_
    assert bits(model.state_) == bits(mixture("auto", **options).fit(table).state_)
    assert model.partial_fit(table).n_samples_seen_ == 20


def test_fit_makes_do_with_fewer_rows_than_the_prefix():
    table = real()
    few = StreamingMixture(prefix_rows=500).fit(table)
    enough = StreamingMixture(prefix_rows=ROWS).fit(table)
    assert bits(few.state_) == bits(enough.state_)
    one = StreamingMixture().fit(table[:1])
    assert one.n_clusters_ == 1
    assert one.predict(table).tolist() == [0] * ROWS


def test_refine_begins_with_what_was_kept():
    table = real()[:12]
    model = mixture("gaussian", keep_sites=True).partial_fit(table).refine(table, n_passes=2)
    fitted = mixture("gaussian", n_passes=3, merge_threshold=None).fit(table)
    assert bits(model.state_) == bits(fitted.state_)


def test_pickled_while_the_prefix_fills_it_goes_on_alike():
    table = frame()
    model = mixture("product").partial_fit(table[:9])
    assert model.n_samples_seen_ == 9  # a throw-away model has been made
    other = pickle.loads(pickle.dumps(model))
    for each in (model, other):
        each.partial_fit(table[9:])
    assert bits(model.state_) == bits(other.state_)


def test_the_caller_may_reuse_its_array_while_rows_are_kept():
    table, buffer = real(), np.empty((5, 2))
    model, weights = mixture("gaussian"), np.empty(5)
    for start in range(0, ROWS, 5):
        buffer[:], weights[:] = table[start : start + 5], 1.0 + start
        model.partial_fit(buffer, sample_weight=weights)
        buffer[:], weights[:] = np.nan, 0.0
    whole = mixture("gaussian").partial_fit(table, sample_weight=1.0 + np.arange(ROWS) // 5 * 5)
    assert bits(model.state_) == bits(whole.state_)


def test_sparse_whole_numbers_are_counts_whatever_comes():
    counts = csr_array(np.round(np.abs(real())).astype(int))
    model = mixture("auto").partial_fit(counts[:2])
    assert model.provisional_
    assert isinstance(model.likelihood_, DirichletMultinomial)


def test_what_is_given_waits_for_nothing():
    counts = csr_array(np.round(np.abs(real())).astype(int))
    model = StreamingMixture("nig", DirichletMultinomial(0.1)).partial_fit(counts[:2])
    assert not model.provisional_


# --- bad rows -------------------------------------------------------------------------------------


BAD = [
    ([[1.0, 2.0], [np.inf, 1.0]], "row 1, column 0 is inf"),
    ([[1.0, 2.0], [3.0, np.nan]], "row 1, column 1 is missing"),
    ([[1.0, "a"]], "row 0, column 1 is 'a'"),
    ([[1.0, 2.0, 3.0]], "X has 3 features, but StreamingMixture is expecting 2"),
    ([1.0, 2.0], "1 dimension"),
    (np.empty((0, 2)), "X is empty"),
]


@pytest.mark.parametrize(("bad", "message"), BAD)
def test_a_bad_row_while_the_prefix_fills_is_refused_and_nothing_changes(bad, message):
    model = mixture("gaussian").partial_fit(real()[:7])
    before = everything(model)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(bad)
    assert everything(model) == before
    model.partial_fit(real()[7:])
    assert bits(model.state_) == bits(mixture("gaussian").partial_fit(real()).state_)


@pytest.mark.parametrize(("bad", "message"), BAD[:3])
def test_a_bad_first_row_leaves_no_trace(bad, message):
    model = mixture("gaussian")
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.partial_fit(bad)
    assert vars(model) == before


@pytest.mark.parametrize("start", [0, 10, PREFIX - 1])
def test_a_row_that_does_not_suit_the_family_just_learnt_is_refused(start):
    """It comes in the call that fills the prefix, beyond it: its place is that in the call."""
    table = real()
    model = mixture("auto")
    if start:
        model.partial_fit(table[:start])
    before = everything(model) if start else dict(vars(model))
    spoilt = table[start:].copy()
    spoilt[40 - start, 1] = np.nan
    with pytest.raises(ValueError, match=f"row {40 - start}, column 1 is missing.*Diagonal"):
        model.partial_fit(spoilt)
    assert (everything(model) if start else vars(model)) == before
    model.partial_fit(table[start:])
    assert bits(model.state_) == bits(mixture("auto").partial_fit(table).state_)


def test_prefix_rows_must_be_a_whole_number():
    for bad in (0, 2.5, None):
        with pytest.raises(ValueError, match=f"prefix_rows must be a whole number >= 1, got {bad}"):
            StreamingMixture(prefix_rows=bad).fit(real())
