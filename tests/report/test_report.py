"""What the page says, and what nobody can make it say."""

import os
import re
import subprocess
import sys
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import pytest
from reading_html import Page

from bnpstream.mixture import Event
from bnpstream.report import render_report, write_report
from bnpstream.report.clusters import most_unusual
from bnpstream.runs.description import (
    ClusterDescription,
    Exemplar,
    Feature,
    RunDescription,
    TopicDescription,
)
from run_examples import bars_run, columns_run, corpus_run, many_clusters_run, small_run

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><xss-probe>",
    "</style><xss-probe>",
    "</title><xss-probe>",
    "\"><xss-probe x='",
    "' onmouseover='alert(1)",
    "&lt;b&gt; &amp;",
    "{{ 7 * 7 }} {% raw %}",
    "--><!--",
    "אבג \u202e txt",
    "🦆 e\u0301",
]


@pytest.fixture(scope="module")
def pixels():
    return bars_run()


def row_ids(page):
    return [
        attributes["id"] for tag, attributes in page.elements
        if tag == "tr" and attributes.get("id", "").startswith("cluster-")
    ]  # fmt: skip


def test_the_summary_has_the_numbers():
    words = Page(render_report(small_run())).words()
    for part in (
        "3 clusters in 400 documents",
        "Documents 400 of 404 records",
        "Log evidence per row -30 nats",
        "Log evidence per word -3 nats",
        "Rejected 4 0.99% of all records",
        "Time 1 min 15 s 5 rows per second",
        "broken JSON 3 a negative count 1",
        "read to the end",
    ):
        assert part in words, part
    assert "unfinished" in Page(render_report(small_run(finished=False))).words()


def test_every_cluster_is_there_with_its_numbers():
    page = Page(render_report(small_run()))
    assert row_ids(page) == ["cluster-7", "cluster-2", "cluster-12"]
    rows = [a for tag, a in page.elements if tag == "tr" and "data-weight" in a]
    assert [float(a["data-weight"]) for a in rows] == [0.5, 0.375, 0.125]
    assert [float(a["data-size"]) for a in rows] == [200.0, 150.0, 50.0]
    assert [int(a["data-born"]) for a in rows] == [1, 50, 301]
    # Shares of the last 100 of 400 rows, over shares of all of them.
    recent = [float(a["data-recent"]) for a in rows]
    assert recent == pytest.approx([0.1 / 0.5, 0.6 / 0.375, 0.3 / 0.125])
    words = page.words()
    for part in ("rain-most", "stocks and the rest", "doc-12", "25.00%", "12\u00d7", "50.00%"):
        assert part in words
    assert page.count("details") == 3 + 1  # and the numbers behind the charts


def test_the_charts_are_text_in_the_colours_of_the_page():
    text = render_report(small_run())
    page = Page(text)
    charts = [a for tag, a in page.elements if tag == "svg" and a.get("role") == "img"]
    assert len(charts) == 4
    assert all(len(chart["aria-label"]) > 20 for chart in charts)
    for part in ("rows seen", "log predictive, nats per row", "rank of the cluster", "born"):
        assert part in page.text
    inside = "".join(re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL))
    assert not re.search(r"#[0-9a-f]{6}\b", inside)
    assert "5 born, 1 merged into another, 1 dropped" in page.words()


def test_half_of_the_clusters_by_their_births():
    births = [Event("birth", id, None, row, 1.0) for id, row in enumerate([1, 5, 9, 40, 70, 300])]
    page = Page(render_report(small_run(bin_clusters=[3, 5, 5, 6], events=births)))
    assert "6 clusters after 400 rows; 3 had been born by row 9." in page.words()
    page = Page(render_report(small_run(events=[])))
    assert "clusters after 400 rows." in page.words()


def test_the_numbers_behind_the_charts():
    text = render_report(small_run())
    assert "Rows seen Clusters Nats per row Born Merged Died Retired" in Page(text).words()
    table = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", text)
    assert [re.sub(r"<[^>]+>", " ", line).split() for line in table] == [
        ["100", "1", "-40", "3", "0", "0", "0"],
        ["200", "2", "-30", "0", "1", "0", "0"],
        ["300", "2", "-26", "1", "0", "1", "0"],
        ["400", "3", "-24", "1", "0", "0", "0"],
    ]


