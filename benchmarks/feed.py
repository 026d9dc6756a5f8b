"""The command line on long feeds: memory and speed of ``stream``, time outside the pass of ``fit``.

- stream: a million JSON lines from a stationary source with 50 clusters, 40 words each, through a
  pipe and back; the vocabulary grows, as by default. Memory is that of the process.
- fit: a gzipped docword file of the size of the paper's New York Times corpus; "outside" is all
  time that is not the pass: reading, unpacking, parsing, checkpoints, progress.
"""

import json
import subprocess
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import MIB, PAGE, arguments, machine, save
from raw_text import BLOCK, COMMAND, Feed, draw
from reading import N_NEWS, write_docword

DOCUMENTS = 1_000_000
FEED = Feed("40 words, 50 clusters", 40, 50, 2_000, 0.02, DOCUMENTS)


def resident_mib(pid: int) -> float:
    """Return the memory that a process holds now (Linux)."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / MIB


def time_stream(folder: Path, n_documents: int) -> list[dict[str, float]]:
    """Push documents through ``stream``; print a line every tenth of them."""
    feed = folder / "feed.jsonl"
    with feed.open("wb") as file:
        for block in draw(FEED, n_documents):
            file.write(block)
    lines: list[dict[str, float]] = []
    with feed.open("rb") as stdin:
        process = subprocess.Popen(
            [*COMMAND, "stream", "--out", folder / "run", "--quiet"],
            stdin=stdin,
            stdout=subprocess.PIPE,
        )
    assert process.stdout is not None
    began = None
    for n, line in enumerate(process.stdout, start=1):
        if began is None:
            began = time.perf_counter()  # after imports, and compilation if there was any
        if n % (n_documents // 10) == 0 or n == BLOCK:
            seconds = time.perf_counter() - began
            found = {
                "documents": n,
                "resident_mib": resident_mib(process.pid),
                "per_second": n / seconds,
                "cluster": json.loads(line)["cluster"],
            }
            lines.append(found)
            print(
                f"  {n:9,d} documents  {found['resident_mib']:5.0f} MiB  "
                f"{found['per_second']:8,.0f} documents/s",
                flush=True,
            )
    assert process.wait() == 0
    return lines


def time_fit(folder: Path, n_documents: int) -> dict[str, float]:
    """Fit a docword file; return its times and the most memory it held."""
    path = folder / "docword.txt.gz"
    write_docword(path, n_documents)
    options = ("--prior", "nig", "--concentration", "10", "--tilt", "100", "--alpha", "0.1")
    process = subprocess.Popen(
        [*COMMAND, "fit", path, "--out", folder / "fit", *options, "--json"],
        stdout=subprocess.PIPE,
    )
    peak = 0.0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.2) and process.poll() is None:
            peak = max(peak, resident_mib(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    output, _ = process.communicate()
    done.set()
    watcher.join()
    found = json.loads(output)
    times = {
        "seconds": found["seconds"],
        "in_pass": found["seconds_in_pass"],
        "outside": found["seconds"] - found["seconds_in_pass"],
        "clusters": found["clusters"],
        "peak_mib": peak,
        "state_mib": (folder / "fit" / "state.safetensors").stat().st_size / MIB,
    }
    print(
        f"  {n_documents:,} documents in {times['seconds']:.1f} s: {times['in_pass']:.1f} in the "
        f"pass, {times['outside']:.1f} outside; peak {peak:.0f} MiB"
    )
    return times


def main() -> None:
    """Time both."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--news", type=int, default=N_NEWS)
    options = parser.parse_args()
    print(machine())
    with TemporaryDirectory(prefix="bnpstream-feed-") as folder:
        print("stream")
        stream = time_stream(Path(folder), options.documents)
        print("fit")
        fit = time_fit(Path(folder), options.news)
    save({"stream": stream, "fit": fit}, options.json)


if __name__ == "__main__":
    main()
