"""Priors by name, and the classes that a saved model may name."""

import dataclasses
from typing import TypeVar

from bnpstream.priors.base import Prior

P = TypeVar("P", bound=type[Prior])

NAMED_PRIORS: dict[str, Prior] = {}
"""Priors by name; unset parameters are learnt."""
PARAMETERS: dict[str, tuple[str, ...]] = {}
"""Parameters that can be given, by the name of the prior."""
KNOWN_CLASSES: dict[str, type] = {}
"""Dataclasses that a saved model may name, by class name."""


def register(cls: P) -> P:
    """Allow saved models to name a dataclass; a decorator."""
    KNOWN_CLASSES[cls.__name__] = cls
    return cls


def name(prior: Prior, name: str, *parameters: str) -> None:
    """Give a prior a name.

    Parameters
    ----------
    prior : Prior
        With first guesses of what it learns.
    name : str
        Its name.
    *parameters : str
        Parameters that can be given; by default all of its class beyond those of every prior.
    """
    own = [field.name for field in dataclasses.fields(prior) if not field.kw_only]
    NAMED_PRIORS[name], PARAMETERS[name] = prior, parameters or tuple(own)


def lead(*names: str) -> None:
    """Put some names before all others, in this order."""
    others = [name for name in NAMED_PRIORS if name not in names]
    for name in (*names, *others):
        NAMED_PRIORS[name], PARAMETERS[name] = NAMED_PRIORS.pop(name), PARAMETERS.pop(name)
