"""What tests share: a cache of compiled loops, corpora that are not shipped, a cluster, a
browser."""

import os
import shutil
import signal

import pytest

import loop_cache

# Before the import of NumPy: small products gain nothing from more threads of BLAS, whose waiting
# takes the cores from the other parts of `make test`.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Nothing compiled from other sources is to be tested; this runs before the import of numba.
os.environ["NUMBA_CACHE_DIR"] = str(loop_cache.folder())
# A shell has its background jobs ignore Ctrl-C, which tests of interrupts send.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config, items):
    """Without the compiler, leave out cases of the reference engine: it has no loops of its own."""
    if not os.environ.get("NUMBA_DISABLE_JIT"):
        return
    same = [
        item
        for item in items
        if hasattr(item, "callspec") and item.callspec.params.get("engine") == "reference"
    ]
    config.hook.pytest_deselected(items=same)
    items[:] = [item for item in items if item not in set(same)]


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


@pytest.fixture(scope="session")
def client():
    """Return a client of two worker processes."""
    from clusters import local_client

    with local_client() as connected:
        yield connected


PATIENCE = 300_000
"""Milliseconds after which a browser hangs: a busy machine may take a minute to open a page."""
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser():
    """Return headless Chromium, or skip where there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is missing: pip install 'bnpstream[dev]'"
    )
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(CHROMIUM)} is on the path")
    # Chromium's sandbox refuses to run as root, as containers do.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=found, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser):
    """Return a function that opens a page; whatever it logs or requests fails the test."""
    contexts, complaints = [], []

    def open_page(path, fragment="", **options):
        context = browser.new_context(**({"reduced_motion": "reduce"} | options))
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        address = path.as_uri()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((address, "data:image/png;"))
                else complaints.append(f"request: {request.url}")
            ),
        )
        page.goto(address + fragment)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
