"""``python -m bnpstream``: the command line."""

from bnpstream.cli import app

app(prog_name="bnpstream")
