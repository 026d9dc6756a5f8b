"""Blocks of rows absorbed side by side by threads: `staleness`, `block_rows`, `learn_threads`."""

import os
import re
import signal
import threading
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest

from bnpstream import DirichletMultinomial, DocumentMixture, PitmanYor, StreamingMixture
from bnpstream.datasets import synthetic_corpus
from bnpstream.engine.parallel import rounds, sweeps
from bnpstream.mixture.snapshot import state_arrays
from states import assert_free_slots_are_zero, everything, per_row

N, BLOCK = 1200, 200
SPLITS = {"one call": [N], "odd calls": [130, 470, 1, 399, 200], "small calls": [80] * 15}


@pytest.fixture(scope="module")
def words():
    """Return documents of clusters that keep on coming."""
    prior = PitmanYor(4.0, discount=0.4)
    return synthetic_corpus(N + 300, 120, 40.0, 20.0, prior, seed=5).counts


def bits(state):
    """Return every byte of a posterior; a vocabulary that grows has too many columns for rows."""
    return {name: x.tobytes() for name, x in state_arrays(state).items()}


def documents(counts):
    """Return the rows as counts by word."""
    rows = ((counts.indices[a:b], counts.data[a:b]) for a, b in pairwise(counts.indptr))
    return [{f"w{j}": int(x) for j, x in zip(*row, strict=True)} for row in rows]


def plain(**settings):
    given = {"staleness": 1, "block_rows": BLOCK, "prefix_rows": 150} | settings
    return StreamingMixture(**given)


def growing(**settings):
    given = {"staleness": 1, "block_rows": BLOCK, "prefix_rows": 100} | settings
    return DocumentMixture(**given)


def cells(**settings):
    return plain(likelihood="diagonal", **settings)


def rows_for(make, words):
    if make is growing:
        return documents(words)
    if make is cells:
        rng = np.random.default_rng(3)
        centres = rng.normal(size=(12, 3)) * 6
        return centres[rng.integers(12, size=N + 300)] + rng.normal(size=(N + 300, 3))
    return words


def absorbed(model, rows, sizes):
    """Return a model after rows in calls of some sizes, as far as they go."""
    start = 0
    for size in sizes:
        model.partial_fit(rows[start : start + size])
        start += size
    return model


@pytest.mark.parametrize("staleness", [1, 2])
@pytest.mark.parametrize("make", [plain, cells, growing])
def test_neither_threads_nor_calls_matter(make, staleness, words):
    rows = rows_for(make, words)[:N]
    expected = None
    for threads, split in ((1, "one call"), (1, "odd calls"), (2, "small calls"), (3, "odd calls")):
        model = absorbed(make(staleness=staleness, learn_threads=threads), rows, SPLITS[split])
        found = (bits(model.finish().state_), model.lineage_, repr(model.prior_))
        expected = expected or found
        assert found == expected, (threads, split)
    model = make(staleness=staleness, learn_threads=2).fit(rows)
    assert (bits(model.state_), model.lineage_, repr(model.prior_)) == expected
    if make is not growing:
        assert_free_slots_are_zero(model.state_)


