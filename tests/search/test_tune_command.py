"""``bnpstream tune``, and ``fit --config`` with what it wrote."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array
from typer.testing import CliRunner

from bnpstream import DirichletMultinomial, StreamingMixture, dirichlet_process
from bnpstream.cli import app
from bnpstream.runs.mixture import make_prior
from bnpstream.runs.model_file import ModelFile, read_model_file
from bnpstream.runs.options import ModelOptions, OptionError
from bnpstream.runs.tune import options_grid
from bnpstream.search import grid_search, paper_grid
from commands import run, run_json

GRID = ("--prior", "dp", "--concentration", 1, "--concentration", 50, "--alpha", 0.1, "--alpha", 1)


@pytest.fixture(scope="module")
def counts():
    """Return counts of words about four topics."""
    rng = np.random.default_rng((72, 0))
    topics = rng.dirichlet(np.full(30, 0.2), size=4)
    return csr_array(rng.multinomial(20, topics[rng.integers(4, size=150)]))


@pytest.fixture(scope="module")
def docword(counts, tmp_path_factory):
    """Return a UCI file of them."""
    path = tmp_path_factory.mktemp("counts") / "docword.txt"
    matrix = counts.tocoo()
    lines = [
        f"{i + 1} {j + 1} {n}" for i, j, n in zip(matrix.row, matrix.col, matrix.data, strict=True)
    ]
    head = [str(counts.shape[0]), str(counts.shape[1]), str(len(lines))]
    path.write_text("\n".join(head + lines) + "\n")
    return path


@pytest.fixture(scope="module")
def table_file(tmp_path_factory):
    """Return a CSV file of real numbers."""
    rng = np.random.default_rng((72, 1))
    rows = rng.normal(size=(60, 2)) + 8.0 * rng.integers(2, size=(60, 1))
    path = tmp_path_factory.mktemp("table") / "rows.csv"
    path.write_text("x,y\n" + "".join(f"{x:.4f},{y:.4f}\n" for x, y in rows))
    return path


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Return a file of JSON lines, one of them broken."""
    lines = [json.dumps({"text": f"rain wind {('snow', 'hail', 'sun')[i % 3]}"}) for i in range(50)]
    lines.insert(3, "{broken")
    path = tmp_path_factory.mktemp("texts") / "feed.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_table_is_that_of_grid_search(docword, counts, tmp_path):
    found = run_json("tune", docword, "--rows", 100, *GRID, "--out", tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_text()) == found
    expected = grid_search(
        StreamingMixture(),
        counts,
        {
            "prior": [dirichlet_process(1.0), dirichlet_process(50.0)],
            "likelihood": [DirichletMultinomial(0.1), DirichletMultinomial(1.0)],
        },
        n_prefix=100,
    )
    tuning = found["tuning"]
    points = tuning["points"]
    assert [point["log_likelihood"] for point in points] == [
        record["log_likelihood"] for record in expected.table()
    ]
    best = expected.best.parameters
    assert found["prior"] == "dp"
    assert found["concentration"] == best["prior"].concentration
    assert found["alpha"] == best["likelihood"].alpha
    assert points[0]["settings"] == {name: found[name] for name in found if name != "tuning"}
    assert (tuning["rows"], tuning["held_out"], tuning["rejects"]) == (100, 20, 0)
    assert tuning["held_out_tokens"] == 20 * 20
    assert tuning["kind"] == "counts"
    assert {"bnpstream", "python", "numpy", "numba"} <= tuning["versions"].keys()
    assert (points[0]["behind"], points[0]["behind_error"]) == (0.0, 0.0)


def test_any_number_of_jobs_finds_the_same(docword):
    def scores(jobs):
        found = run_json("tune", docword, *GRID, "--alpha", "learn", "--jobs", jobs)
        return [(point["settings"], point["log_likelihood"]) for point in found["tuning"]["points"]]

    assert scores(1) == scores(2)


def test_the_winner_is_used_from_the_first_row_on(docword, counts, tmp_path):
    best = run_json("tune", docword, "--rows", 60, *GRID, "--out", tmp_path / "m.json")
    found = run_json("fit", docword, "--config", tmp_path / "m.json", "--out", tmp_path / "run")
    prior = dirichlet_process(best["concentration"])
    model = StreamingMixture(prior, DirichletMultinomial(best["alpha"])).partial_fit(counts)
    assert found["rows"] == 150
    assert found["log_evidence"] == model.total_log_evidence_
    assert found["clusters"] == model.n_clusters_


