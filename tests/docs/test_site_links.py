"""Links of the built site, which `make docs` and `make test` check by `docs/check_links.py`."""

import runpy
import subprocess
import sys
from pathlib import Path

CHECKER = Path(__file__).parents[2] / "docs" / "check_links.py"


def write_site(folder, link):
    (folder / "below").mkdir()
    (folder / "index.html").write_text(f'<h1 id="top">A</h1><a href="{link}">link</a>')
    (folder / "below" / "page.html").write_text(
        '<h2 id="part 1">B</h2><a href="../index.html#top">'
    )
    (folder / "picture.svg").write_text("<svg/>")


def broken(folder, link):
    folder.mkdir()
    write_site(folder, link)
    return runpy.run_path(str(CHECKER))["broken_links"](folder)


def test_links_that_lead_somewhere_are_not_told(tmp_path):
    good = [
        "",
        "#top",
        "below/page.html#part%201",
        "picture.svg",
        "https://example.org/#x",
        "data:,",
    ]
    for number, link in enumerate(good):
        assert broken(tmp_path / str(number), link) == [], link


def test_links_that_lead_nowhere_are_told(tmp_path):
    bad = [
        "#bottom",
        "below/page.html#part",
        "none.html",
        "../outside.html",
        "picture.svg#x",
        "below",
    ]
    for number, link in enumerate(bad):
        assert broken(tmp_path / str(number), link) == [f"index.html: {link}"], link


def test_the_program_fails_and_lists_them(tmp_path):
    write_site(tmp_path, "none.html")
    done = subprocess.run([sys.executable, CHECKER, tmp_path], capture_output=True, text=True)
    assert done.returncode == 1
    assert "index.html: none.html" in done.stderr
