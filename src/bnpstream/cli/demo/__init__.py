"""``bnpstream demo``: text with default settings, or handwritten digits; with a report."""

import shutil
from pathlib import Path

from bnpstream.cli.demo.digits import run_digits
from bnpstream.cli.demo.text import run_text
from bnpstream.cli.page import Page
from bnpstream.runs.options import OptionError

DEMOS = {"text": run_text, "digits": run_digits}


def run_demo(name: str, out: Path, as_json: bool) -> None:
    """Cluster one of the data sets as a run, print what was found, and write the report."""
    if name not in DEMOS:
        raise OptionError(f"unknown demo {name}: give {' or '.join(DEMOS)}")
    out.mkdir(parents=True, exist_ok=True)
    if (out / "run" / "config.json").exists():  # from an earlier demo
        shutil.rmtree(out / "run")
    DEMOS[name](out, Page(stderr=as_json), as_json)
