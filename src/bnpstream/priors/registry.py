"""Priors by name: what a string stands for, and which classes a saved model may name."""

import dataclasses
from typing import TypeVar

from bnpstream.priors.base import Prior

P = TypeVar("P", bound=type[Prior])

NAMED_PRIORS: dict[str, Prior] = {}
"""What a string stands for where a prior is expected: what it does not say is learnt."""
PARAMETERS: dict[str, tuple[str, ...]] = {}
"""What can be said of a prior, by its name."""
KNOWN_CLASSES: dict[str, type] = {}
"""Dataclasses that a saved model may name, by their names."""


def register(cls: P) -> P:
    """Make a dataclass one that saved models may name; a decorator."""
    KNOWN_CLASSES[cls.__name__] = cls
    return cls


def name(prior: Prior, name: str, *parameters: str) -> None:
    """Let a name stand for a prior.

    Parameters
    ----------
    prior : Prior
        With first guesses of what it learns.
    name : str
        Its name.
    *parameters : str
        What can be said of it; by default all that its class has beyond what all priors have.
    """
    own = [field.name for field in dataclasses.fields(prior) if not field.kw_only]
    NAMED_PRIORS[name], PARAMETERS[name] = prior, parameters or tuple(own)


def lead(*names: str) -> None:
    """Put some names before all others, in this order."""
    others = [name for name in NAMED_PRIORS if name not in names]
    for name in (*names, *others):
        NAMED_PRIORS[name], PARAMETERS[name] = NAMED_PRIORS.pop(name), PARAMETERS.pop(name)
