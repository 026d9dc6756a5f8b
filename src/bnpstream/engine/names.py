"""Priors and likelihoods by name."""

from typing import Any, TypeVar

from bnpstream.likelihoods import NAMED_LIKELIHOODS, Likelihood
from bnpstream.priors import NAMED_PRIORS, Prior

T = TypeVar("T")


def resolve_prior(prior: Any) -> Prior:
    """Return a prior, given itself or its name."""
    return _resolve("prior", prior, Prior, NAMED_PRIORS)  # type: ignore[type-abstract]


def resolve_likelihood(likelihood: Any) -> Likelihood:
    """Return a likelihood, given itself or its name."""
    return _resolve("likelihood", likelihood, Likelihood, NAMED_LIKELIHOODS)  # type: ignore[type-abstract]


def _resolve(name: str, value: Any, kind: type[T], named: dict[str, Any]) -> T:
    """Return `value` if it is of the right kind, or the object that it names."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str) and value in named:
        found: T = named[value]
        return found
    names = ", ".join(repr(known) for known in named)
    raise ValueError(f"{name} must be a {kind.__name__} or one of {names}, got {value!r}")
