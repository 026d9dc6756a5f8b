"""Run all benchmarks one after the other; collect what they print in one dated page.

Numbers go to OUT/NAME.json. What is printed goes to the terminal and to OUT/NAME.txt, after a line
with the commit, the seconds it took and how busy the machine was. `figures.md` beside this script
has all of these, also of benchmarks that were run earlier with the same OUT. A benchmark that fails
does not stop the others.
"""

import argparse
import platform
import subprocess
import sys
import time
from pathlib import Path

from measure import machine

HERE = Path(__file__).parent
NAMES = (
    *("memory_floor", "reading", "feed", "raw_text", "around", "threads", "cores", "scale"),
    *("state_memory", "window_memory", "vocabulary", "records", "brokers", "serving"),
    *("changing_topics", "split_memo", "gaussian_sets", "gaussian_stream", "newsgroups", "topics"),
    *("short_texts", "bursty", "embeddings", "vector_speed", "no_options", "choosing", "peers"),
    *("parallel_ep", "dask_stream", "scaling"),
)
PAGE = """# Figures of `make bench`

What benchmarks printed, {date}, {processor}, {cores} cores.
[What they measure, and what follows](README.md).
"""
SECTION = """
## `{name}.py`

{about}

```text
{printed}
```
"""


def run(name: str, out: Path) -> bool:
    """Run one benchmark and keep what it prints; return whether it went through."""
    command = [sys.executable, "-u", str(HERE / f"{name}.py"), "--json", str(out / f"{name}.json")]
    start, before, printed = time.monotonic(), machine()["load"][0], []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            printed.append(line)
    about = (
        f"Commit {commit()}, {time.monotonic() - start:.0f} s by the clock; load over the last "
        f"minute {before} when it began, {machine()['load'][0]} when it ended.\n"
    )
    if process.returncode == 0:
        (out / f"{name}.txt").write_text(about + "".join(printed))
    return process.returncode == 0


def commit() -> str:
    """Return the commit that is checked out."""
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def processor() -> str:
    """Return the name of the processor (Linux), or its architecture."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (names or [platform.machine()])[0]


def page(out: Path) -> str:
    """Return the page of all that was printed."""
    date, cores = time.strftime("%Y-%m-%d"), machine()["cores"]
    parts = [PAGE.format(date=date, processor=processor(), cores=cores)]
    for name in NAMES:
        if (kept := out / f"{name}.txt").exists():
            about, _, printed = kept.read_text().partition("\n")
            parts.append(SECTION.format(name=name, about=about, printed=printed.rstrip()))
    return "".join(parts)


def main() -> int:
    """Run what is named, and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES, help="benchmarks to run")
    parser.add_argument("--out", type=Path, default=Path("bench-out"), help="folder for results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in options.names:
        print(f"== {name}", flush=True)
        if not run(name, options.out):
            failed.append(name)
    (HERE / "figures.md").write_text(page(options.out))
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
