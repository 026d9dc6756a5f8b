"""Both engines of Algorithm 1 and the oracle: row by row from the same state, and their laws.

A pass is a chain of decisions that amplifies rounding, so engines are compared row by row. Within
one engine, bits are promised.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest

import naive
from bnpstream.inference import adf
from bnpstream.kernels.arrays import NEXT_ROW, NO_LIMIT, Events, Options, Trace
from bnpstream.kernels.passes import visits
from bnpstream.likelihoods import DirichletMultinomial
from bnpstream.mixture import Model, SiteBuffer, log_joint
from bnpstream.mixture.state import FIRST_CAPACITY
from bnpstream.priors import (
    GeneralizedGamma,
    PitmanYor,
    dirichlet_process,
    normalized_inverse_gaussian,
    normalized_stable,
)
from states import assert_free_slots_are_zero, bits, compiled_respond

pytestmark = pytest.mark.kernel

ROWS, WORDS = 60, 30
ENGINES = ["reference", "compiled"]


class Case(NamedTuple):
    """A model, its oracle's spelling, and settings."""

    number: int
    prior: object
    oracle: naive.Prior
    alpha: object
    settings: adf.Settings

    @property
    def model(self):
        return Model(self.prior, DirichletMultinomial(self.alpha))

    def __str__(self):
        return f"{self.number}-{self.prior}"


