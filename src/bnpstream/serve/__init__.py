"""Watch a run while it grows: a live page, an API and metrics.

Needs the extra ``bnpstream[serve]``.
"""

from importlib.util import find_spec

for _needed in ("starlette", "uvicorn", "prometheus_client", "jinja2", "matplotlib"):
    if find_spec(_needed) is None:
        raise ModuleNotFoundError(
            f"serve needs {_needed}, which is missing: pip install 'bnpstream[serve]'",
            name=_needed,
        )
