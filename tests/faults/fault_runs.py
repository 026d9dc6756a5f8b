"""Small runs of every kind, which fail in processes of their own and go on to the same bits."""

import ctypes
import os
import shutil
import signal
import subprocess
import traceback
from contextlib import nullcontext
from pathlib import Path

from killing import TIMES, write_feed
from numpy._core import _multiarray_umath as multiarray

from bnpstream.runs.options import ModelOptions, Pace
from bnpstream.runs.sharing import SharingOptions
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start
from bnpstream.sources import Options, open_source
from bnpstream.storage import RunError, read_tensors
from bnpstream.storage.logs import JsonLines

THROUGH, FAILED, BAD, UNREACHED = 0, 10, 11, 12
SECONDS = 120
HASHED = Options(hash_bits=8)
MODELS = {
    "growing": (Options(), ModelOptions(prefix_rows=60)),
    "window": (HASHED, ModelOptions(revisit=40, revisits=2)),
    "passes": (HASHED, ModelOptions(passes=2, alpha=0.3)),
    "fading": (HASHED, ModelOptions(half_life="50", alpha=0.3)),
    "merges": (HASHED, ModelOptions(merge_threshold=0.0, revisit=40, alpha=0.3)),
    "budget": (Options(), ModelOptions(max_clusters=6, prefix_rows=60)),
    "bursty": (Options(), ModelOptions(likelihood="bursty", prefix_rows=60)),
    "rounds": (HASHED, ModelOptions(staleness=1, block_rows=64, alpha=0.3)),
    "rotation": (HASHED, ModelOptions(alpha=0.3)),
    "dask": (HASHED, ModelOptions(alpha=0.3)),
}
N_RECORDS = 300
PACE = Pace(batch_rows=50, checkpoint_rows=100)
ROTATE_BYTES = 300
"""Bytes of a file of JSON lines, where such files rotate."""


def feed(folder: Path, source: Path, model: str) -> None:
    """Feed all, or what is left."""
    about, options = MODELS[model]
    if model == "rotation":
        JsonLines.__init__.__kwdefaults__["rotate_bytes"] = ROTATE_BYTES
    sharing = SharingOptions() if model == "dask" else None
    job = start(folder, RunOptions((str(source),), about, options, sharing=sharing), resume=True)
    try:
        with Interrupts() as interrupts, workers(job, model) as shared:
            assert shared.run(PACE, interrupts, lambda _: None)
    finally:
        job.close()


def workers(job, model: str):
    """Return a context of what runs a job: itself, or workers."""
    if model != "dask":
        return nullcontext(job)
    from contextlib import contextmanager
    from dataclasses import replace

    from distributed import Client, LocalCluster

    from bnpstream.distributed.feed import SharedFeed

    @contextmanager
    def shared():
        job.sharing = replace(job.sharing, part_rows=50, settle_every=2)
        try:
            cluster = LocalCluster(
                n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
            )
        except RuntimeError as error:  # Dask's own files are on the disk, too
            raise OSError(str(error)) from error
        with cluster, Client(cluster) as client:
            yield SharedFeed(client, job)

    return shared()


def in_a_process(work) -> int:
    """Return how work, which may return a code, ends in a process of its own."""
    child = os.fork()
    if child == 0:
        code = BAD
        try:
            signal.alarm(SECONDS)
            code = work() or THROUGH
        except (RunError, OSError, MemoryError):
            code = FAILED
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def check_same(run: Path, expected: Path) -> None:
    """Raise AssertionError unless two runs have the same state, history and rejects."""
    here, there = (read_tensors(folder / "state.safetensors") for folder in (run, expected))
    for document in (here.document, there.document):
        for name in TIMES:
            del document[name]
    assert here.document == there.document
    assert here.arrays.keys() == there.arrays.keys()
    for name, array in here.arrays.items():
        assert array.tobytes() == there.arrays[name].tobytes(), name
    for pattern in ("lineage*.jsonl", "rejects*.jsonl"):
        logged = [
            {path.name: path.read_bytes() for path in folder.glob(pattern)}
            for folder in (run, expected)
        ]
        assert logged[0] == logged[1], pattern


def prepared(folder: Path, model: str) -> tuple[Path, Path]:
    """Return a feed, and the run over it that nothing disturbed; loops are compiled by then."""
    source, expected = folder / "feed.jsonl", folder / "expected"
    write_feed(source, N_RECORDS, seed=5)
    if model == "dask":  # its threads would not survive a fork
        open_source(str(source), Options()).close()  # Python does not import without memory
        assert in_a_process(lambda: feed(expected, source, model)) == THROUGH
    else:
        feed(expected, source, model)
    return source, expected


def shim() -> ctypes.CDLL:
    """Return what makes calls fail, which is loaded by LD_PRELOAD.

    Buffers of NumPy's iterators never fail: as of 2.4, ufuncs report that without the GIL, and
    indexing uses the buffers nonetheless. Both end the process, whoever calls them.
    """
    found = ctypes.CDLL(None)
    found.fault_count.restype = found.fault_memory_count.restype = ctypes.c_long
    if names := shutil.which("nm"):
        library = multiarray.__file__
        told = subprocess.run([names, "-S", library], capture_output=True, text=True).stdout
        maps = Path("/proc/self/maps").read_text().splitlines()
        base = next(int(line.split("-")[0], 16) for line in maps if line.endswith(library))
        for place, size, *_, name in (line.split() for line in told.splitlines() if " t " in line):
            if name == "npyiter_allocate_buffers":
                first = base + int(place, 16)
                found.fault_spare(*(ctypes.c_void_p(x) for x in (first, first + int(size, 16))))
    return found


def spread(n: int, most: int) -> range:
    """Return numbers 1 to n: all if `most` is 0, else about so many of them."""
    return range(1, n + 1, max(1, n // most) if most else 1)
