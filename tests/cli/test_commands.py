"""The commands as a person uses them, in one process."""

import gzip
import json
import os
import shlex

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bnpstream import DirichletMultinomial, StreamingMixture, normalized_inverse_gaussian
from bnpstream.cli import app
from bnpstream.datasets import bars
from bnpstream.storage import RunError, RunWriter, read_checkpoint
from commands import run, run_json

TOPICS = {"weather": "rain wind snow hail storm sun", "money": "bond stock yield bank rate loan"}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Return a file of JSON lines about two topics, with two bad lines."""
    rng = np.random.default_rng(2)
    path = tmp_path_factory.mktemp("texts") / "feed.jsonl"
    lines, labels = [], []
    for i in range(400):
        topic = ("weather", "money")[rng.integers(2)]
        words = rng.choice(TOPICS[topic].split(), size=8)
        lines.append(json.dumps({"id": f"d{i}", "text": " ".join(words), "about": topic}))
        labels.append(topic)
    lines.insert(7, '{"id": "broken')
    lines.insert(9, '{"id": "empty"}')
    labels.insert(7, "weather")
    labels.insert(9, "weather")
    path.write_text("\n".join(lines) + "\n")
    (path.parent / "labels.txt").write_text(
        "\n".join(str(int(label == "money")) for label in labels) + "\n"
    )
    return path


@pytest.fixture(scope="module")
def fitted(texts):
    """Return a run over the texts."""
    out = texts.parent / "run"
    run("fit", texts, "--out", out, "--prior", "nig", "--quiet")
    return out


def test_fit_counts_rejects_and_goes_on(fitted):
    rejects = [json.loads(line) for line in (fitted / "rejects.jsonl").read_text().splitlines()]
    assert [(reject["line"], reject["record"]) for reject in rejects] == [(8, 7), (10, 9)]
    assert "JSON" in rejects[0]["reason"]
    assert rejects[0]["beginning"] == '{"id": "broken'
    assert "text" in rejects[1]["reason"]


def test_fit_says_what_it_came_to(texts, tmp_path):
    found = run_json("fit", texts, "--out", tmp_path / "run", "--prior", "nig")
    assert found["finished"]
    assert (found["rows"], found["records"], found["rejects"]) == (400, 402, 2)
    assert found["tokens"] == 3200
    assert found["log_evidence"] == pytest.approx(400 * found["log_evidence_per_row"])
    text = run("fit", texts, "--out", tmp_path / "again", "--prior", "nig")
    assert "2 rejected" not in text  # each for a reason of its own
    assert "1 rejected" in text
    assert "bnpstream report" in text


def test_config_keeps_settings_versions_and_source(fitted, texts):
    config = json.loads((fitted / "config.json").read_text())
    assert config["format"] == 3
    assert config["model"]["prior"] == "nig"
    assert config["source"]["paths"] == [str(texts.resolve())]
    assert config["schema"]["format"] == "jsonl"
    assert {"bnpstream", "python", "numpy", "numba"} <= config["versions"].keys()
    assert "seed" in config


def test_evaluate_agrees_with_labels(fitted, texts):
    found = run_json("evaluate", fitted, texts, "--labels", texts.parent / "labels.txt")
    assert found["documents"] == 400
    assert found["rejects"] == 2
    assert found["per_token"] == pytest.approx(found["log_likelihood"] / 3200)
    # Eight words of six equally likely ones, in order: about six guesses a word.
    assert 5.5 < found["perplexity"] < 7.5
    assert found["nmi"] > 0.9
    assert found["v_measure"] == pytest.approx(found["nmi"])
    assert "perplexity" in run("evaluate", fitted, texts)


def test_evaluate_needs_a_label_for_every_record(fitted, texts, tmp_path):
    for n in (2, 401, 403):
        (tmp_path / "labels.txt").write_text("1\n" * n)
        message = run("evaluate", fitted, texts, "--labels", tmp_path / "labels.txt", code=1)
        assert f"got {n} labels for 402 records" in message


def test_predict_gives_positions_and_stable_ids(fitted, texts):
    lines = [json.loads(line) for line in run("predict", fitted, texts, "--json").splitlines()]
    assert [line["record"] for line in lines[:9]] == [0, 1, 2, 3, 4, 5, 6, 8, 10]
    assert lines[7]["id"] == "d7"
    for line in lines:
        shares = [line["probability"], *(one["probability"] for one in line["alternatives"])]
        assert sum(shares) == pytest.approx(1.0, abs=1e-6)
        assert shares == sorted(shares, reverse=True)
        assert 0 <= line["novelty"] <= 1
    table = run("predict", fitted, texts).splitlines()
    assert table[0].split("\t")[:3] == ["record", "id", "cluster"]
    assert len(table) == 401


def test_labels_may_be_in_the_records(fitted, texts, tmp_path):
    by_file = run_json("evaluate", fitted, texts, "--labels", texts.parent / "labels.txt")
    assert run_json("evaluate", fitted, texts, "--label-field", "about") == by_file | {
        "schema": by_file["schema"] | {"fields": {"text": "text", "label": "about"}}
    }
    message = run("evaluate", fitted, texts, "--label-field", "abut", code=1)
    assert "no valid records" in message
    assert "line 1: the id 'abut' is not a string or a whole number" in message
    both = ("--label-field", "about", "--labels", texts.parent / "labels.txt")
    assert "give one of them" in run("evaluate", fitted, texts, *both, code=2)
    plain = tmp_path / "plain.txt"
    plain.write_text("rain wind\nbond stock\n")
    given = ("--format", "text", "--label-field", "about")
    message = run("evaluate", fitted, plain, *given, code=1)
    assert "records of the format text have no fields" in message


def test_labels_may_be_a_column_of_a_table(tmp_path):
    rng = np.random.default_rng(0)
    kinds, table = rng.integers(2, size=200), tmp_path / "table.csv"
    cells = 9.0 * kinds[:, None] + rng.normal(size=(200, 2))
    lines = [f"{x},{y},{'ab'[k]}" for (x, y), k in zip(cells, kinds, strict=True)]
    table.write_text("\n".join(["x,y,kind", *lines]) + "\n")
    run("fit", table, "--columns", "x,y", "--out", tmp_path / "run", "--quiet")
    asked = ("evaluate", tmp_path / "run", table, "--label-field", "kind")
    assert run_json(*asked)["topic_ari"] == 1.0
    assert "rows " in run(*asked)
    assert "document" not in run(*asked)
    run("fit", table, "--out", tmp_path / "all", "--quiet")
    told = CliRunner().invoke(app, ["evaluate", str(tmp_path / "all"), *map(str, asked[2:])])
    assert "warning: the run clusters by the column 'kind' too" in told.stderr
    told = CliRunner().invoke(app, list(map(str, asked)))
    assert "warning" not in told.stderr


def test_errors_of_the_system_name_the_file_and_no_number(fitted, texts, tmp_path):
    message = run("evaluate", fitted, texts, "--labels", tmp_path / "none.txt", code=1)
    assert message.endswith(f"error: {tmp_path}/none.txt: no such file or directory\n")


def test_embeddings_are_shown_by_typical_records_and_not_by_numbers(tmp_path):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 24))
    vectors = centres[rng.integers(4, size=400)] + 0.3 * rng.normal(size=(400, 24))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    np.save(tmp_path / "vectors.npy", vectors.astype(np.float32))
    text = run("fit", tmp_path / "vectors.npy", "--out", tmp_path / "run")
    found = run_json("clusters", tmp_path / "run")
    first = found["topics"][0]
    assert f"topic {first['id']}: {first['weight']:.1%}  1 cluster\n" in text
    typical = [one["id"] for one in found["clusters"][0]["exemplars"]]
    assert ", ".join(map(str, typical)) in run("clusters", tmp_path / "run")


def test_clusters_are_described_by_their_words(fitted):
    found = run_json("clusters", fitted)["clusters"]
    tops = [{feature["name"] for feature in cluster["likely"][:6]} for cluster in found[:2]]
    assert {frozenset(top) for top in tops} == {
        frozenset(words.split()) for words in TOPICS.values()
    }
    assert sum(cluster["weight"] for cluster in found) == pytest.approx(1.0)
    one = run_json("clusters", fitted, "--id", found[0]["id"])
    assert one == found[0]
    assert len(one["exemplars"]) == 3
    assert set(one["exemplars"][0]["excerpt"].split()) <= tops[0]
    assert sum(one["trend"]) == pytest.approx(one["size"], abs=20)
    assert "weight" in run("clusters", fitted, "--top", "1")
    assert "record" in run("clusters", fitted, "--id", found[0]["id"])
    for never in ("999", "-1"):
        assert "no cluster ever had this id" in run("clusters", fitted, "--id", never, code=1)


def test_clusters_are_merged_to_look_at(texts, tmp_path):
    fitted = tmp_path / "run"
    run_json("fit", texts, "--out", fitted, "--new-cluster-threshold", "0.01")
    fine = run_json("clusters", fitted)["clusters"]
    coarse = run_json("clusters", fitted, "--coarse", "2")["clusters"]
    assert len(fine) > 2 == len(coarse)
    assert sum(cluster["n_merged"] for cluster in coarse) == len(fine)
    for name in ("weight", "size"):
        both = [sum(cluster[name] for cluster in found) for found in (fine, coarse)]
        assert both[0] == pytest.approx(both[1])
    bins = [np.sum([cluster["trend"] for cluster in found], axis=0) for found in (fine, coarse)]
    assert np.array_equal(*bins)
    assert all(len(cluster["exemplars"]) == 3 for cluster in coarse)
    ids = {cluster["id"] for cluster in coarse}
    lines = run("predict", fitted, texts, "--coarse", "2", "--json").splitlines()
    assert {json.loads(line)["cluster"] for line in lines} == ids
    gone = min({cluster["id"] for cluster in fine} - ids)
    assert "it is now part of" in run("clusters", fitted, "--coarse", "2", "--id", gone, code=1)
    assert run_json("evaluate", fitted, texts, "--coarse", "2")["n_clusters"] == 2
    assert run_json("clusters", fitted)["clusters"] == fine


def test_lineage_tells_births(fitted):
    events = [json.loads(line) for line in run("lineage", fitted, "--json").splitlines()]
    assert events[0]["kind"] == "birth"
    assert events[0]["id"] == 0
    one = run_json("lineage", fitted, "--id", "0")
    assert one["events"][0] == events[0]
    assert "birth of 0" in run("lineage", fitted)


def test_the_model_of_a_run_can_be_loaded(tmp_path):
    images = bars(n_images=150, seed=0).counts
    path = tmp_path / "bars.ldac"
    path.write_text(
        "".join(
            f"{row.nnz} " + " ".join(f"{j}:{c}" for j, c in zip(row.indices, row.data)) + "\n"  # noqa: B905
            for row in (images[i : i + 1] for i in range(150))
        )
    )
    options = ("--n-features", "64", "--alpha", "0.5", "--prior", "nig", "--concentration", "10")
    run("fit", path, "--out", tmp_path / "run", *options, "--tilt", "100", "--batch-rows", "64")
    loaded = StreamingMixture.load(tmp_path / "run")
    model = StreamingMixture(normalized_inverse_gaussian(10, 100), DirichletMultinomial(0.5))
    model.partial_fit(images).finish()
    assert model.topics_.tolist() == loaded.topics_.tolist()  # and it is filed when they were found
    np.testing.assert_array_equal(loaded.state_.masses, model.state_.masses)
    assert loaded.total_log_evidence_ == model.total_log_evidence_
    assert loaded.lineage_ == model.lineage_
    assert "report" in run("report", tmp_path / "run")  # 64 columns are taken for 8 x 8 pixels
    assert "data:image/png" in (tmp_path / "run" / "report.html").read_text()


def test_a_loaded_run_knows_its_columns(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal([0, 100], size=(60, 2)), columns=["cpu", "latency"])
    frame.to_csv(tmp_path / "metrics.csv", index=False)
    summary = run_json("fit", tmp_path / "metrics.csv", "--out", tmp_path / "run")
    assert summary["columns"] == {"cpu": "number", "latency": "number"}
    model = StreamingMixture.load(tmp_path / "run")
    assert model.predict(frame).shape == (60,)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["latency", "cpu"]])
    assert {name for name, _ in model.top_features(2)[0]} == {"cpu", "latency"}


def test_rows_that_the_model_refuses_are_put_aside(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{a:.3f},{b:.3f}" for a, b in rng.normal(size=(40, 2))]
    train, other = tmp_path / "train.csv", tmp_path / "other.csv"
    train.write_text("\n".join(["a,b", *lines]) + "\n")
    other.write_text("\n".join(["a,b", *lines[:5], "NA,1.0", *lines[5:9]]) + "\n")
    run("fit", train, "--out", tmp_path / "run", "--likelihood", "gaussian", "--quiet")
    found = run_json("evaluate", tmp_path / "run", other)
    assert (found["documents"], found["rejects"]) == (9, 1)
    predicted = run("predict", tmp_path / "run", other, "--json").splitlines()
    assert [json.loads(line)["record"] for line in predicted] == [0, 1, 2, 3, 4, 6, 7, 8, 9]


def test_runs_of_empty_documents_can_be_read(tmp_path):
    (tmp_path / "empty.txt").write_text("...\n" * 5)
    run("fit", tmp_path / "empty.txt", "--format", "text", "--out", tmp_path / "run", "--quiet")
    assert len(run_json("clusters", tmp_path / "run")) >= 1


def test_numbers_beyond_all_bounds_are_rejected_while_the_prefix_fills(tmp_path):
    lines = ["size,colour", *(f"{i / 7:.3f},red" for i in range(30)), "1e200,blue"]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    found = run_json("fit", tmp_path / "table.csv", "--out", tmp_path / "run")
    assert (found["rows"], found["rejects"]) == (30, 1)


def test_texts_are_told_apart_when_words_are_hashed(texts, tmp_path):
    """No alpha is given: with a fixed one a column, 2^18 columns would drown all words."""
    found = run_json(
        *("fit", texts, "--out", tmp_path / "run", "--hash-bits", "18", "--merge-threshold", "0")
    )
    labels = texts.parent / "labels.txt"
    agreed = run_json("evaluate", tmp_path / "run", texts, "--labels", labels)
    assert agreed["nmi"] > 0.9
    assert found["clusters"] < 20
    assert found["learnt"].keys() == {"concentration", "alpha_total"}


def test_a_run_that_is_being_written_says_so(tmp_path):
    begun = RunWriter.create(tmp_path / "run", {"source": {}, "schema": {}, "model": {}})
    message = f"process {os.getpid()} is writing to the run: wait"
    with begun, pytest.raises(RunError, match=message):
        read_checkpoint(tmp_path / "run")
    with pytest.raises(RunError, match="stopped before the first one: continue with --resume"):
        read_checkpoint(tmp_path / "run")


def test_what_is_not_kept_is_said(texts):
    assert "the run was not saved: give --out" in run("fit", texts)


def test_strict_stops_at_the_first_bad_record(texts, tmp_path):
    message = run("fit", texts, "--out", tmp_path / "run", "--strict", code=1)
    assert "line 8" in message
    assert '{"id": "broken' in message
    assert "--max-rejects" in message


def test_the_budget_of_rejects_counts_over_resumes(texts, tmp_path):
    options = ("fit", texts, "--out", tmp_path / "run", "--batch-rows", "8")
    message = run(*options, "--max-rejects", "1", code=1)
    assert "line 10" in message
    state = run_json(*options, "--max-rejects", "2", "--resume")
    assert (state["rows"], state["rejects"]) == (400, 2)


def test_other_settings_cannot_be_resumed_with(fitted, texts):
    message = run("fit", texts, "--out", fitted, "--resume", "--prior", "dp", code=1)
    assert "--prior dp: this run was started with nig" in message
    changed = ("--new-cluster-threshold", "0.2")
    message = run("fit", texts, "--out", fitted, "--resume", *changed, code=1)
    assert "--new-cluster-threshold 0.2: this run was started without it" in message
    message = run("fit", texts.parent / "labels.txt", "--out", fitted, "--resume", code=1)
    assert "give the same source, or another --out" in message
    message = run("fit", texts, "--out", fitted, code=1)
    assert "already holds a run: give --resume" in message


def test_a_finished_run_that_is_resumed_stays_as_it_is(fitted):
    before = (fitted / "state.safetensors").read_bytes()
    assert run_json("fit", "--out", fitted, "--resume")["rows"] == 400
    assert (fitted / "state.safetensors").read_bytes() == before


def test_a_file_that_has_grown_is_read_on(tmp_path):
    path, out = tmp_path / "feed.txt", tmp_path / "run"
    path.write_text("rain wind\n" * 150)
    assert run_json("fit", path, "--out", out, "--format", "text")["rows"] == 150
    with path.open("a") as file:
        file.write("bond stock\n" * 50)
    assert run_json("fit", "--out", out, "--resume")["rows"] == 200


def test_tables_are_clustered_by_their_columns(tmp_path):
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=300)
    lines = ["id,size,colour"]
    lines += [
        f"r{i},{10 * k + rng.normal():.3f},{'red' if k else 'blue'}" for i, k in enumerate(kind)
    ]
    lines[5] = "r4,not a number,red"
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    found = run_json("fit", path, "--out", tmp_path / "run", "--prefix-rows", "100")
    assert (found["rows"], found["rejects"]) == (299, 1)
    clusters = run_json("clusters", tmp_path / "run")["clusters"]
    names = {feature["name"] for feature in clusters[0]["likely"]}
    assert {"size", "colour = blue", "colour = red"} <= names
    run("report", tmp_path / "run", "--out", tmp_path / "page.html")
    assert "colour = blue" in (tmp_path / "page.html").read_text()


def test_many_passes_and_a_zipped_source(tmp_path):
    images = bars(n_images=60, seed=1).counts.tocoo()
    entries = "".join(
        f"{i + 1} {j + 1} {c}\n"
        for i, j, c in zip(images.row, images.col, images.data, strict=True)
    )
    path = tmp_path / "docword.txt.gz"
    with gzip.open(path, "wt") as file:
        file.write(f"60\n64\n{images.nnz}\n{entries}")
    options = ("--alpha", "0.5", "--passes", "5", "--prior", "nig", "--tilt", "100")
    found = run_json("fit", path, "--out", tmp_path / "run", *options)
    model = StreamingMixture.load(tmp_path / "run")
    assert found["rows"] == 60
    assert 1 <= len(model.epochs_) <= 4
    images = bars(n_images=60, seed=1).counts
    prior = normalized_inverse_gaussian(1.0, 100)
    at_once = StreamingMixture(prior, DirichletMultinomial(0.5), n_passes=5).fit(images)
    np.testing.assert_array_equal(model.state_.masses, at_once.state_.masses)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--prior", "nope"), "unknown prior 'nope'"),
        (("--prior", "dp", "--tilt", "3"), "--tilt: the prior dp has no tilt"),
        (("--alpha", "0.1"), "--alpha needs a fixed vocabulary"),
        (("--likelihood", "poisson"), "--likelihood needs a fixed vocabulary"),
        (("--hash-bits", "8", "--passes", "3", "--revisit", "9"), "give only one"),
        (("--format", "nope"), "unknown format 'nope'"),
        (("--new-cluster-threshold", "2"), "new_cluster_threshold"),
    ],
)
def test_settings_that_do_not_fit_are_named(texts, tmp_path, options, message):
    code = 1 if "--format" in options else 2
    assert message in run("fit", texts, "--out", tmp_path / "run", *options, code=code)
    assert not (tmp_path / "run").exists()


def test_a_source_that_is_not_there_is_named(tmp_path):
    assert "no such file" in run("fit", tmp_path / "nowhere.csv", code=1)
    assert "no source" in run("fit", code=1)


def test_unknown_options_are_a_matter_of_usage(texts):
    assert CliRunner().invoke(app, ["fit", str(texts), "--nope"]).exit_code == 2


def test_bench_times_reading_and_learning():
    found = run_json("bench", "--rows", "300")
    assert found["rows"] == 300
    assert found["pass_seconds"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--prefix-rows", "0"), "--prefix-rows"),
        (("--hash-bits", "8", "--revisit", "-1"), "--revisit"),
        (("--batch-rows", "0"), "--batch-rows"),
        (("--checkpoint-seconds", "-1"), "--checkpoint-seconds"),
        (("--strict", "--max-rejects", "3"), "give one"),
    ],
)
def test_values_that_cannot_be_are_a_matter_of_usage(texts, tmp_path, options, message):
    assert message in run("fit", texts, "--out", tmp_path / "run", *options, code=2)
    assert not (tmp_path / "run").exists()


def test_there_is_nothing_to_resume_without_a_run(texts):
    assert "--resume needs --out" in run("fit", texts, "--resume", code=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--engine", "fast"), "engine must be"),
        (("--new-cluster-threshold", "nan"), "new_cluster_threshold"),
        (("--hash-bits", "8", "--likelihood", "nope"), "likelihood must be"),
        (("--hash-bits", "8", "--merge-threshold", "nan"), "merge_threshold must be"),
        (("--hash-bits", "8", "--revisits", "2"), "give both"),
        (("--hash-bits", "8", "--passes", "3", "--revisits", "2"), "give both"),
    ],
)
def test_wrong_settings_are_named_before_a_record_is_read(texts, tmp_path, options, message):
    found = run("fit", texts, "--out", tmp_path / "run", *options, code=2)
    assert message in found
    assert "records" not in found
    assert not (tmp_path / "run").exists()


def test_any_name_of_a_run_can_be_copied_from_what_is_printed(tmp_path):
    feed, out = tmp_path / "feed.txt", tmp_path / "ünï côde; dir" / ("long" * 30)
    feed.write_text("rain wind\n" * 9)
    text = run("fit", feed, "--out", out, "--format", "text", "--engine", "reference")
    assert shlex.split(text.splitlines()[-1]) == ["bnpstream", "report", str(out)]


def test_a_file_is_no_place_for_a_run(texts):
    message = run("fit", texts, "--out", texts, code=1)
    assert "there is a file where a directory is needed: give another --out" in message
