"""Sources of records: files of many formats, patterns of files, standard input, growing files.

`open_source` yields batches and positions in bounded memory; `read_...` return everything at once.
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

# Modules of the public names; imported on first use, as most commands need few of them.
_HOMES = {
    "files.source": ["FORMATS"],
    "formats.lda_c": ["read_lda_c"],
    "formats.uci": ["iter_docword", "read_docword"],
    "lists": ["read_labels", "read_vocabulary"],
    "options": ["Options"],
    "protocol": ["Partition", "Source"],
    "records": ["Place", "Records", "Reject", "Schema"],
    "registry": ["open_source"],
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
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"bnpstream.sources.{home}"), name)
    raise AttributeError(f"module 'bnpstream.sources' has no attribute {name!r}")