def hostile_run():
    features = [Feature(text, 0.5, 2.0) for text in HOSTILE]
    cluster = ClusterDescription(
        id=1, weight=1.0, size=10.0, born=None, likely=features, lifted=features,
        exemplars=[Exemplar(0, text, 1.0, text) for text in HOSTILE], trend=[10],
    )  # fmt: skip
    return small_run(
        name=" ".join(HOSTILE),
        clusters=[cluster],
        bin_ends=[10], bin_evidence=[-1.0], bin_clusters=[1],
        reject_reasons=[(text, 1) for text in HOSTILE],
        settings={text: {text: text, "deep": {"x": [text]}} for text in HOSTILE},
        versions={text: text for text in HOSTILE},
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["words", "columns"])
def test_every_word_is_escaped(kind):
    page = Page(render_report(replace(hostile_run(), kind=kind)))
    plain = Page(render_report(small_run(kind=kind)))
    assert {tag for tag, _ in page.elements} == {tag for tag, _ in plain.elements}
    assert page.count("script") == page.count("style") == 1
    assert not page.attributes("onmouseover")
    assert "\u202e" not in page.text  # what changes the direction of text is an escape
    for text in HOSTILE:
        assert text.replace("\u202e", r"\u202e") in page.text


def test_half_a_surrogate_pair_does_not_stop_the_page(tmp_path):
    page = write_report(small_run(name="half \ud800"), tmp_path / "page.html")
    assert "half ?" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("make", [small_run, columns_run, bars_run])
def test_nothing_points_outside(make):
    text = render_report(make())
    page = Page(text)
    assert "http" not in text.replace("http-equiv", "")
    for name in ("src", "href", "action", "data", "srcset"):
        for address in page.attributes(name):
            assert address.startswith(("#", "data:image/png;base64,")), address
    assert not re.search(r"url\((?!#)", text)
    assert "@import" not in text
    targets = [address[1:] for address in page.attributes("href")]
    assert set(targets) <= set(page.attributes("id"))


def test_ids_are_unique_and_headings_in_order(pixels):
    for run in (small_run(), pixels):
        page = Page(render_report(run))
        ids = page.attributes("id")
        assert len(ids) == len(set(ids))
        levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(b - a <= 1 for a, b in pairwise(levels))


def test_only_the_pages_own_script_may_run():
    page = Page(render_report(small_run()))
    (policy,) = [a["content"] for tag, a in page.elements if a.get("http-equiv")]
    (script,) = page.raw["script"]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")


def test_the_same_description_gives_the_same_bytes(pixels, tmp_path):
    first = write_report(pixels, tmp_path / "first.html").read_bytes()
    with mpl.rc_context({"font.size": 30, "axes.grid": True, "lines.linewidth": 9}):
        assert write_report(pixels, tmp_path / "second.html").read_bytes() == first


def test_other_processes_give_the_same_bytes():
    code = (
        "import hashlib, run_examples as e; from bnpstream.report import render_report;"
        "print(hashlib.sha256(render_report(e.small_run()).encode()).hexdigest())"
    )
    here = sha256(render_report(small_run()).encode()).hexdigest()
    folder = str(Path(__file__).parents[1])
    for seed in ("1", "2"):
        path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment
        )
        assert done.stdout.strip() == here, done.stderr


def test_thousands_of_clusters_stay_in_bounds():
    run = many_clusters_run(10_000)
    text = render_report(run)
    page = Page(text)
    assert len(text.encode()) < 5_000_000
    assert len(row_ids(page)) == 2000
    assert page.count("details") == 200 + 1
    rest = sum(cluster.weight for cluster in run.clusters[2000:])
    assert f"8,000 smaller clusters, together {rest:.2%} of the stream" in page.words()


def test_texts_without_end_are_cut():
    text = "x" * 100_000
    cluster = small_run().clusters[0]
    long = replace(
        cluster,
        likely=[Feature(text, 0.5, 1.0)] * 1000,
        exemplars=[Exemplar(0, text, 1.0, text)] * 1000,
    )
    page = render_report(
        small_run(clusters=[long], reject_reasons=[(text, 1)], settings={"a": {"b": text}})
    )
    assert len(page) < 150_000


