"""When rows fade: at row counts or at times, whatever the calls, and after loading too."""

import pickle

import numpy as np
import pytest
from fading_cases import KINDS, changing, mixture, numbers
from sklearn.base import clone

from bnpstream import DocumentMixture, StreamingMixture
from bnpstream.inference.forgetting import Clock
from bnpstream.storage import Tensors
from bnpstream.storage.models import SavedModel
from states import bits

ROWS = changing(20, rows=120)
CUTS = [[], [1], [40, 41, 90], list(range(7, 120, 7))]


def times(number=1, n=120, late=True):
    """Return times that run in jumps and, now and then, backwards."""
    rng = np.random.default_rng((75, number))
    stamps = np.cumsum(rng.exponential(1.0, size=n) * rng.choice([0.0, 1.0, 20.0], size=n))
    return stamps - late * rng.choice([0.0, 30.0], p=[0.9, 0.1], size=n)


def streamed(model, rows, stamps, cuts, through=lambda model: model):
    parts = zip(
        np.split(rows, cuts),
        [None] * (len(cuts) + 1) if stamps is None else np.split(stamps, cuts),
        strict=True,
    )
    for part, when in parts:
        model = through(model).partial_fit(part, timestamps=when)
    return model


def everything(model):
    """Return all bits that later rows could depend on, and the history."""
    fading = model.window_.fading
    return (
        bits(model.state_),
        model.lineage_,
        model.window_.n_rows,
        None if fading is None else fading.tobytes(),
        model.clock_,
    )