def test_the_run_knows_its_settings_without_the_file(docword, tmp_path):
    (tmp_path / "m.json").write_text('{"prior": "py", "discount": 0.3, "alpha": 0.2}')
    run("fit", docword, "--config", tmp_path / "m.json", "--out", tmp_path / "run", "--alpha", 0.4)
    model = json.loads((tmp_path / "run" / "config.json").read_text())["model"]
    assert (model["prior"], model["discount"], model["alpha"]) == ("py", 0.3, 0.4)
    again = ("fit", docword, "--config", tmp_path / "m.json", "--out", tmp_path / "run", "--resume")
    assert "started with 0.4" in run(*again, code=1)
    run(*again, "--alpha", 0.4)
    (tmp_path / "m.json").unlink()
    run("fit", "--out", tmp_path / "run", "--resume")


def test_stream_takes_the_file_too(texts, tmp_path, capfd):
    (tmp_path / "m.json").write_text('{"prior": "py", "discount": 0.2}')
    out = tmp_path / "run"
    app(
        ["stream", str(texts), "--config", str(tmp_path / "m.json"), "--out", str(out)],
        standalone_mode=False,
    )
    assert len(capfd.readouterr().out.splitlines()) == 50
    assert json.loads((out / "config.json").read_text())["model"]["discount"] == 0.2


def test_options_override_the_file():
    file = ModelFile("m.json", ModelOptions(prior="nig", concentration=10.0, tilt=2.0, alpha=0.1))
    assert file.overridden({"alpha": None}) == file.options
    assert file.overridden({"tilt": 3.0}).tilt == 3.0
    assert file.overridden({"prior": "nig", "alpha": 0.5}).concentration == 10.0
    other = file.overridden({"prior": "dp"})  # has no tilt: parameters of nig are none of dp's
    assert other == ModelOptions(prior="dp", alpha=0.1)
    assert ModelFile("m.json", ModelOptions(concentration=7.0)).overridden(
        {"prior": "dp"}
    ) == ModelOptions(prior="dp", concentration=7.0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not valid JSON"),
        ("[1]", "not a JSON object of settings"),
        ('{"alhpa": 1}', "unknown setting 'alhpa'; known are prior, concentration"),
        ('{"alpha": "much"}', "alpha is 'much'"),
        ('{"tilt": "learn"}', "tilt is 'learn'"),
        ('{"passes": 1.5}', "passes is 1.5"),
        ('{"prior": "nig", "discount": 0.5}', "the prior nig has no discount"),
        ('{"tuning": {"kind": "pictures"}}', "unknown kind, 'pictures'"),
        ('{"tuning": {"kind": "table"}}', "was tuned on a table, but these records are word"),
        ('{"tuning": {"kind": "documents"}}', "was tuned on texts with a growing vocabulary, but"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text, complaint, docword, tmp_path):
    path = tmp_path / "m.json"
    path.write_text(text)
    found = run("fit", docword, "--config", path, code=2)
    assert complaint in found
    assert str(path) in found


def test_a_file_for_words_does_not_fit_numbers(docword, table_file, tmp_path):
    run("tune", docword, *GRID, "--out", tmp_path / "m.json")
    found = run("fit", table_file, "--config", tmp_path / "m.json", code=2)
    assert "m.json: was tuned on word counts, but these records are a table" in found
    (tmp_path / "m.json").write_text('{"alpha": 0.1}')  # written by hand, it does not say
    found = run("fit", table_file, "--config", tmp_path / "m.json", code=2)
    assert "m.json, with the options given: --alpha is the base measure of word" in found
    assert "no such file" in run("fit", docword, "--config", tmp_path / "no", code=1)


def test_what_is_learnt_is_a_value(docword, tmp_path):
    out = tmp_path / "m.json"
    found = run_json("tune", docword, "--prior", "dp", "--alpha", "learn", "--out", out)
    assert found["alpha"] == "learn"
    assert {point["settings"]["alpha"] for point in found["tuning"]["points"]} == {"learn"}
    assert read_model_file(out).options.alpha is None
    assert found["concentration"] in (1.0, 10.0, 100.0, 1000.0, "learn")
    out.write_text('{"prior": "py", "concentration": "learn", "discount": 0.3}')
    prior = make_prior(read_model_file(out).options)
    assert (prior.learn, prior.discount) == (("concentration",), 0.3)
    run("fit", docword, "--config", out)
    found = run_json("tune", docword, "--prior", "nig", "--concentration", "learn", "--alpha", 1)
    (point,) = found["tuning"]["points"]
    assert point["settings"] == {"prior": "nig", "concentration": "learn", "alpha": 1.0}


def test_numbers_and_texts_are_tuned_too(table_file, texts, tmp_path):
    found = run_json("tune", table_file, "--prior", "dp", "--out", tmp_path / "m.json")
    assert found["tuning"]["held_out_tokens"] is None
    assert len(found["tuning"]["points"]) == 5
    assert "alpha" not in found
    assert run_json("fit", table_file, "--config", tmp_path / "m.json")["rows"] == 60
    found = run_json("tune", texts, "--prior", "py", "--rows", 40, "--seed", 1)
    assert found["tuning"]["kind"] == "documents"
    assert (found["tuning"]["rows"], found["tuning"]["rejects"]) == (40, 1)
    assert found["tuning"]["held_out_tokens"] == 3 * 8
    assert len(found["tuning"]["points"]) == 15  # four concentrations and learnt; discounts


def test_people_get_a_table_and_a_picture(docword, tmp_path):
    picture = tmp_path / "heat.svg"
    text = run("tune", docword, *GRID, "--out", tmp_path / "m.json", "--plot", picture)
    assert "4 grid points, fitted to 120 rows, scored on 30" in text
    table = text[: text.index("heat map:")].splitlines()
    assert max(map(len, table)) <= 80
    best = next(line for line in table if line.startswith("best "))
    found = json.loads((tmp_path / "m.json").read_text())
    point = found["tuning"]["points"][0]
    settings = [f"{found['concentration']:g}", f"{found['alpha']:g}"]
    numbers = [f"{point['per_row']:.2f}", str(point["clusters"]), f"{point['seconds']:.2f}"]
    assert best.split() == ["best", "dp", *settings, *numbers]
    assert "bnpstream fit" in text
    assert "--config" in text
    drawn = picture.read_text()
    assert "<svg" in drawn
    assert "nothing was saved" in run("tune", docword, *GRID)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_edge_of_the_grid_is_pointed_out(docword):
    text = run("tune", docword, "--prior", "dp", "--alpha", 0.1, "--concentration", 1e-9,
               "--concentration", 1e-12)  # fmt: skip
    assert "the best concentration is the l" in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--prior", "dpp"), "unknown prior 'dpp'"),
        (("--prior", "dp", "--tilt", 1), "--tilt: none of the priors dp has a tilt"),
        (("--alpha", "much"), '--alpha much: give a number or "learn"'),
        (("--tilt", "learn"), "--tilt learn: give a number"),
        (("--alpha", "-1"), "alpha must be > 0"),
        (("--held-out", 1), "--held-out 1.0"),
        (("--jobs", 0), "--jobs 0"),
        (("--plot", "heat.bmp"), "the name must end in .png, .svg, .pdf"),
        (("--out", "no/such/m.json"), "the directory no/such does not exist"),
        (("--likelihood", "gaussian", "--alpha", 1), "--alpha is the base measure"),
    ],
)
def test_usage_is_checked_before_anything_is_read(arguments, complaint, docword):
    assert complaint in run("tune", docword, *arguments, code=2)


