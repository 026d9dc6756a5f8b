"""Documents that repeat their words, against sums over all tables that they may have.

The exact two-layer model: theta ~ Dir(b), theta_d ~ Dir(s theta), words from theta_d. Scores and
tables of the package are approximations; the bounds of their errors are stated here.
"""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import beta as beta_distribution

from bnpstream import BurstyMultinomial, DirichletMultinomial, StreamingMixture
from bnpstream.kernels.words.tables import LONG_RUN, stirling_numbers
from bnpstream.kernels.words.tables import tables_of as compiled_tables_of
from bnpstream.likelihoods.bursty import DOCUMENTS_OF_A_TOPIC, tables_of
from bnpstream.testing import check_likelihood
from states import from_python

pytestmark = pytest.mark.kernel

compiled_tables_of = from_python(compiled_tables_of)


def log_rising(x, n):
    return gammaln(x + n) - gammaln(x)


def exact(b, s, x):
    """Return log p(x | b) of words in one order, and E[t | x]: a sum over all tables."""
    b, x = np.asarray(b, float), np.asarray(x, int)
    log_stirling = np.log(np.maximum(stirling_numbers(int(x.max()) + 1), 1e-300))
    tables = np.array(list(itertools.product(*[range(min(n, 1), n + 1) for n in x])))
    log_p = log_stirling[x, tables].sum(axis=1) + tables.sum(axis=1) * math.log(s)
    log_p += log_rising(b, tables).sum(axis=1) - log_rising(b.sum(), tables.sum(axis=1))
    top = log_p.max()
    p = np.exp(log_p - top)
    return top + math.log(p.sum()) - log_rising(s, x.sum()), p @ tables / p.sum()


@pytest.mark.parametrize(("b", "s", "x"), [((0.7, 2.0), 3.0, (4, 1)), ((5.0, 0.2), 0.4, (2, 3))])
def test_the_oracle_is_the_integral_over_the_probabilities_of_the_cluster(b, s, x):
    def density(theta):
        shapes = s * np.array([theta, 1.0 - theta])
        log_p = log_rising(shapes, np.array(x)).sum() - log_rising(s, sum(x))
        return math.exp(log_p) * beta_distribution.pdf(theta, *b)

    integral, _ = quad(density, 0.0, 1.0, epsabs=0, epsrel=1e-10)
    assert exact(b, s, x)[0] == pytest.approx(math.log(integral), abs=1e-7)


def cluster(case):
    """Return likelihood, the tables of a cluster, and its b; young clusters and old ones."""
    rng = np.random.default_rng((71, case))
    alpha = 10 ** rng.uniform(-2.5, 0.5, size=4) * 10 ** rng.uniform(0, 2)
    tables = rng.gamma(0.5, 10 ** rng.uniform(0, 3), size=4) * (rng.random(4) < 0.6) * (case % 3)
    likelihood = BurstyMultinomial(alpha, float(10 ** rng.uniform(-0.5, 3)))
    return likelihood, np.append(tables, tables.sum())[None], alpha + tables


def documents_of(n_words, length):
    """Return all documents of so many words."""
    every = itertools.product(range(length + 1), repeat=n_words)
    return np.array([x for x in every if sum(x) == length])


@pytest.mark.parametrize("case", range(9))
def test_scores_are_a_distribution(case):
    likelihood, statistics, _ = cluster(case)
    batch = likelihood.encode(documents_of(4, 7))
    scores = [likelihood.log_predictive(statistics, batch.row(i))[0] for i in range(len(batch))]
    assert np.exp(scores + batch.log_base).sum() == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize("case", range(9))
def test_scores_of_one_and_two_words_are_exact(case):
    """The two layers and the one that stands for them have the same means and covariances."""
    likelihood, statistics, b = cluster(case)
    s = likelihood.document_strength
    for x in (*documents_of(4, 1), *documents_of(4, 2)):
        score = likelihood.log_predictive(statistics, likelihood.encode([x]).row(0))[0]
        assert score == pytest.approx(exact(b, s, x)[0], abs=1e-9)


