"""Vocabularies: a file with a word a line."""

from os import PathLike

from bnpstream.sources.files.bad_lines import read_lines, unexpected_line

__all__ = ["read_vocabulary"]


def read_vocabulary(path: str | PathLike[str]) -> list[str]:
    r"""Read the vocabulary of a docword file: one word a line, in the order of their ids.

    Parameters
    ----------
    path : str or path
        The file, plain, gzip or zstd, in UTF-8.

    Returns
    -------
    list of str, length W
        Word j is the one that docword files call j + 1.

    Raises
    ------
    ValueError
        If a line is empty or is not UTF-8; the message names the file and the line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "vocab.txt")
    ...     n_characters = path.write_text("senate\nhouse\n")
    ...     read_vocabulary(path)
    ['senate', 'house']
    """
    words = []
    for number, line in enumerate(read_lines(path), start=1):
        try:
            word = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise unexpected_line(path, number, line, f"UTF-8 text ({error.reason})") from error
        if not word:
            # Skipping it would move every later word to another id.
            raise unexpected_line(path, number, line, "a word, as line numbers are word ids")
        words.append(word)
    return words
