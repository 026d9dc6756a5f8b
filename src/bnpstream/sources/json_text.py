"""JSON of records; a lack of memory is not blamed on the record."""

from typing import Any

import orjson

_NO_MEMORY = "Not enough memory"
"""Start of orjson's error message when it is out of memory."""


def load_json(line: bytes) -> Any:
    """Parse JSON.

    Raises
    ------
    orjson.JSONDecodeError
        If it is not JSON.
    MemoryError
        If memory does not suffice; rejecting the record would lose a good one.

    Examples
    --------
    >>> load_json(b'{"text": "rain"}')
    {'text': 'rain'}
    """
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        if error.msg.startswith(_NO_MEMORY):
            raise MemoryError(error.msg) from error
        raise
