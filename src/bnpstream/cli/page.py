"""Standard output for people: tables and text, made by rich."""

from typing import NoReturn

from rich.console import Console


class Page(Console):
    """Standard output for people; a closed pipe is no error."""

    def on_broken_pipe(self) -> NoReturn:
        """Leave broken pipes to the command."""
        raise BrokenPipeError
