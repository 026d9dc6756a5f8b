"""How loops are compiled.

A loop that Python calls is an entry: it unpacks its arguments from Python objects, and lets go of
the interpreter's lock. All others are called by compiled loops only and need no such wrapper, whose
compilation would take longer than theirs. Divisions are not checked.
"""

from typing import Any

import numba
from numba.extending import register_jitable

_njit: Any = numba.njit

entry = _njit(cache=True, error_model="numpy", nogil=True)
inner = _njit(cache=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
inlined = _njit(
    cache=True,
    error_model="numpy",
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
    forceinline=True,
)
"""For steps of a row that take many arrays: handing these over takes longer than the step."""

shared: Any = register_jitable(error_model="numpy", forceinline=True)
"""For arithmetic without branches that NumPy arrays and compiled loops have in common."""
