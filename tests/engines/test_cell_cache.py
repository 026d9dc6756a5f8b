"""What compiled scores need of a cluster: kept up to date, it is what is made anew, to the bit."""

import numpy as np
import pytest

from bnpstream.inference import adf, ep, gibbs
from bnpstream.inference.merge import merge_all
from bnpstream.inference.visits import visit
from bnpstream.likelihoods import DiagonalGaussian
from bnpstream.mixture import Model, SiteBuffer
from bnpstream.mixture.state import FIRST_CAPACITY
from bnpstream.priors import dirichlet_process, normalized_inverse_gaussian
from cell_cases import FAMILIES, FULL_ROWS, rows_of

pytestmark = pytest.mark.kernel
families = pytest.mark.parametrize("name", FAMILIES)


def missing(name):
    return 0.0 if name in FULL_ROWS else 0.2


def assert_cache_is_as_made_anew(model, state):
    """Every slot, the free ones included."""
    kept = state._cache
    assert kept is not None
    assert kept[0] is model.likelihood
    fresh = model.likelihood.cache(state.arrays.table, state.arrays.masses, state.n_clusters)
    for part in ("values", "prior", "uneven"):
        assert getattr(kept[1], part).tobytes() == getattr(fresh, part).tobytes()
    free = fresh.values[:, state.n_clusters : state.arrays.masses.size]
    assert (free == fresh.prior[:, None]).all()


@families
def test_the_cache_survives_adds_take_outs_and_drops(name, monkeypatch):
    monkeypatch.setattr("bnpstream.inference.visits.RECORD_ROWS", 1)
    model = Model(normalized_inverse_gaussian(2.0, 1.0), FAMILIES[name].likelihood)
    batch = model.likelihood.encode(rows_of(name, 30, 11, missing(name), clusters=8))
    batch = batch.weighted(np.random.default_rng((71, 1)).uniform(0.3, 2.5, 30))
    kernel = model.kernel_arguments(batch)
    state, sites = adf.init(model, batch.n_statistics), SiteBuffer(len(batch))
    for _ in visit(model, state, batch, SiteBuffer(), sites, adf.Settings(0.5, 1e-4), kernel):
        assert_cache_is_as_made_anew(model, state)
    deaths = 0
    for _ in range(2):
        new = SiteBuffer(len(batch))
        for record in visit(model, state, batch, sites, new, adf.Settings(0.5, 1e-4, 1.7), kernel):
            assert_cache_is_as_made_anew(model, state)
            deaths += sum(event.kind == "death" for event in record.events)
        sites.replace(new)
    assert deaths > 0


@families
def test_the_cache_survives_gibbs_sweeps(name):
    model = Model(dirichlet_process(3.0), FAMILIES[name].likelihood)
    batch = model.likelihood.encode(rows_of(name, 20, 12, missing(name)))
    chain, rng = gibbs.init(model, batch), np.random.default_rng((71, 2))
    for _ in range(4):
        gibbs.sweep(model, chain, batch, rng.random(20), model.kernel_arguments(batch))
        assert_cache_is_as_made_anew(model, chain.state)


@pytest.mark.parametrize("name", ["gaussian", "diagonal"])
def test_a_sweep_after_merges_and_rebuilding_starts_from_a_cache_that_is_right(name):
    model = Model(dirichlet_process(1.0), FAMILIES[name].likelihood)
    batch = model.likelihood.encode(rows_of(name, 25, 13, missing(name)))
    kernel = model.kernel_arguments(batch)
    state, sites = adf.init(model, batch.n_statistics), SiteBuffer(len(batch))
    list(visit(model, state, batch, SiteBuffer(), sites, adf.Settings(0.1, 1e-4), kernel))
    assert merge_all(model, state, sites, -20.0)
    state.cache(model.likelihood)
    assert_cache_is_as_made_anew(model, state)
    ep.sweep(model, state, batch, sites, adf.Settings(0.1, 1e-4), kernel)
    state.cache(model.likelihood)
    assert_cache_is_as_made_anew(model, state)


def test_the_cache_grows_with_the_slots():
    """Every row is far from all others: each opens a cluster, more than there are slots."""
    n = FIRST_CAPACITY + 20
    family = DiagonalGaussian(mean=[0.0, 0.0], mean_strength=1e-9, degrees=50, variance=[1.0, 1.0])
    rows = np.stack([1000.0 * np.arange(n), np.zeros(n)], axis=1)
    rows[5::7, 1] = np.nan
    model = Model(dirichlet_process(1.0), family)
    batch = family.encode(np.vstack([rows, rows]))
    state = adf.init(model, batch.n_statistics)
    list(adf.run(model, state, batch, adf.Settings(0.1, 1e-4), model.kernel_arguments(batch)))
    assert state.n_clusters > FIRST_CAPACITY
    assert_cache_is_as_made_anew(model, state)
    other = adf.init(model, batch.n_statistics)
    list(adf.run(model, other, batch, adf.Settings(0.1, 1e-4)))
    np.testing.assert_allclose(state.masses, other.masses, rtol=1e-9)


def test_another_likelihood_has_another_cache():
    model = Model(dirichlet_process(1.0), FAMILIES["diagonal"].likelihood)
    batch = model.likelihood.encode(rows_of("diagonal", 15, 14))
    state = adf.init(model, batch.n_statistics)
    list(adf.run(model, state, batch, adf.Settings(0.1, 1e-4), model.kernel_arguments(batch)))
    wider = Model(model.prior, DiagonalGaussian(mean=[0.0] * 3, variance=[9.0] * 3))
    state.cache(wider.likelihood)
    assert_cache_is_as_made_anew(wider, state)
