"""Errors about single rows."""

from typing import Self


class RowError(ValueError):
    """A row that a model does not accept.

    Parameters
    ----------
    row : int
        Number of the row among those given, from 0.
    reason : str
        What is wrong with it, without naming the row.
    message : str, optional
        The same with the row; by default the row number and the reason.

    Examples
    --------
    >>> error = RowError(3, "column 1 is nan: cells must be numbers")
    >>> error.row, str(error)
    (3, 'row 3, column 1 is nan: cells must be numbers')
    """

    def __init__(self, row: int, reason: str, message: str | None = None) -> None:
        # All three go to the base class, so that a copy in another process has them too.
        super().__init__(row, reason, message)
        self.row, self.reason = row, reason
        self.message = f"row {row}, {reason}" if message is None else message

    def __str__(self) -> str:
        return self.message

    def within(self, part: str) -> Self:
        """Return the same error, found in a part of the rows."""
        return type(self)(self.row, f"{part}: {self.reason}", f"{part}: {self.message}")
