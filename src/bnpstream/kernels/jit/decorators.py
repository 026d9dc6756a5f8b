"""How loops are compiled.

A loop that Python calls is an entry: it unpacks its arguments from Python objects, and lets go of
the interpreter's lock. It returns numbers or nothing, and writes the rest into arrays: to make a
NamedTuple, numba calls its class, and a signal that is handled there kills the interpreter.

All others are called by compiled loops only and need no such wrapper, whose compilation would take
longer than theirs. Divisions are not checked.
"""

from collections.abc import Callable
from typing import Any

import numba
from numba.extending import register_jitable

from bnpstream.kernels.jit.cache import kept
from bnpstream.kernels.jit.linking import LINKED

_njit: Any = numba.njit


_entry: Any = _njit(error_model="numpy", nogil=True, no_cfunc_wrapper=True)


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and keep what was compiled on disk."""
    return kept(_entry(function))


inner = _njit(**LINKED)
inlined = _njit(forceinline=True, **LINKED)
"""For steps of a row that take many arrays: handing these over takes longer than the step."""

shared: Any = register_jitable(forceinline=True, **LINKED)
"""For what Python and compiled loops have in common; without branches, also NumPy arrays."""