def test_a_round_adds_what_every_block_would_add_by_itself(words):
    """Each block, absorbed from the posterior before the round by the serial pass, says what."""
    start = StreamingMixture("dp", DirichletMultinomial(0.1), prefix_rows=BLOCK).fit(words[:BLOCK])
    alone = [
        deepcopy(start).partial_fit(words[BLOCK * i : BLOCK * (i + 1)]).state_ for i in (1, 2, 3)
    ]
    model = deepcopy(start).set_params(staleness=2, block_rows=BLOCK, learn_threads=2)
    model.partial_fit(words[BLOCK : 4 * BLOCK])
    assert not model.provisional_
    before, after = start.state_, model.state_
    assert after.n_observations == 4 * BLOCK
    for id in before.ids.tolist():
        expected = sum(_row(state, id) for state in alone) - 2 * _row(before, id)
        np.testing.assert_allclose(_row(after, id), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(after.masses.sum(), 4 * BLOCK)
    np.testing.assert_allclose(after.totals(120), words[: 4 * BLOCK].sum(axis=0), rtol=1e-9)
    evidence = sum(state.log_evidence for state in alone) - 2 * before.log_evidence
    assert after.log_evidence == pytest.approx(evidence, rel=1e-12)
    # The first block is that of the serial pass, and all of its clusters live on.
    first = alone[0].ids.tolist()
    assert after.ids[: len(first)].tolist() == first
    said = model.log_evidence_[:BLOCK]
    serial = deepcopy(start).partial_fit(words[BLOCK : 2 * BLOCK])
    assert said.tobytes() == serial.log_evidence_.tobytes()


def _row(state, id):
    slot = np.flatnonzero(state.ids == id)
    return state.rows(slot)[0]


def test_a_stream_of_one_block_is_that_of_the_serial_pass(words):
    serial = plain(staleness=0).fit(words[:N])
    assert (
        everything(plain(block_rows=N, learn_threads=2).fit(words[:N]))[:3]
        == everything(serial)[:3]
    )
    some = plain(block_rows=N).partial_fit(words[:700])
    assert not some.provisional_
    assert bits(some.state_) == bits(plain(staleness=0).partial_fit(words[:700]).state_)


@pytest.mark.parametrize("make", [plain, growing])
def test_what_waits_is_saved(make, words, tmp_path):
    rows = rows_for(make, words)[:N]
    expected = bits(make().fit(rows).state_)
    for cut in (90, 250, 700, 1000, 1050):  # in the prefix, in and between rounds
        model = make(learn_threads=2).partial_fit(rows[:cut])
        model.save(tmp_path / f"{cut}")
        again = type(model).load(tmp_path / f"{cut}").set_params(learn_threads=3)
        assert bits(again.state_) == bits(model.state_)
        assert again.provisional_ == model.provisional_ == (cut != 1000)
        assert bits(again.partial_fit(rows[cut:]).finish().state_) == expected
    one, two = (absorbed(make(), rows, sizes) for sizes in ([900], [333, 567]))
    assert _snapshot(one) == _snapshot(two)


def _snapshot(model):
    arrays, document = model.to_tensors()
    return {name: x.tobytes() for name, x in arrays.items()}, document


def test_answers_are_those_of_a_stream_that_ended(words):
    model = plain(learn_threads=2).partial_fit(words[:900])
    assert model.provisional_
    assert model.n_samples_seen_ == 900
    ended = plain().fit(words[:900])
    assert bits(model.state_) == bits(ended.state_)
    assert model.label_ids_.tobytes() == ended.label_ids_.tobytes()
    before, after = per_row(model), per_row(deepcopy(model).finish())
    assert before == after
    # Of a call whose first rows filled a round and whose last ones wait.
    model = absorbed(plain(), words, [500, 350])
    ended = plain().fit(words[:850])
    assert model.log_evidence_.tobytes() == ended.log_evidence_[500:].tobytes()
    assert model.label_ids_.tobytes() == ended.label_ids_[500:].tobytes()
    held = model.score(words[N:])
    assert held == ended.score(words[N:])
    assert model.partial_fit(words[850:851]).n_samples_seen_ == 851
    assert model.labels_.shape == (1,)


def test_labels_are_clusters_that_are_there(words):
    model = plain(staleness=2, learn_threads=2).fit(words[:N])
    assert np.isin(model.label_ids_, model.cluster_ids_).all()
    assert model.log_evidence_.sum() == pytest.approx(model.total_log_evidence_, rel=1e-12)
    found = model.absorbed_
    assert np.isin(found.responsibilities.ids, model.cluster_ids_).all()
    assert found.rows.n_clusters[-1] == model.n_clusters_
    born = [event.id for event in model.lineage_ if event.kind == "birth"]
    assert sorted(born) == list(range(len(born)))


def test_rows_of_weight_zero_leave_no_trace(words):
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 3, N).astype(float)
    counted = np.flatnonzero(weights)
    expected = plain().fit(words[:N][counted], sample_weight=weights[counted])
    model = plain(learn_threads=2)
    for some in np.split(np.arange(N), [333, 800]):
        model.partial_fit(words[:N][some], sample_weight=weights[some])
        assert model.labels_.shape == some.shape
    assert bits(model.finish().state_) == bits(expected.state_)


