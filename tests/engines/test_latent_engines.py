"""Both engines on rows that add what depends on the cluster: row by row from the same posterior."""

from typing import NamedTuple

import numpy as np
import pytest

from bnpstream import (
    BurstyMultinomial,
    GibbsMixture,
    StreamingMixture,
    normalized_inverse_gaussian,
)
from bnpstream.extending import contribution_of, specialize
from bnpstream.inference import adf, ep
from bnpstream.inference.visits import visit
from bnpstream.kernels.statistics.table import DENSE_UP_TO
from bnpstream.mixture import MixtureState, Model, SiteBuffer
from bnpstream.mixture.sites import totals
from bnpstream.testing import check_likelihood
from latent_families import (
    DIRECTIONAL,
    SCALED_GAUSSIAN,
    CompiledSaturating,
    CompiledScaled,
    directions,
    saturating_rows,
    scaled_rows,
)
from states import assert_free_slots_are_zero, bits

pytestmark = pytest.mark.kernel

PRIOR = normalized_inverse_gaussian(1.0, 1.0)
SETTINGS = adf.Settings(0.5, 1e-4)


def wide_rows(n, seed=0):
    """Return documents of so many words that clusters are hash tables."""
    X = np.zeros((n, DENSE_UP_TO + 50), np.int64)
    X[:, ::400] = saturating_rows(n, seed, n_words=-(-X.shape[1] // 400))
    return X


CASES = {
    "words": (CompiledSaturating(), saturating_rows, 60),
    "wide words": (CompiledSaturating(0.001), wide_rows, 40),
    "scales": (CompiledScaled(), scaled_rows, 60),
    "bursty": (BurstyMultinomial(0.3, 3.0), saturating_rows, 60),
    "wide bursty": (BurstyMultinomial(0.001, 300.0), wide_rows, 40),
    "directions": (DIRECTIONAL, directions, 60),
    "widths": (SCALED_GAUSSIAN, scaled_rows, 60),
}
cases = pytest.mark.parametrize("case", CASES)


def encoded(case, seed):
    likelihood, draw, n = CASES[case]
    model = Model(PRIOR, likelihood)
    return model, likelihood.encode(draw(n, seed))


def first_pass(model, batch, settings=SETTINGS):
    """Return posterior and sites after a compiled pass."""
    state, sites = adf.init(model, batch.n_statistics), SiteBuffer(len(batch))
    kernel = model.kernel_arguments(batch)
    list(visit(model, state, batch, SiteBuffer(), sites, settings, kernel))
    return state, sites


def assert_sites_alike(found, expected):
    for i in range(expected.n_visited):
        assert np.array_equal(found.row(i)[0], expected.row(i)[0])
        np.testing.assert_allclose(found.row(i)[1], expected.row(i)[1], rtol=0, atol=1e-10)
        np.testing.assert_allclose(found.lines(i), expected.lines(i), rtol=1e-9, atol=1e-9)


@cases
def test_engines_agree_row_by_row(case):
    model, batch = encoded(case, 20)
    settings = adf.Settings(0.5, 0.0)
    state = MixtureState(batch.n_statistics)
    n_soft = 0
    for i in range(len(batch)):
        part, other = batch.part(i, i + 1), state.copy()
        sites, others = SiteBuffer(1), SiteBuffer(1)
        kernel = model.kernel_arguments(part)
        (found,) = visit(model, state, part, SiteBuffer(), sites, settings, kernel)
        (expected,) = visit(model, other, part, SiteBuffer(), others, settings, None)
        assert_sites_alike(sites, others)
        assert [event[:2] for event in found.events] == [event[:2] for event in expected.events]
        for name in ("log_evidence", "novelty", "shares"):
            one, two = (getattr(record.rows, name) for record in (found, expected))
            np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-10)
        columns = batch.row(i).columns
        one, two = (posterior.candidates[:, columns] for posterior in (state, other))
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-10)
        n_soft += sites.row(0)[0].size > 1
    assert state.n_clusters > 1
    assert n_soft > 10
    assert_free_slots_are_zero(state)


@cases
def test_engines_revisit_alike(case):
    """What is taken out is what was added, and the change counts what moved within clusters."""
    model, batch = encoded(case, 21)
    state, sites = first_pass(model, batch)
    n_moved = 0
    for _ in range(3):
        for i in range(len(batch)):
            part, old = batch.part(i, i + 1), sites.part(i)
            one, other, mine, theirs = state.copy(), state.copy(), SiteBuffer(1), SiteBuffer(1)
            kernel = model.kernel_arguments(part)
            (found,) = visit(model, one, part, _first(old), mine, SETTINGS, kernel)
            (expected,) = visit(model, other, part, _first(old), theirs, SETTINGS, None)
            np.testing.assert_allclose(found.rows.change, expected.rows.change, atol=1e-9)
            assert one.ids.tolist() == other.ids.tolist()
            assert_sites_alike(mine, theirs)
            scale = 1.0 + np.abs(other.statistics).max()
            assert one.distance(other.statistics) < 1e-9 * scale
            if np.array_equal(mine.row(0)[0], old.row(0)[0]):
                shares_moved = 0.5 * np.abs(mine.row(0)[1] - old.row(0)[1]).sum()
                n_moved += found.rows.change[0] > shares_moved + 1e-6
        epoch = ep.sweep(model, state, batch, sites, SETTINGS, model.kernel_arguments(batch))
        assert epoch.drift < 1e-9 * (1.0 + np.abs(state.statistics).max())
        assert_free_slots_are_zero(state)
    assert n_moved > 0


