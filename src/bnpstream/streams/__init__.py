"""Sources of rows: `iter_...` yields (batch, position) in bounded memory, `read_...` gives all."""

from bnpstream.streams.labels import read_labels
from bnpstream.streams.lda_c import read_lda_c
from bnpstream.streams.uci import iter_docword, read_docword, read_vocabulary

__all__ = ["iter_docword", "read_docword", "read_labels", "read_lda_c", "read_vocabulary"]
