"""Numbers and settings as people read them."""

import math
from typing import Any

import orjson

from bnpstream._visible import visible
from bnpstream.sources.formats.rows import EXCERPT_CHARACTERS

_SPACES = dict.fromkeys(map(ord, "\t\n\r"), " ")
LONGEST_WORD = 40
LONGEST_EXCERPT = 200
LONGEST_SETTING = 400
"""Most characters shown, so that no input makes the page grow without bound."""


def whole(value: float) -> str:
    """Return a count with separators.

    Examples
    --------
    >>> whole(1234567.0)
    '1,234,567'
    """
    return f"{value:,.0f}"


def percent(share: float) -> str:
    """Return a share with two decimals, so that columns of shares line up.

    Examples
    --------
    >>> [percent(x) for x in (0.25, 0.0312, 0.0000004, 0.0)]
    ['25.00%', '3.12%', '<0.01%', '0.00%']
    """
    return "<0.01%" if 0 < share < 5e-5 else f"{share:.2%}"


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with this many significant digits, or a dash if it is unknown.

    Examples
    --------
    >>> [number(x) for x in (-172.25, 0.00123456, 12345.6, None, float("nan"))]
    ['-172.2', '0.001235', '12,346', '-', '-']
    """
    if value is None or not math.isfinite(value):
        return "-"
    if abs(value) >= 10**digits:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def times(ratio: float | None) -> str:
    """Return a ratio, or a dash if it is unknown.

    Examples
    --------
    >>> times(12.34) == "12\u00d7", times(1.84) == "1.8\u00d7", times(None)
    (True, True, '-')
    """
    if ratio is None or not math.isfinite(ratio):
        return "-"
    return f"{ratio:,.0f}\u00d7" if ratio >= 10 else f"{ratio:.1f}\u00d7"


def duration(seconds: float) -> str:
    """Return a time in its two largest units.

    Examples
    --------
    >>> [duration(x) for x in (0.034, 8.25, 75, 7300, 200_000)]
    ['0.03 s', '8.2 s', '1 min 15 s', '2 h 1 min', '2 d 7 h']
    """
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    for unit, name, part, part_name in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if seconds >= unit:
            return f"{int(seconds // unit)} {name} {int(seconds % unit // part)} {part_name}"
    raise AssertionError(seconds)


def shorten(text: str, length: int) -> str:
    r"""Return text cut to at most this many characters, all visible.

    Examples
    --------
    >>> shorten("a long word", 7)
    'a long…'
    >>> shorten("one\ntwo", 7)
    'one two'
    """
    text = visible(text[: length + 1].translate(_SPACES))
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def word(name: object) -> str:
    """Return the name of a word, a column or a record, shortened if necessary."""
    return shorten(visible(name), LONGEST_WORD)


def excerpt(text: str) -> str:
    r"""Return the beginning of a text, ending with a whole word if the record goes on.

    Examples
    --------
    >>> excerpt("A short record."), excerpt("nine more " * 16)[-10:]
    ('A short record.', 'nine more…')
    """
    if len(text) < EXCERPT_CHARACTERS:
        return shorten(text, LONGEST_EXCERPT)
    whole_words = text.rpartition(" ")[0] or text
    return shorten(whole_words, LONGEST_EXCERPT).rstrip(" .,;:\u2026") + "\u2026"


def setting(value: Any) -> str:
    """Return a setting as text: plain values and lists in words, others as JSON without nulls.

    Examples
    --------
    >>> setting(True), setting(10.0), setting(["a.txt", "b.txt"]), setting({"tilt": 100, "a": None})
    ('yes', '10', 'a.txt, b.txt', '{"tilt":100}')
    """
    if value is None:
        text = "none"
    elif isinstance(value, bool):
        text = "yes" if value else "no"
    elif isinstance(value, float):
        text = f"{value:.15g}"
    elif isinstance(value, list | tuple):
        text = ", ".join(setting(part) for part in value)
    elif isinstance(value, dict):
        given = {name: part for name, part in value.items() if part is not None}
        text = orjson.dumps(given, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    else:
        text = str(value)
    return shorten(text, LONGEST_SETTING)
