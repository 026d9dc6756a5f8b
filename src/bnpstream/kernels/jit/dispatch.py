"""Choosing a compiled loop by the class of a parameters NamedTuple.

Passing jitted functions as arguments, or closing over them, never hits numba's disk cache.
An overload on the class of a NamedTuple does, so that is how one pass serves every prior and
every likelihood. ``specialize`` registers both spellings at once: the overload for compiled
callers, and ``functools.singledispatch`` for ``NUMBA_DISABLE_JIT=1``.
"""

from collections.abc import Callable
from typing import Any

from numba.extending import overload

from bnpstream.kernels.jit.linking import InlinedCompiler, LinkedCompiler, options_for

SOURCES: dict[type, set[str]] = {}
"""Files of the functions registered for a class of parameters (``kernels.jit.cache``)."""


def specialize(
    generic: Any, parameters: type, *, inline: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make the decorated function the spelling of `generic` for one class of parameters.

    Parameters
    ----------
    generic : function
        A ``functools.singledispatch`` function of this package.
    parameters : type
        The NamedTuple class of the first argument that selects the decorated function.
    inline : bool
        Whether to inline it: for steps of a row that take many arrays (``kernels.jit.decorators``).

    Returns
    -------
    decorator : callable
        Returns the function unchanged.
    """
    options: Any = options_for(InlinedCompiler if inline else LinkedCompiler)

    def decorate(implementation: Callable[..., Any]) -> Callable[..., Any]:
        generic.register(parameters)(implementation)
        SOURCES.setdefault(parameters, set()).add(implementation.__code__.co_filename)

        # strict=False: the chooser takes whatever arguments the implementation does.
        @overload(generic, strict=False, jit_options=options)
        def choose(first: Any, *rest: Any) -> Callable[..., Any] | None:
            chosen = getattr(first, "instance_class", None) is parameters
            return implementation if chosen else None

        return implementation

    return decorate


def is_registered(generic: Any, parameters: type) -> bool:
    """Return whether a function has a spelling of its own for a class of parameters."""
    return generic.dispatch(parameters) is not generic.dispatch(object)
