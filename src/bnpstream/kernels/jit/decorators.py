"""How loops are compiled.

A loop that Python calls is an entry: it unpacks its arguments from Python objects, and lets go of
the interpreter's lock. It returns numbers or nothing, and writes the rest into arrays: to make a
NamedTuple, numba calls its class, and a signal that is handled there kills the interpreter.

All others are called by compiled loops only. They need no such wrapper, and no machine code of
their own (``kernels.jit.linking``). On disk they are part of the loops that call them. Divisions
are not checked.
"""

from collections.abc import Callable
from typing import Any

import numba
from numba.extending import register_jitable

from bnpstream.kernels.jit.cache import kept
from bnpstream.kernels.jit.linking import (
    EntryCompiler,
    InlinedCompiler,
    LinkedCompiler,
    options_for,
)

_njit: Any = numba.njit
_entry: Any = _njit(**options_for(EntryCompiler))


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and keep what was compiled on disk."""
    return kept(_entry(function))


inner: Any = _njit(**options_for(LinkedCompiler))
inlined: Any = _njit(**options_for(InlinedCompiler))
"""For steps of a row that take many arrays: handing these over takes longer than the step."""

lanes: Any = _njit(fastmath={"reassoc", "contract", "nnan", "nsz"}, **options_for(LinkedCompiler))
"""For sums and maxima whose order does not matter, as in bounds: the compiler may take them in
lanes. There must be no NaN."""

shared: Any = register_jitable(**options_for(InlinedCompiler))
"""For what Python and compiled loops have in common; without branches, also NumPy arrays."""
