"""The exact posterior by enumeration: against an oracle, and the laws of probability."""

import math

import numpy as np
import pytest
from sampling_cases import ALPHA, PRIORS, WORDS, PoissonGamma, as_documents, documents, model_of
from scipy.special import logsumexp
from scipy.stats import nbinom

import naive
from bnpstream.inference import adf, exact

priors = pytest.mark.parametrize("kind", PRIORS)
BELL = [1, 1, 2, 5, 15, 52, 203, 877, 4140]


def enumerated(model, rows):
    batch = model.likelihood.encode(rows)
    return batch, exact.run(model, batch)


@priors
@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_every_partition_is_there_once_and_their_probabilities_sum_to_one(kind, n):
    _, posterior = enumerated(model_of(kind), documents(1, n))
    assert len(posterior.partitions) == len(set(posterior.partitions)) == BELL[n]
    for labels in posterior.partitions:
        assert len(labels) == n
        firsts = [labels.index(label) for label in range(max(labels) + 1)]
        assert firsts == sorted(firsts)  # numbered in order of appearance
    assert logsumexp(posterior.log_probabilities) == pytest.approx(0.0, abs=1e-12)


@priors
@pytest.mark.parametrize("number", range(3))
def test_enumeration_agrees_with_the_oracle(kind, number):
    counts = documents(number, 5)
    expected, log_evidence = naive.exact_posterior(
        as_documents(counts), PRIORS[kind][1], [ALPHA] * WORDS
    )
    _, posterior = enumerated(model_of(kind), counts)
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=1e-8)
    for labels, log_probability in zip(
        posterior.partitions, posterior.log_probabilities, strict=True
    ):
        assert math.exp(log_probability) == pytest.approx(expected[labels], abs=1e-9)


@priors
def test_evidence_is_the_chain_of_exact_predictives(kind):
    model, counts = model_of(kind), documents(4, 6)
    total = 0.0
    for i in range(6):
        new = model.likelihood.encode(counts[i : i + 1])
        if i == 0:
            row = new.row(0)
            prior = np.zeros((1, WORDS + 1))
            total += float(model.likelihood.log_predictive(prior, row)[0]) + row.log_base
        else:
            batch, posterior = enumerated(model, counts[:i])
            total += float(exact.log_predictive(model, batch, posterior, new)[0])
        assert enumerated(model, counts[: i + 1])[1].log_evidence == pytest.approx(total, abs=1e-8)


@priors
def test_predictives_sum_to_one_over_all_documents(kind):
    model = model_of(kind)
    batch, posterior = enumerated(model, [[2, 1, 0], [0, 0, 3], [1, 1, 0]])
    words = np.array([[i, j, 3 - i - j] for i in range(4) for j in range(4 - i)])
    scores = exact.log_predictive(model, batch, posterior, model.likelihood.encode(words))
    assert scores.shape == (10,)
    assert logsumexp(scores) == pytest.approx(0.0, abs=1e-9)


@priors
def test_the_order_of_rows_does_not_matter(kind):
    model, counts = model_of(kind), documents(5, 5)
    order = [3, 0, 4, 2, 1]
    _, posterior = enumerated(model, counts)
    _, permuted = enumerated(model, counts[order])
    assert permuted.log_evidence == pytest.approx(posterior.log_evidence, abs=1e-10)
    expected = dict(zip(posterior.partitions, posterior.log_probabilities, strict=True))
    for labels, log_probability in zip(
        permuted.partitions, permuted.log_probabilities, strict=True
    ):
        original = [0] * 5
        for place, row in enumerate(order):
            original[row] = labels[place]
        names = {label: k for k, label in enumerate(dict.fromkeys(original))}
        assert log_probability == pytest.approx(
            expected[tuple(names[label] for label in original)], abs=1e-9
        )


def test_eight_rows_are_the_most():
    model = model_of("nig")
    _, posterior = enumerated(model, documents(6, 8))
    assert len(posterior.partitions) == BELL[8]
    with pytest.raises(ValueError, match="at most 8 rows, got 9"):
        enumerated(model, documents(6, 9))


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize("kind", ["dp", "nggp", "py"])
def test_one_pass_over_two_rows_is_exact(kind, engine):
    """With no threshold and no cut; where U is integrated out or there is none."""
    model = model_of(kind)
    for number in range(10, 14):
        batch, posterior = enumerated(model, documents(number, 2, length=8))
        kernel = model.kernel_arguments(batch) if engine == "compiled" else None
        state = adf.init(model, batch.n_statistics)
        list(adf.run(model, state, batch, adf.Settings(0.0, 0.0), kernel))
        together, apart = np.exp(posterior.log_probabilities)
        assert posterior.partitions == [(0, 0), (0, 1)]
        np.testing.assert_allclose(state.masses, [1 + together, apart], atol=1e-9)
        assert state.log_evidence == pytest.approx(posterior.log_evidence, abs=1e-9)


# --- a likelihood from elsewhere ------------------------------------------------------------------


def log_marginal(x, shape):
    """Return log p(x_1..x_n) in one cluster: a chain of negative binomials."""
    total = 0.0
    for i, value in enumerate(x):
        total += nbinom.logpmf(value, shape + sum(x[:i]), (1 + i) / (2 + i))
    return total


@priors
def test_a_likelihood_from_elsewhere_is_enumerated_too(kind):
    model, shape = model_of(kind, PoissonGamma(0.8)), 0.8
    x = [0, 7, 1, 9]
    batch, posterior = enumerated(model, x)
    assert isinstance(batch.statistics, np.ndarray)

    def log_joint(values):
        scores = {}
        for labels in naive.set_partitions(len(values)):
            members = [
                [v for v, label in zip(values, labels, strict=True) if label == k]
                for k in range(max(labels) + 1)
            ]
            scores[labels] = naive.log_eppf(PRIORS[kind][1], naive.sizes(labels)) + sum(
                log_marginal(group, shape) for group in members
            )
        return scores

    scores = log_joint(x)
    log_evidence = logsumexp(list(scores.values()))
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=1e-8)
    for labels, log_probability in zip(
        posterior.partitions, posterior.log_probabilities, strict=True
    ):
        assert log_probability == pytest.approx(scores[labels] - log_evidence, abs=1e-8)
    for new in (0, 8):
        longer = logsumexp(list(log_joint([*x, new]).values()))
        found = exact.log_predictive(model, batch, posterior, model.likelihood.encode([new]))
        assert found[0] == pytest.approx(longer - log_evidence, abs=1e-8)
