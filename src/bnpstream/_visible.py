"""Makes foreign text harmless: control characters are shown instead of obeyed."""

import re
from typing import Any

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
"""C0 except tabs and line ends, DEL, C1, and characters that change the direction of text."""
_CONTROL = re.compile(f"[{_CONTROLS}]")
_CONTROL_OR_SPACE = re.compile(f"[{_CONTROLS}\t\n]")


def visible(value: Any, *, in_line: bool = False) -> str:
    r"""Return a text with control characters written as escapes.

    Parameters
    ----------
    value : object
        A text, or anything else to be shown.
    in_line : bool
        Whether tabs and line ends are escaped too.

    Examples
    --------
    >>> print(visible("a\x1b[31mb\tc"))
    a\x1b[31mb	c
    >>> print(visible("a\tb\x9bc", in_line=True))
    a\tb\x9bc
    """
    text = str(value)
    if text.isprintable():  # nearly always
        return text
    return (_CONTROL_OR_SPACE if in_line else _CONTROL).sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
