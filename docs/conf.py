"""Settings of the documentation site: ``make docs`` builds it from the root of the checkout."""

import re
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from bnpstream import __version__
from bnpstream.cli import app as commands

project = "bnpstream"
author = "The bnpstream developers"
copyright = author
release = version = __version__
root_doc = "docs/index"
include_patterns = [
    *("*.md", "docs/**.md", "docs/generated/**"),
    *("benchmarks/*.md", "papers/*/README.md", "tests/**/README.md"),
]
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
sphinx_gallery_conf = {
    "examples_dirs": "docs/gallery",  # from the root of the checkout, as all pages
    "gallery_dirs": "docs/generated/gallery",
    "within_subsection_order": "ExampleTitleSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,  # pages are the same on any machine
    "abort_on_example_error": True,
    "matplotlib_animations": False,
    "image_srcset": ["2x"],
}
templates_path = [str(Path(__file__).parent / "_templates")]
myst_heading_anchors = 4
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections say the types
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_theme = "furo"
html_static_path = [str(Path(__file__).parent / "_static")]
html_css_files = ["gallery.css"]
html_title = f"bnpstream {__version__}"
html_copy_source = False
html_show_copyright = False
SYMBOL = re.compile(r"(?<=\w)_(?!\w)|\|")


def setup(app: Any) -> None:
    """Have the page of commands written before pages are read, and symbols left as they are."""
    app.connect("builder-inited", write_commands)
    app.connect("source-read", leave_out_of_menus)
    app.connect("autodoc-skip-member", leave_out_others)
    app.connect("autodoc-process-docstring", keep_symbols, priority=900)  # after numpydoc


def leave_out_of_menus(app: Any, name: str, source: list[str]) -> None:
    """Let pages that others list be in no menu."""
    if name == "README" or name.startswith(("docs/decisions/2", "tests/")):
        source[0] = "---\norphan: true\n---\n" + source[0]


def leave_out_others(
    app: Any, what: str, name: str, thing: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what a class has from scikit-learn or river, whose own sites describe it."""
    module = getattr(getattr(thing, "fget", thing), "__module__", None)
    return None if module is None or module.startswith("bnpstream") else True


def keep_symbols(
    app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Let ``n_clusters_`` and ``|x|`` in docstrings stand for themselves."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...", "..")):
            parts = line.split("`")  # every second one is code
            parts[::2] = [SYMBOL.sub(r"\\\g<0>", part) for part in parts[::2]]
            lines[number] = "`".join(parts)


def write_commands(app: Any) -> None:
    """Write what ``--help`` says of every command, as a page."""
    group = get_command(commands)
    sections = ["# Commands\n\nWhat `bnpstream COMMAND --help` prints.\n"]
    for name, command in sorted(group.commands.items()):
        below = getattr(command, "commands", None)
        for path in [[name]] if below is None else [[name, one] for one in sorted(below)]:
            said = CliRunner().invoke(commands, [*path, "--help"], prog_name="bnpstream").output
            sections.append(f"## {' '.join(path)}\n\n```text\n{said.strip()}\n```\n")
    page = Path(app.srcdir, "docs", "generated", "commands.md")
    page.parent.mkdir(exist_ok=True)
    text = "\n".join(sections)
    if not page.exists() or page.read_text() != text:  # an unchanged page is not read again
        page.write_text(text)
