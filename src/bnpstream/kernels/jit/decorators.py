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

_njit: Any = numba.njit


def _compiled(**options: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function and keeps what was compiled on disk."""
    compiled = _njit(error_model="numpy", **options)
    return lambda function: kept(compiled(function))


entry = _compiled(nogil=True)
inner = _compiled(no_cpython_wrapper=True, no_cfunc_wrapper=True)
inlined = _compiled(no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)
"""For steps of a row that take many arrays: handing these over takes longer than the step."""

shared: Any = register_jitable(error_model="numpy", forceinline=True)
"""For what Python and compiled loops have in common; without branches, also NumPy arrays."""
