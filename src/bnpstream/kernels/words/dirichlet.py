"""Predictive score of a row in a cluster, compiled (twins: ``bnpstream.likelihoods``)."""

import math
from functools import singledispatch
from typing import Any, NamedTuple

from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.jit.dispatch import specialize
from bnpstream.kernels.special import LOG_2, log_rising, split
from bnpstream.kernels.statistics.table import Table, locate
from bnpstream.kernels.words.tables import damping


@singledispatch
def log_predictive_of(
    likelihood: Any, table: Table, rows: Any, i: int, k: int, entries: Any
) -> float:
    """Return log p(x_i | cluster k) without log h(x_i); `entries` is working space."""
    raise TypeError(f"no compiled likelihood for parameters of type {type(likelihood).__name__}")


@singledispatch
def log_predictive_of_new(likelihood: Any, rows: Any, i: int) -> float:
    """Return log p(x_i | an empty cluster) without log h(x_i)."""
    raise TypeError(f"no compiled likelihood for parameters of type {type(likelihood).__name__}")


class SymmetricDirichletMultinomial(NamedTuple):
    """Parameters of ``bnpstream.likelihoods.DirichletMultinomial`` with one alpha."""

    alpha: float
    log_alpha: float
    total: float
    """A = V alpha."""


class AsymmetricDirichletMultinomial(NamedTuple):
    """Parameters of ``bnpstream.likelihoods.DirichletMultinomial`` with an alpha a word."""

    alpha: Floats
    """(V,)."""
    log_alpha: Floats
    """(V,)."""
    total: float
    """A = sum_w alpha_w."""


class BurstyDirichletMultinomial(NamedTuple):
    """Parameters of ``bnpstream.likelihoods.BurstyMultinomial``: an alpha a word, and s."""

    alpha: Floats
    """(V,)."""
    log_alpha: Floats
    """(V,)."""
    total: float
    """A = sum_w alpha_w."""
    burstiness: float
    """1/s."""


@singledispatch
def damping_of(likelihood: Any, total: float) -> float:
    """Return what a document sees of the counts of a cluster whose total is C = A + S."""
    raise TypeError(f"{type(likelihood).__name__} has no base measure of words")


@specialize(damping_of, SymmetricDirichletMultinomial)
@specialize(damping_of, AsymmetricDirichletMultinomial)
def _no_damping(likelihood, total):  # type: ignore[no-untyped-def]
    return 1.0


@specialize(damping_of, BurstyDirichletMultinomial)
def _damping(likelihood, total):  # type: ignore[no-untyped-def]
    return damping(total, likelihood.burstiness)


@singledispatch
def alpha_of(likelihood: Any, word: int) -> float:
    """Return alpha_w."""
    raise TypeError(f"{type(likelihood).__name__} has no base measure of words")


@singledispatch
def log_alphas(likelihood: Any, words: Any, first: int, last: int) -> float:
    """Return the sum of log alpha_w over words[first:last]."""
    raise TypeError(f"{type(likelihood).__name__} has no base measure of words")


@specialize(alpha_of, SymmetricDirichletMultinomial)
def _same_alpha(likelihood, word):  # type: ignore[no-untyped-def]
    return likelihood.alpha


@specialize(alpha_of, AsymmetricDirichletMultinomial)
@specialize(alpha_of, BurstyDirichletMultinomial)
def _own_alpha(likelihood, word):  # type: ignore[no-untyped-def]
    return likelihood.alpha[word]


@specialize(log_alphas, SymmetricDirichletMultinomial)
def _same_log_alphas(likelihood, words, first, last):  # type: ignore[no-untyped-def]
    return (last - first) * likelihood.log_alpha


@specialize(log_alphas, AsymmetricDirichletMultinomial)
@specialize(log_alphas, BurstyDirichletMultinomial)
def _own_log_alphas(likelihood, words, first, last):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(first, last):
        total += likelihood.log_alpha[words[j]]
    return total


