"""Making records of settings again from JSON that may hold anything."""

from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def restored(cls: type[T], values: dict[str, Any]) -> T:
    """Return a dataclass or NamedTuple of these fields; ValueError if one is of another type.

    Examples
    --------
    >>> from bnpstream.runs.sharing import Partitions
    >>> restored(Partitions, {"done": 7, "total": 8}).done
    7
    >>> restored(Partitions, {"done": "7"})
    Traceback (most recent call last):
    ...
    ValueError: done is '7'
    """
    hints = get_type_hints(cls)
    for name, value in values.items():
        if not _fits(value, hints[name]):
            raise ValueError(f"{name} is {value!r}")
    return cls(**values)


def restored_row(cls: type[T], values: list[Any]) -> T:
    """Return a NamedTuple of fields in order."""
    return restored(cls, dict(zip(get_type_hints(cls), values, strict=True)))


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of a type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in arguments)
    if origin is Literal:
        return isinstance(value, str) and value in arguments
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(x, arguments[0]) for x in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(x, arguments[1]) for x in value.values())
    if hint is float:
        return type(value) in (int, float)
    return type(value) is (NoneType if hint is None else hint)
