"""Rows of cells: exact enumeration against an oracle, one pass and Gibbs against enumeration."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare

import naive
from bnpstream.inference import adf, exact, gibbs
from bnpstream.likelihoods import Gaussian
from bnpstream.mixture import Model
from bnpstream.priors import GeneralizedGamma, dirichlet_process
from cell_cases import ENGINES, FAMILIES, FULL_ROWS, rows_of

kernel = pytest.mark.kernel
engines = pytest.mark.parametrize("engine", ENGINES)
SPOKEN = [name for name, family in FAMILIES.items() if family.oracle is not None]
spoken = pytest.mark.parametrize("name", SPOKEN)
PRIOR, ORACLE = dirichlet_process(0.9), naive.Prior("nggp", 0.9, 0.0, 1.0)
SMALLEST_P = 1e-4


def rows_for(name, n, number):
    return rows_of(name, n, number, 0.0 if name in FULL_ROWS else 0.25)


def enumerated(oracle, cells, prior):
    """Return log p(partition, rows) of every partition: a chain of predictives a cluster."""
    scores = {}
    for labels in naive.set_partitions(len(cells)):
        total = naive.log_eppf(prior, naive.sizes(labels))
        for k in range(max(labels) + 1):
            own = [x for x, label in zip(cells, labels, strict=True) if label == k]
            total += math.fsum(oracle(x, own[:i], [1.0] * i) for i, x in enumerate(own))
        scores[labels] = total
    return scores


@spoken
def test_enumeration_agrees_with_the_oracle(name):
    model = Model(PRIOR, FAMILIES[name].likelihood)
    batch = model.likelihood.encode(rows_for(name, 4, 21))
    expected = enumerated(FAMILIES[name].oracle, batch.cells.tolist(), ORACLE)
    log_evidence = logsumexp(list(expected.values()))
    posterior = exact.run(model, batch)
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=1e-8)
    for labels, found in zip(posterior.partitions, posterior.log_probabilities, strict=True):
        assert found == pytest.approx(expected[labels] - log_evidence, abs=1e-8)


def test_five_rows_of_gaussians_far_from_zero_are_enumerated_exactly():
    """As the same rows about zero: an offset that doubles hold exactly changes nothing."""
    rng = np.random.default_rng((72, 1))
    rows = rng.integers(-3000, 3000, (5, 2)) / 1024
    covariance = [[1.0, 0.2], [0.2, 0.5]]
    found = [
        exact.run(model, model.likelihood.encode(rows + offset))
        for offset in (0.0, 2.0**20)
        for model in [Model(PRIOR, Gaussian(mean=[offset, offset], covariance=covariance))]
    ]
    np.testing.assert_allclose(
        found[1].log_probabilities, found[0].log_probabilities, rtol=0, atol=1e-7
    )


@kernel
@engines
@spoken
def test_one_pass_over_two_rows_is_exact(name, engine):
    """With no threshold and no cut; the second row's step is Bayes' rule itself."""
    for prior, oracle in (
        (PRIOR, ORACLE),
        (
            GeneralizedGamma(2.0, 0.4, 3.0, auxiliary="quadrature"),
            naive.Prior("nggp", 2.0, 0.4, 3.0),
        ),
    ):
        model = Model(prior, FAMILIES[name].likelihood)
        batch = model.likelihood.encode(rows_for(name, 5, 22)).chosen(np.array([0, 2]))
        scores = enumerated(FAMILIES[name].oracle, batch.cells.tolist(), oracle)
        log_both = logsumexp(list(scores.values()))
        state = adf.init(model, batch.n_statistics)
        arguments = model.kernel_arguments(batch) if engine == "compiled" else None
        list(adf.run(model, state, batch, adf.Settings(0.0, 0.0), arguments))
        together, apart = (math.exp(scores[labels] - log_both) for labels in ((0, 0), (0, 1)))
        np.testing.assert_allclose(state.masses, [1 + together, apart], atol=1e-9)
        assert state.log_evidence == pytest.approx(log_both, abs=1e-8)


def canonical(assignments):
    """Return labels in order of appearance."""
    names = {slot: k for k, slot in enumerate(dict.fromkeys(assignments.tolist()))}
    return tuple(names[slot] for slot in assignments.tolist())


@pytest.mark.parametrize(("name", "concentration"), [("gaussian", 2.0), ("mixed", 40.0)])
def test_gibbs_frequencies_are_the_exact_posterior(name, concentration):
    """Chi-square of 600 thinned draws: a false alarm in ten thousand tests."""
    model = Model(dirichlet_process(concentration), FAMILIES[name].likelihood)
    rows = rows_of(name, 5, 23, 0.0 if name in FULL_ROWS else 0.5, clusters=1)
    batch = model.likelihood.encode(rows)
    posterior = exact.run(model, batch)
    rng, n_draws = np.random.default_rng((72, 2)), 600
    draws = gibbs.run(model, batch, rng, model.kernel_arguments(batch), n_sweeps=30 + 3 * n_draws)
    found = Counter(
        canonical(draw.assignments) for t, draw in enumerate(draws) if t >= 30 and t % 3 == 0
    )
    expected = np.exp(posterior.log_probabilities) * n_draws
    counts = np.array([found[labels] for labels in posterior.partitions])
    assert counts.sum() == n_draws
    rare = expected < 10.0  # are one cell
    cells = np.array([[*part[~rare], part[rare].sum()] for part in (counts, expected)])
    cells = cells[:, cells[1] > 0.0]
    assert cells.shape[1] > 4
    assert chisquare(*cells).pvalue > SMALLEST_P