def test_a_topic_shows_a_typical_record_cut_between_words():
    cluster = small_run().clusters[0]
    told = Exemplar(7, "r7", 1.0, "Votes were counted <again>. " * 10)
    short = told._replace(excerpt=told.excerpt[:160])  # as runs keep it: ends in "counted <"
    topic = TopicDescription(
        3, 0.5, 5.0, 1000, "vote, count, poll", [], [], [short], [], [cluster.id]
    )
    words = Page(render_report(small_run(topics=[topic]))).words()
    assert "counted <again>. Votes were counted…" in words
    named = replace(topic, label=short.excerpt)  # vectors are called after their records
    assert Page(render_report(small_run(topics=[named]))).count("q") == 0


def test_rare_reasons_go_together():
    reasons = [(f"reason {i}", i + 1) for i in range(30)]
    words = Page(render_report(small_run(reject_reasons=reasons))).words()
    assert "Rejected records reason 29 30 reason 28 29" in words
    assert "reason 10 11 other reasons 55 Settings" in words


def test_images_are_shown_for_pixels(pixels):
    page = Page(render_report(pixels))
    images = page.attributes("src")
    assert len(images) >= 3 * pixels.n_clusters
    assert all("alt" in a for tag, a in page.elements if tag == "img")
    assert "Cluster means" in page.words()


def test_columns_say_how_unusual_they_are():
    cluster = replace(
        small_run().clusters[0],
        lifted=[Feature("height", 180.5, 2.25), Feature("width", -3.0, -1.5)],
        likely=[Feature("height", 180.5, 2.25), Feature("depth", 7.0, 0.5)],
    )
    page = Page(render_report(small_run(kind="columns", clusters=[cluster], tokens=None)))
    words = page.words()
    assert re.search(r"height ?180\.5 ?\+2\.2 sd.*width ?-3 ?-1\.5 sd.*depth ?7 ?\+0\.5 sd", words)
    bars = [a["style"] for tag, a in page.elements if tag == "i" and "--s" in a.get("style", "")]
    assert bars == ["--s:50.0%;--w:50.0%", "--s:16.65%;--w:33.35%", "--s:50.0%;--w:11.1%"]
    assert "Log evidence per word" not in words


def test_a_run_without_rows_has_a_page():
    run = RunDescription(
        name="new", kind="words", finished=False, rows=0, records=0, rejects=0, tokens=0,
        seconds=0.0, log_evidence=0.0, n_clusters=0, clusters=[], bin_ends=[], bin_evidence=[],
        bin_clusters=[], events=[],
    )  # fmt: skip
    words = Page(render_report(run)).words()
    assert "No clusters so far" in words
    assert "No records were rejected" in words


def test_a_page_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    page.write_text("the old one")

    def full(file):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            write_report(small_run(), page)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert page.read_text() == "the old one"
    assert write_report(small_run(), str(page)) == page
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_without_the_extra_a_message_says_what_to_install(missing):
    hide = (
        "import importlib.util as u; find = u.find_spec;"
        f"u.find_spec = lambda name, *a: None if name == {missing!r} else find(name, *a);"
        "import bnpstream.report"
    )
    done = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True)
    assert done.returncode != 0
    assert missing in done.stderr
    assert "pip install 'bnpstream[report]'" in done.stderr


def test_a_corpus(kos, tmp_path):
    run = corpus_run(kos)
    path = write_report(run, tmp_path / "kos.html")
    page = Page(path.read_text(encoding="utf-8"))
    assert len(row_ids(page)) == run.n_clusters
    assert path.stat().st_size < 1_500_000
    for cluster in run.clusters[:10]:
        assert cluster.likely[0].name in page.text


def test_unusual_columns_come_in_the_order_of_the_description():
    other, price = Feature("colour = other", 0.02, 9.0), Feature("price", 4000.0, 1.5)
    cluster = replace(small_run().clusters[0], lifted=[price], likely=[other, price])
    assert most_unusual(cluster) == [price, other]
