"""Plain text: one document per line, split into words.

Blank lines are skipped; a line without words, such as ``...``, is a document without words.
Documents have no ids.
"""

from typing import ClassVar

from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.files.lines import first_lines
from bnpstream.sources.formats.record_reader import LineParser, LineReader, Parsed, decode
from bnpstream.sources.formats.schemas import document_schema
from bnpstream.sources.records import Options, Schema


class TextParser(LineParser):
    """Turns a line into a document."""

    def parse(self, line: bytes) -> Parsed:
        """Return the document in a line."""
        return Parsed(decode(line))


class TextReader(LineReader, TextParser):
    """Reads plain text, one document per line."""

    format: ClassVar[str] = "text"

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Return the schema; ValueError if the file is empty."""
        first_lines(file, at_most=1, max_bytes=options.max_line_bytes)
        return document_schema(cls.format, {}, options)
