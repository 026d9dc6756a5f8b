"""R-hat and effective sample sizes: those of ArviZ, and what they are in cases that are known."""

import warnings

import numpy as np
import pytest

from bnpstream.inference.convergence import effective_size, rhat

AXES = {"chain_axis": 0, "draw_axis": 1}


def chains(seed, n_chains, n_draws, correlation):
    """Return chains of an autoregression, one row per chain."""
    noise = np.random.default_rng((7, seed)).normal(size=(n_chains, n_draws))
    found = noise.copy()
    for t in range(1, n_draws):
        found[:, t] = correlation * found[:, t - 1] + noise[:, t]
    return found


@pytest.mark.parametrize("n_chains", [1, 2, 4])
@pytest.mark.parametrize("n_draws", [3, 4, 5, 7, 10, 13, 50, 51, 200])
@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.5, 0.95])
def test_both_are_those_of_arviz(n_chains, n_draws, correlation):
    array_stats = pytest.importorskip("arviz_stats.base").array_stats
    plain = chains(0, n_chains, n_draws, correlation)
    apart = plain + 3.0 * np.arange(n_chains)[:, None]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of ArviZ, about chains that are too short
        for draws in (plain, apart, np.round(plain), np.ones_like(plain)):
            np.testing.assert_allclose(rhat(draws), array_stats.rhat(draws, **AXES), rtol=1e-9)
            size = array_stats.ess(draws, **AXES)
            np.testing.assert_allclose(effective_size(draws), size, rtol=1e-9)


def test_independent_draws_count_fully_and_correlated_ones_less():
    independent, slow = chains(1, 4, 2000, 0.0), chains(1, 4, 2000, 0.9)
    assert effective_size(independent) == pytest.approx(8000, rel=0.1)
    assert effective_size(slow) == pytest.approx(8000 * (1 - 0.9) / (1 + 0.9), rel=0.25)
    assert rhat(independent) == pytest.approx(1.0, abs=0.005)
    assert rhat(independent + np.array([[0.0], [0.0], [0.0], [5.0]])) > 1.5
