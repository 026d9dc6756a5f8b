"""Functions that only compiled loops call: anybody's loops can call them, and no array is lost."""

import sys

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from bnpstream import DirichletMultinomial, Gaussian, dirichlet_process
from bnpstream.inference import adf, ep
from bnpstream.inference.visits import visit
from bnpstream.kernels.cells.families.full import factor
from bnpstream.kernels.jit.decorators import inner
from bnpstream.mixture import Model, SiteBuffer

compiled_only = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@numba.njit
def factored(packed, D):
    """Call an inner function, which calls others, from a loop that is not this package's."""
    return factor(packed, D)


@pytest.mark.kernel
@pytest.mark.parametrize("D", [1, 2, 3, 8, 40])
def test_factors_are_those_of_linear_algebra(D):
    rng = np.random.default_rng((19, D))
    root = rng.normal(size=(D, D + 3))
    matrix = root @ root.T
    packed = matrix[np.tril_indices(D)]
    log_diagonal = factored(packed, D)
    L = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(packed, np.linalg.inv(L)[np.tril_indices(D)], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(log_diagonal, np.log(np.diagonal(L)).sum(), rtol=1e-11)


def total(a):
    return a[0] + a[1:][0]


def part(a):
    return a[1:]


def new(a):
    b = np.empty(2)
    b[0] = a[0]
    return b[0]


def picked(a):
    return a[np.array([0, 1])].sum()


def copied(a):
    a[:1] = a[1:2]


def ours(function):
    """Let a function pass for one of the package's, as others are always counted."""
    function.__module__ = "bnpstream.kernels.special"
    return function


part_of = inner(ours(part))


def first_of_part(a):
    return part_of(a)[0]


@compiled_only
@pytest.mark.parametrize("function", [total, part, first_of_part, new, picked, copied])
def test_only_what_owns_no_array_counts_no_references(function):
    loop = inner(ours(function))
    loop.compile((numba.float64[::1],))
    (made,) = loop.overloads.values()
    assert ("NRT_incref" in str(made.library._final_module)) == (function is not total)


def models():
    rng = np.random.default_rng((19, 3))
    counts = rng.multinomial(12, np.full(30, 1 / 30), size=60)
    rows = rng.normal(size=(60, 3)) + 5.0 * rng.integers(3, size=(60, 1))
    yield DirichletMultinomial(0.1), counts
    yield Gaussian(mean=np.zeros(3), covariance=np.eye(3)), rows


@compiled_only
@pytest.mark.parametrize(("likelihood", "X"), list(models()), ids=["words", "cells"])
def test_references_are_balanced(likelihood, X):
    """Visits, revisits and drops leave every array with the references that it had."""
    model = Model(dirichlet_process(1.0), likelihood)
    batch = likelihood.encode(X)
    kernel = model.kernel_arguments(batch)
    arrays = [part for part in kernel.rows if isinstance(part, np.ndarray)]

    def sweep():
        state, sites = adf.init(model, batch.n_statistics), SiteBuffer(len(batch))
        settings = adf.Settings(0.1, 1e-4)
        list(visit(model, state, batch, SiteBuffer(), sites, settings, kernel))
        assert len(list(ep.run(model, state, batch, sites, settings, kernel, n_sweeps=3))) == 3

    sweep()
    _nrt_python.memsys_enable_stats()
    before, counts = rtsys.get_allocation_stats(), [sys.getrefcount(part) for part in arrays]
    sweep()
    after = rtsys.get_allocation_stats()
    assert [sys.getrefcount(part) for part in arrays] == counts
    assert after.alloc > before.alloc
    assert after.alloc - before.alloc == after.free - before.free
