"""Standard output for people: tables and text, made by rich."""

from typing import NoReturn

from rich.console import Console


class Page(Console):
    """Standard output for people; a reader that has gone is no failure."""

    def on_broken_pipe(self) -> NoReturn:
        """Leave it to the command."""
        raise BrokenPipeError
