from itertools import permutations

import numpy as np
import pytest

import bnpstream.inference.odds
from bnpstream import (
    DiagonalGaussian,
    DirichletMultinomial,
    PitmanYor,
    StreamingMixture,
    normalized_inverse_gaussian,
)
from bnpstream.inference.matching import ALONE, ClusterRows, assign, log_odds, match
from bnpstream.mixture import log_prior_weights
from bnpstream.priors import NAMED_PRIORS

PRIORS = {"words": PitmanYor(2.0, discount=0.3), "cells": normalized_inverse_gaussian(10, 100)}
LIKELIHOODS = {
    "words": DirichletMultinomial(0.3),
    "cells": DiagonalGaussian(mean=[0.0, 0.0], variance=[1.0, 1.0]),
}


def posterior(kind, rows):
    return StreamingMixture(PRIORS[kind], LIKELIHOODS[kind], engine="reference").partial_fit(rows)


def best_by_hand(odds):
    """Return the largest sum over all ways to match some rows with columns of their own."""
    n, m = odds.shape
    padded = np.hstack([odds, np.zeros((n, n))])
    return max(
        sum(padded[i, columns[i]] for i in range(n)) for columns in permutations(range(m + n), n)
    )


@pytest.mark.parametrize("case", range(30))
def test_assignment_is_the_best_of_all(case):
    rng = np.random.default_rng((31, case))
    odds = rng.normal(0.0, 3.0, (rng.integers(1, 4), rng.integers(1, 4)))
    found = assign(odds)
    taken = found[found != ALONE]
    assert np.unique(taken).size == taken.size
    rows = np.flatnonzero(found != ALONE)
    assert (odds[rows, taken] > 0).all()
    assert odds[rows, taken].sum() == pytest.approx(best_by_hand(odds))


def rows_of(kind, rng, n):
    if kind == "cells":
        return rng.normal(6.0 * rng.integers(3, size=(n, 1)), 1.0, (n, 2))
    words = rng.dirichlet(np.full(12, 0.2), 3)
    return rng.multinomial(25, words[rng.integers(3, size=n)])


@pytest.mark.parametrize("pairs", [2, 100_000])
@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_odds_are_those_of_one_cluster_against_two(kind, pairs, monkeypatch):
    monkeypatch.setattr(bnpstream.inference.odds, "PAIRS", pairs)  # that are looked at at a time
    rng = np.random.default_rng((32, len(kind)))
    model = posterior(kind, rows_of(kind, rng, 40))
    other = posterior(kind, rows_of(kind, rng, 15))
    state, new = model.state_, other.state_
    rows = new.statistics
    clusters = ClusterRows.of(new, np.arange(new.n_clusters))
    there = np.arange(1, state.n_clusters)
    found = log_odds(model.stream_.model, state, ClusterRows.of(state, there), clusters)
    prior, likelihood = model.stream_.model
    auxiliary = log_prior_weights(prior, state)[1]
    count = prior.occupancy(state.log_vacancy).sum()
    for i in range(new.n_clusters):
        for j, slot in enumerate(there):
            marginals = [
                likelihood.log_marginal(part[None])[0]
                for part in (rows[i] + state.statistics[slot], rows[i], state.statistics[slot])
            ]
            vacancy = np.array([[new.log_vacancy[i]], [state.log_vacancy[slot]]])
            masses = np.array([[new.masses[i]], [state.masses[slot]]])
            vacancy = np.maximum(vacancy, -1e3)
            weight = prior.log_merge_odds(
                masses,
                prior.occupancy(vacancy),
                prior.occupancy(vacancy.sum(axis=0)),
                float(count),
                auxiliary,
            )[0]
            expected = marginals[0] - marginals[1] - marginals[2] + weight
            # Counts below a tenth are left out (``likelihoods.word_pool``).
            assert found[i, j] == pytest.approx(expected, rel=1e-4, abs=1e-2)


def test_twins_are_recognised_and_strangers_are_not():
    likelihood = DirichletMultinomial(0.1)
    rows = np.zeros((4, 12), int)
    rows[[0, 1, 2, 3], [0, 4, 8, 11]] = 30
    model = StreamingMixture(NAMED_PRIORS["dp"], likelihood).partial_fit(np.repeat(rows[:3], 5, 0))
    new = StreamingMixture(NAMED_PRIORS["dp"], likelihood).partial_fit(rows[[1, 1, 3, 3]]).state_
    state, clusters = model.state_, ClusterRows.of(new, np.arange(new.n_clusters))

    def found(*slots):
        there = ClusterRows.of(state, np.array(slots, np.int64))
        return match(model.stream_.model, state, there, clusters).tolist()

    assert found(1, 2) == [state.ids[1], ALONE]
    assert found(0, 2) == [ALONE] * 2
    assert found() == [ALONE] * 2
