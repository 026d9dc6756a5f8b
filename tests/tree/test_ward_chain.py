"""Joins along chains of nearest groups are those of Ward's rule, found by looking at all pairs."""

import itertools

import numpy as np
import pytest

from bnpstream.inference.margins import _joins


def naive(masses, means):
    """Return the sets of clusters that are joined, in order: always the two that cost least."""
    groups = [frozenset([k]) for k in range(len(masses))]
    joined = []

    def cost(a, b):
        na, nb = masses[list(a)].sum(), masses[list(b)].sum()
        xa, xb = (masses[list(g)] @ means[list(g)] / n for g, n in ((a, na), (b, nb)))
        return na * nb / (na + nb) * ((xa - xb) ** 2).sum()

    while len(groups) > 1:
        a, b = min(itertools.combinations(groups, 2), key=lambda pair: cost(*pair))
        groups = [g for g in groups if g not in (a, b)] + [a | b]
        joined.append(a | b)
    return joined


@pytest.mark.parametrize("K", [1, 2, 3, 25])
def test_the_joins_are_those_of_the_rule(K):
    rng = np.random.default_rng((433, K))
    masses, means = rng.pareto(1.0, size=K) + 0.5, rng.normal(size=(K, 6))
    means -= masses @ means / masses.sum()
    sums = masses[:, None] * means
    groups, found = {k: frozenset([k]) for k in range(K)}, []
    for i, j, square in _joins(masses, sums @ sums.T):
        groups[i] = groups[i] | groups.pop(j)
        assert i == min(groups[i])
        total = sums[list(groups[i])].sum(axis=0)
        assert square == pytest.approx(total @ total, abs=1e-9)
        found.append(groups[i])
    assert found == naive(masses, means)
