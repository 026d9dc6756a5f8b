"""JSON of records, where a lack of memory is no fault of the record."""

from typing import Any

import orjson

_NO_MEMORY = "Not enough memory"
"""How orjson begins what it says of bad JSON where it is out of memory."""


def load_json(line: bytes) -> Any:
    """Return what JSON says.

    Raises
    ------
    orjson.JSONDecodeError
        If it is not JSON.
    MemoryError
        If there is no memory to find out: to reject the record would lose a good one.

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
