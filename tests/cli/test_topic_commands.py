"""Topics in commands: `fit`, `stream`, `predict`, `evaluate`, `clusters`, `lineage`, `report`."""

import json
import subprocess
import sys

import numpy as np
import pytest

from bnpstream import DocumentMixture
from bnpstream.evaluation import agreement
from bnpstream.runs.options import Pace
from bnpstream.runs.overview import Run
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start
from bnpstream.storage import read_checkpoint
from commands import run, run_json
from serving import serving

THEMES = ("rain wind snow hail storm sun", "bond stock yield bank rate loan", "goal team cup match")
N_ROWS = 1100


@pytest.fixture(scope="module")
def feed(tmp_path_factory):
    """Return texts about three things, as JSON lines and as texts, and what they are about."""
    rng = np.random.default_rng(20)
    labels = rng.integers(3, size=N_ROWS)
    texts = [" ".join(rng.choice(THEMES[k].split(), size=10)) for k in labels]
    path = tmp_path_factory.mktemp("topics") / "feed.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    (path.parent / "labels.txt").write_text("\n".join(map(str, labels)) + "\n")
    return path, texts, labels


@pytest.fixture(scope="module")
def fitted(feed):
    """Return a run with three topics, and what `fit` said."""
    path = feed[0]
    said = run_json("fit", path, "--out", path.parent / "run", "--topics", "3", "--quiet")
    return path.parent / "run", said


def test_fit_tells_the_largest_topics_with_their_words(fitted, feed):
    _, said = fitted
    assert said["topics"] == 3
    assert len(said["largest_topics"]) == 3
    shares = [topic["share"] for topic in said["largest_topics"]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1.0)
    found = {frozenset(topic["words"][:4]) for topic in said["largest_topics"]}
    assert all(any(words <= set(theme.split()) for theme in THEMES) for words in found)
    assert len(found) == 3
    assert sum(topic["clusters"] for topic in said["largest_topics"]) == said["clusters"]
    text = run("fit", feed[0], "--topics", "3")
    assert text.index("topic ") < text.index("learnt: ")
    first = said["largest_topics"][0]
    assert f"topic {first['id']}: {first['share']:.1%}  {' '.join(first['words'])}" in text


def test_a_finished_run_stores_its_topics(fitted):
    folder, _ = fitted
    stream = read_checkpoint(folder).document["stream"]
    assert stream["topics"]["n_observations"] == N_ROWS
    assert not stream["topics_due"]
    assert Run(folder).model.known_topics.ids.size == 3


def test_the_options_are_kept_and_go_alone(fitted, feed, tmp_path):
    assert json.loads((fitted[0] / "config.json").read_text())["model"]["topics"] == 3
    both = run("fit", feed[0], "--topics", "3", "--granularity", "2", code=2)
    assert "give only one" in " ".join(both.split())
    assert "granularity" in run("fit", feed[0], "--granularity", "0", code=2)
    finer = run_json("fit", feed[0], "--granularity", "3", "--out", tmp_path / "run")
    assert finer["topics"] >= 3


def test_predict_answers_with_the_topic_of_the_estimator(fitted, feed):
    folder, _ = fitted
    lines = [json.loads(line) for line in run("predict", folder, feed[0], "--json").splitlines()]
    loaded = DocumentMixture.load(folder)
    assert [line["topic"] for line in lines] == loaded.predict_topics(feed[1]).tolist()
    table = [line.split("\t") for line in run("predict", folder, feed[0]).splitlines()]
    assert table[0][4] == "topic"
    assert [int(line[4]) for line in table[1:]] == [line["topic"] for line in lines]
    coarse = run("predict", folder, feed[0], "--coarse", "2", "--json").splitlines()
    assert [json.loads(line)["topic"] for line in coarse] == [line["topic"] for line in lines]


def test_evaluate_reports_both_levels(fitted, feed):
    folder, _ = fitted
    path, texts, labels = feed
    found = run_json("evaluate", folder, path, "--labels", path.parent / "labels.txt")
    loaded = DocumentMixture.load(folder)
    topics = loaded.predict_topics(texts)
    for name, score in agreement(labels, topics)._asdict().items():
        assert found[f"topic_{name}"] == pytest.approx(score), name
    for name, score in agreement(labels, loaded.predict(texts))._asdict().items():
        assert found[name] == pytest.approx(score), name
    assert (found["n_topics"], found["used_topics"]) == (3, np.unique(topics).size)


