"""Run directories of which a file was damaged: every command gives an answer, or says which file.

``python breaking.py CASES [SEED]`` damages so many runs, each in a way that its number determines:
bytes, lines, values, other contents, and things that are no files. Each is used in a process of
its own.
"""

import json
import os
import random
import signal
import sys
import traceback
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import TemporaryDirectory

from forging_documents import VALUES, leaves, replaced
from interrupting import command_code
from killing import write_feed

from bnpstream.serve.watch import Watch

SECONDS = 120
"""Longer than this is never."""
MODELS = {
    "words": ("--prefix-rows", "30"),
    "window": ("--hash-bits", "6", "--revisit", "20", "--alpha", "0.3"),
    "fading": ("--hash-bits", "6", "--prefix-rows", "30", "--half-life", "40"),
}
ENDS = {"whole": (), "stopped": ("--batch-rows", "20", "--max-rejects", "1")}
LINES = [b"\n", b"{}\n", b"[]\n", b"3\n", b"\xff\xfe\n", b'{"kind":"birth"}\n', b"[" * 100_000]


def changed_value(text: bytes, rng: random.Random) -> bytes:
    """Return JSON with another value at some place; other text as it is."""
    try:
        document = json.loads(text)
    except ValueError:
        return text
    places = list(leaves(document))
    if not places:
        return b"[]"
    return json.dumps(replaced(document, rng.choice(places), rng.choice(VALUES))).encode()


def damage(run: Path, rng: random.Random) -> str:
    """Damage a file of a run; return what was done."""
    path = rng.choice(sorted(run.iterdir()))
    data, what = path.read_bytes(), rng.randrange(12)
    if what < 6:
        place, lines = rng.randrange(len(data) + 1), data.split(b"\n")
        line = rng.randrange(len(lines))
        flipped = bytearray(data)
        if data:
            flipped[place - 1] ^= 1 << rng.randrange(8)
        swapped = [*lines[:line], changed_value(lines[line], rng), *lines[line + 1 :]]
        other = rng.choice(sorted(run.iterdir())).read_bytes()
        value = changed_value(data, rng) if path.suffix == ".json" else b"\n".join(swapped)
        path.write_bytes(
            [data[:place], bytes(flipped), b"", other, data + rng.choice(LINES), value][what]
        )
        return f"{path.name}: {what} at {place}"
    path.unlink()
    if what == 6:
        path.mkdir()
    elif what == 7:
        os.mkfifo(path)
    elif what < 10:
        path.symlink_to(rng.choice([path.name, "/dev/null", "..", "/nowhere/x"]))
    elif what == 10:
        path.with_name(rng.choice(["previous.safetensors", "order.jsonl"])).write_bytes(data)
    return f"{path.name}: {what}"


def use(run: Path, feed: Path) -> None:
    """Do with a run what its owner might; AssertionError if anything but a message comes of it."""
    page = run.parent / "page.html"
    for command in (
        *(("clusters", run), ("lineage", run, "--json"), ("report", run, "--out", page)),
        *(("predict", run, feed), ("evaluate", run, feed), ("clusters", run, "--coarse", "2")),
        *(("fit", feed, "--out", run, "--resume", "--quiet"), ("clusters", run)),
    ):
        code, out, errors = command_code(*command)
        assert code in (0, 1), (command, code, errors)
        assert "Traceback" not in out + errors, (command, errors)
        assert code == 0 or str(run) in errors or str(feed) in errors, (command, errors)
        watch = Watch(run)
        for _ in range(2):
            watch.look()
            watch.load()
            watch.records_saved()


def in_a_process(run: Path, feed: Path) -> int:
    """Return how using a run ends in a process of its own."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(SECONDS)
            use(run, feed)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(n_cases: int, seed: int) -> int:
    """Return how many damaged runs went wrong."""
    n_bad = 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        feed, run = folder / "feed.jsonl", folder / "run"
        write_feed(feed, 120, seed=3)
        sound = []
        for model, options in MODELS.items():
            for end, more in ENDS.items():
                sound.append(folder / f"{model}-{end}")
                options_of_all = ("--quiet", "--checkpoint-rows", "20", *options, *more)
                command_code("fit", feed, "--out", sound[-1], *options_of_all)
        for number in range(n_cases):
            rng = random.Random(seed * 10**6 + number)
            rmtree(run, ignore_errors=True)
            kind = rng.choice(sound)
            copytree(kind, run)
            told = damage(run, rng)
            code = in_a_process(run, feed)
            if code != 0:
                n_bad += 1
                print(f"{number}: {kind.name}: {told}: ended with {code}", flush=True)
    print(f"{n_cases} damaged runs, {n_bad} bad; seed {seed}")
    return n_bad


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int((sys.argv[2:] or ["0"])[0])) > 0)
