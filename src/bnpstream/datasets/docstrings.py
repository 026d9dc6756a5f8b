"""A small corpus on every installation: the documentation of NumPy, SciPy and scikit-learn."""

import inspect
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple

import numpy as np

MODULES = (
    *("numpy", "numpy.fft", "numpy.linalg", "numpy.ma", "numpy.random", "scipy.cluster.hierarchy"),
    *("scipy.fft", "scipy.integrate", "scipy.interpolate", "scipy.io", "scipy.linalg"),
    *("scipy.ndimage", "scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.sparse.csgraph"),
    *("scipy.sparse.linalg", "scipy.spatial", "scipy.spatial.distance", "scipy.special"),
    *("scipy.stats", "sklearn.cluster", "sklearn.decomposition", "sklearn.ensemble"),
    *("sklearn.feature_selection", "sklearn.linear_model", "sklearn.metrics"),
    *("sklearn.model_selection", "sklearn.neighbors", "sklearn.preprocessing", "sklearn.svm"),
)
LEAST_WORDS = 8
"""Shorter descriptions say too little."""
_SECTION = re.compile(r"\n[ \t]*\w[\w ]*\n[ \t]*-{3,}")
_SIGNATURE = re.compile(r"\A\S*\(.*?\)\n\n", re.DOTALL)
_MARKUP = re.compile(r"^[ \t]*\.\. .*$|^Read more in the .*$|:\w+:", re.MULTILINE)


class Docstring(NamedTuple):
    """The description of a function or class."""

    name: str
    text: str
    module: str


def docstrings(seed: int = 0) -> list[Docstring]:
    """Return the descriptions of public functions and classes of NumPy, SciPy and scikit-learn.

    A description is the docstring up to its first section, without markup. Their number depends on
    the installed versions.

    Parameters
    ----------
    seed : int
        Seed of the random order.

    Examples
    --------
    >>> texts = docstrings()
    >>> next(one.text for one in texts if one.name == "scipy.linalg.lu").splitlines()[0]
    'Compute LU decomposition of a matrix with partial pivoting.'
    """
    found = list(_described())
    order = np.random.default_rng(seed).permutation(len(found))
    return [found[i] for i in order]


def _described() -> Iterator[Docstring]:
    """Yield descriptions module by module, each once."""
    seen: set[str] = set()
    for module in MODULES:
        with warnings.catch_warnings():  # some names are deprecated
            warnings.simplefilter("ignore")
            room = import_module(module)
            for name in sorted(room.__all__):
                text = ""
                with suppress(ImportError):  # experimental modules must be enabled first
                    text = _description(getattr(room, name, None))
                if text not in seen and len(text.split()) >= LEAST_WORDS:
                    seen.add(text)
                    yield Docstring(f"{module}.{name}", text, module)


def _description(thing: object) -> str:
    """Return the description of a function or class; "" for anything else."""
    if not callable(thing):
        return ""
    text = _SECTION.split(inspect.getdoc(thing) or "")[0]
    return _MARKUP.sub("", _SIGNATURE.sub("", text)).strip()
