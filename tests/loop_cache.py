"""One folder of compiled loops for the sources as they are: an edit makes another."""

import hashlib
import shutil
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT_DAYS = 2


def folder():
    """Return the folder of loops compiled from the sources as they are.

    numba notices an edit of a function's own file only. All runs of the same sources share their
    loops, all parts of `make test` among them; no other source has ever written to the folder.
    """
    digest = hashlib.sha256(sys.version.encode())
    for path in sorted((ROOT / "src" / "bnpstream" / "kernels").rglob("*.py")):
        digest.update(path.read_bytes())
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_bytes()
        if b"jit" in text or b"bnpstream.extending" in text:
            digest.update(text)
    found = ROOT / ".loop_cache" / digest.hexdigest()[:16]
    found.mkdir(parents=True, exist_ok=True)
    found.touch()
    for other in found.parent.iterdir():
        if other.stat().st_mtime < time.time() - KEPT_DAYS * 86400:
            shutil.rmtree(other, ignore_errors=True)
    return found


if __name__ == "__main__":
    print(folder())
