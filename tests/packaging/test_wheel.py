"""The wheel: what is in it, what it says of itself, and that it runs without the checkout."""

import os
import re
import subprocess
import sys
import venv
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

import bnpstream

ROOT = Path(__file__).parents[2]
pytest.importorskip("build", reason="needs the package build, as `make test` installs it")


def run(*command, **options):
    """Run a command; return what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT))
    (found,) = out.iterdir()
    return found


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "bnpstream",
        f"bnpstream-{bnpstream.__version__}.dist-info",
    }
    package = ROOT / "src" / "bnpstream"
    there = {
        path.relative_to(ROOT / "src").as_posix()
        for path in package.rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".nbi", ".nbc")
    }
    assert there <= set(names)
    assert "bnpstream/py.typed" in names


def test_the_wheel_says_what_it_needs(wheel):
    file = zipfile.ZipFile(wheel)
    (path,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
    about = message_from_string(file.read(path).decode())
    assert about["Version"] == bnpstream.__version__
    assert about["License-Expression"] == "BSD-3-Clause"
    needed = about.get_all("Requires-Dist")
    base = {re.split(r"[\W]", one)[0] for one in needed if "extra ==" not in one}
    assert base == {
        *("joblib", "msgspec", "narwhals", "numba", "numpy", "orjson", "rich", "safetensors"),
        *("scikit", "scipy", "typer", "zstandard"),
    }
    assert {"all", "docs", "report", "serve"} <= set(about.get_all("Provides-Extra"))


@pytest.mark.slow
def test_the_wheel_runs_away_from_the_checkout(wheel, tmp_path):
    """Its dependencies are those of this interpreter; the package is the wheel's alone."""
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    others = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(others) + "\n")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    place = run(
        *(str(python), "-c", "import bnpstream; print(bnpstream.__file__)"),
        cwd=tmp_path,
        env=environment,
    )
    assert Path(place.strip()).is_relative_to(site)
    (tmp_path / "texts.txt").write_text("rain and wind\nbonds and stocks\n" * 60)
    said = run(
        *(str(python), "-m", "bnpstream", "fit", "texts.txt", "--out", "run"),
        cwd=tmp_path,
        env=environment,
    )
    assert "rows" in said
    assert (tmp_path / "run" / "config.json").exists()
