"""Priors, likelihoods and settings as JSON, and back; only known classes are ever created."""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

import bnpstream.likelihoods as _likelihoods  # noqa: F401  (they register themselves)
import bnpstream.priors as _priors  # noqa: F401
from bnpstream.likelihoods.registry import KNOWN_CLASSES as LIKELIHOODS
from bnpstream.priors.registry import KNOWN_CLASSES as PRIORS


class UnknownClassError(Exception):
    """Something was saved with a class that must be named on loading."""


def encode(value: Any) -> Any:
    """Return a value as JSON; ValueError if that is impossible.

    A dataclass becomes its class name and its fields.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray):
        cells = [encode(x) for x in value.reshape(-1).tolist()]
        return {"array": cells, "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, list):
        return [encode(x) for x in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(x) for x in value]}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"class": type(value).__name__, **fields}
    raise ValueError(
        f"{value!r} cannot be saved: only numbers, strings, lists, arrays and dataclasses can"
    )


def decode(value: Any, classes: Iterable[type] = ()) -> Any:
    """Return the value that `encode` was given.

    Parameters
    ----------
    value
        JSON.
    classes : iterable of type
        Dataclasses that it may name besides those of the package.
    """
    known = PRIORS | LIKELIHOODS | {cls.__name__: cls for cls in classes}
    return _decode(value, known)


def _decode(value: Any, known: dict[str, type]) -> Any:
    if isinstance(value, list):
        return [_decode(x, known) for x in value]
    if not isinstance(value, dict):
        return value
    if "class" in value:  # first, because its fields may have any name
        return _made(value["class"], value, known)
    if "float" in value:
        return float(value["float"])
    if "array" in value:
        cells = [_decode(x, known) for x in value["array"]]
        return np.array(cells, dtype=np.dtype(value["dtype"])).reshape(value["shape"])
    if "tuple" in value:
        return tuple(_decode(x, known) for x in value["tuple"])
    return slice(*value["slice"])


def _made(name: str, value: dict[str, Any], known: dict[str, type]) -> Any:
    """Return a dataclass by name, with these fields."""
    if name not in known:
        raise UnknownClassError(
            f"saved with {name}, a class from outside bnpstream: load it with classes=[{name}]"
        )
    fields = {key: _decode(x, known) for key, x in value.items() if key != "class"}
    return known[name](**fields)
