"""Options of a source; light to import, because --help shows them."""

from dataclasses import dataclass

from bnpstream._options import option


@dataclass(frozen=True)
class Options:
    """Options of a source; None means: find out."""

    format: str | None = option(
        "Input format: uci, lda-c, svmlight, mtx, npz, npy, csv, tsv, parquet, arrow, jsonl or "
        "text.",
        "guessed from name and content",
    )
    vocab: str | None = option(
        "File with one word per line: names of the columns of counts, or the words of texts to "
        "count; others are ignored.",
        "none",
    )
    n_features: int | None = option(
        "Number of columns, if the format does not say.", "taken from the data", least=1
    )
    id_field: str | None = option("Field or column with the record's id.", "id, if there is one")
    text_field: str | None = option("Field or column with the text.", "text, if there is one")
    counts_field: str | None = option(
        "Field with a list of words, or with word counts.", "counts or words, if there is one"
    )
    vector_field: str | None = option(
        "Field or column with an array of numbers, such as an embedding.", "none"
    )
    time_field: str | None = option(
        "Field or column with the record's time, for --half-life 7d.", "none"
    )
    columns: tuple[str, ...] | None = option(
        "Columns to use, separated by commas.", "all but the id and the time"
    )
    hash_bits: int | None = option(
        "Hash the words of texts into 2^N columns.", "no hashing, the vocabulary grows"
    )
    ngrams: int = option("Also count phrases of up to this many words.", value=1, least=1)
    delimiter: str | None = option("Delimiter of CSV fields.", "guessed")
    header: bool | None = option(
        "Whether the first CSV line holds column names.", "guessed", flag="--header/--no-header"
    )
    max_line_bytes: int = 1 << 20
    """Longer lines are rejected."""
