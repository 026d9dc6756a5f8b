"""Files that coverage leads to: those that reach new lines of the readers are spoilt further.

``NUMBA_DISABLE_JIT=1 python guided.py FOLDER SECONDS`` needs atheris (``pip install atheris``),
which sees Python only; so loops are not compiled here. What it finds is kept in FOLDER, and read
again by ``python guided.py FOLDER`` with compiled loops. The first byte of a case says what a file
is called.
"""

import os
import sys
from pathlib import Path
from tempfile import mkdtemp

if __name__ == "__main__" and len(sys.argv) > 2:
    import atheris

    with atheris.instrument_imports(include=["bnpstream.sources"]):
        from bnpstream.sources.files.source import FORMATS, reader_class

        for format in FORMATS:
            reader_class(format)

import random

from mutations import CORPUS, options_for
from naive_readers import check_naive
from readings import check_once

NAMES = sorted({"".join(path.suffixes) for path in CORPUS if not path.name.startswith("docword")})
NAMES = ["docword.txt", *(f"case{suffix}" for suffix in NAMES)]
SCRATCH = Path(mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
MOST_BYTES = 2048


def check_case(data: bytes) -> None:
    """Check the file that a case stands for."""
    if not data:
        return
    name = NAMES[data[0] % len(NAMES)]
    path = SCRATCH / name
    path.write_bytes(data[1:])
    said = {"vector_field": "v"} if data[0] >= 128 else {}
    whole = check_once(path, said, random.Random(len(data)))
    if whole.error is None:
        check_naive(path, said)


def seeds(folder: Path) -> Path:
    """Write the corpus as cases."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in CORPUS:
        name = path.name if path.name == "docword.txt" else f"case{''.join(path.suffixes)}"
        if path.name.startswith("docword"):
            name = "docword.txt"
        named = -(-128 // len(NAMES)) * len(NAMES) * bool(options_for(path.name))
        first = NAMES.index(name) + named
        (folder / path.name).write_bytes(bytes([first]) + path.read_bytes())
    return folder


def main(folder: Path, seconds: int) -> None:
    """Go on for so many seconds, or until something goes wrong."""
    kept = seeds(folder / "seeds")
    found = folder / "found"
    found.mkdir(exist_ok=True)
    limits = [f"-max_total_time={seconds}", f"-max_len={MOST_BYTES}", "-timeout=30"]
    arguments = [sys.argv[0], str(kept), *limits, f"-artifact_prefix={found}/"]
    atheris.Setup(arguments, check_case)
    atheris.Fuzz()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        assert os.environ.get("NUMBA_DISABLE_JIT") == "1", "compiled loops are not seen"
        main(Path(sys.argv[1]), int(sys.argv[2]))
    else:
        cases = [*sorted((Path(sys.argv[1]) / "seeds").iterdir())]
        cases += sorted((Path(sys.argv[1]) / "found").iterdir())
        for path in cases:
            check_case(path.read_bytes())
        print(f"{len(cases)} files read with compiled loops, 0 bad")
