"""Numbers as they are written in bytes that end with a line end."""

from typing import Any

from bnpstream.kernels.jit.decorators import inlined
from bnpstream.kernels.statistics.pairs import quotient, two_product, two_sum

TAB, NEWLINE, RETURN, SPACE, HASH = ord("\t"), ord("\n"), ord("\r"), ord(" "), ord("#")
PLUS, MINUS, POINT, ZERO, COLON = ord("+"), ord("-"), ord("."), ord("0"), ord(":")
UPPER_E, LOWER_E = ord("E"), ord("e")
LOWER_Q, LOWER_I, LOWER_D = ord("q"), ord("i"), ord("d")

MOST_DIGITS = 18
"""The most that always fit in int64."""
EXACT_TENS = 22
"""10^22 is the last power of ten that is a double."""
LITTLE_MORE = 1.0 + 1e-7
NO_NUMBER = 1 << 20
"""An exponent that stands for whatever is not a number here."""

ONES, WHOLE, COUNTS, REALS = 0, 1, 2, 3
"""What values are: not written, all 1; digits, at least 1; whole, at least 0; any numbers."""


@inlined
def after_blanks(text: Any, at: int) -> int:
    """Return where the next byte is that is no blank."""
    while text[at] in (SPACE, TAB, RETURN):
        at += 1
    return at


@inlined
def is_blank(byte: int) -> bool:
    """Return whether a number may end before this byte."""
    return byte in (SPACE, TAB, RETURN, NEWLINE)


@inlined
def _append_digits(text: Any, at: int, number: int) -> tuple[int, int]:
    """Return a number with the digits here appended, and where they end."""
    while True:
        digit = int(text[at]) - ZERO
        if digit < 0 or digit > 9:
            return number, at
        number = number * 10 + digit
        at += 1


@inlined
def read_whole(text: Any, at: int) -> tuple[int, int]:
    """Return the unsigned number here, -1 if there is none, and where it ends."""
    number, end = _append_digits(text, at, 0)
    return (number if 0 < end - at <= MOST_DIGITS else -1), end


@inlined
def _read_decimal(text: Any, at: int) -> tuple[int, int, int]:
    """Return mantissa and power of ten of the number here, and where it ends."""
    is_negative = text[at] == MINUS
    if is_negative or text[at] == PLUS:
        at += 1
    mantissa, end = _append_digits(text, at, 0)
    n_digits, power = end - at, 0
    if text[end] == POINT:
        point = at = end + 1
        while mantissa == 0 and text[at] == ZERO:
            at += 1
        mantissa, end = _append_digits(text, at, mantissa)
        n_digits, power = n_digits + end - at, point - end
    if n_digits == 0 or n_digits > MOST_DIGITS:
        return 0, NO_NUMBER, end
    if text[end] == LOWER_E or text[end] == UPPER_E:
        at = end + 1
        is_small = text[at] == MINUS
        shift, end = read_whole(text, at + 1 if is_small or text[at] == PLUS else at)
        if shift < 0 or shift > NO_NUMBER // 4:
            return 0, NO_NUMBER, end
        power += -shift if is_small else shift
    while power < 0 and mantissa % 10 == 0:
        mantissa //= 10
        power = 0 if mantissa == 0 else power + 1
    return -mantissa if is_negative else mantissa, power, end


@inlined
def _scale(mantissa: int, power: int) -> tuple[float, bool]:
    """Return mantissa times a power of ten, and whether it is rounded as it should be."""
    tens, high = 10.0 ** abs(power), float(mantissa)
    low = float(mantissa - int(high))
    if power < 0:
        rounded, rest = quotient((high, low), (tens, 0.0))
    else:
        rounded, error = two_product(high, tens)
        rest = error + low * tens
    value, lost = two_sum(rounded, rest)
    # What was lost is known to some thirty bits; about halfway between two doubles is too close.
    return value, value + LITTLE_MORE * lost == value


@inlined
def read_value(text: Any, at: int, values: Any, i: int, kind: int) -> tuple[bool, int]:
    """Put the value here into its place; return whether it is regular, and where it ends.

    A number that may not be exact to the last bit is not regular.
    """
    if kind == WHOLE:
        whole, end = read_whole(text, at)
        values[i] = whole
        return whole >= 1, end
    mantissa, power, end = _read_decimal(text, at)
    if power == 0:
        values[i] = mantissa
        return kind == REALS or mantissa >= 0, end
    if kind != REALS or abs(power) > EXACT_TENS:
        return False, end
    values[i], is_exact = _scale(mantissa, power)
    return is_exact, end
