"""Sources of records: files of many formats, patterns of files, standard input, growing files.

`open_source` gives batches and positions in bounded memory; `read_...` gives all at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bnpstream.streams.labels import read_labels
    from bnpstream.streams.numbers.lda_c import read_lda_c
    from bnpstream.streams.numbers.uci import iter_docword, read_docword, read_vocabulary
    from bnpstream.streams.records import Options, Position, Records, Reject, Schema
    from bnpstream.streams.source import FORMATS, Source, open_source

# Where every name lives; imported on first use, as most commands need few of them.
_HOMES = {
    "FORMATS": "bnpstream.streams.source",
    "Options": "bnpstream.streams.records",
    "Position": "bnpstream.streams.records",
    "Records": "bnpstream.streams.records",
    "Reject": "bnpstream.streams.records",
    "Schema": "bnpstream.streams.records",
    "Source": "bnpstream.streams.source",
    "iter_docword": "bnpstream.streams.numbers.uci",
    "open_source": "bnpstream.streams.source",
    "read_docword": "bnpstream.streams.numbers.uci",
    "read_labels": "bnpstream.streams.labels",
    "read_lda_c": "bnpstream.streams.numbers.lda_c",
    "read_vocabulary": "bnpstream.streams.numbers.uci",
}

__all__ = [
    "FORMATS",
    "Options",
    "Position",
    "Records",
    "Reject",
    "Schema",
    "Source",
    "iter_docword",
    "open_source",
    "read_docword",
    "read_labels",
    "read_lda_c",
    "read_vocabulary",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bnpstream.streams' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
