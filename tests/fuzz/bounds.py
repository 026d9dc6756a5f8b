"""Compiled loops with every index checked: spoilt files, and runs of every kind.

``NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=FOLDER python bounds.py CASES [MODEL ...]``. The folder is for
this alone: loops that were compiled without checks stay so. A loop that reads outside of an array
on purpose has to fail first, or nothing was checked.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from fuzzing import soak

from bnpstream.kernels.jit.decorators import _entry, inner


@inner
def _read(values, at):
    return values[at]


@_entry
def _outside(values, at):
    return values[at]


@_entry
def _outside_below(values, at):
    return _read(values, at)


def check_that_bounds_are_checked() -> None:
    """Exit unless loops that read outside of an array fail."""
    for loop in (_outside, _outside_below):
        assert loop(np.arange(3), 2) == 2
        try:
            loop(np.arange(3), 3)
        except IndexError:
            continue
        sys.exit(f"{loop.__name__}: bounds are not checked: set NUMBA_BOUNDSCHECK=1")


def check_runs(models: list[str]) -> None:
    """Feed a run of every kind to its end."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))
    from fault_runs import prepared

    for model in models:
        with TemporaryDirectory() as folder:
            prepared(Path(folder), model)
        print(f"{model}: all inside", flush=True)


if __name__ == "__main__":
    check_that_bounds_are_checked()
    assert "NUMBA_CACHE_DIR" in os.environ, "loops need a folder of their own: NUMBA_CACHE_DIR"
    n_bad = soak(int(sys.argv[1]), float("inf"), seed=3)
    check_runs(sys.argv[2:])
    sys.exit(n_bad > 0)
