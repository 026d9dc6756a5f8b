"""Where digests can be compared: versions, and a processor that every machine can pretend to be.

Last bits depend on the instructions that NumPy, BLAS, the C library and numba choose for a
processor. In a process of its own all four are told to use what every x86-64 of the last fifteen
years has.
"""

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from numpy._core import _multiarray_umath as umath

import bnpstream

HERE = Path(__file__).parent
PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn")


def versions():
    """Return what last bits depend on and cannot be chosen."""
    found = {name: version(name) for name in PACKAGES}
    return found | {"libc": " ".join(platform.libc_ver()), "machine": platform.machine()}


def differences(recorded):
    """Return what is different here, in words; empty where digests can be compared."""
    here = versions()
    said = [
        f"{name} is {here.get(name)}, the table was made with {wanted}"
        for name, wanted in recorded.items()
        if here.get(name) != wanted
    ]
    return ", ".join(said)


def environment(cache):
    """Return the environment of a process that computes digests.

    Parameters
    ----------
    cache : Path
        Folder for compiled loops.
    """
    there = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]
    source = str(Path(bnpstream.__file__).parents[1])
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([source, *others]),
        "PYTHONHASHSEED": "0",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4",
        "NPY_DISABLE_CPU_FEATURES": " ".join(there),
        "NUMBA_CACHE_DIR": str(cache),
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CPU_NAME": "generic",
        "OPENBLAS_CORETYPE": "Nehalem",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


def computed(script, cases, cache):
    """Yield the name of every case and what a script made of it: a digest, or an error.

    Parameters
    ----------
    script : str
        File of this folder that reads cases from standard input.
    cases : list of dict
        What it is to run.
    cache : Path
        Folder for compiled loops.
    """
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", str(HERE / script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(cache),
        text=True,
    ) as process:
        process.stdin.write(json.dumps(cases))
        process.stdin.close()
        for line in process.stdout:
            found = json.loads(line)
            yield found.pop("name"), found
    if process.returncode != 0:
        raise RuntimeError(f"{script} ended with code {process.returncode}")