OPTIONS = [
    {},
    {"revisit": 25},
    {"keep_sites": True},
    {"merge_threshold": -2.0, "merge_every": 20},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("by_time", [False, True])
def test_any_split_and_any_saving_gives_the_same_bits(by_time, options, tmp_path):
    stamps = times() if by_time else None

    def fresh():
        return mixture("nig", half_life=40.0, **options)

    def saved(model):
        if hasattr(model, "state_"):
            model.save(tmp_path)
            return StreamingMixture.load(tmp_path)
        return model

    expected = everything(streamed(fresh(), ROWS, stamps, []))
    for cuts in CUTS[1:]:
        assert everything(streamed(fresh(), ROWS, stamps, cuts)) == expected
    assert everything(streamed(fresh(), ROWS, stamps, CUTS[2], saved)) == expected

    def pickled(model):
        return pickle.loads(pickle.dumps(model))

    assert everything(streamed(fresh(), ROWS, stamps, CUTS[2], pickled)) == expected
    assert {event.kind for event in expected[1]} >= {"birth", "retire"}


@pytest.mark.parametrize("by_time", [False, True])
def test_rows_that_wait_for_the_prefix_keep_their_times(by_time, tmp_path):
    rows, stamps = numbers(5, rows=120), times(2) if by_time else None
    expected = None
    for cuts in CUTS:
        for through in (False, True):
            model = StreamingMixture("nig", prefix_rows=50, half_life=30.0)

            def saved(model, through=through):
                if through and getattr(model, "provisional_", False):
                    model.save(tmp_path)
                    return StreamingMixture.load(tmp_path)
                return model

            found = everything(streamed(model, rows, stamps, cuts, saved))
            expected = expected or found
            assert found == expected
    assert expected[-1].n_ticks > 20


@pytest.mark.parametrize("by_time", [False, True])
def test_documents_keep_their_times(by_time, tmp_path):
    rng, stamps = np.random.default_rng((75, 3)), times(4) if by_time else None
    texts = [[f"w{j}" for j in 10 * rng.integers(3) + rng.integers(10, size=6)] for _ in range(120)]
    rows, expected = np.array(texts, object), None
    for cuts in CUTS:
        for through in (False, True):

            def saved(model, through=through):
                if through and hasattr(model, "state_"):
                    model.save(tmp_path)
                    return DocumentMixture.load(tmp_path)
                return model

            model = DocumentMixture("nig", prefix_rows=50, half_life=30.0)
            model = streamed(model, rows, stamps, cuts, saved)
            arrays = model.state_.arrays
            found = (arrays.masses.tobytes(), arrays.totals.tobytes(), model.lineage_, model.clock_)
            expected = expected or found
            assert found == expected
    finished = DocumentMixture("nig", prefix_rows=500, half_life=30.0)
    finished.partial_fit(texts, timestamps=stamps)
    before = finished.total_log_evidence_
    assert finished.finish().total_log_evidence_ == before
    assert finished.stream_.prefix.n_rows == 0


def test_ticks_are_at_fixed_times_and_late_rows_come_at_the_present_one():
    """Weights by plain loops: floor of the time since the first row, never backwards."""
    stamps, half_life = times(5), 16.0
    model = mixture("dp", half_life=half_life, prune_threshold=0.0, keep_sites=True)
    model.partial_fit(ROWS, timestamps=stamps)
    ticks, present = [], 0
    for stamp in stamps:
        present = max(present, int((stamp - stamps[0]) // (half_life / 8)))
        ticks.append(present)
    expected = 0.5 ** ((present - np.array(ticks)) / 8)
    np.testing.assert_allclose(model.window_.fading, expected, rtol=1e-9)
    assert model.state_.total_mass == pytest.approx(expected.sum(), rel=1e-8)
    assert model.clock_ == Clock(half_life, True, float(stamps[0]), 8, present)


def test_a_row_sees_what_is_left_when_it_comes():
    """After ten half-lives without a row everything is retired, and the next row is new."""
    model = mixture("nig", half_life=10.0)
    model.partial_fit(ROWS[:40], timestamps=np.linspace(0, 1, 40))
    model.partial_fit(ROWS[40:41], timestamps=[1e6])
    assert model.n_clusters_ == 1
    assert model.novelty_[0] == 1.0
    assert model.state_.masses.tolist() == [1.0]
    alone = mixture("nig").partial_fit(ROWS[40:41])
    assert model.log_evidence_[0] == pytest.approx(alone.log_evidence_[0], rel=1e-12)
    model.partial_fit(ROWS[41:42], timestamps=[1e300])  # a gap of any length
    assert model.state_.masses.tolist() == [1.0]


def test_dates_are_seconds():
    seconds = np.cumsum(np.arange(120.0))
    dates = np.datetime64("2024-02-28T23:00:00", "ms") + (1000 * seconds).astype("timedelta64[ms]")
    by_number = mixture("dp", half_life=500.0).partial_fit(ROWS, timestamps=seconds)
    by_date = mixture("dp", half_life=500.0).partial_fit(ROWS, timestamps=dates)
    assert bits(by_number.state_) == bits(by_date.state_)


def test_weights_and_times_go_together():
    weights = np.where(np.arange(120) % 3 == 0, 0.0, 1.0)
    there = weights > 0
    found = mixture("dp", half_life=20.0).partial_fit(ROWS, None, weights, times())
    expected = mixture("dp", half_life=20.0).partial_fit(ROWS[there], timestamps=times()[there])
    assert bits(found.state_) == bits(expected.state_)


def test_fit_forgets_what_it_knew_and_starts_the_clock_anew():
    model = mixture("dp", half_life=25.0).partial_fit(ROWS[::-1], timestamps=times())
    model.fit(ROWS)  # by rows this time
    expected = mixture("dp", half_life=25.0).fit(ROWS)
    assert bits(model.state_) == bits(expected.state_)
    assert model.clock_ == expected.clock_
    assert clone(model).half_life == 25.0


def test_the_half_life_can_change_on_the_way():
    model = mixture("dp").partial_fit(ROWS[:50])
    assert model.state_.total_mass == pytest.approx(50)
    model.set_params(half_life=64).partial_fit(ROWS[50:70])
    assert model.clock_.origin == 50
    expected = 50 * 0.5 ** (2 / 8) + (0.5 ** ((2 - np.arange(20) // 8) / 8)).sum()
    assert model.state_.total_mass == pytest.approx(expected)
    total = model.set_params(half_life=None).partial_fit(ROWS[70:]).state_.total_mass
    assert total == pytest.approx(expected + 50)


@pytest.mark.parametrize("value", [0, -3.0, np.inf, np.nan, "7d", [3]])
def test_a_half_life_must_be_a_number_above_zero(value):
    for model in (mixture(half_life=value), DocumentMixture(half_life=value)):
        with pytest.raises(ValueError, match="half_life must be a finite number > 0"):
            model.partial_fit(ROWS[:5] if isinstance(model, StreamingMixture) else [["a"]])


@pytest.mark.parametrize(
    ("stamps", "message"),
    [
        ([0.0, np.nan, 1.0], r"row 1, its timestamp is nan"),
        ([0.0, 1.0, np.inf], r"row 2, its timestamp is inf"),
        (np.array(["2024-01-01", "NaT", "2024-01-02"], "datetime64[D]"), r"row 1.* NaT"),
        ([0.0, 1.0], r"one time per row \(3\), but their shape is \(2,\)"),
        (5.0, r"one time per row \(3\)"),
        (["a", "b", "c"], "numbers or datetime64"),
    ],
)
def test_times_that_are_none_are_refused_before_anything_is_absorbed(stamps, message):
    model = mixture(half_life=5.0).partial_fit(ROWS[:9], timestamps=np.arange(9.0))
    before = bits(model.state_), model.clock_.n_ticks
    with pytest.raises(ValueError, match=message):
        model.partial_fit(ROWS[9:12], timestamps=stamps)
    assert (bits(model.state_), model.clock_.n_ticks) == before


def test_a_stream_goes_by_rows_or_by_time():
    for model, rows in (
        (mixture(half_life=5.0), ROWS),
        (StreamingMixture(half_life=5.0, prefix_rows=50), numbers(6)),
        (DocumentMixture(half_life=5.0), [["a", "b"]] * 20),
    ):
        timed, counted = clone(model), clone(model)
        timed.partial_fit(rows[:5], timestamps=np.arange(5.0))
        with pytest.raises(ValueError, match=r"had timestamps.*give timestamps"):
            timed.partial_fit(rows[5:9])
        counted.partial_fit(rows[:5])
        with pytest.raises(ValueError, match=r"had no timestamps.*leave timestamps out"):
            counted.partial_fit(rows[5:9], timestamps=np.arange(4.0))
        timed.partial_fit(rows[5:9], timestamps=np.arange(4.0))
        counted.partial_fit(rows[5:9])
        with pytest.raises(ValueError, match="give half_life in the same units"):
            clone(model).set_params(half_life=None).fit(rows, timestamps=np.zeros(len(rows)))


def test_refine_says_which_rows_have_faded_away():
    model = mixture("dp", half_life=10, keep_sites=True).partial_fit(ROWS)
    with pytest.raises(ValueError, match="rows now count for less than prune_threshold"):
        model.refine(ROWS)
    family, rows = KINDS["gaussian"]
    model = mixture("dp", family, half_life=60, keep_sites=True).partial_fit(rows)
    assert model.refine(rows).state_.total_mass < 80


def test_a_checkpoint_without_forgetting_has_no_trace_of_it():
    found = mixture("dp", keep_sites=True).partial_fit(ROWS).to_tensors()
    assert "clock" not in found.document
    assert not any("fading" in name or "stamps" in name for name in found.arrays)


def test_a_half_life_may_end_while_the_prefix_fills():
    rows = np.random.default_rng((75, 9)).multinomial(9, np.full(12, 1 / 12), size=90)
    model = StreamingMixture(half_life=30, prefix_rows=50)
    model.partial_fit(rows[:20], timestamps=np.arange(20))
    assert model.set_params(half_life=None).partial_fit(rows[20:]).n_samples_seen_ == 90
    words = [["a", "b"]] * 20
    begun = DocumentMixture().partial_fit(words).set_params(half_life=30)
    with pytest.raises(ValueError, match="had no timestamps"):
        begun.partial_fit(words, timestamps=np.arange(20))


def test_a_stream_goes_on_with_the_ticks_that_it_was_begun_with():
    """Saved without their number, as earlier versions did, there are 64 in a half-life."""
    model = mixture("dp", half_life=64.0).partial_fit(ROWS[:40])
    arrays, document = model.to_tensors()
    stream = document["stream"]
    assert stream.pop("ticks_per_half_life") == stream["clock"].pop("per_half_life") == 8
    stream["clock"]["n_ticks"] = 39
    old = StreamingMixture._of(SavedModel.of(Tensors(arrays, document)))
    before = old.state_.total_mass
    old.partial_fit(ROWS[40:60])
    assert (old.clock_.per_half_life, old.clock_.n_ticks) == (64, 59)
    expected = before * 0.5 ** (20 / 64) + (0.5 ** (np.arange(20) / 64)).sum()
    assert old.state_.total_mass == pytest.approx(expected)
    again = pickle.loads(pickle.dumps(old)).partial_fit(ROWS[60:70])
    assert again.to_tensors()[1]["stream"]["ticks_per_half_life"] == 64


@pytest.mark.parametrize("finished", [False, True])
def test_rows_that_wait_fade_by_the_ticks_that_they_were_kept_with(finished):
    model = StreamingMixture("dp", prefix_rows=50, half_life=64.0).partial_fit(ROWS[:40])
    arrays, document = model.to_tensors()
    del document["stream"]["ticks_per_half_life"]
    old = StreamingMixture._of(SavedModel.of(Tensors(arrays, document)))
    old = old.finish() if finished else old.partial_fit(ROWS[40:45])
    n = 40 if finished else 45
    assert old.clock_.per_half_life == 64
    assert old.state_.total_mass == pytest.approx((0.5 ** (np.arange(n) / 64)).sum())


@pytest.mark.parametrize("forged", [0, -8, 2.5, "8", None])
def test_ticks_that_cannot_be_are_refused(forged):
    model = mixture("dp", half_life=64.0).partial_fit(ROWS[:40])
    arrays, document = model.to_tensors()
    document["stream"]["ticks_per_half_life"] = forged
    with pytest.raises(ValueError, match="ticks_per_half_life must be a whole number"):
        StreamingMixture._of(SavedModel.of(Tensors(arrays, document)))