@pytest.mark.parametrize("make", [plain, cells])
def test_rows_that_wait_are_the_caller_s_no_more(make, words):
    rows = rows_for(make, words)
    expected = make().fit(rows[:N])
    model, given = make(), rows[:900].copy()
    model.partial_fit(given)
    (given if make is cells else given.data)[:] = 1
    assert bits(model.partial_fit(rows[900:N]).finish().state_) == bits(expected.state_)


def test_a_budget_is_kept_after_every_block(words):
    model = plain(max_clusters=20, learn_threads=2).fit(words[:N])
    assert model.n_clusters_ <= 20
    assert model.state_.masses.sum() - N <= 1e-9 * N  # rounding of the sum
    again = absorbed(plain(max_clusters=20), words, SPLITS["odd calls"]).finish()
    assert bits(again.state_) == bits(model.state_)
    assert again.lineage_ == model.lineage_


def test_other_settings_do_not_touch_what_waits(words):
    model = plain().partial_fit(words[:900])
    model.set_params(n_jobs=2, learn_threads=2).partial_fit(words[900:N])
    assert bits(model.finish().state_) == bits(plain().fit(words[:N]).state_)
    model = plain().partial_fit(words[:900])
    serial = deepcopy(model).finish().set_params(staleness=0).partial_fit(words[900:N])
    assert bits(model.set_params(staleness=0).partial_fit(words[900:N]).state_) == bits(
        serial.state_
    )


def test_held_out_rows_are_predicted_as_well(words):
    serial, threads = (plain(staleness=s).fit(words[:N]).score(words[N:]) for s in (0, 1))
    assert abs(threads - serial) < 0.01 * abs(serial)


def test_the_reference_engine_does_the_same_row_by_row(words):
    rows = words[:700]
    compiled, reference = (plain(engine=engine).fit(rows) for engine in ("compiled", "reference"))
    assert compiled.label_ids_.tolist() == reference.label_ids_.tolist()
    np.testing.assert_allclose(compiled.weights_, reference.weights_, rtol=1e-9)