@specialize(log_predictive_of, SymmetricDirichletMultinomial)
@specialize(log_predictive_of, AsymmetricDirichletMultinomial)
@specialize(log_predictive_of, BurstyDirichletMultinomial)
def _dirichlet_multinomial(likelihood, table, rows, i, k, entries):  # type: ignore[no-untyped-def]
    """Score document i in cluster k: a product over its tokens, one logarithm.

    The last entry of a row is the document's length N, in the column of totals; the others are
    words. The numerator prod_w prod_{j < x_w} (alpha_w + S_kw + j) is kept as mantissa and
    exponent, moved apart after every eight factors: a double spans 1e-308 to 1e308, and factors
    are in [1e-30, 1e30]. What is read is one number a word. Of a bursty document, alpha_w + S_kw is
    damped; the first token of every word leaves the factor to the end.
    """
    first, last = rows.indptr[i], rows.indptr[i + 1] - 1
    words, values, n = rows.indices, table.values, last - first
    locate(table, k, words, first, last + 1, entries)
    total = likelihood.total + values[entries[n]]
    damped = damping_of(likelihood, total)
    mantissa, exponent, log_runs = 1.0, 0, n * math.log(damped)
    for j in range(0, n - 3, 4):
        w = first + j
        left = (alpha_of(likelihood, words[w]) + values[entries[j]]) * (
            alpha_of(likelihood, words[w + 1]) + values[entries[j + 1]]
        )
        right = (alpha_of(likelihood, words[w + 2]) + values[entries[j + 2]]) * (
            alpha_of(likelihood, words[w + 3]) + values[entries[j + 3]]
        )
        mantissa *= left * right
        if j & 4:
            mantissa, moved = split(mantissa)
            exponent += moved
    for j in range(n // 4 * 4, n):
        mantissa *= alpha_of(likelihood, words[first + j]) + values[entries[j]]
    mantissa, moved = split(mantissa)
    exponent += moved
    for t in range(rows.token_ptr[i], rows.token_ptr[i + 1]):
        j, seen = rows.tokens[t], rows.seen[t]
        base = damped * (alpha_of(likelihood, words[first + j]) + values[entries[j]])
        if seen < 0.0:
            log_runs += log_rising(base + 1.0, -seen - 1.0)
        else:
            mantissa *= base + seen
        if t & 7 == 7:
            mantissa, moved = split(mantissa)
            exponent += moved
    mantissa, moved = split(mantissa)
    log_words = math.log(mantissa) + LOG_2 * (exponent + moved) + log_runs
    return log_words - log_rising(damped * total, rows.values[last])


@specialize(log_predictive_of_new, SymmetricDirichletMultinomial)
@specialize(log_predictive_of_new, AsymmetricDirichletMultinomial)
@specialize(log_predictive_of_new, BurstyDirichletMultinomial)
def _empty_dirichlet_multinomial(likelihood, rows, i):  # type: ignore[no-untyped-def]
    """Score document i in an empty cluster: only words that occur again need more than alpha."""
    first, last = rows.indptr[i], rows.indptr[i + 1] - 1
    damped = damping_of(likelihood, likelihood.total)
    mantissa, exponent, log_runs = 1.0, 0, (last - first) * math.log(damped)
    for t in range(rows.token_ptr[i], rows.token_ptr[i + 1]):
        seen = rows.seen[t]
        base = damped * alpha_of(likelihood, rows.indices[first + rows.tokens[t]])
        if seen < 0.0:
            log_runs += log_rising(base + 1.0, -seen - 1.0)
        else:
            mantissa *= base + seen
        if t & 7 == 7:
            mantissa, moved = split(mantissa)
            exponent += moved
    mantissa, moved = split(mantissa)
    log_words = math.log(mantissa) + LOG_2 * (exponent + moved) + log_runs
    log_words += log_alphas(likelihood, rows.indices, first, last)
    return log_words - log_rising(damped * likelihood.total, rows.values[last])
