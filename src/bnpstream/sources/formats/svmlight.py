"""The format of SVMlight and LIBSVM: one line per record, ``label id:value id:value ...``.

Labels are skipped, and so are a query ``qid:number`` after them, blank lines, and everything from
``#`` on. Ids count from 1; if an id 0 occurs, all count from 0. If the values of the first records
are whole numbers >= 0, they are counts, otherwise rows of a table. Values left out are zero, and
duplicate ids are summed.
"""

import re
from dataclasses import replace
from typing import ClassVar

from bnpstream.kernels.text.digits import COUNTS, REALS
from bnpstream.kernels.text.parser import Rules
from bnpstream.sources.files.byte_reader import ByteReader
from bnpstream.sources.formats.numerals import BLANKS, fields_of, read_value
from bnpstream.sources.formats.pairs import MOST_COLUMNS, PairReader, Pairs
from bnpstream.sources.formats.schemas import known_features, number_schema
from bnpstream.sources.records import Options, Schema, UnusableError

_LEAD = re.compile(rb"[ \t\r]*[^ \t\r:#]+(?:[ \t\r]+qid:[0-9]{1,18}(?=[ \t\r]|\Z))?")
_ID = re.compile(rb"[0-9]{1,18}")
_FIRST_ID = "first id"


class SvmlightReader(PairReader):
    """Reads the records of a file in SVMlight format."""

    format: ClassVar[str] = "svmlight"
    has_labels = True
    wording = ("ids", "columns")
    widest = Schema("svmlight", "table", MOST_COLUMNS, fields={_FIRST_ID: "0"})

    def __init__(self, file: ByteReader, schema: Schema, options: Options) -> None:
        super().__init__(file, schema, options)
        self.rules = Rules(
            n_columns=schema.n_features or 0,
            first_column=int(schema.fields[_FIRST_ID]),
            values=COUNTS if schema.kind == "counts" else REALS,
            max_line_bytes=options.max_line_bytes,
        )

    @classmethod
    def find_schema(cls, file: ByteReader, options: Options) -> Schema:
        """Determine the schema from the first records; columns are given, or the largest id."""
        first = cls.survey_head(file, options)
        n_features = known_features(options)
        ids = cls.survey_file(file, options) if n_features is None else first
        first_id = min(ids.least_id, 1)
        if n_features is None:
            n_features = ids.most_id + 1 - first_id
            if n_features < 1:
                raise ValueError(f"{file.path}: no record has a value: give --n-features")
        schema = number_schema(cls.format, file, n_features, options, is_real=first.is_real)
        return replace(schema, fields={_FIRST_ID: str(first_id)})

    def is_record(self, line: bytes) -> bool:
        """Return whether a line has more than a comment."""
        content = line.lstrip(BLANKS)
        # A blank line may be the rest of a cut one.
        return not content.startswith(b"#") if content else len(line) > self.rules.max_line_bytes

    def read(self, line: bytes) -> Pairs:
        """Parse a line."""
        content = line.partition(b"#")[0]
        lead = _LEAD.match(content)
        pairs = [pair.partition(b":") for pair in fields_of(content[lead.end() :])] if lead else []
        if lead is None or not all(_ID.fullmatch(pair[0]) and pair[1] for pair in pairs):
            raise UnusableError("a label and pairs id:value, with whole numbers as ids")
        values = [read_value(pair[2], self.rules.values) for pair in pairs]
        sound = [value for value in values if value is not None]
        if len(sound) < len(values):
            raise UnusableError(
                "values that are numbers"
                if self.rules.values == REALS
                else "values that are whole numbers, like those of the first records"
            )
        if self.rules.values == COUNTS and min(sound, default=0) < 0:
            raise UnusableError("values of at least 0, like those of the first records")
        return Pairs([int(pair[0]) for pair in pairs], sound)
