"""Imported before processes are forked off: packages and compiled loops are there."""

import tempfile
from pathlib import Path

from feeds import rows

import bnpstream.sources.brokers.source
from commands import run

__all__ = ["bnpstream"]

with tempfile.TemporaryDirectory() as name:
    feed = Path(name, "feed.jsonl")
    feed.write_bytes(b"\n".join(rows(60)) + b"\n")
    run("fit", feed, "--out", Path(name, "run"), "--prefix-rows", "20", "--quiet")