@pytest.mark.parametrize("case", range(9))
def test_scores_of_longer_documents_are_near_and_their_divergence_is_small(case):
    """No document of eight words is off by 1.5 nats, and on average they are by .05."""
    likelihood, statistics, b = cluster(case)
    batch = likelihood.encode(documents_of(4, 8))
    true = np.array([exact(b, likelihood.document_strength, x)[0] for x in documents_of(4, 8)])
    rows = [batch.row(i) for i in range(len(batch))]
    off = np.array([likelihood.log_predictive(statistics, row)[0] for row in rows]) - true
    assert np.abs(off).max() < 1.5
    assert 0.0 <= -(np.exp(true + batch.log_base) @ off) < 0.05


@pytest.mark.parametrize("case", range(24))
def test_tables_are_near_the_sum_over_all_of_them(case):
    """Given how many there are in all, words are independent.

    That costs .2 % of the largest count, and 5 % where the base measure is not worth ten words.
    """
    likelihood, statistics, b = cluster(case)
    rng = np.random.default_rng((72, case))
    for _ in range(4):
        x = rng.multinomial(1 + rng.integers(22), rng.dirichlet(np.full(4, 0.5)))
        row = likelihood.encode([x]).row(0)
        lines = likelihood.contributions(statistics, row, np.zeros(1, np.int64))[0]
        _, expected = exact(b, likelihood.document_strength, x)
        within = 0.05 if b.sum() < 10.0 else 0.0025
        np.testing.assert_allclose(lines[:-1], expected[x > 0], atol=within * x.max())
        assert lines[-1] == pytest.approx(lines[:-1].sum())
        assert np.all((lines[:-1] >= 1.0) & (lines[:-1] <= x[x > 0]))


def test_one_word_alone_has_the_exact_tables():
    """With a base measure that is large beside the row there is no number of tables to share."""
    likelihood = BurstyMultinomial(np.array([0.4, 1e6]), 1e6)
    x = np.array([5, 0])
    lines = likelihood.contributions(
        np.zeros((1, 3)), likelihood.encode([x]).row(0), np.zeros(1, int)
    )
    assert lines[0, 0] == pytest.approx(exact(likelihood.alpha, 1e6, x)[1][0], abs=1e-5)


def exact_tables_of(x, base, rate):
    """Return the mean of p(t), in proportion to |S1(x, t)| rate^t base..(base + t - 1)."""
    term, total, summed = Fraction(1), Fraction(0), Fraction(0)
    for t, number in enumerate(whole_stirling_numbers(x)[1:], 1):
        term *= Fraction(rate) * (Fraction(base) + t - 1)
        total, summed = total + number * term, summed + t * number * term
    return float(summed / total)


@cache
def whole_stirling_numbers(x):
    """Return |S1(x, t)| for t = 0..x: the coefficients of z (z + 1) ... (z + x - 1)."""
    row = [1]
    for j in range(x):
        row = [j * one + other for one, other in zip([*row, 0], [0, *row], strict=True)]
    return row


@pytest.mark.parametrize("x", [2, 3, 9, 23, 24, 60, 200])
@pytest.mark.parametrize("base", [1e-6, 0.1, 3.0, 500.0])
@pytest.mark.parametrize("rate", [1e-3, 0.1, 1.0, 30.0])
def test_tables_of_a_word(x, base, rate):
    """Sums are exact; the fixed point for words that occur often is within 3 % of x."""
    expected = exact_tables_of(x, base, rate)
    found = tables_of(float(x), np.array([base]), np.array([rate]))[0]
    within = 1e-12 if x < LONG_RUN else 0.03
    assert found == pytest.approx(expected, abs=within * x)
    assert compiled_tables_of(float(x), base, rate) == pytest.approx(found, rel=1e-12)


def rows(n=30, seed=0):
    """Return documents of four topics with words in bursts, one of them longer than any sum."""
    rng = np.random.default_rng((73, seed))
    theta = rng.dirichlet(np.full(30, 0.2), size=4)
    counts = rng.multinomial(12, theta[rng.integers(4, size=n)])
    counts *= rng.integers(1, 4, size=counts.shape)
    counts[0, 3], counts[1] = 40, 0
    return counts