def test_clusters_stand_below_their_topics(fitted):
    folder, _ = fitted
    found = run_json("clusters", folder)
    below = {topic["id"]: topic["clusters"] for topic in found["topics"]}
    assert len(below) == 3
    for cluster in found["clusters"]:
        assert cluster["id"] in below[cluster["topic"]]
    assert sum(map(len, below.values())) == len(found["clusters"])
    for topic in found["topics"]:
        own = [cluster for cluster in found["clusters"] if cluster["topic"] == topic["id"]]
        trends = np.array([cluster["trend"] for cluster in own])
        assert topic["trend"] == trends.sum(axis=0).tolist()
        assert topic["label"] == ", ".join(feature["name"] for feature in topic["lifted"][:3])
    text = run("clusters", folder, "--per-topic", "1")
    assert "3 topics" in text
    heaviest, first = found["clusters"][0], found["topics"][0]
    lines = [line.split("│") for line in text.splitlines() if line.startswith("│")]
    ids = [(line[1].strip(), line[2].strip()) for line in lines if line[3].strip()]
    assert ids[0] == (str(first["id"]), "")
    at = ids.index((str(heaviest["topic"]), ""))
    assert ids[at + 1] == ("", str(heaviest["id"]))
    assert len(ids) == 6
    assert f"in topic {heaviest['topic']}" in run("clusters", folder, "--id", heaviest["id"])


def test_the_table_shows_three_clusters_of_each_topic_and_counts_the_rest(tmp_path):
    """Thousands of small clusters would push the topics off the screen."""
    source = tmp_path / "texts.txt"
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in range(200)]
    groups = [words[20 * k : 20 * k + 20] for k in range(10)]
    source.write_text("".join(" ".join(rng.choice(groups[i % 10], 12)) + "\n" for i in range(300)))
    run("fit", source, "--out", tmp_path / "run", "--format", "text", "--topics", "2")
    found = run_json("clusters", tmp_path / "run")
    shown = sum(min(len(topic["clusters"]), 3) for topic in found["topics"])
    rest = len(found["clusters"]) - shown
    assert len(found["topics"]) == 2
    assert rest > 1
    text = run("clusters", tmp_path / "run")
    assert f"{rest:,} smaller clusters of these topics not shown; see --per-topic" in text
    lines = [line.split("│") for line in text.splitlines() if line.startswith("│")]
    assert sum(bool(line[3].strip()) for line in lines) == 2 + shown
    assert "most likely" not in text
    all_of_them = ("--per-topic", len(found["clusters"]))
    assert "not shown" not in run("clusters", tmp_path / "run", *all_of_them)


def test_top_counts_topics(fitted):
    folder, _ = fitted
    everything = run_json("clusters", folder)
    found = run_json("clusters", folder, "--top", "2")
    assert found["topics"] == everything["topics"][:2]
    kept = {topic["id"] for topic in found["topics"]}
    assert found["clusters"] == [one for one in everything["clusters"] if one["topic"] in kept]
    text = run("clusters", folder, "--top", "2")
    assert "3 topics" in text
    assert "1 smaller topic not shown; see --top" in text
    one_each = run_json("clusters", folder, "--per-topic", "1")
    assert [one["id"] for one in one_each["clusters"]] == sorted(
        (topic["clusters"][0] for topic in everything["topics"]),
        key=[one["id"] for one in everything["clusters"]].index,
    )


def test_a_run_that_goes_on_says_since_when_its_topics_hold(feed, tmp_path):
    source = start(tmp_path / "run", RunOptions((str(feed[0]),)))
    with Interrupts() as interrupts:

        def after(status):
            interrupts.requested = status.rows > 1000

        assert not source.run(Pace(batch_rows=50), interrupts, after)
    source.close()
    assert 1000 < source.n_rows < N_ROWS
    said = "Topics as of row 1,000. They are updated at row 4,000 and at the end of the source"
    assert said in " ".join(run("clusters", tmp_path / "run", "--coarse", "2").split())
    run("report", tmp_path / "run")
    assert said in (tmp_path / "run" / "report.html").read_text()
    with serving(tmp_path / "run") as server:
        assert said in server.ask("/")[2].decode()
    text = run("fit", "--out", tmp_path / "run", "--resume")
    assert "Topics as of" not in text + run("clusters", tmp_path / "run")