def test_an_interrupt_waits_for_the_end_of_a_round(words, monkeypatch):
    work = rounds.Rounds._absorb_blocks

    def interrupted(*given):
        if threading.current_thread() is not threading.main_thread():
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return work(*given)

    model = plain(learn_threads=2)
    monkeypatch.setattr(rounds.Rounds, "_absorb_blocks", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(words[:N])
    monkeypatch.undo()
    seen = BLOCK + 2 * BLOCK  # the head, and a round
    assert model.n_samples_seen_ == seen
    assert not model.provisional_
    model.partial_fit(words[seen:N]).finish()
    expected = plain().fit(words[:N])
    assert bits(model.state_) == bits(expected.state_)
    assert model.lineage_ == expected.lineage_


def test_a_bad_row_is_named_and_leaves_no_trace(words, monkeypatch):
    monkeypatch.setattr(rounds, "LEAST_ENCODED", 10)  # threads encode few rows, too
    model = plain(learn_threads=2).partial_fit(words[:700])
    bad = words[700:N].astype(float)
    bad.data[bad.indptr[411]] = 0.5
    with pytest.raises(ValueError, match=r"row 411, .*a count cannot be a fraction"):
        model.partial_fit(bad)
    assert bits(model.partial_fit(words[700:N]).finish().state_) == bits(
        plain().fit(words[:N]).state_
    )


@pytest.mark.parametrize("make", [plain, cells])
def test_sweeps_over_blocks_depend_on_blocks_only(make, words):
    rows = rows_for(make, words)[:700]
    whole = make(n_passes=3).fit(rows)
    expected, once = everything(whole), bits(whole.state_)
    for threads in (2, 3):
        found = everything(make(n_passes=3, learn_threads=threads).fit(rows))
        assert found[:4] == expected[:4]
    streamed = make(revisit="all", n_revisits=2, learn_threads=2).partial_fit(rows[:333])
    streamed.partial_fit(rows[333:]).finish()
    assert bits(streamed.state_) == once
    serial = make(staleness=0, n_passes=3).fit(rows)
    single = make(block_rows=700, n_passes=3).fit(rows)
    assert bits(single.state_) == bits(serial.state_) != once


def test_sweeps_over_blocks_add_up_to_all_rows_and_converge(words):
    rows, held = words[:N], words[N:]
    serial, shards = (plain(staleness=s, n_passes=6).fit(rows) for s in (0, 1))
    for model in (
        serial,
        shards,
    ):  # a row that loses a cluster counts for less until its next visit
        assert N - 1 < model.state_.masses.sum() <= N + 1e-9
    changes = [epoch.change for epoch in shards.epochs_]
    assert changes[-1] < changes[0]
    assert abs(shards.score(held) - serial.score(held)) < 0.01 * abs(serial.score(held))
    assert np.isin(shards.label_ids_, shards.cluster_ids_).all()


def test_sweeps_are_saved_between_two_of_them(words, tmp_path):
    rows, whole = words[:700], plain(revisit="all", n_revisits=3)
    expected = bits(whole.partial_fit(rows).finish().state_)
    model = plain(revisit="all", n_revisits=3, learn_threads=2).partial_fit(rows)
    for number, _ in enumerate(model.finishing()):
        model.save(tmp_path / f"{number}")
        again = StreamingMixture.load(tmp_path / f"{number}").finish()
        assert bits(again.state_) == expected
    assert number >= 2


def test_an_interrupt_waits_for_the_end_of_a_sweep(words, monkeypatch):
    rows, settings = words[:700], {"revisit": "all", "n_revisits": 2}
    expected = plain(**settings).partial_fit(rows)
    next(expected.finishing())
    model, work = plain(**settings).partial_fit(rows), sweeps._sweep

    def interrupted(*given):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return work(*given)

    monkeypatch.setattr(sweeps, "_sweep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.finish()
    assert bits(model.state_) == bits(expected.state_)
    assert model.lineage_ == expected.lineage_


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"staleness": 0, "learn_threads": 2}, "learn_threads=2 .*staleness=0 .*give staleness=1"),
        ({"staleness": -1}, "staleness must be a whole number >= 0"),
        ({"block_rows": 0}, "block_rows must be a whole number >= 1"),
        ({"learn_threads": 0}, "learn_threads must be a whole number >= 1"),
        ({"revisit": 50}, "staleness=1 .*revisit=50"),
        ({"keep_sites": True}, "staleness=1 .*keep_sites=True"),
        ({"merge_threshold": 0.0}, re.escape("staleness=1") + ".*merge_threshold=0.0"),
        ({"half_life": 100.0}, "staleness=1 .*half_life=100.0"),
        ({"n_passes": 2, "max_clusters": 9}, "staleness=1 sweeps .*max_clusters=9"),
    ],
)
def test_what_cannot_be_is_refused(settings, said, words):
    with pytest.raises(ValueError, match=said):
        plain(**settings).fit(words[:300])


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_has_threads_of_its_own(words):
    expected, child = bits(plain().fit(words[:N]).state_), os.fork()
    if child == 0:
        signal.alarm(300)
        try:
            os._exit(bits(plain().fit(words[:N]).state_) != expected)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
