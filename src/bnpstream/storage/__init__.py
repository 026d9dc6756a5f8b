"""The run directory: settings, checkpoints, and the files of JSON lines that go with them."""

from bnpstream.storage.directory import (
    NAMES,
    RunWriter,
    checkpoint_path,
    has_checkpoint,
    is_run,
    marks_of,
    read_checkpoint,
    read_config,
    read_log,
    read_names,
    save_run,
)
from bnpstream.storage.files import RunError, intact
from bnpstream.storage.order import Ordered
from bnpstream.storage.tensors import FORMAT, Tensors, read_tensors, write_tensors

__all__ = [
    "FORMAT",
    "NAMES",
    "Ordered",
    "RunError",
    "RunWriter",
    "Tensors",
    "checkpoint_path",
    "has_checkpoint",
    "intact",
    "is_run",
    "marks_of",
    "read_checkpoint",
    "read_config",
    "read_log",
    "read_names",
    "read_tensors",
    "save_run",
    "write_tensors",
]
