"""What a `Stream` promises: phases, any split the same bits, and snapshots to go on from."""

import json
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest

from bnpstream.engine import (
    FixedColumns,
    GrowingVocabulary,
    Phase,
    Settings,
    Snapshot,
    Stream,
    restore,
    snapshot,
)
from bnpstream.likelihoods import DiagonalGaussian
from bnpstream.mixture import Event, survivors
from bnpstream.mixture.snapshot import lineage_arrays, lineage_from
from bnpstream.priors import normalized_inverse_gaussian
from states import bits

N, PREFIX = 60, 20
RNG = np.random.default_rng((61, 1))
TOPIC = RNG.integers(3, size=N)
NUMBERS = 8.0 * TOPIC[:, None] + RNG.normal(size=(N, 2))
TEXTS = [
    {f"w{word}": 1 + int(word) % 2 for word in 10 * topic + RNG.integers(i // 6 + 3, size=6)}
    for i, topic in enumerate(TOPIC)
]
WEIGHTS = np.where(np.arange(N) % 7 == 3, 0.0, 0.5 + RNG.random(N))
TIMES = np.cumsum(RNG.random(N))
OPTIONS = {
    "plain": {},
    "window": {"revisit": 15, "n_revisits": 2},
    "sites": {"keep_sites": True},
    "merges": {"merge_threshold": -2.0, "merge_every": 10},
    "splits": {"revisit": 15, "n_revisits": 2, "merge_threshold": 0.0, "split_threshold": 0.0},
    "fading": {"half_life": 9.0, "revisit": 15},
}
CUTS = [[PREFIX], [1, 2, PREFIX - 1, PREFIX + 5, 44], list(range(2, N, 2))]
CLOSED = DiagonalGaussian(mean=[8.0, 8.0], variance=[1.0, 1.0])
ENCODERS = {
    "numbers": (lambda: FixedColumns(DiagonalGaussian()), NUMBERS),
    "given numbers": (lambda: FixedColumns(CLOSED), NUMBERS),
    "documents": (GrowingVocabulary, TEXTS),
    "given documents": (lambda: GrowingVocabulary(30.0), TEXTS),
}
PRIOR = normalized_inverse_gaussian(2.0, 3.0).learning()
kinds = pytest.mark.parametrize("kind", ENCODERS)


def settings(**options):
    return Settings(prefix_rows=PREFIX, **options)


def stream_of(kind, **options):
    return Stream(PRIOR, ENCODERS[kind][0](), settings(**options))


def fed(stream, kind, cuts, columns, after=lambda stream: stream):
    """Absorb all rows in parts, with some of weights and times."""
    rows, ends = ENCODERS[kind][1], [0, *cuts, N]
    for start, stop in pairwise(ends):
        extra = {name: values[start:stop] for name, values in columns.items()}
        stream.absorb(rows[start:stop], **extra)
        stream = after(stream)
    return stream


def whole(stream):
    """Return every byte of a stream, kept rows and all that it goes by included."""
    document, arrays = snapshot(stream)
    own = {name: (x.dtype.str, x.shape, x.tobytes()) for name, x in arrays.items()}
    return stream.phase, json.dumps(document, sort_keys=True), own


def through_json(stream, options):
    """Return the stream that is restored from what would be on disk."""
    document, arrays = snapshot(stream)
    saved = Snapshot(
        json.loads(json.dumps(document)), {name: x.copy() for name, x in arrays.items()}
    )
    return restore(saved, settings(**options))


def test_phases_follow_one_another():
    stream = stream_of("numbers")
    assert stream.phase is Phase.EMPTY
    with pytest.raises(ValueError, match="nothing to finish"):
        stream.finish()
    assert stream.absorb(NUMBERS[:5]) is None
    assert stream.phase is Phase.PREFIX
    assert stream.n_rows == stream.answering.state.n_observations == 5
    assert stream.answering is stream.answering
    assert stream.answering is not stream
    with pytest.raises(ValueError, match="no rows have been absorbed"):
        assert stream.state
    absorption = stream.absorb(NUMBERS[5:30])
    assert stream.phase is Phase.RUNNING
    assert stream.answering is stream
    assert (absorption.n_waited, absorption.places.size, stream.prefix.n_rows) == (5, 30, 0)
    own = absorption.own()
    assert (own.n_waited, own.places.tolist()) == (0, list(range(25)))
    assert own.absorbed.rows.ids.size == 25


def test_what_is_given_in_full_waits_for_nothing():
    stream = stream_of("given numbers")
    assert stream.absorb(NUMBERS[:1]).places.size == 1
    assert stream.phase is Phase.RUNNING


def test_finish_absorbs_what_was_kept():
    stream, other = stream_of("numbers"), stream_of("numbers")
    stream.absorb(NUMBERS[:10])
    other.absorb(NUMBERS[:10])
    asked = bits(other.answering.state)
    assert stream.finish().places.size == 10
    assert bits(stream.state) == asked


@kinds
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_any_split_gives_the_same_bits(kind, options, weighted):
    columns = {"weights": WEIGHTS} if weighted else {}
    if options == "fading":
        columns["timestamps"] = TIMES
    one = fed(stream_of(kind, **OPTIONS[options]), kind, [], columns)
    assert one.state.n_clusters > 1
    one.epochs = []  # of the last call
    expected = whole(one)
    for cuts in CUTS:
        parts = fed(stream_of(kind, **OPTIONS[options]), kind, cuts, columns)
        parts.epochs = []
        assert whole(parts) == expected
    one.finish()
    parts.finish()
    assert whole(parts) == whole(one)


@kinds
@pytest.mark.parametrize("options", OPTIONS)
def test_a_stream_goes_on_from_a_snapshot_of_any_phase(kind, options):
    chosen, columns = OPTIONS[options], {"weights": WEIGHTS}
    if options == "fading":
        columns["timestamps"] = TIMES
    phases = set()

    def saved(stream):
        phases.add(stream.phase)
        other = through_json(stream, chosen)
        assert other.phase is stream.phase
        assert whole(other) == whole(stream)
        return other

    cuts = [5, 12, PREFIX + 8, 41]
    silent = fed(stream_of(kind, **chosen), kind, cuts, columns)
    found = fed(stream_of(kind, **chosen), kind, cuts, columns, saved)
    assert whole(found) == whole(silent)
    assert phases == ({Phase.RUNNING} if "given" in kind else {Phase.PREFIX, Phase.RUNNING})


def test_an_end_that_was_interrupted_goes_on():
    options = {"revisit": 40, "n_revisits": 4, "tol": 0.0, "min_responsibility": 0.0}
    expected = stream_of("given numbers", **options)
    expected.absorb(0.4 * NUMBERS)  # clusters overlap, so that every sweep moves something
    stream, n_steps = deepcopy(expected), len(list(deepcopy(expected).finishing()))
    assert n_steps > 2
    expected.finish()
    for _ in range(n_steps):
        next(stream.finishing())
        stream = through_json(stream, options)
    assert list(stream.finishing()) == []
    assert whole(stream) == whole(expected)


@kinds
@pytest.mark.parametrize("n_before", [0, 5, 40])
def test_checking_changes_nothing(kind, n_before):
    rows, stream = ENCODERS[kind][1], stream_of(kind)
    if n_before:
        stream.absorb(rows[:n_before])
    before = whole(stream)
    checked = stream.check(rows[n_before:])
    assert whole(stream) == before
    for bad in ({"weights": np.ones(2)}, {"weights": -np.ones(N - n_before)}, {"timestamps": [1]}):
        with pytest.raises(ValueError, match=r"weight|timestamps"):
            stream.check(rows[n_before:], **bad)
    with pytest.raises(ValueError, match=r"row 0|document 0"):
        stream.check([[np.inf, 1.0]] if rows is NUMBERS else [{"b": -1}])
    assert whole(stream) == before
    stream.absorb(checked)
    assert whole(stream) == whole(fed(stream_of(kind), kind, [n_before or 1], {}))


def test_settings_and_prior_change_together_or_not_at_all():
    stream = stream_of("given numbers")
    stream.absorb(NUMBERS[:20])
    before, kept = whole(stream), (stream.settings, stream.prior, stream.given_prior)
    with pytest.raises(ValueError, match="new_cluster_threshold"):
        stream.configure(settings(new_cluster_threshold=0.2))
    heavy = normalized_inverse_gaussian(1.0, 1.0)
    with pytest.raises(ValueError, match="merge_every"):
        stream.configure(settings(merge_every=0), heavy)
    assert (stream.settings, stream.prior, stream.given_prior) == kept
    assert whole(stream) == before
    stream.configure(settings(new_cluster_threshold=0.6), heavy)
    assert (stream.prior, stream.visits.new_cluster_threshold) == (heavy, 0.6)


EVENTS = [
    Event("birth", 0, None, 1, 1.0),
    Event("birth", 1, None, 3, 1.0),
    Event("merge", 1, 0, 40, 7.5),
    Event("split", 0, 0, 50, 30.0, (2, 3)),
    Event("death", 2, None, 60, 0.25),
    Event("birth", 4, None, 61, 1.0, (), "topic"),
    Event("retire", 3, None, 70, 0.5),
]


def test_heirs_are_followed_through_merges_and_splits():
    assert survivors(1, EVENTS[:3]) == [0]
    assert survivors(1, EVENTS[:4]) == [0, 2, 3]
    assert survivors(1, EVENTS) == [0]
    assert survivors(3, EVENTS) == []


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_an_event_is_what_its_record_says(event):
    record = json.loads(json.dumps(event.record()))
    assert Event.of(record) == event
    assert ("others" in record) == bool(event.others)
    assert ("level" in record) == (event.level != "cluster")


@pytest.mark.parametrize("events", [[], EVENTS[:3], EVENTS], ids=len)
def test_lineage_is_what_its_arrays_say(events):
    assert lineage_from(lineage_arrays(events)) == events
