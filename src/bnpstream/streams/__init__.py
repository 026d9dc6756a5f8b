"""Sources of data: each is an iterator of ``(batch, position)``, in order and in bounded memory."""

from bnpstream.streams.uci import iter_docword, read_docword, read_vocabulary

__all__ = ["iter_docword", "read_docword", "read_vocabulary"]
