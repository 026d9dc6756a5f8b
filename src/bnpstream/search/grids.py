"""Grids of priors and base measures without duplicates.

The paper searches a in {1, 10, 100, 1000} and tau in {.1, 1, 10, 100, 1000}. Only a tau^sigma
matters, because (a, tau) and (a c^-sigma, c tau) are the same prior: of these 20 points the
normalized inverse Gaussian process has 11, the Dirichlet process 4.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, Literal, TypeVar

from bnpstream.likelihoods import DirichletMultinomial
from bnpstream.likelihoods.multinomial import LEARN
from bnpstream.priors import GeneralizedGamma

T = TypeVar("T")

CONCENTRATIONS: tuple[float | Literal["learn"], ...] = (1.0, 10.0, 100.0, 1000.0, "learn")
TILTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
ALPHAS: tuple[float | Literal["learn"], ...] = (0.02, 0.05, 0.1, 0.2, 0.5, "learn")
"""Near the paper's values, .1 and .5; short texts need less."""
EQUAL = 1e-9
"""Relative difference below which two strengths are equal, because powers of tau are rounded."""


def paper_grid(
    discounts: Sequence[float] = (0.0, 0.5),
    alphas: Sequence[float | Literal["learn"]] | None = ALPHAS,
    concentrations: Sequence[float | Literal["learn"]] = CONCENTRATIONS,
    tilts: Sequence[float] = TILTS,
) -> dict[str, list[Any]]:
    """Return the paper's grid over (a, tau), without redundant points, times base measures.

    Parameters
    ----------
    discounts : sequence of float
        sigma: 0 is the Dirichlet process, .5 the normalized inverse Gaussian process.
    alphas : sequence of float or "learn", or None
        Base measures of word counts; None leaves the likelihood to the estimator.
    concentrations : sequence of float or "learn"
        a. The paper does not learn it.
    tilts : sequence of float
        tau. Priors are given as (a tau^sigma, 1), which is the same.

    Returns
    -------
    grid : dict
        For `grid_search`, or scikit-learn's ``ParameterGrid``.

    Examples
    --------
    >>> from bnpstream.search import paper_grid
    >>> given = [prior for prior in paper_grid()["prior"] if not prior.learn]
    >>> [prior.concentration for prior in given if prior.discount == 0.0]
    [1.0, 10.0, 100.0, 1000.0]
    >>> [round(prior.concentration, 1) for prior in given if prior.discount == 0.5]
    [0.3, 1.0, 3.2, 10.0, 31.6, 100.0, 316.2, 1000.0, 3162.3, 10000.0, 31622.8]
    """
    priors = []
    for sigma in discounts:
        given = strengths(sigma, concentrations, tilts)
        priors += [GeneralizedGamma(strength, sigma) for strength in given]
        if LEARN in concentrations:
            priors.append(GeneralizedGamma(1.0, sigma).learning("concentration"))
    grid: dict[str, list[Any]] = {"prior": distinct(priors)}
    if alphas is not None:
        grid["likelihood"] = [DirichletMultinomial(alpha) for alpha in alphas]
    return grid


def strengths(
    discount: float,
    concentrations: Sequence[float | Literal["learn"]] = CONCENTRATIONS,
    tilts: Sequence[float] = TILTS,
) -> list[float]:
    """Return the values of a tau^sigma, each once, in ascending order; "learn" has none."""
    numbers = [a for a in concentrations if not isinstance(a, str)]
    found: list[float] = []
    for strength in sorted(a * tau**discount for a, tau in product(numbers, tilts)):
        if not found or not math.isclose(strength, found[-1], rel_tol=EQUAL):
            found.append(float(strength))
    return found


def distinct(values: Iterable[T], prior_of: Callable[[T], Any] = lambda value: value) -> list[T]:
    """Return values in order, without those whose prior an earlier one has.

    Parameters
    ----------
    values : iterable
        Priors, or anything with a prior.
    prior_of : callable
        Returns the prior of a value.

    Examples
    --------
    >>> from bnpstream import normalized_inverse_gaussian
    >>> from bnpstream.search import distinct
    >>> distinct([normalized_inverse_gaussian(10, tilt=100), normalized_inverse_gaussian(100, 1)])
    [GeneralizedGamma(concentration=10, discount=0.5, tilt=100)]
    """
    kept: list[T] = []
    known: list[Any] = []
    for value in values:
        prior = prior_of(value)
        if not any(_same(prior, other) for other in known):
            kept.append(value)
            known.append(prior)
    return kept


def _same(one: Any, other: Any) -> bool:
    """Return whether two priors are the same, by the law above or as written."""
    if not (isinstance(one, GeneralizedGamma) and isinstance(other, GeneralizedGamma)):
        return bool(one == other)
    ways = [(p.discount, p.learn, p.auxiliary, p.cluster_count) for p in (one, other)]
    here, there = (prior.concentration * prior.tilt**prior.discount for prior in (one, other))
    return ways[0] == ways[1] and math.isclose(here, there, rel_tol=EQUAL)
