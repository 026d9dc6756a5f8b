"""How unusual rows are, as `stream` and `predict` say it: ranks among the last rows before."""

import json

import numpy as np
from typer.testing import CliRunner

from bnpstream import river
from bnpstream.cli import app
from bnpstream.engine.arrivals import MOST
from bnpstream.kernels.statistics.table import DENSE_UP_TO
from bnpstream.kernels.vectors.families import SCALES
from bnpstream.runs.mixture import Mixture
from bnpstream.sources.formats.schemas import MOST_VECTOR_COLUMNS

PRIOR = "dp"


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def drawn(n, seed=0):
    rng = np.random.default_rng((417, seed))
    centres = unit(np.random.default_rng(417).normal(size=(6, 32)))
    return unit(centres[rng.integers(6, size=n)] + 0.1 * rng.normal(size=(n, 32)))


def answered(rows, sizes):
    """Return what is said of rows that do not wait, in calls of these sizes; the last is one."""
    model, found, start = Mixture.made(prior=PRIOR, likelihood="auto"), [], 0
    for size in [*sizes, 1]:
        model.absorb(rows[start : start + size])
        quantiles = model.quantiles_of_arrivals()
        if quantiles is not None:
            found.append(quantiles)
        start += size
    return np.concatenate(found), model


def test_every_row_is_ranked_among_the_last_before_it():
    rows = drawn(1401)
    found, _ = answered(rows, [1400])
    parts, _ = answered(rows, [90, 30, 480, 1, 799])
    np.testing.assert_array_equal(parts, found)
    whole = Mixture.made(prior=PRIOR, likelihood="auto")
    whole.absorb(rows)
    log_evidence = whole.absorbed.rows.log_evidence
    for i in (0, 1, 700, 1024, 1025, 1400):
        before = log_evidence[max(0, i - MOST) : i]
        assert found[i] == sum(before > log_evidence[i]) / (len(before) + 1)


def test_documents_have_no_such_rank():
    model = Mixture.made(prior=PRIOR)
    model.absorb([["rain", "wind"], ["stock", "bond"]] * 80)
    assert not model.provisional
    assert model.quantiles_of_arrivals() is None
    assert model.novelty_quantiles(np.zeros(1)) is None


def test_predict_says_how_unusual_a_vector_is(tmp_path):
    runner, rng = CliRunner(), np.random.default_rng((417, 9))
    strange = unit(rng.normal(size=(5, 32)))
    np.save(tmp_path / "rows.npy", drawn(700))
    np.save(tmp_path / "more.npy", np.vstack([drawn(40, 1), strange]))
    run = ["fit", str(tmp_path / "rows.npy"), "--out", str(tmp_path / "run"), "--quiet"]
    assert runner.invoke(app, run).exit_code == 0
    ask = ["predict", str(tmp_path / "run"), str(tmp_path / "more.npy")]
    lines = [json.loads(x) for x in runner.invoke(app, [*ask, "--json"]).stdout.splitlines()]
    quantiles = np.array([line["novelty_quantile"] for line in lines])
    assert (quantiles[40:] > 0.99).all()
    assert np.median(quantiles[:40]) < 0.9
    table = [line.split("\t") for line in runner.invoke(app, ask).stdout.splitlines()]
    assert table[0][-1] == "novelty_quantile"
    assert [line[-1] for line in table[1:]] == [f"{x:.4f}" for x in quantiles]


def test_river_ranks_records_too():
    model = river.StreamingMixture(prefix_rows=40)
    one, other = {"a": 0.0, "b": 1.0}, {"a": 40.0, "b": -30.0}
    assert model.novelty_quantile_one(one) == 0.0
    rng = np.random.default_rng(418)
    for a, b in rng.normal(size=(150, 2)):
        model.learn_one({"a": a, "b": 1.0 + b})
    assert model.novelty_quantile_one(other) == 150 / 151
    assert model.novelty_quantile_one(one) < 0.5


def test_embeddings_may_be_long(tmp_path):
    rows = unit(np.random.default_rng((417, 3)).normal(size=(12, 3072))).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    with (tmp_path / "rows.jsonl").open("w") as file:
        for row in rows.tolist():
            file.write(json.dumps({"vector": row}) + "\n")
    for name, more in (("rows.npy", []), ("rows.jsonl", ["--vector-field", "vector"])):
        out = tmp_path / f"run-{name}"
        run = ["fit", str(tmp_path / name), "--out", str(out), "--quiet", *more]
        found = CliRunner().invoke(app, run)
        assert found.exit_code == 0, found.output


def test_sources_take_what_families_take():
    assert MOST_VECTOR_COLUMNS == DENSE_UP_TO - SCALES
