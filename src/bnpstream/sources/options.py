"""What a user may say about a source: light, as the command line shows it before anything runs."""

from dataclasses import dataclass

from bnpstream._options import option


@dataclass(frozen=True)
class Options:
    """What a user may say about a source; None is found out."""

    format: str | None = option(
        "uci, lda-c, svmlight, mtx, npz, npy, csv, tsv, parquet, arrow, jsonl or text.",
        "guessed from name and content",
    )
    vocab: str | None = option(
        "File with one word per line: names of columns, words of texts.", "none"
    )
    n_features: int | None = option(
        "Columns, where the format does not say.", "taken from the data", least=1
    )
    id_field: str | None = option("Field or column with a record's id.", "id, if there is one")
    text_field: str | None = option("Field or column with a text.", "text, if there is one")
    counts_field: str | None = option(
        "Field with words, or with counts of words.", "counts or words, if there is one"
    )
    vector_field: str | None = option(
        "Field or column with an array of numbers, such as an embedding.", "none"
    )
    time_field: str | None = option(
        "Field or column with a record's time, for --half-life 7d.", "none"
    )
    columns: tuple[str, ...] | None = option(
        "Columns to use, separated by commas.", "all but the id and the time"
    )
    hash_bits: int | None = option(
        "Texts become counts over 2^N columns.", "their vocabulary grows"
    )
    ngrams: int = option(
        "Up to this many words in a row of a text are a word too.", value=1, least=1
    )
    delimiter: str | None = option("Between the fields of a CSV line.", "guessed")
    header: bool | None = option(
        "Whether a CSV file begins with names.", "guessed", flag="--header/--no-header"
    )
    max_line_bytes: int = 1 << 20
    """A longer line is rejected."""
