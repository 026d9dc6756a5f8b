"""Settings are declared once: the help shows them with the defaults that models have."""

import subprocess
import sys

import pytest

from bnpstream.cli import options
from bnpstream.cli.main import app
from bnpstream.engine import Settings
from bnpstream.engine.settings import EVEN_ODDS, LOWEST_DEFAULT_THRESHOLD
from bnpstream.runs.mixture import DOCUMENT_PREFIX, make_model
from bnpstream.runs.options import ModelOptions
from bnpstream.runs.sharing import SharingOptions
from bnpstream.search.grids import ALPHAS
from commands import run

COMMANDS = [command.name for command in app.registered_commands]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained_with_its_default(command):
    text = run(command, "--help")
    records = text[text.index("\nOptions:") :].replace("\n   ", " ").splitlines()
    for record in (line.strip() for line in records if line.startswith("  -")):
        takes_a_value = "<" in record.split("  ")[0]
        assert not takes_a_value or "[default: " in record, record


def test_defaults_in_the_help_are_those_of_the_engine():
    settings = Settings()
    expected = {
        "new_cluster_threshold": f"{LOWEST_DEFAULT_THRESHOLD}, or the discount if that is larger",
        "revisit": str(settings.revisit),
        "revisits": str(settings.n_revisits),
        "passes": str(settings.n_passes),
        "merge_threshold": f"{EVEN_ODDS:g} with several passes, else no merges",
        "prefix_rows": f"{settings.prefix_rows}; {DOCUMENT_PREFIX} for texts",
        "engine": settings.engine,
        "staleness": str(SharingOptions().completed().staleness),
        "block_rows": str(settings.block_rows),
        "tilt": f"{make_model(ModelOptions(prior='nig'), 'table').stream.prior.tilt:g}",
    }
    shown = {one.name: one.shown for one in (*options.MODEL, *options.CORES)}
    shown["new_cluster_threshold"] = shown["threshold"]
    assert {name: shown[name] for name in expected} == expected
    grid = {one.name: one.shown for one in options.GRID}
    assert grid["alpha"] == f'{ALPHAS[0]} to {ALPHAS[-2]}, and "{ALPHAS[-1]}"'


def test_help_needs_nothing_heavy():
    program = (
        "import sys; from bnpstream.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = ('numpy', 'scipy', 'numba', 'rich', 'msgspec', 'orjson', 'pydantic')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == "[]\n"
