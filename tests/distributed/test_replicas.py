import numpy as np
import pytest

from bnpstream import DirichletMultinomial, StreamingMixture
from bnpstream.distributed.book import Book
from bnpstream.distributed.messages import Outcome, PackedReplica, packed, unpacked
from bnpstream.engine.parallel.changes import Added, exact_change
from bnpstream.engine.parallel.replica import Replica
from bnpstream.engine.parallel.resolution import resolve
from bnpstream.engine.parallel.staleness import hold_still
from bnpstream.inference.merge import join_into
from bnpstream.inference.retirement import retire
from bnpstream.mixture.entries import Entries, touched_slots
from distributed_streams import blocks, corpus, fingerprint, learning
from states import assert_free_slots_are_zero, bits

PRIOR, WORDS = "nig", DirichletMultinomial(0.1)


def stale_change(replica, rows, partition=0):
    """Return what a worker sends that starts from a posterior and absorbs rows."""
    opened = replica.working_copy()
    hold_still(opened.stream)
    opened.absorb(rows)
    change = Added.between(replica.stream.state, opened.stream.state, opened.stream.lineage, None)
    replica.give_back(opened.stream.state, partition)
    return change


def another(replica):
    """Return a copy, as a worker that has nothing is sent one."""
    return PackedReplica.of(replica).replica()


def fixed():
    return StreamingMixture(PRIOR, WORDS).partial_fit(corpus()[:200]).open_stream()


def learnt(replica):
    """Return what was learnt, as `fingerprint` says it of a model."""
    model = learning()
    model.take_stream(replica.opened)
    return fingerprint(model)[1:4]


@pytest.mark.parametrize("widest", [3, 300, 70_000, 2**33])
def test_entries_survive_the_journey(widest):
    rng = np.random.default_rng((33, widest % 97))
    places = np.cumsum(rng.integers(1, widest, 500))
    entries = unpacked(packed(Entries.of(places, rng.normal(size=500))))
    np.testing.assert_array_equal(entries.places, places)
    assert entries.gaps.dtype.itemsize <= {3: 1, 300: 2, 70_000: 4, 2**33: 8}[widest]
    assert len(packed(Entries.of(places, np.ones(500)))) < 500 * 8 + 500


@pytest.mark.parametrize("hashed", [False, True])
def test_differences_make_one_posterior_of_another(hashed):
    rows = corpus()
    if hashed:
        rows = rows.copy()
        rows.resize(rows.shape[0], 9000)
    before = StreamingMixture(PRIOR, WORDS).partial_fit(rows[:100]).state_
    after = StreamingMixture(PRIOR, WORDS).partial_fit(rows[:300]).state_
    assert before.is_hashed == hashed
    slots = touched_slots(before, after)
    entries = Entries.added(before, after, slots)
    while before.n_clusters < after.n_clusters:
        before.open()
    entries.add(before, slots)
    np.testing.assert_allclose(before.statistics, after.statistics, rtol=1e-12)
    twice = np.array([0, 0])
    places = np.array([1, 5, before.n_statistics + 5])
    expected = before.statistics[0, [1, 5]] + [1.0, 5.0]
    Entries.of(places, np.array([1.0, 2.0, 3.0])).add(before, twice)
    np.testing.assert_array_equal(before.statistics[0, [1, 5]], expected)


def test_a_version_is_the_same_bits_by_updates_and_by_snapshot():
    book = Book(Replica(learning().open_stream(), 0), 1)
    follower = another(book.replica)
    parts = blocks()
    for number, rows in enumerate(parts):
        if number < 3:
            opened = follower.working_copy()
            opened.absorb(rows)
            change, events = exact_change(follower.stream, opened), tuple(opened.stream.lineage)
        else:
            change, events = stale_change(follower, rows), ()
        outcome = Outcome(number, "", change=packed(change), events=events)
        assert book.apply(outcome)
        assert not book.apply(outcome)  # two workers return the same partition
        assert not book.apply(outcome._replace(number=number + 2))  # not its turn
        if number == 5:
            early = another(book.replica)
        book.since(number, number + 1)[1][-1].apply(follower)
        assert bits(follower.stream.answering.state) == bits(book.replica.stream.answering.state)
        assert_free_slots_are_zero(follower.stream.answering.state)
    for update in book.since(6, 9)[1]:
        update.apply(early)
    assert bits(early.stream.state) == bits(book.replica.stream.state)
    assert learnt(early) == learnt(book.replica)
    with pytest.raises(ValueError, match="each once"):
        update.apply(early)


@pytest.mark.parametrize("own", [True, False], ids=["own", "of another worker"])
def test_the_screen_of_a_working_copy_stays_above_its_counts(own):
    book = Book(Replica(fixed(), 0), 1)
    mine, other = (another(book.replica) for _ in range(2))
    for number, rows in enumerate(blocks()[2:]):
        change = stale_change(mine if own else other, rows, number)
        if not own:
            stale_change(mine, rows[::-1][:70], number + 100)
        book.apply(Outcome(number, "", change=packed(change)))
        for replica in (mine, other):
            book.since(number, number + 1)[1][-1].apply(replica)
        state, likelihood = mine.working_copy().stream.state, mine.stream.likelihood
        assert bits(state) == bits(mine.stream.state) == bits(book.replica.stream.state)
        assert_free_slots_are_zero(state)
        kept = state.cache(likelihood)
        state._cache = None
        made, K = state.cache(likelihood), state.n_clusters
        assert (kept.levels >= made.levels).all()
        assert (kept.levels > made.levels).mean() < 0.2
        for name in ("heads", "lengths", "log_lengths"):
            np.testing.assert_array_equal(getattr(kept, name)[:K], getattr(made, name)[:K])
        assert (kept.heads[K:] == -np.inf).all()
        state._cache = (likelihood, kept)
        mine.give_back(state, -1)


def test_what_was_merged_away_meanwhile_goes_to_its_survivor():
    replica = Replica(fixed(), 0)
    change = stale_change(another(replica), corpus()[200:300])
    stream, state = replica.stream, replica.stream.state
    lost, heir = change.ids[np.argsort(-change.masses[: change.ids.size])[:2]].tolist()
    stream.lineage.append(join_into(state, [], heir, lost))
    before = state.masses[state.ids == heir][0]
    settled, _ = resolve(replica.stream, change, stream.lineage)
    rows = np.flatnonzero(np.isin(change.ids, [lost, heir]))
    assert (settled.targets[rows] == heir).all()
    after = state.masses[state.ids == heir][0]
    assert after - before == pytest.approx(change.masses[rows].sum())
    assert state.masses.sum() == pytest.approx(300)
    np.testing.assert_allclose(state.totals(120), corpus()[:300].sum(axis=0))


def test_what_was_retired_meanwhile_opens_again():
    replica = Replica(fixed(), 0)
    change = stale_change(another(replica), corpus()[200:300])
    stream, state = replica.stream, replica.stream.state
    row = int(np.argmax(change.masses[: change.ids.size]))
    gone = int(change.ids[row])
    event = retire(state, [], int(np.flatnonzero(state.ids == gone)[0]))
    stream.lineage.append(event)
    left, next_id = state.masses.sum(), state.next_id
    settled, events = resolve(replica.stream, change, [event])
    assert settled.targets[row] == next_id
    assert events[0][:2] == ("birth", next_id)
    assert state.masses.sum() == pytest.approx(left + 100)
    assert state.masses[state.ids == next_id][0] == change.masses[row]