def test_progress_can_be_read_by_machines(docword):
    result = CliRunner().invoke(app, ["tune", str(docword), *map(str, GRID), "--log-json"])
    first = json.loads(result.stderr.splitlines()[0])
    assert first["stage"] in ("prefix", "reading", "trying")


def test_the_usual_grid_is_the_papers():
    points = options_grid(ModelOptions(), {}, "counts")
    priors, alphas = paper_grid()["prior"], [like.alpha for like in paper_grid()["likelihood"]]
    assert [(make_prior(point), point.alpha or "learn") for point in points] == [
        (prior, alpha) for prior in priors for alpha in alphas
    ]
    assert all(point.alpha is None for point in options_grid(ModelOptions(), {}, "documents"))


def test_grids_of_options_leave_redundant_points_out():
    values = {
        "prior": ["dp", "nig", "ngg"],
        "concentration": [1.0, 10.0],
        "tilt": [1.0, 100.0],
        "discount": [0.5, 0.25],
        "alpha": [0.1, None, 0.1],
    }
    points = options_grid(ModelOptions(threshold=0.6), values, "counts")
    shown = [(p.prior, p.concentration, p.discount, p.tilt) for p in points if p.alpha is None]
    assert shown == [
        ("dp", 1.0, None, None),
        ("dp", 10.0, None, None),
        ("nig", 1.0, None, 1.0),
        ("nig", 1.0, None, 100.0),  # and so are (10, 1), and all of ngg with discount .5
        ("nig", 10.0, None, 100.0),
        ("ngg", 1.0, 0.25, 1.0),
        ("ngg", 1.0, 0.25, 100.0),
        ("ngg", 10.0, 0.25, 1.0),
        ("ngg", 10.0, 0.25, 100.0),
    ]
    assert len(points) == 2 * len(shown)
    assert all(point.threshold == 0.6 for point in points)
    with pytest.raises(OptionError, match="concentration"):
        options_grid(ModelOptions(), {"concentration": [-1.0]}, "counts")


def test_a_half_life_in_time_is_refused(docword):
    message = run("tune", docword, "--half-life", "5s", "--time-field", "when", code=2)
    assert "5s is a time" in message
