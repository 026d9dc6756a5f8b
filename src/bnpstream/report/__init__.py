"""The HTML report about a run (needs the extra ``bnpstream[report]``)."""

from importlib.util import find_spec

for _needed in ("jinja2", "matplotlib"):
    if find_spec(_needed) is None:
        raise ModuleNotFoundError(
            f"a report needs {_needed}, which is missing: pip install 'bnpstream[report]'",
            name=_needed,
        )

from bnpstream.report.page import render_report, write_report  # noqa: E402

__all__ = ["render_report", "write_report"]
