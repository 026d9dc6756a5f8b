"""A call that is interrupted loses no row and counts none twice."""

import json
import os
import signal
import sys
import threading

import numpy as np
import pytest

from bnpstream import (
    DirichletMultinomial,
    DocumentMixture,
    StreamingMixture,
    normalized_inverse_gaussian,
)
from bnpstream.datasets import bars
from bnpstream.engine import steps
from bnpstream.inference import visits
from bnpstream.mixture.interrupts import deferred, heed
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


# --- Ctrl-C at any moment -------------------------------------------------------------------------

MOMENTS = int(os.environ.get("BNPSTREAM_MOMENTS", "10"))
"""Calls of functions at which each stream is interrupted; `make soak` has more."""
DOCUMENTS = [{f"w{j}": int(n) for j, n in enumerate(row) if n} for row in X.toarray()]
STREAMS = {
    "plain": (mixture, X),
    "window": (lambda: mixture(revisit=30, merge_threshold=0.0), X),
    "fading": (lambda: mixture(half_life=20.0), X),
    "reference": (lambda: mixture(engine="reference"), X),
    "learnt": (lambda: StreamingMixture(prefix_rows=40), X),
    "words": (lambda: DocumentMixture(prefix_rows=40), DOCUMENTS),
    "rounds": (lambda: mixture(staleness=1, block_rows=16), X),
}


def said(model):
    """Return every byte that a model would be saved with; its sweeps are those of the last call."""
    arrays, document = model.to_tensors()
    kept = {name: part for name, part in document["stream"].items() if name != "epochs"}
    return json.dumps(kept, sort_keys=True), {name: x.tobytes() for name, x in arrays.items()}


def interrupted_at(moment, work):
    """Do work, interrupted when so many functions have been called; return how many there were."""
    n_calls = 0

    def count(frame, event, argument):
        nonlocal n_calls
        n_calls += event == "call"
        if event == "call" and n_calls == moment:
            signal.raise_signal(signal.SIGINT)

    sys.setprofile(count)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return n_calls


@pytest.mark.parametrize("name", STREAMS)
def test_at_any_moment_it_leaves_whole_rows_and_goes_on(name, monkeypatch):
    monkeypatch.setattr(steps, "HEED_ROWS", 16)
    make, rows = STREAMS[name]
    n_rows, n_stops = 120, 0
    expected = said(make().partial_fit(rows))
    n_calls = interrupted_at(-1, lambda: make().partial_fit(rows))
    rng = np.random.default_rng((41, list(STREAMS).index(name)))
    for moment in rng.integers(1, n_calls, size=MOMENTS).tolist():
        model = make()
        interrupted_at(moment, lambda model=model: model.partial_fit(rows))
        n = 0 if model._stream is None else model.n_samples_seen_
        n_stops += 0 < n < n_rows
        if n > 0:
            assert said(model) == said(make().partial_fit(rows[:n])), (moment, n)
        if n < n_rows:
            model.partial_fit(rows[n:])
        assert said(model) == expected, (moment, n)
    assert n_stops > 0


def test_what_only_looks_can_be_interrupted_at_any_moment():
    model = STREAMS["window"][0]().partial_fit(X)
    expected, answers = said(model), model.predict_proba(X)
    n_calls = interrupted_at(-1, lambda: model.predict_proba(X))
    for moment in range(1, n_calls, max(1, n_calls // MOMENTS)):
        interrupted_at(moment, lambda: model.predict_proba(X))
        assert said(model) == expected
        np.testing.assert_array_equal(model.predict_proba(X), answers)


SHORT = np.random.default_rng(8).multinomial(4, np.full(12, 1 / 12), size=120)
"""Rows that move between clusters as long as they are revisited."""


@pytest.mark.parametrize("prior", [normalized_inverse_gaussian(10, 100), "dp"], ids=str)
def test_an_interrupt_between_two_steps_of_the_end_goes_on(prior):
    """A prior that is learnt is not learnt once more in the middle."""

    def make():
        settings = {"revisit": 500, "n_revisits": 3}
        return StreamingMixture(prior, DirichletMultinomial(0.3), **settings).partial_fit(SHORT)

    expected = make().finish()
    n_calls = interrupted_at(-1, lambda: make().finish())
    n_between = 0
    for moment in range(n_calls // 2, n_calls, n_calls // 20):
        model = make()
        interrupted_at(moment, model.finish)
        if model._stream.progress is None:
            continue  # before the first step, or after the last
        n_between += 1
        model.finish()
        assert model.prior_ == expected.prior_
        assert said(model)[1] == said(expected)[1]
    assert n_between > 0


def test_signals_are_held_back_and_asked_twice_heeded():
    done = []

    def once():
        with deferred():
            signal.raise_signal(signal.SIGINT)
            with deferred():
                heed()  # the outer block is not done
            done.append("inner")
            heed()
            done.append("never")

    def twice():
        with deferred():
            signal.raise_signal(signal.SIGINT)
            done.append("once")
            signal.raise_signal(signal.SIGINT)
            done.append("never")

    for work in (once, twice):
        with pytest.raises(KeyboardInterrupt):
            work()
    assert done == ["inner", "once"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_in_other_threads_and_without_a_handler_nothing_changes():
    handler, found = signal.getsignal(signal.SIGINT), []

    def work():
        with deferred():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        work()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert found == [handler, signal.SIG_IGN]


def test_no_interrupt_comes_while_numba_reads_a_loop(monkeypatch):
    """It would leave numba's registries half read, and no loop could be compiled any more."""
    from numba.core.caching import FunctionCache

    from bnpstream.kernels.jit.cache import LoopCache

    ends = []

    def load_overload(self, sig, target_context):
        signal.raise_signal(signal.SIGINT)
        ends.append(sum(range(10)))

    monkeypatch.setattr(FunctionCache, "load_overload", load_overload)
    cache = LoopCache.__new__(LoopCache)
    with pytest.raises(KeyboardInterrupt):
        cache.load_overload(None, None)
    assert ends == [45]
