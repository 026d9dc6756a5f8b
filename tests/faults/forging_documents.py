"""Runs with one value of a checkpoint's document or of config.json replaced: refused, or harmless.

``python forging_documents.py MODEL [SHARE]`` ends with code 0 if each is refused by a message, or
goes on; one in SHARE is tried.
"""

import json
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import TemporaryDirectory
from typing import Any

from fault_runs import BAD, FAILED, THROUGH, feed, in_a_process, prepared

from bnpstream.runs.overview import Run
from bnpstream.storage import Tensors, read_tensors
from bnpstream.storage.tensors import write_tensors

VALUES = [None, -1, 0, 2**63, 1e308, "x", [], {}, True, [[1]]]
MOST_OF_A_LIST = 2
"""Elements of a list that are replaced: its others are alike."""


def leaves(document: Any, path: tuple = ()) -> Iterator[tuple]:
    """Yield the place of every value, and of every object and list."""
    if path:
        yield path
    parts: Any = ()
    if isinstance(document, dict):
        parts = document.items()
    elif isinstance(document, list):
        parts = list(enumerate(document))[:MOST_OF_A_LIST]
    for name, part in parts:
        yield from leaves(part, (*path, name))


def replaced(document: Any, path: tuple, value: Any) -> Any:
    """Return a document with another value at a place."""
    found = deepcopy(document)
    inside = found
    for name in path[:-1]:
        inside = inside[name]
    inside[path[-1]] = value
    return found


def main(model: str, share: int) -> int:
    """Return how many forged runs went wrong."""
    n = n_refused = n_bad = 0
    with TemporaryDirectory() as name:
        source, sound = prepared(Path(name), model)
        run, state = Path(name, "run"), "state.safetensors"
        tensors = read_tensors(sound / state)
        config = json.loads((sound / "config.json").read_bytes())
        documents = {state: tensors.document, "config.json": config}
        cases = [
            (file, path, value)
            for file, document in documents.items()
            for path in leaves(document)
            for value in VALUES
        ]
        for file, path, value in cases[:: max(1, share)]:
            rmtree(run, ignore_errors=True)
            copytree(sound, run)
            forged = replaced(documents[file], path, value)
            if file == state:
                write_tensors(run / state, Tensors(tensors.arrays, forged))
            else:
                (run / file).write_text(json.dumps(forged))

            def used() -> int:
                try:
                    Run(run)
                    feed(run, source, model)
                except ValueError:  # as a message, for whoever runs a command
                    return FAILED
                return THROUGH

            code = in_a_process(used)
            n, n_refused = n + 1, n_refused + (code == FAILED)
            if code not in (THROUGH, FAILED):
                n_bad += 1
                how = "a traceback" if code == BAD else code
                print(f"{model}: {file}: {path} is {value!r}: ended with {how}", flush=True)
    print(f"{model}: {n} forged documents, {n_refused} refused, {n_bad} bad")
    return n_bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int((sys.argv[2:] or ["1"])[0])) > 0)
