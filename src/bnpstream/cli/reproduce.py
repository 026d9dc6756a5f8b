"""``bnpstream reproduce``: the paper's experiments, whose scripts are in a source checkout."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
"""Root of the checkout, if this is one."""


def run_reproduce(**given: Any) -> None:
    """Run one experiment, or all."""
    import_papers(ROOT)
    import_module("tank2015.command").run(**given)


def import_papers(root: Path) -> Any:
    """Return the package of scripts; if it is missing, say where to find it."""
    if not (root / "papers" / "tank2015").is_dir():
        raise ModuleNotFoundError(
            "bnpstream reproduce needs the scripts of a source checkout, which the installed "
            "package does not include: get the source, run `make demo` there, then "
            ".venv/bin/bnpstream reproduce"
        )
    if str(root / "papers") not in sys.path:  # it stays there for the processes of joblib
        sys.path.insert(0, str(root / "papers"))
    return import_module("tank2015")
