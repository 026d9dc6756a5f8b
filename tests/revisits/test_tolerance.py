"""A window stops sweeping when nothing moves any more."""

import numpy as np
import pytest

from bnpstream import DirichletMultinomial, StreamingMixture, dirichlet_process

ROWS = 9 * np.eye(4, dtype=int)[np.random.default_rng((81, 0)).integers(4, size=40)]


@pytest.mark.parametrize(("tol", "sweeps"), [(1e-4, 1), (0.0, 2)])
def test_a_window_stops_sweeping_at_its_tolerance(tol, sweeps):
    """The first sweep moves a row by 2e-5 on average, the second by nothing at all."""
    model = StreamingMixture(
        dirichlet_process(1.0), DirichletMultinomial(0.5), revisit=20, n_revisits=6, tol=tol
    )
    model.partial_fit(ROWS[:20]).partial_fit(ROWS[20:21])
    assert 0.0 < model.epochs_[0].change < 1e-4
    assert len(model.epochs_) == sweeps
