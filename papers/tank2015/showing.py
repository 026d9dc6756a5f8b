"""What an experiment shows: figures, tables, and the paper's claims with a verdict."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from bnpstream.storage.files import write_atomically

Verdict = Literal["holds", "does not hold", "underpowered", "reported", "cannot be tested here"]
Difference = tuple[float, float]
"""A mean and its standard error."""
ERRORS = 2.0
"""Standard errors from zero on which a difference is none of chance."""

STYLE = {
    "font.size": 10,
    "axes.labelsize": 10,
    "axes.titlesize": 10,
    "legend.fontsize": 9,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "svg.fonttype": "path",
    "svg.hashsalt": "tank2015",
}
DPI = 200
WHOLE = FuncFormatter(lambda value, place: f"{value:,.0f}")
"""Numbers along an axis, with separators."""


class Claim(NamedTuple):
    """A sentence of the paper, and what became of it here."""

    text: str
    paper: str
    """The paper's evidence."""
    ours: str
    """What was found here."""
    verdict: Verdict

    @classmethod
    def of(cls, text: str, paper: str, ours: str, holds: bool) -> "Claim":
        """Return a claim that was tested."""
        return cls(text, paper, ours, "holds" if holds else "does not hold")

    @classmethod
    def reported(cls, text: str, paper: str, ours: str) -> "Claim":
        """Return a claim that is too vague to be judged, or depends on the machine or the grid."""
        return cls(text, paper, ours, "reported")

    @classmethod
    def ahead(
        cls,
        text: str,
        paper: str,
        ours: str,
        differences: Sequence[Difference],
        needs: Callable[[Iterable[bool]], bool] = all,
        unit: str = "nats",
    ) -> "Claim":
        """Return the claim that all of some differences are positive, or any of them.

        It holds if they are by more than two standard errors. It does not if they are negative by
        more. Otherwise there were too few runs to tell, and what could have been seen is said.

        Examples
        --------
        >>> [Claim.ahead("", "", "", [(3.0, e)]).verdict for e in (1.0, 2.0)]
        ['holds', 'underpowered']
        >>> Claim.ahead("", "", "", [(3.0, 1.0), (-3.0, 1.0)]).verdict
        'does not hold'
        >>> Claim.ahead("", "", "", [(3.0, 1.0), (-3.0, 1.0)], any).verdict
        'holds'
        """
        reach = [(mean, ERRORS * error if error == error else 0.0) for mean, error in differences]
        if needs(mean > seen for mean, seen in reach):
            return cls(text, paper, ours, "holds")
        if not needs(mean >= -seen for mean, seen in reach):
            return cls(text, paper, ours, "does not hold")
        least = max(seen for mean, seen in reach if abs(mean) <= seen)
        digits = 0 if least >= 10 else 2
        smallest = f"{least:,.{digits}f} {unit}"
        said = f"{ours}; a difference below {smallest} could not have been detected"
        return cls(text, paper, said, "underpowered")


class Exhibit(NamedTuple):
    """A figure or a table: its file without the ending, and what is written below it."""

    kind: Literal["figure", "table"]
    name: str
    caption: str


class Show:
    """Writes what an experiment shows into a folder, and remembers it in order.

    Parameters
    ----------
    folder : Path
        Where files go.
    prefix : str
        What their names begin with: the experiment.
    """

    def __init__(self, folder: Path, prefix: str) -> None:
        self.folder, self.prefix = folder, prefix
        self.exhibits: list[Exhibit] = []

    def panels(
        self, columns: int = 2, rows: int = 1, size: tuple[float, float] = (5.8, 2.7)
    ) -> Any:
        """Return a figure and its axes, in the paper's proportions."""
        plt.rcParams.update(STYLE)
        return plt.subplots(rows, columns, figsize=size, layout="constrained")

    def figure(self, name: str, figure: Figure, caption: str) -> None:
        """Write a figure as PNG and SVG; the same numbers give the same bytes."""
        for ending, unsigned in ((".png", {"Software": None}), (".svg", {"Date": None})):
            path = self._path(name).with_suffix(ending)

            def write(partial: Path, form: str = ending[1:], data: Any = unsigned) -> None:
                figure.savefig(partial, format=form, dpi=DPI, metadata=data)

            write_atomically(path, write)
        plt.close(figure)
        self.exhibits.append(Exhibit("figure", self._path(name).name, caption))

    def table(
        self, name: str, header: Sequence[str], rows: Sequence[Sequence[Any]], caption: str
    ) -> None:
        """Write a table as CSV and Markdown.

        A cell is a value, or a value with all digits and how to show it.
        """
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([[_value(cell) for cell in row] for row in rows])
        self._write(name, ".csv", file.getvalue())
        self._write(name, ".md", markdown(header, [[_text(cell) for cell in row] for row in rows]))
        self.exhibits.append(Exhibit("table", self._path(name).name, caption))

    def _path(self, name: str) -> Path:
        # A dot would be taken for an ending.
        return self.folder / f"{self.prefix}-{name}"

    def _write(self, name: str, ending: str, text: str) -> None:
        path = self._path(name).with_suffix(ending)
        write_atomically(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines
    )


def spread(mean: float, error: float, digits: int = 0) -> tuple[float, str]:
    """Return a cell: a mean, and as text the mean with its standard error."""
    if error != error:
        return mean, f"{mean:,.{digits}f}"
    return mean, f"{mean:,.{digits}f} ± {error:,.{digits}f}"


def _value(cell: Any) -> Any:
    return cell[0] if isinstance(cell, tuple) else cell


def _text(cell: Any) -> str:
    if isinstance(cell, tuple):
        return str(cell[1])
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
