"""Families by name, and the classes that a saved model may name."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from bnpstream.likelihoods.base import Likelihood

T = TypeVar("T")

NAMED_LIKELIHOODS: dict[str, "Likelihood"] = {}
"""Likelihoods by name."""
KNOWN_CLASSES: dict[str, type] = {}
"""Dataclasses that a saved model may name, by class name."""


def register(name: str | None = None) -> Callable[[type[T]], type[T]]:
    """Return a decorator that allows saved models to name a dataclass.

    Parameters
    ----------
    name : str, optional
        Name of the family with all its defaults.
    """

    def decorate(cls: type[T]) -> type[T]:
        KNOWN_CLASSES[cls.__name__] = cls
        if name is not None:
            family = cls()
            NAMED_LIKELIHOODS[name] = family  # type: ignore[assignment]
        return cls

    return decorate


def lead(*names: str) -> None:
    """Put some names before all others, in this order."""
    others = [name for name in NAMED_LIKELIHOODS if name not in names]
    for name in (*names, *others):
        NAMED_LIKELIHOODS[name] = NAMED_LIKELIHOODS.pop(name)