def random_case(number):
    """Return case `number`: the kinds in turn, their parameters at random."""
    rng = np.random.default_rng((7, number))
    a, tau = round(10 ** rng.uniform(-0.5, 1), 2), round(10 ** rng.uniform(-1, 2), 2)
    sigma = round(rng.uniform(0.05, 0.8), 2)
    kind = ["dp", "nggp", "stable", "py", "nggp", "nig"][number % 6]
    cluster_count = ["expected", "plain"][number // 2 % 2]
    auxiliary = ["mode", "quadrature"][number // 3 % 2]
    if kind == "py":
        theta = round(rng.uniform(-sigma / 2, 2), 2)
        prior = PitmanYor(theta, sigma, cluster_count=cluster_count)
        oracle = naive.Prior("py", theta, sigma, cluster_count=cluster_count)
    else:
        sigma = {"dp": 0.0, "nig": 0.5}.get(kind, sigma)
        tau = 0.0 if kind == "stable" else tau
        prior = GeneralizedGamma(a, sigma, tau, auxiliary=auxiliary, cluster_count=cluster_count)
        oracle = naive.Prior("nggp", a, sigma, tau, auxiliary, cluster_count)
    alpha = [0.1, 1.0, 10 ** rng.uniform(-2, 0.5, size=WORDS)][number % 3]
    # Thresholds below the discount too: clusters without weight must be no special case.
    settings = adf.Settings(
        [sigma, 0.5, 0.02][number // 2 % 3],
        [1e-4, 0.0][number % 2],
        max_responsibilities=[None, 1, 2, 3][(number // 4 + number) % 4],
    )
    return Case(number, prior, oracle, alpha, settings)


CASES = [random_case(number) for number in range(24)]
FEW_CASES = CASES[:6] + CASES[9:12]


def documents(number, rows=ROWS, topics=6):
    """Return counts of a few overlapping topics, shape (rows, WORDS), with empty documents."""
    rng = np.random.default_rng((8, number))
    theta = rng.dirichlet(np.full(WORDS, 0.3), size=topics)
    counts = rng.multinomial(rng.poisson(9, size=rows), theta[rng.integers(0, topics, size=rows)])
    counts[[4, 10]] = 0
    return counts


def as_document(row):
    """Return one row of a batch as a dict of whole counts."""
    return {
        int(word): int(count) for word, count in zip(row.columns[:-1], row.values[:-1], strict=True)
    }


def as_oracle(state):
    """Return a posterior in the oracle's lists and dicts."""
    return naive.State(
        [dict(enumerate(words)) for words in state.statistics[:, :-1].tolist()],
        state.statistics[:, -1].tolist(),
        state.masses.tolist(),
        state.log_vacancy.tolist(),
        state.total_mass,
    )


def absorb(model, state, counts, settings, engine, sizes=None):
    """Run one engine over counts split into batches; return the traces of all rows joined."""
    traces = []
    for part in np.split(counts, np.cumsum(sizes)[:-1] if sizes is not None else []):
        batch = model.likelihood.encode(part)
        kernel = model.kernel_arguments(batch) if engine == "compiled" else None
        traces += [record.rows for record in adf.run(model, state, batch, settings, kernel)]
    return Trace(*(np.concatenate(column) for column in zip(*traces, strict=True)))


def fitted(model, counts, settings, engine, sizes=None):
    """Return the posterior of one pass."""
    state = adf.init(model, counts.shape[1] + 1)
    trace = absorb(model, state, counts, settings, engine, sizes)
    return state, trace


def vacated(log_vacancy, before):
    """Return 1 - q of the last row: the logarithm of it would amplify rounding near q = 1."""
    return np.exp(np.array(log_vacancy) - [*before, *[0.0] * (len(log_vacancy) - len(before))])


def assert_close_states(found, expected):
    assert np.array_equal(found.ids, expected.ids)
    assert (found.n_observations, found.next_id) == (expected.n_observations, expected.next_id)
    for name in ("statistics", "masses", "total_mass", "log_evidence"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-10, err_msg=name
        )
    np.testing.assert_allclose(found.auxiliary, expected.auxiliary, atol=1e-9)


# --- row by row from the same state ---------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=str)
def test_oracle_and_both_engines_respond_alike(case):
    model = case.model
    batch = model.likelihood.encode(documents(case.number))
    kernel = model.kernel_arguments(batch)
    alpha = np.broadcast_to(case.alpha, WORDS).tolist()
    state = adf.init(model, batch.n_statistics)
    decisions = set()
    for i in range(len(batch)):
        row = batch.row(i)
        expected = naive.respond(
            as_oracle(state),
            as_document(row),
            case.oracle,
            alpha,
            case.settings.new_cluster_threshold,
            case.settings.min_responsibility,
            case.settings.max_responsibilities,
        )
        for found in (
            adf.respond(model, state, row, case.settings),
            compiled_respond(model, kernel, state, i, case.settings),
        ):
            assert found.opens == expected.opens
            np.testing.assert_allclose(
                found.responsibilities, expected.responsibilities, rtol=0, atol=1e-10
            )
            assert np.array_equal(found.responsibilities > 0, np.array(expected[0]) > 0)
            assert abs(found.log_evidence - expected.log_evidence) < 1e-10
        decisions.add(expected.opens)
        list(adf.run(model, state, batch.part(i, i + 1), case.settings))
    assert decisions == {True, False}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_oracle_and_both_engines_absorb_alike(case):
    model = case.model
    batch = model.likelihood.encode(documents(case.number, rows=30))
    alpha = np.broadcast_to(case.alpha, WORDS).tolist()
    state = adf.init(model, batch.n_statistics)
    for i in range(len(batch)):
        part, document = batch.part(i, i + 1), as_document(batch.row(i))
        before, other = as_oracle(state), state.copy()
        list(adf.run(model, state, part, case.settings))
        list(adf.run(model, other, part, case.settings, model.kernel_arguments(part)))
        assert_close_states(other, state)
        np.testing.assert_allclose(
            vacated(other.log_vacancy, before.log_vacancy),
            vacated(state.log_vacancy, before.log_vacancy),
            atol=1e-10,
        )
        response = naive.respond(
            before,
            document,
            case.oracle,
            alpha,
            case.settings.new_cluster_threshold,
            case.settings.min_responsibility,
            case.settings.max_responsibilities,
        )
        expected, found = naive.absorb(before, document, response), as_oracle(state)
        for name in ("lengths", "masses", "n"):
            np.testing.assert_allclose(
                getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-10, err_msg=name
            )
        np.testing.assert_allclose(
            vacated(found.log_vacancy, before.log_vacancy),
            vacated(expected.log_vacancy, before.log_vacancy),
            atol=1e-10,
        )
        for words, expected_words in zip(found.words, expected.words, strict=True):
            for word, count in words.items():
                assert abs(count - expected_words.get(word, 0.0)) < 1e-9


@pytest.mark.parametrize("case", FEW_CASES, ids=str)
def test_both_engines_score_new_rows_alike(case):
    model, counts = case.model, documents(case.number)
    state, _ = fitted(model, counts[:40], case.settings, "reference")
    before = bits(state)
    batch = model.likelihood.encode(counts[40:])
    reference = log_joint(model, state, batch, None)
    scores = log_joint(model, state, batch, model.kernel_arguments(batch))
    np.testing.assert_allclose(scores, reference, rtol=1e-13, atol=1e-10)
    assert reference.shape == (20, state.n_clusters + 1)
    assert bits(state) == before
    uncut = adf.Settings(0.5, 0.0)
    for i in range(20):
        evidence = adf.respond(model, state, batch.row(i), uncut).log_evidence
        assert abs(np.logaddexp.reduce(reference[i]) - evidence) < 1e-10


@pytest.mark.parametrize("case", FEW_CASES, ids=str)
def test_both_engines_report_what_they_did(case):
    model, counts = case.model, documents(case.number, rows=30)
    for engine in ENGINES:
        state = adf.init(model, WORDS + 1)
        for i in range(30):
            row = model.likelihood.encode(counts[i : i + 1]).row(0)
            expected = adf.respond(model, state, row, case.settings)
            trace = absorb(model, state, counts[i : i + 1], case.settings, engine)
            assert trace.n_clusters[0] == state.n_clusters
            assert trace.ids[0] == state.ids[np.argmax(expected.responsibilities)]
            assert abs(trace.log_evidence[0] - expected.log_evidence) < 1e-10


@pytest.mark.parametrize("case", FEW_CASES, ids=str)
def test_empty_document_is_certain_and_shared_as_the_prior_says(case):
    model, settings = case.model, adf.Settings(0.0, 0.0)
    counts = documents(case.number, rows=20)
    counts[-1] = 0
    state, _ = fitted(model, counts[:-1], case.settings, "reference")
    batch = model.likelihood.encode(counts)
    kernel = model.kernel_arguments(batch)
    oracle = as_oracle(state)
    expected = naive.prior_weights(case.oracle, oracle.masses, oracle.log_vacancy, oracle.n)
    for found in (
        adf.respond(model, state, batch.row(19), settings),
        compiled_respond(model, kernel, state, 19, settings),
    ):
        np.testing.assert_allclose(found.responsibilities, expected, atol=1e-10)
        assert abs(found.log_evidence) < 1e-12


# --- what holds after every pass ------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_posterior_adds_up_and_free_slots_are_zero(case, engine):
    counts = documents(case.number)
    state, trace = fitted(case.model, counts, case.settings, engine)
    K = state.n_clusters
    assert state.n_observations == ROWS
    assert abs(state.masses.sum() - ROWS) < 1e-9
    np.testing.assert_allclose(
        state.statistics.sum(axis=0), [*counts.sum(axis=0), counts.sum()], atol=1e-9
    )
    np.testing.assert_allclose(
        state.statistics[:, :-1].sum(axis=1), state.statistics[:, -1], atol=1e-9
    )
    assert np.array_equal(state.ids, np.arange(K))
    assert state.next_id == K
    assert abs(state.log_evidence - math.fsum(trace.log_evidence)) < 1e-8
    assert state.arrays.masses.size > K
    assert_free_slots_are_zero(state)


@pytest.mark.parametrize("engine", ENGINES)
def test_certain_row_leaves_a_finite_vacancy(engine):
    """q = 1 counts as the largest double below it: -inf could never be subtracted again."""
    state, _ = fitted(CASES[1].model, documents(1)[:1], CASES[1].settings, engine)
    assert state.log_vacancy.tolist() == [math.log(2**-53)]


# --- growth ---------------------------------------------------------------------------------------


def test_slots_grow_when_clusters_open_beyond_the_first_capacity():
    """Every document has a word of its own, so every one of the first 300 opens a cluster."""
    counts = np.vstack([90 * np.eye(300, dtype=int)] * 2)
    model = Model(dirichlet_process(5.0), DirichletMultinomial(0.05))
    settings = adf.Settings(0.1, 1e-4)
    states = [fitted(model, counts, settings, engine)[0] for engine in ENGINES]
    for state in states:
        assert state.n_clusters == 300 > 2 * FIRST_CAPACITY
        assert np.array_equal(state.ids, np.arange(300))
        np.testing.assert_allclose(state.masses, 2, rtol=1e-3)
        assert_free_slots_are_zero(state)
    assert_close_states(states[1], states[0])


def test_compiled_run_returns_early_before_the_last_free_slot_is_used():
    counts = 9 * np.eye(200, dtype=int)
    model = Model(dirichlet_process(5.0), DirichletMultinomial(0.05))
    batch = model.likelihood.encode(counts)
    kernel = model.kernel_arguments(batch)
    state = adf.init(model, batch.n_statistics)
    old, new = SiteBuffer(200), SiteBuffer(200 * 200)
    options, events = Options(0.1, -10.0, NO_LIMIT, 0.0, 0.0, 1000, 10**9), Events.empty(1000)
    reached = np.zeros(2, np.int64)
    wanted = visits.visit(
        *kernel[:2], state.arrays, state.cache(model.likelihood), kernel.rows, old.arrays,
        new.arrays, reached, 200, options, Trace.empty(200), events,
    )  # fmt: skip
    assert wanted == 0
    assert reached[NEXT_ROW] == state.n_clusters == state.n_observations == FIRST_CAPACITY - 1
    assert_free_slots_are_zero(state)


# --- batches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", FEW_CASES, ids=str)
def test_any_split_into_batches_gives_the_same_bits(case, engine):
    counts = documents(case.number)
    whole, trace = fitted(case.model, counts, case.settings, engine)
    for sizes in ([1] * ROWS, [7, 1, 30, 22], [ROWS - 1, 1]):
        split, split_trace = fitted(case.model, counts, case.settings, engine, sizes)
        assert bits(split) == bits(whole)
        for found, expected in zip(split_trace, trace, strict=True):
            assert np.array_equal(found, expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_split_where_the_slots_run_out_gives_the_same_bits(engine):
    counts = np.vstack([9 * np.eye(40, dtype=int)] * 2)
    model = Model(normalized_inverse_gaussian(5.0, 1.0), DirichletMultinomial(0.05))
    settings = adf.Settings(0.5, 1e-4)
    whole, _ = fitted(model, counts, settings, engine)
    for sizes in ([1] * 80, [14, 1, 1, 64], [15, 16, 49], [31, 49]):
        assert bits(fitted(model, counts, settings, engine, sizes)[0]) == bits(whole)


@pytest.mark.parametrize("engine", ENGINES)
def test_records_come_in_order_and_change_nothing(engine, monkeypatch):
    case, counts = CASES[4], documents(4)
    whole, trace = fitted(case.model, counts, case.settings, engine)
    monkeypatch.setattr("bnpstream.inference.visits.RECORD_ROWS", 7)
    model, batch = case.model, case.model.likelihood.encode(counts)
    kernel = model.kernel_arguments(batch) if engine == "compiled" else None
    state = adf.init(model, batch.n_statistics)
    records = list(adf.run(model, state, batch, case.settings, kernel))
    assert [record.n_observations for record in records] == [*range(7, ROWS, 7), ROWS]
    assert bits(state) == bits(whole)
    for found, expected in zip(zip(*(r.rows for r in records), strict=True), trace, strict=True):
        assert np.array_equal(np.concatenate(found), expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_copy_of_a_posterior_is_independent_and_carries_on_alike(engine):
    case, counts = CASES[1], documents(1)
    state, _ = fitted(case.model, counts[:30], case.settings, engine)
    before, other = bits(state), state.copy()
    assert bits(other) == before
    absorb(case.model, other, counts[30:], case.settings, engine)
    assert bits(state) == before
    absorb(case.model, state, counts[30:], case.settings, engine)
    assert bits(other) == bits(state)


# --- exact where the approximation is none --------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("prior", "oracle"),
    [
        (dirichlet_process(0.7), naive.Prior("nggp", 0.7, 0.0, 1.0)),
        (
            GeneralizedGamma(2.0, 0.4, 3.0, auxiliary="quadrature"),
            naive.Prior("nggp", 2.0, 0.4, 3.0),
        ),
        (PitmanYor(-0.1, 0.3), naive.Prior("py", -0.1, 0.3)),
    ],
)
def test_two_rows_without_threshold_and_cut_are_exact(prior, oracle, engine):
    """After one row nothing is soft, so the second row's step is Bayes' rule itself."""
    model, alpha = Model(prior, DirichletMultinomial(0.4)), [0.4] * WORDS
    for number in range(5):
        counts = documents(number)[:2]
        rows = [{w: c for w, c in enumerate(row) if c} for row in counts.tolist()]
        posterior, log_both = naive.exact_posterior(rows, oracle, alpha)
        _, log_first = naive.exact_posterior(rows[:1], oracle, alpha)
        state, trace = fitted(model, counts, adf.Settings(0.0, 0.0), engine)
        np.testing.assert_allclose(trace.log_evidence, [log_first, log_both - log_first], atol=1e-9)
        shares = [posterior[0, 0], posterior[0, 1]]
        np.testing.assert_allclose(state.masses, [1 + shares[0], shares[1]], atol=1e-10)
        np.testing.assert_allclose(
            state.statistics[:, :-1],
            [counts[0] + shares[0] * counts[1], shares[1] * counts[1]],
            atol=1e-9,
        )


# --- priors that are the same ---------------------------------------------------------------------


def assert_same_pass(priors, number, threshold, engine):
    counts = documents(number)
    likelihood, settings = DirichletMultinomial(0.3), adf.Settings(threshold, 0.0)
    (first, trace), (second, other) = (
        fitted(Model(prior, likelihood), counts, settings, engine) for prior in priors
    )
    assert first.n_clusters > 3
    assert np.array_equal(trace.n_clusters, other.n_clusters)
    assert np.array_equal(trace.ids, other.ids)
    np.testing.assert_allclose(other.log_evidence, trace.log_evidence, atol=1e-6)
    np.testing.assert_allclose(second.masses, first.masses, atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("auxiliary", ["mode", "quadrature"])
@pytest.mark.parametrize(("a", "sigma", "tau"), [(10.0, 0.5, 100.0), (1.0, 0.25, 1.0)])
def test_only_a_tau_to_the_sigma_matters_to_a_pass(a, sigma, tau, auxiliary, engine):
    c = 40.0
    priors = [
        GeneralizedGamma(a, sigma, tau, auxiliary=auxiliary),
        GeneralizedGamma(a * c**-sigma, sigma, c * tau, auxiliary=auxiliary),
    ]
    assert_same_pass(priors, 20, 0.5, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("auxiliary", ["mode", "quadrature"])
@pytest.mark.parametrize("cluster_count", ["expected", "plain"])
def test_normalized_stable_passes_as_pitman_yor(cluster_count, auxiliary, engine):
    """a u^sigma is sigma E[K'] at the mode of log u, and on average over u as well."""
    stable = normalized_stable(0.5)
    priors = [
        GeneralizedGamma(
            stable.concentration, 0.5, 0.0, auxiliary=auxiliary, cluster_count=cluster_count
        ),
        PitmanYor(0.0, 0.5, cluster_count=cluster_count),
    ]
    assert_same_pass(priors, 21, 0.5, engine)
