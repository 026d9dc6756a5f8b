"""Split-merge moves: the ratio, the exact posterior by moves alone, and chains that are apart."""

import math

import numpy as np
import pytest
from sampling_cases import ALPHA, ENGINES, PRIORS, documents, model_of
from scipy.stats import chisquare
from sklearn.exceptions import ConvergenceWarning

import naive
from bnpstream import DirichletMultinomial, GibbsMixture, dirichlet_process
from bnpstream.inference import exact, gibbs, split_merge

SMALLEST_P = 1e-4
"""Chance of a false alarm, a case."""


def canonical(labels):
    names = {}
    return tuple(names.setdefault(int(label), len(names)) for label in labels)


@pytest.mark.parametrize("kind", ["dp", "py", "negative py"])
def test_ratio_is_that_of_two_entries_of_the_enumeration(kind):
    model = model_of(kind)
    batch = model.likelihood.encode(documents(21, 6))
    enumerated = exact.run(model, batch)
    log_joint = dict(zip(enumerated.partitions, enumerated.log_probabilities, strict=True))
    for labels in enumerated.partitions[::7]:
        if max(labels) < 1:
            continue
        inside = np.flatnonzero(np.array(labels) <= 1)
        members = batch.chosen(inside)
        apart = gibbs.chain_at(model, members, np.array(labels)[inside], math.nan).state
        found = split_merge._log_ratio(model, members, apart, max(labels) + 1)
        joined = canonical([max(label - 1, 0) for label in labels])
        assert found == pytest.approx(log_joint[labels] - log_joint[joined], abs=1e-9)


@pytest.mark.parametrize("kind", ["nig", "stable", "nggp"])
def test_ratio_given_u_is_one_of_tilted_moments(kind):
    model, (_, a, sigma, tau, *_) = model_of(kind), PRIORS[kind][1]
    counts, labels, v = documents(22, 7), np.array([0, 0, 1, 0, 1, 1, 0]), 0.7
    batch = model.likelihood.encode(counts)
    apart = gibbs.chain_at(model, batch, labels, v).state

    def moment(m):
        gammas = math.lgamma(m - sigma) - math.lgamma(1 - sigma)
        return math.log(a) + gammas + (sigma - m) * math.log(math.exp(v) + tau)

    def marginal(rows):
        words = {w: int(c) for w, c in enumerate(rows.sum(axis=0)) if c}
        return naive.log_predictive({}, 0.0, words, [ALPHA] * 4, ALPHA * 4)

    expected = moment(4) + moment(3) - moment(7) - marginal(counts)
    expected += marginal(counts[labels == 0]) + marginal(counts[labels == 1])
    assert split_merge._log_ratio(model, batch, apart, 2) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", ["dp", "nig", "py"])
def test_moves_alone_leave_the_exact_posterior_as_it_is(kind):
    """No sweeps: U and moves only, which reach every partition."""
    model = model_of(kind)
    batch = model.likelihood.encode(documents(2, 4, length=3))
    enumerated = exact.run(model, batch)
    rng, chain = np.random.default_rng((61, 0)), gibbs.init(model, batch)
    seen = dict.fromkeys(enumerated.partitions, 0)
    accepted = 0
    for draw in range(1500):
        state = chain.state
        state.auxiliary = gibbs.draw_auxiliary(model.prior, state.masses, state.auxiliary, rng)
        chain, moved = split_merge.move(model, chain, batch, rng)
        accepted += moved
        if draw % 5 == 4:
            seen[canonical(chain.assignments)] += 1
    assert accepted > 300
    counts, expected = np.array(list(seen.values())), 300 * np.exp(enumerated.log_probabilities)
    rare = expected < 10
    cells = [[*part[~rare], part[rare].sum()] for part in (counts, expected)]
    assert len(cells[0]) > 4
    assert chisquare(*cells).pvalue > SMALLEST_P


@pytest.mark.parametrize("kind", ["dp", "nig", "py"])
def test_both_engines_make_the_same_moves(kind):
    rows = documents(23, 25, length=8)
    one, other = (
        GibbsMixture(PRIORS[kind][0], DirichletMultinomial(ALPHA), n_sweeps=8, n_kept=8,
                     n_split_merges=6, random_state=3, engine=engine).fit(rows)
        for engine in ENGINES
    )  # fmt: skip
    np.testing.assert_array_equal(one.assignments_, other.assignments_)
    plain = GibbsMixture(PRIORS[kind][0], DirichletMultinomial(ALPHA), n_sweeps=8, n_kept=8)
    assert plain.set_params(random_state=3).fit(rows).assignments_.tobytes() != (
        one.assignments_.tobytes()
    )


def test_totals_are_those_of_the_assignments_after_every_move():
    model, counts = model_of("nig"), documents(24, 14, length=6)
    batch = model.likelihood.encode(counts)
    rng, chain = np.random.default_rng((61, 1)), gibbs.init(model, batch)
    chain.state.auxiliary, sizes = 0.5, set()
    for _ in range(150):
        chain, _ = split_merge.move(model, chain, batch, rng)
        K, state = chain.state.n_clusters, chain.state
        assert sorted(set(chain.assignments.tolist())) == list(range(K))
        for k in range(K):
            mine = counts[chain.assignments == k]
            assert state.masses[k] == len(mine)
            assert state.statistics[k].tolist() == [*mine.sum(axis=0), mine.sum()]
        assert state.auxiliary == 0.5
        sizes.add(K)
    assert len(sizes) > 3


def test_a_single_row_does_not_move():
    model = model_of("dp")
    batch = model.likelihood.encode([[1, 2, 0, 0]])
    chain = gibbs.init(model, batch)
    assert split_merge.move(model, chain, batch, np.random.default_rng(0)) == (chain, False)


def test_chains_that_have_not_mixed_are_warned_of_and_moves_mix_them():
    """Two kinds of rows: one by one they leave their common cluster late, if at all."""
    rng = np.random.default_rng((61, 2))
    theta = np.repeat([[0.15, 0.05], [0.05, 0.15]], 5, axis=1)
    rows = rng.multinomial(20, theta[np.arange(60) % 2])
    model = GibbsMixture(
        dirichlet_process(1e-3), DirichletMultinomial(1.0), n_sweeps=50, n_chains=4
    )
    with pytest.warns(ConvergenceWarning, match=r"R-hat of .* is .* n_split_merges"):
        model.fit(rows)
    assert model.rhat_["log_likelihood"] > 1.1
    model.set_params(n_chains=2, n_split_merges=1).fit(rows)
    assert model.rhat_["log_likelihood"] < 1.1
    assert (model.n_clusters_[:, 25:] == 2).all()
