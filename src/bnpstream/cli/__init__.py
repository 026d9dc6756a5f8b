"""The command line."""

from bnpstream.cli.main import app

__all__ = ["app"]
