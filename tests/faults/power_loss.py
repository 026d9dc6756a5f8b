"""Runs whose machine loses power: whatever was not synced may be gone, or half there.

``LD_PRELOAD=shim.so python power_loss.py FOLDER MODEL [MOST]`` writes down what a run does to its
folder, and makes what a disk may hold after each step, or after about MOST of them:

- names as they were after some step between the last sync of the folder and the present, in order;
- of every file what was synced; and of what was written since all, nothing, a part, or zeros.

From each a run goes on, and must come to the same bits.
"""

import ctypes
import os
import random
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

from fault_runs import THROUGH, check_same, feed, in_a_process, prepared, shim, spread

HEAD = struct.Struct("qqqqqq")


class Step(NamedTuple):
    """Something that was done to a file or a folder."""

    what: str
    file: int
    place: int
    names: tuple[str, str]
    data: bytes


def steps_of(log: bytes) -> list[Step]:
    """Return the steps that were written down."""
    found, at = [], 0
    while at < len(log):
        what, file, place, *lengths = HEAD.unpack_from(log, at)
        at += HEAD.size
        parts = []
        for n in lengths:
            parts.append(log[at : at + n])
            at += n
        found.append(Step(chr(what), file, place, (parts[0].decode(), parts[1].decode()), parts[2]))
    return found


@dataclass
class Disk:
    """A folder: what is surely on the disk, and what may be.

    Parameters
    ----------
    root : Path
        Names outside are of no interest.
    """

    root: Path
    files: dict[int, int] = field(default_factory=dict)
    """Which file has a number now, as numbers are given away again."""
    folders: dict[int, str] = field(default_factory=dict)
    """Names of folders by number."""
    names: dict[str, int] = field(default_factory=dict)
    """As a process sees it; and contents."""
    content: dict[int, bytes] = field(default_factory=dict)
    synced: dict[int, bytes] = field(default_factory=dict)
    listings: list[dict[str, int]] = field(default_factory=lambda: [{}])
    """Names since the last sync of the folder, the first being sure."""

    def do(self, step: Step) -> None:
        """Follow a step."""
        what, number, place, (one, other), data = step
        if what == "C" and self._inside(one):
            self.files[number] = len(self.content)
            self.content[len(self.content)] = b""
        file = self.files.get(number, -1)
        if what == "W":
            old = self.content.get(file, b"").ljust(place, b"\0")
            self.content[file] = old[:place] + data + old[place + len(data) :]
        elif what == "T":
            self.content[file] = self.content.get(file, b"")[:place].ljust(place, b"\0")
        elif what == "S" and number in self.folders:
            self.listings = [dict(self.names)]
        elif what == "S" and self._inside(one):
            if self.names.get(one) != file:  # renamed by a call that was not seen
                self._name({x: n for x, n in self.names.items() if n != file} | {one: file})
            self.synced[file] = self.content[file]
        elif what == "M" and self._inside(one):
            self.folders[number] = one
        elif what == "C" and self._inside(one):
            self._name({**self.names, one: file})
        elif what == "U" and one in self.names:
            self._name({name: n for name, n in self.names.items() if name != one})
        elif what == "R" and one in self.names:
            others = {name: n for name, n in self.names.items() if name != one}
            self._name({**others, other: self.names[one]})

    def _inside(self, name: str) -> bool:
        return Path(name).is_relative_to(self.root)

    def _name(self, names: dict[str, int]) -> None:
        self.names = names
        self.listings.append(names)

    def after_loss(self, rng: random.Random | None) -> dict[str, bytes]:
        """Return files that may be there after a loss; without chance, only what is sure."""
        names = self.listings[0] if rng is None else rng.choice(self.listings)
        return {name: self._left(number, rng) for name, number in names.items()}

    def _left(self, number: int, rng: random.Random | None) -> bytes:
        sure, present = self.synced.get(number, b""), self.content.get(number, b"")
        if rng is None or sure == present:
            return sure
        if not present.startswith(sure):
            return rng.choice([sure, present])
        n = rng.randrange(len(sure), len(present) + 1)
        zeros = sure + bytes(len(present) - len(sure))
        return rng.choice([sure, present, present[:n], zeros])


def write(files: dict[str, bytes], root: Path) -> None:
    """Make a folder of files; without any it is not there."""
    rmtree(root, ignore_errors=True)
    for name, data in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(data)


def main(folder: Path, model: str, most: int) -> int:
    """Return how many losses went wrong."""
    calls, run = shim(), folder / "run"
    source, expected = prepared(folder, model)
    log = folder / "log"
    rmtree(run, ignore_errors=True)

    def recorded() -> None:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        calls.fault_record_to(ctypes.c_int(handle))
        feed(run, source, model)

    assert in_a_process(recorded) == THROUGH
    steps = steps_of(log.read_bytes())
    whole = Disk(run)
    for step in steps:
        whole.do(step)
    there = {str(path): path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for name in there.keys() | whole.names.keys():
        assert whole.content[whole.names[name]] == there[name], f"not all was seen of {name}"
    n_losses = n_bad = 0
    chosen = set(spread(len(steps), most))
    disk = Disk(run)
    for number, step in enumerate(steps, start=1):
        disk.do(step)
        if number not in chosen:
            continue
        for chance in (None, random.Random(number), random.Random(-number)):
            write(disk.after_loss(chance), run)
            then = in_a_process(lambda: feed(run, source, model))
            n_losses += 1
            try:
                assert then == THROUGH, f"resumed, it ended with {then}"
                check_same(run, expected)
            except (AssertionError, OSError) as problem:
                n_bad += 1
                print(f"{model}: loss of power after step {number}: {problem}", flush=True)
    print(f"{model}: {len(steps)} steps, {n_losses} losses of power, {n_bad} bad")
    return n_bad


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2], int((sys.argv[3:] or ["0"])[0])) > 0)
