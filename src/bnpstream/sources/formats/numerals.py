"""Numbers in text form, one at a time."""

import math
import re
from decimal import Decimal, InvalidOperation

from bnpstream.kernels.text.digits import COUNTS, MOST_DIGITS, REALS

BLANKS = b" \t\r"
"""Characters between numbers, as in `kernels.text.digits.is_blank`; a line ends with LF."""
_FIELD = re.compile(rb"[^%s]+" % BLANKS)

_WHOLE = re.compile(rb"-?[0-9]{1,%d}" % MOST_DIGITS)
_DECIMAL = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def fields_of(line: bytes) -> list[bytes]:
    r"""Return the fields between blanks; a vertical tab or a form feed is not a blank.

    Examples
    --------
    >>> fields_of(b" 1\t2\x0b3 \r")
    [b'1', b'2\x0b3']
    """
    return _FIELD.findall(line)


def read_whole(text: bytes) -> int | None:
    """Return a whole number, or None if the text is not one.

    Examples
    --------
    >>> read_whole(b"-12"), read_whole(b"+12"), read_whole(b"1e3"), read_whole(b"9" * 19)
    (-12, None, None, None)
    """
    return int(text) if _WHOLE.fullmatch(text) else None


def read_value(text: bytes, kind: int) -> float | None:
    """Return a value of a kind named in `kernels.text.digits`, or None if invalid.

    Examples
    --------
    >>> from bnpstream.kernels.text.digits import COUNTS, REALS, WHOLE
    >>> [read_value(b"3.0", kind) for kind in (WHOLE, COUNTS, REALS)]
    [None, 3, 3.0]
    >>> read_value(b"2.5", COUNTS), read_value(b"nan", REALS)
    (None, None)
    >>> read_value(b"9007199254740993.0", COUNTS)
    9007199254740993
    """
    if kind not in (COUNTS, REALS):
        return read_whole(text)
    if not _DECIMAL.fullmatch(text):
        return None
    value = float(text)
    if not math.isfinite(value):
        return None
    if kind == REALS:
        return value
    if not value.is_integer() or abs(value) > 10**MOST_DIGITS:
        return None
    try:
        exact = Decimal(text.decode())  # a double has fewer digits
    except InvalidOperation:  # an exponent of twenty digits
        return None
    is_whole = abs(exact) < 10**MOST_DIGITS and exact == exact.to_integral_value()
    return int(exact) if is_whole else None