def test_lineage_shows_the_level(fitted):
    folder, _ = fitted
    events = [json.loads(line) for line in run("lineage", folder, "--json").splitlines()]
    born = [event for event in events if event.get("level") == "topic"]
    assert born[0]["kind"] == "birth"
    assert born[0]["n_observations"] == 1000
    assert f"row 1,000: birth of topic {born[0]['id']} (" in run("lineage", folder)
    for id in {event["id"] for event in born}:
        own = run_json("lineage", folder, "--id", id)["events"]
        assert own
        assert all("level" not in event for event in own)


def answered(source, *options):
    """Return the topics that `stream` answers with."""
    command = [sys.executable, "-m", "bnpstream", "stream", str(source), "--quiet", *options]
    answers = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return [json.loads(line)["topic"] for line in answers.stdout.splitlines()]


def test_stream_answers_with_topics_as_soon_as_there_are_any(feed):
    topics = answered(feed[0], "--topics", "3", "--batch-rows", "100")
    assert len(topics) == N_ROWS
    assert set(topics[:1000]) == {None}
    assert None not in topics[1000:]
    late = agreement(feed[2][1000:], np.array(topics[1000:]))
    assert late.nmi > 0.9
    for size in ("70", "5000"):  # rows count, not batches
        assert answered(feed[0], "--topics", "3", "--batch-rows", size) == topics


def test_answers_about_tables_do_not_depend_on_batches(tmp_path):
    rng = np.random.default_rng(22)
    kind = np.append(rng.integers(3, size=1040), rng.integers(5, size=160))  # two are new
    path = tmp_path / "table.csv"
    rows = [f"{10 * k + rng.normal():.3f},{-5 * k + rng.normal():.3f}" for k in kind]
    path.write_text("\n".join(["a,b", *rows]) + "\n")
    topics = answered(path, "--batch-rows", "170")
    assert set(topics[:1000]) == {None}
    assert topics[1000:] != [None] * 200
    assert answered(path, "--batch-rows", "5000") == topics


def test_frames_of_a_run_add_what_it_stores(fitted):
    folder, _ = fitted
    found = Run(folder)
    clusters, topics = found.clusters_frame(), found.topics_frame()
    described = found.describe()
    assert clusters["id"].tolist() == [cluster.id for cluster in described.clusters]
    assert clusters["topic"].tolist() == [cluster.topic for cluster in described.clusters]
    assert topics["label"].tolist() == [topic.label for topic in described.topics]
    assert topics["born"].tolist() == [topic.born for topic in described.topics]
    kept = [[one.excerpt for one in cluster.exemplars] for cluster in described.clusters]
    assert clusters["exemplars"].tolist() == kept
    last = N_ROWS // 4
    assert all(0.0 < recent < N_ROWS / last for recent in topics["recent"])
    loaded = DocumentMixture.load(folder)
    assert loaded.clusters_frame()["words"].tolist() == clusters["words"].tolist()
    lineage = found.lineage_frame(to="polars")
    assert lineage.filter(lineage["level"] == "topic")["kind"].to_list()[:1] == ["birth"]
    assert lineage["row"].to_list() == [event.n_observations for event in found.events()]


def test_the_report_leads_with_topics(fitted, tmp_path):
    folder, said = fitted
    run("report", folder, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "3 topics, " in page
    assert page.index('id="topics"') < page.index('id="stream"') < page.index('id="clusters"')
    for topic in said["largest_topics"]:
        assert f'id="topic-{topic["id"]}"' in page
        assert topic["label"] in page


def test_tables_have_topics_too(tmp_path):
    rng = np.random.default_rng(21)
    kind = rng.integers(3, size=300)
    rows = [f"{10 * k + rng.normal():.3f},{-5 * k + rng.normal():.3f}" for k in kind]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["a,b", *rows]) + "\n")
    said = run_json("fit", path, "--out", tmp_path / "run", "--topics", "3")
    assert said["topics"] == 3
    lines = [json.loads(x) for x in run("predict", tmp_path / "run", path, "--json").splitlines()]
    assert agreement(kind, np.array([line["topic"] for line in lines])).ari > 0.9
    of_cluster = {line["cluster"]: line["topic"] for line in lines}
    assert all(of_cluster[line["cluster"]] == line["topic"] for line in lines)
    assert all(topic["label"].startswith(("a ", "b ")) for topic in said["largest_topics"])
