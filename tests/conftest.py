"""What every test needs: a fresh cache of compiled loops, and the corpora that are not shipped."""

import atexit
import os
import shutil
import tempfile

import pytest

# numba's cache does not notice edits of callees in other files; this runs before its import.
os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="bnpstream-numba-")
atexit.register(shutil.rmtree, os.environ["NUMBA_CACHE_DIR"], ignore_errors=True)


def load_or_skip(name, *arguments):
    """Return a corpus, or skip where it is not on this disk."""
    from bnpstream import datasets

    try:
        return getattr(datasets, name)(*arguments)
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def kos():
    """Return the KOS corpus."""
    return load_or_skip("load_kos")


@pytest.fixture(scope="session")
def nyt8447():
    """Return 8447 articles of the New York Times."""
    return load_or_skip("load_nyt8447")


@pytest.fixture(scope="session")
def newsgroups():
    """Return the training documents of 20 Newsgroups."""
    return load_or_skip("load_20news", "train")
