"""Links of the pages lead somewhere, and what a page repeats is what it repeats."""

import re
import tomllib
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("benchmarks/*.md"),
    *ROOT.glob("papers/*/*.md"),
]
RECORDS = sorted(path.name for path in ROOT.glob("docs/decisions/2*.md"))


def anchors(text):
    """Return the anchors of all headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if not re.match(r"https?:", link):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target.read_text()), link


def test_drawing_of_layers_is_the_contract():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = project["tool"]["importlinter"]["contracts"][0]["layers"]
    section = (
        (ROOT / "docs/design.md").read_text().split("## Rooms and layers")[1].split("\n## ")[0]
    )
    drawing = re.findall(r"^    (\S.*)$", section, re.MULTILINE)
    assert drawing == [layer.replace("bnpstream.", "") for layer in contract]
    rooms = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert rooms >= {room for layer in drawing for room in layer.split(" | ")}


@pytest.mark.parametrize("index", ["docs/decisions/README.md", "docs/design.md"])
def test_every_decision_is_listed(index):
    listed = re.findall(r"\]\((?:decisions/)?(2[\w-]+\.md)\)", (ROOT / index).read_text())
    assert sorted(listed) == RECORDS


def test_every_public_name_is_in_the_reference():
    page = (ROOT / "docs/reference.md").read_text()
    listed = set(re.findall(r"^   (bnpstream[\w.]+)$", page, re.MULTILINE))
    modules = {name.rpartition(".")[0] for name in listed}
    for module in modules:
        pytest.importorskip(module, reason=f"{module} needs an extra")
        public = getattr(import_module(module), "__all__", [])
        names = {f"{module}.{name}" for name in public if name not in ("__version__", "FORMATS")}
        assert names <= listed, module


def test_every_option_of_a_constructor_answers_a_question():
    estimators = import_module("bnpstream.estimators")
    table = (ROOT / "docs/python.md").read_text().split("## Options by question")[1]
    listed = set(re.findall(r"`(\w+)`", table))
    for estimator in (estimators.StreamingMixture, estimators.DocumentMixture):
        assert set(signature(estimator).parameters) <= listed, estimator
