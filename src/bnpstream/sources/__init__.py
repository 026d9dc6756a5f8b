"""Sources of records: files of many formats, patterns of files, standard input, growing files.

`open_source` gives batches and positions in bounded memory; `read_...` gives all at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bnpstream.sources.files.source import FORMATS
    from bnpstream.sources.formats.lda_c import read_lda_c
    from bnpstream.sources.formats.uci import iter_docword, read_docword
    from bnpstream.sources.lists import read_labels, read_vocabulary
    from bnpstream.sources.options import Options
    from bnpstream.sources.protocol import Partition, Source
    from bnpstream.sources.records import Place, Records, Reject, Schema
    from bnpstream.sources.registry import open_source

# Where every name lives; imported on first use, as most commands need few of them.
_HOMES = {
    "FORMATS": "bnpstream.sources.files.source",
    "Options": "bnpstream.sources.options",
    "Partition": "bnpstream.sources.protocol",
    "Place": "bnpstream.sources.records",
    "Records": "bnpstream.sources.records",
    "Reject": "bnpstream.sources.records",
    "Schema": "bnpstream.sources.records",
    "Source": "bnpstream.sources.protocol",
    "iter_docword": "bnpstream.sources.formats.uci",
    "open_source": "bnpstream.sources.registry",
    "read_docword": "bnpstream.sources.formats.uci",
    "read_labels": "bnpstream.sources.lists",
    "read_lda_c": "bnpstream.sources.formats.lda_c",
    "read_vocabulary": "bnpstream.sources.lists",
}

__all__ = [
    "FORMATS",
    "Options",
    "Partition",
    "Place",
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
        raise AttributeError(f"module 'bnpstream.sources' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