def _first(sites):
    """Return the site of the first row."""
    found = SiteBuffer(1)
    found.append(*(part.copy() for part in sites.row(0)), sites.lines(0).copy())
    return found


@cases
def test_compiled_sites_add_up(case):
    model, batch = encoded(case, 22)
    state, sites = first_pass(model, batch)
    for _ in range(3):
        statistics, masses, _ = totals(sites, batch, state.n_clusters)
        assert state.distance(statistics) < 1e-9 * (1.0 + np.abs(state.statistics).max())
        np.testing.assert_allclose(masses, state.masses, rtol=1e-9)
        ep.sweep(model, state, batch, sites, SETTINGS, model.kernel_arguments(batch))
    plain = batch.weighted_sums(sites.matrix(state.n_clusters))
    assert state.distance(plain) > 0.1


@cases
def test_rows_that_wait_for_space_change_no_bit(case):
    """A loop stops where what a row adds has no space, also while the row is out."""
    model, batch = encoded(case, 23)
    kernel, found = model.kernel_arguments(batch), []
    for spare in (0, 10**6):
        state, sites = adf.init(model, batch.n_statistics), SiteBuffer(len(batch))
        for old in (SiteBuffer(), sites):
            new = SiteBuffer(len(batch))
            new.latent_arrays(len(batch), spare)
            list(visit(model, state, batch, old, new, SETTINGS, kernel))
            sites.replace(new)
        found.append([*bits(state), sites.contributions.values.tobytes()])
    assert found[0] == found[1]


@cases
def test_an_interrupt_puts_back_what_the_row_had_added(case, monkeypatch):
    model, batch = encoded(case, 24)
    state, sites = first_pass(model, batch, adf.Settings(0.5, 0.0))
    ep.sweep(model, state, batch, sites, SETTINGS, model.kernel_arguments(batch))
    before, n_out = state.total_mass, []

    def interrupted(state, wanted):
        n_out.append(before - state.total_mass)
        if n_out[-1] > 0.5:
            raise KeyboardInterrupt

    monkeypatch.setattr(MixtureState, "make_space", interrupted)
    new = SiteBuffer(len(batch))
    with pytest.raises(KeyboardInterrupt):
        list(visit(model, state, batch, sites, new, SETTINGS, model.kernel_arguments(batch)))
    assert n_out[-1] > 0.5
    new.extend(sites.part(new.n_visited))
    statistics, masses, _ = totals(new, batch, state.n_clusters)
    assert state.distance(statistics) < 1e-9 * (1.0 + np.abs(state.statistics).max())
    np.testing.assert_allclose(masses, state.masses, rtol=1e-9, atol=1e-12)


@cases
def test_the_compiled_engine_can_be_asked_for(case):
    likelihood, draw, n = CASES[case]
    X = draw(n, 25)
    model, same = (
        StreamingMixture(PRIOR, likelihood, engine=engine, revisit=20).partial_fit(X)
        for engine in ("compiled", "auto")
    )
    assert bits(model.state_) == bits(same.state_)
    with pytest.raises(ValueError, match="Gibbs sampling needs rows that add the same"):
        GibbsMixture(PRIOR, likelihood).fit(X)


class Unregistered(NamedTuple):
    precisions: object
    log_shares: object
    rho: float


class Nowhere(CompiledScaled):
    def kernel_parameters(self, n_statistics):
        return Unregistered(*super().kernel_parameters(n_statistics))


class Doubled(NamedTuple):
    alpha: float
    total: float


class Twice(CompiledSaturating):
    def kernel_parameters(self, n_statistics):
        return Doubled(*super().kernel_parameters(n_statistics))


def _register_doubled():
    from bnpstream.extending import log_predictive_of, log_predictive_of_new
    from latent_families import _of_words, _of_words_in_new

    specialize(log_predictive_of, Doubled)(_of_words)
    specialize(log_predictive_of_new, Doubled)(_of_words_in_new)

    @specialize(contribution_of, Doubled)
    def _whole(parameters, table, rows, i, k, entries, line):
        line[:] = 2.0 * rows.values[rows.indptr[i] : rows.indptr[i + 1]]


_register_doubled()


def test_a_broken_compiled_family_is_told_what_is_wrong():
    with pytest.raises(AssertionError, match="contribution_of must be registered for Unregistered"):
        check_likelihood(Nowhere(), scaled_rows(12))
    with pytest.raises(AssertionError, match="compiled contributions"):
        check_likelihood(Twice(), saturating_rows(12))