@pytest.mark.parametrize("strength", [0.5, 20.0, 1e5])
@pytest.mark.parametrize("alpha", [0.3, np.geomspace(0.01, 3.0, 30)], ids=["one", "each"])
def test_laws(alpha, strength):
    check_likelihood(BurstyMultinomial(alpha, strength), rows())


def test_a_large_strength_is_the_multinomial():
    bursty, plain = BurstyMultinomial(0.3, 1e14), DirichletMultinomial(0.3)
    statistics = plain.encode(rows()).statistics.toarray()
    for i in range(10):
        row = bursty.encode(rows(10, 1)).row(i)
        one, other = (family.log_predictive(statistics, row) for family in (bursty, plain))
        np.testing.assert_allclose(one, other, atol=1e-8)
        lines = bursty.contributions(statistics, row, np.arange(5))
        np.testing.assert_allclose(lines, np.tile(row.values, (5, 1)), rtol=1e-6)


def test_a_small_strength_counts_every_word_once():
    bursty = BurstyMultinomial(0.3, 1e-9)
    row = bursty.encode(rows(10, 1)).row(4)
    lines = bursty.contributions(np.zeros((1, 31)), row, np.zeros(1, int))[0]
    np.testing.assert_allclose(lines, [*[1.0] * (row.values.size - 1), row.values.size - 1])


# --- what is learnt -------------------------------------------------------------------------------


def test_words_of_fifty_documents_outweigh_the_base_measure():
    X = rows()
    found = BurstyMultinomial().informed(X)
    assert found.alpha.sum() == pytest.approx(DOCUMENTS_OF_A_TOPIC * (X > 0).sum(axis=1).mean())
    kept = BurstyMultinomial(document_strength=3.0).informed(X)
    assert kept.is_informed
    assert kept.document_strength == 3.0
    assert not kept.scale_is_open
    assert BurstyMultinomial(alpha=0.5).informed(X).alpha == 0.5


def test_a_base_measure_that_is_given_stays():
    alpha = np.geomspace(0.1, 1.0, 30)
    given, learnt = (
        StreamingMixture(likelihood=likelihood, prefix_rows=10).fit(rows(45)).likelihood_
        for likelihood in (BurstyMultinomial(alpha), BurstyMultinomial())
    )
    assert np.array_equal(given.alpha, alpha)
    assert set(given.learnt(1.0)) == {"document_strength"}
    first = BurstyMultinomial().informed(rows(45)[:10]).alpha
    assert learnt.alpha.sum() == pytest.approx(first.sum())
    assert not np.allclose(learnt.alpha, first)


def drawn(strength, n, seed):
    """Return documents of the model itself: five clusters, and words in bursts of their own."""
    rng = np.random.default_rng((74, seed))
    theta = rng.dirichlet(np.full(200, 0.3), size=5)[rng.integers(5, size=n)]
    shares = rng.standard_gamma(strength * theta + 1e-12)
    return rng.multinomial(80, shares / shares.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("strength", [30.0, 300.0])
def test_strength_of_drawn_documents_is_learnt(strength):
    likelihood = BurstyMultinomial(alpha=0.3)
    model = StreamingMixture(likelihood=likelihood).fit(drawn(strength, 120, int(strength)))
    assert strength / 1.5 < model.likelihood_.document_strength < strength * 1.5
    assert model.n_clusters_ < 8


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "none", True, None])
def test_strengths_that_cannot_be(bad):
    with pytest.raises(ValueError, match=f"document_strength must be .* got {bad!r}"):
        BurstyMultinomial(0.5, bad)


def test_what_is_open_is_named():
    with pytest.raises(ValueError, match='document_strength="learn" is not learnt yet'):
        BurstyMultinomial(0.5).log_predictive(
            np.zeros((1, 3)), DirichletMultinomial(0.5).encode([[1, 2]]).row(0)
        )
