"""Plain text: one document per line, cut into words.

A blank line is no document; a line without words, such as ``...``, is a document without words.
Documents have no ids of their own.
"""

from typing import ClassVar

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.lines import first_lines
from bnpstream.sources.formats.record_reader import LineParser, LineReader, Parsed, decode
from bnpstream.sources.formats.schemas import document_schema
from bnpstream.sources.records import Options, Schema

__all__ = ["TextParser", "TextReader"]


class TextParser(LineParser):
    """Makes a document of a line."""

    def parse(self, line: bytes) -> Parsed:
        """Return the document of a line."""
        return Parsed(decode(line))


class TextReader(LineReader, TextParser):
    """Reads plain text, one document per line."""

    format: ClassVar[str] = "text"

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return what the records are; ValueError if the file is empty."""
        first_lines(file)
        return document_schema(cls.format, {}, options)
