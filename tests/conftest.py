"""What every test needs: a fresh cache of compiled loops, and the corpus that is not shipped."""

import atexit
import os
import shutil
import tempfile

import pytest

# numba's cache does not notice edits of callees in other files; this runs before its import.
os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="bnpstream-numba-")
atexit.register(shutil.rmtree, os.environ["NUMBA_CACHE_DIR"], ignore_errors=True)


@pytest.fixture(scope="session")
def kos():
    """Return the KOS corpus, or skip where it is not on this disk."""
    from bnpstream.datasets import load_kos

    try:
        return load_kos()
    except FileNotFoundError as error:
        pytest.skip(str(error))
