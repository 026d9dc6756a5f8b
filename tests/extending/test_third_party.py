"""Somebody else's likelihood: every algorithm, both engines, the same laws and the same bits."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.sparse import csr_array
from scipy.special import gammaln
from scipy.stats import lomax
from waits import CompiledWaits, Parameters, Waits, draw_waits

from bnpstream import GibbsMixture, StreamingMixture, normalized_inverse_gaussian
from bnpstream.extending import Batch, Likelihood, PairedBatch, log_predictive_of, specialize
from bnpstream.extending import log_predictive_of_new as in_new
from bnpstream.inference import adf, ep, exact, gibbs
from bnpstream.inference.visits import visit
from bnpstream.kernels.statistics.table import DENSE_UP_TO
from bnpstream.mixture import MixtureState, Model, SiteBuffer, log_joint
from bnpstream.mixture.sites import totals
from bnpstream.testing import check_likelihood
from states import assert_free_slots_are_zero, bits, compiled_respond

PRIOR = normalized_inverse_gaussian(2.0, 1.0)
SETTINGS = adf.Settings(0.5, 1e-4)


def test_two_methods_are_enough():
    X, truth = draw_waits(120, 1)
    check_likelihood(Waits(), X)
    model = StreamingMixture(PRIOR, Waits(), n_passes=3).fit(X)
    assert model.predict(X).shape == truth.shape
    with pytest.raises(NotImplementedError, match=r"posterior_mean\(statistics\)"):
        _ = model.means_
    with pytest.raises(NotImplementedError, match=r"Waits does not define how to draw rows"):
        model.sample(2)
    with pytest.raises(ValueError, match="no compiled engine"):
        StreamingMixture(PRIOR, Waits(), engine="compiled").fit(X)


@pytest.mark.kernel
def test_the_compiled_score_obeys_the_laws():
    check_likelihood(CompiledWaits(), draw_waits(40, 2)[0])


@pytest.mark.kernel
def test_scores_are_the_predictive_of_the_textbook():
    """A gamma mixture of exponentials is a Lomax distribution."""
    X, _ = draw_waits(30, 3, n_columns=1)
    model = Model(PRIOR, CompiledWaits(2.5, 0.7))
    batch = model.likelihood.encode(X)
    state = adf.init(model, batch.n_statistics)
    list(adf.run(model, state, batch, SETTINGS, model.kernel_arguments(batch)))
    flat = np.zeros(state.n_clusters + 1)
    found = log_joint(model, state, batch, model.kernel_arguments(batch), flat)
    sums, counts = np.append(state.statistics, np.zeros((1, 2)), axis=0).T
    law = lomax(c=2.5 + counts, scale=0.7 + sums)
    np.testing.assert_allclose(found, law.logpdf(X), rtol=1e-10)


@pytest.mark.kernel
@pytest.mark.parametrize("n_columns", [3, DENSE_UP_TO + 100], ids=["narrow", "hashed"])
def test_engines_agree_row_by_row(n_columns):
    X, _ = draw_waits(60 if n_columns == 3 else 12, 4, n_columns)
    model = Model(PRIOR, CompiledWaits())
    batch = model.likelihood.encode(X)
    kernel, state = model.kernel_arguments(batch), MixtureState(batch.n_statistics)
    soft = 0
    for i in range(len(batch)):
        reference = adf.respond(model, state, batch.row(i), SETTINGS)
        found = compiled_respond(model, kernel, state, i, SETTINGS)
        assert found.opens == reference.opens
        shares = reference.responsibilities
        np.testing.assert_allclose(found.responsibilities, shares, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found.log_evidence, reference.log_evidence, rtol=1e-10)
        soft += (reference.responsibilities > 0).sum() > 1
        part = batch.part(i, i + 1)
        list(adf.run(model, state, part, SETTINGS, model.kernel_arguments(part)))
    assert n_columns > 3 or soft > 10
    assert_free_slots_are_zero(state)


@pytest.mark.kernel
def test_engines_sweep_alike():
    X, _ = draw_waits(80, 5)
    model = Model(PRIOR, CompiledWaits())
    batch = model.likelihood.encode(X)
    kernel, state, sites = model.kernel_arguments(batch), adf.init(model, 4), SiteBuffer()
    list(visit(model, state, batch, SiteBuffer(), sites, SETTINGS, kernel))
    for _ in range(3):  # from the same posterior each time
        other, others = state.copy(), sites.copy()
        epoch = ep.sweep(model, state, batch, sites, SETTINGS, kernel)
        reference = ep.sweep(model, other, batch, others, SETTINGS)
        assert epoch.n_clusters == reference.n_clusters
        assert max(epoch.drift, reference.drift) < 1e-9 * np.abs(state.statistics).max()
        np.testing.assert_allclose(epoch.log_predictive, reference.log_predictive, rtol=1e-9)
        np.testing.assert_allclose(state.statistics, other.statistics, rtol=1e-7, atol=1e-7)
        assert_free_slots_are_zero(state)


@pytest.mark.kernel
def test_chains_are_the_same_draw_for_draw():
    X, _ = draw_waits(50, 6)
    model = Model(PRIOR, CompiledWaits())
    batch = model.likelihood.encode(X)
    chains = [
        list(gibbs.run(model, batch, np.random.default_rng(0), kernel, n_sweeps=8))
        for kernel in (None, model.kernel_arguments(batch))
    ]
    for reference, compiled in zip(*chains, strict=True):
        assert np.array_equal(reference.assignments, compiled.assignments)
        np.testing.assert_allclose(compiled.log_likelihood, reference.log_likelihood, rtol=1e-10)


SCHEDULES = [
    {},
    {"revisit": 20, "n_revisits": 2},
    {"merge_threshold": 0.0, "merge_every": 25},
    {"revisit": 30, "merge_threshold": 1.0},
]


@pytest.mark.kernel
@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=["adf", "window", "merges", "both"])
def test_bits_do_not_depend_on_batching(engine, schedule):
    X, _ = draw_waits(90, 7)
    whole, parts = (
        StreamingMixture(PRIOR, CompiledWaits(), engine=engine, **schedule) for _ in range(2)
    )
    whole.partial_fit(X).finish()
    for start, stop in [(0, 1), (1, 40), (40, 90)]:
        parts.partial_fit(X[start:stop])
    parts.finish()
    assert bits(whole.state_) == bits(parts.state_)
    assert whole.lineage_ == parts.lineage_


@pytest.mark.kernel
def test_fortran_order_and_single_precision_change_nothing():
    X, _ = draw_waits(40, 8)
    X = X.astype(np.float32)
    X.setflags(write=False)

    class Odd(CompiledWaits):
        def encode(self, X):
            batch = super().encode(X)
            frozen = np.asfortranarray(batch.statistics)
            frozen.setflags(write=False)
            return Batch(frozen, np.broadcast_to(0.0, len(batch)))

    first, second = (StreamingMixture(PRIOR, law).fit(X) for law in (CompiledWaits(), Odd()))
    assert bits(first.state_) == bits(second.state_)


@pytest.mark.kernel
def test_the_estimators_find_the_groups():
    X, truth = draw_waits(200, 9, n_columns=12)
    model = StreamingMixture(PRIOR, CompiledWaits(), n_passes=20, merge_threshold=0.0).fit(X)
    chain = GibbsMixture(PRIOR, CompiledWaits(), n_sweeps=20, n_kept=5).fit(X)
    for labels in (model.labels_, chain.labels_):
        pairs = np.unique(np.column_stack([truth, labels]), axis=0)
        assert len(pairs) == len(np.unique(labels)) == 3
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert abs(model.score(X) - chain.score(X)) < 0.1
    drawn, ids = model.sample(50)
    assert drawn.shape == (50, 12)
    assert np.array_equal(model.predict_ids(drawn)[ids >= 0], ids[ids >= 0])


def test_evidence_of_two_rows_is_exact():
    X, _ = draw_waits(2, 10)
    model = Model(PRIOR, Waits())
    batch = model.likelihood.encode(X)
    fitted = StreamingMixture(PRIOR, Waits()).fit(X)
    posterior = exact.run(model, batch)
    assert abs(posterior.log_evidence - fitted.total_log_evidence_) < 0.05  # U at its mode


def test_the_predictive_integrates_to_one():
    statistics = np.array([[3.5, 2.25]])

    def density(x):
        row = Waits().encode([[x]]).row(0)
        return float(np.exp(Waits().log_predictive(statistics, row))[0])

    assert abs(quad(density, 0.0, np.inf)[0] - 1.0) < 1e-8


class WrongNormalizer(CompiledWaits):
    def kernel_parameters(self, n_statistics):
        return None

    def log_normalizer(self, statistics):
        right = super().log_normalizer(statistics)
        return right + gammaln(self.shape + statistics[:, -1])


class Concave(Waits):
    def log_normalizer(self, statistics):
        return -super().log_normalizer(statistics)


class Centred(Waits):
    def encode(self, X):
        batch = super().encode(X)
        return Batch(batch.statistics / batch.statistics.mean(axis=0), batch.log_base)


class Half(Waits):
    def encode(self, X):
        batch = super().encode(X)
        return Batch(batch.statistics.astype(np.float32), batch.log_base)


class WrongRows(CompiledWaits):
    def kernel_parameters(self, n_statistics):
        return None

    def sample(self, statistics, rng, **options):
        return 1.2 * super().sample(statistics, rng)


class OffParameters(NamedTuple):
    base: Parameters


class Off(CompiledWaits):
    def kernel_parameters(self, n_statistics):
        return OffParameters(super().kernel_parameters(n_statistics))


@specialize(log_predictive_of, OffParameters)
def _off(parameters, table, rows, i, k, entries):
    return log_predictive_of(parameters.base, table, rows, i, k, entries) + 1e-6


@specialize(in_new, OffParameters)
def _off_new(parameters, rows, i):
    return in_new(parameters.base, rows, i) + 1e-6


class Unregistered(CompiledWaits):
    def kernel_parameters(self, n_statistics):
        return np.finfo(np.float64)


class PlainPairs(Waits):
    paired = True


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (WrongNormalizer(), "belong together"),
        (Concave(), "convex"),
        (Centred(), "row by row"),
        (Half(), "float64"),
        (WrongRows(), "belong together"),
        (Off(), "compiled scores"),
        (Unregistered(), "log_predictive_of must be registered for finfo"),
        (PlainPairs(), "PairedBatch"),
    ],
    ids=lambda case: type(case).__name__,
)
def test_a_broken_one_is_caught(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_likelihood(broken, draw_waits(40, 11)[0])


class Pairs(Waits):
    """Sums that forget nothing."""

    paired = True

    def encode(self, X):
        batch = super().encode(X)
        return PairedBatch(
            np.hstack([batch.statistics, np.zeros_like(batch.statistics)]), batch.log_base
        )

    def log_normalizer(self, statistics):
        return super().log_normalizer(np.add(*np.hsplit(statistics, 2)))


def test_pairs_are_summed_without_loss():
    check_likelihood(Pairs(), draw_waits(30, 12)[0])
    X = np.array([[1e17, 1.0], [1.0, 1e17], [3.0, 5.0]])
    batch = Pairs().encode(X)
    sums = batch.weighted_sums(csr_array(np.array([[1.0, 0.5], [1.0, 0.0], [1.0, 0.5]])))
    exactly = [[int(sums[k, j]) + Fraction(sums[k, j + 3]) for j in range(3)] for k in range(2)]
    assert exactly == [[10**17 + 4, 10**17 + 6, 3], [5 * 10**16 + Fraction(3, 2), 3, 1]]


def test_pairs_run_in_every_algorithm():
    X, _ = draw_waits(60, 13)
    for options in ({"n_passes": 3}, {"revisit": 20}, {"merge_threshold": 0.0}):
        plain, paired = (
            StreamingMixture(PRIOR, law, engine="reference", **options).fit(X)
            for law in (Waits(), Pairs())
        )
        np.testing.assert_allclose(paired.score_samples(X), plain.score_samples(X), rtol=1e-8)
    GibbsMixture(PRIOR, Pairs(), n_sweeps=2, n_kept=1).fit(X)


class Shifts(Likelihood):
    """x ~ Normal(mean, 1), mean ~ Normal(0, 10): statistics below zero, some rows sparse."""

    def encode(self, X):
        X = np.asarray(X, dtype=np.float64)
        rows = np.hstack([X, np.ones((len(X), 1))])
        log_base = -0.5 * (X**2 + np.log(2 * np.pi)).sum(axis=1)
        return Batch(csr_array(rows) if self.sparse else rows, log_base)

    def __init__(self, sparse):
        self.sparse = sparse

    def log_normalizer(self, statistics):
        precision = 0.01 + statistics[:, -1:]
        return 0.5 * (statistics[:, :-1] ** 2 / precision - np.log(precision)).sum(axis=1)

    def kernel_parameters(self, n_statistics):
        return ShiftParameters(n_statistics, np.arange(n_statistics, dtype=np.uint32))


class ShiftParameters(NamedTuple):
    n_statistics: int
    columns: np.ndarray


@specialize(log_predictive_of, ShiftParameters)
def _shifted(parameters, table, rows, i, k, entries):
    first, last = rows.indptr[i], rows.indptr[i + 1]
    D = parameters.n_statistics
    values = table.values[table.starts[k] : table.starts[k] + D]
    before, after, total = 0.01 + values[D - 1], 1.01 + values[D - 1], 0.0
    at = first
    for j in range(D - 1):
        x = 0.0
        if at < last and rows.indices[at] == j:
            x = rows.values[at]
            at += 1
        total += (values[j] + x) ** 2 / after - values[j] ** 2 / before
    return 0.5 * (total - (D - 1) * np.log(after / before))


@specialize(in_new, ShiftParameters)
def _shifted_new(parameters, rows, i):
    total = 0.0
    for at in range(rows.indptr[i], rows.indptr[i + 1] - 1):
        total += rows.values[at] ** 2 / 1.01
    return 0.5 * (total - (parameters.n_statistics - 1) * np.log(1.01 / 0.01))


@pytest.mark.kernel
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_statistics_may_be_negative_and_fractional(sparse):
    rng = np.random.default_rng(14)
    X = rng.normal(rng.choice([-30.5, 0.25, 400.75], size=(60, 1)), 1.0, (60, 4))
    X[rng.random(X.shape) < 0.2] = 0.0
    check_likelihood(Shifts(sparse), X)
    found, expected = (
        StreamingMixture(PRIOR, Shifts(sparse), engine=engine, n_passes=3).fit(X)
        for engine in ("compiled", "reference")
    )
    np.testing.assert_allclose(found.log_evidence_, expected.log_evidence_, rtol=1e-8)
    np.testing.assert_allclose(found.state_.statistics, expected.state_.statistics, rtol=1e-7)


def test_no_tokens_are_made_of_statistics():
    rows = Shifts(sparse=True).encode([[1e6, -3.0], [2.5, 0.0]]).kernel_rows
    assert rows.tokens.size == rows.seen.size == rows.repeats.size == 0
    assert totals(SiteBuffer(), Shifts(sparse=False).encode(np.empty((0, 2))), 0)[1].size == 0
