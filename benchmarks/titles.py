"""Question titles of Stack Overflow (Xu et al. 2015), for benchmarks of short texts."""

import gzip
import json
from typing import Any

import numpy as np

from bnpstream.datasets.local import data_directory


def titles() -> tuple[list[str], Any]:
    """Return the titles, and the tag of each."""
    with gzip.open(data_directory() / "stackoverflow" / "titles.jsonl.gz") as lines:
        records = [json.loads(line) for line in lines]
    return [one["text"] for one in records], np.array([one["label"] for one in records])
