"""Runs of embeddings whose records have texts: these say what topics and clusters are."""

import json

import numpy as np
import pytest

from bnpstream.runs.overview import Run, guess_image_shape
from commands import run, run_json

THEMES = ("weather", "markets", "football")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Return a run of three groups of vectors with titles, of 64 numbers, a square."""
    folder, rng = tmp_path_factory.mktemp("titled"), np.random.default_rng(5)
    centres = rng.normal(size=(3, 64))
    with (folder / "rows.jsonl").open("w") as file:
        for i in range(300):
            vector = centres[i % 3] + 0.3 * rng.normal(size=64)
            vector /= np.linalg.norm(vector)
            record = {"id": i, "text": f"story {i} of {THEMES[i % 3]}", "vector": vector.tolist()}
            file.write(json.dumps(record) + "\n")
    rows, out = folder / "rows.jsonl", folder / "run"
    said = run_json("fit", rows, "--vector-field", "vector", "--out", out, "--quiet")
    return out, said


def test_topics_are_named_by_typical_records(fitted):
    out, said = fitted
    named = [topic["label"].split()[-1] for topic in said["largest_topics"]]
    assert sorted(named) == sorted(THEMES)
    described = Run(out).describe()
    for topic in described.topics:
        theme = topic.label.split()[-1]
        assert all(typical.excerpt.endswith(theme) for typical in topic.exemplars)
        assert topic.lifted == []


def test_the_table_of_clusters_shows_typical_records(fitted):
    table = run("clusters", fitted[0])
    assert "typical records" in table
    assert all(theme in table for theme in THEMES)
    assert "means" not in table


def test_embeddings_are_no_images(fitted, tmp_path):
    out, _ = fitted
    assert guess_image_shape(Run(out)) is None
    run("report", out, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Images" not in page
    topics = page[page.index('id="topics"') : page.index('id="clusters"')]
    assert all(theme in topics for theme in THEMES)
    assert "Typical record" in page
    assert '<th scope="col" class="about">Columns' not in page
    assert "Distinctive words" not in page[page.index('id="cluster-table"') :]


def test_the_live_page_and_its_api_name_clusters_by_typical_records(fitted):
    pytest.importorskip("starlette", reason="starlette is missing: pip install 'bnpstream[serve]'")
    from serving import serving

    with serving(fitted[0]) as served:
        for kind in ("clusters", "topics"):
            for one in served.json(f"/{kind}")[kind]:
                assert one["label"] == one["exemplars"][0]["excerpt"]
        first = served.json("/clusters")["clusters"][0]
        page = served.ask(f"/cluster-{first['id']}")[2].decode()
        assert f"<bdi>{first['label']}</bdi></h1>" in page
        assert "Typical record</th>" in page
        assert "Distinctive words" not in page
        topic = served.ask(f"/topic-{first['topic']}")[2].decode()
        assert f"<bdi>{first['label']}</bdi></a>" in topic  # in the legend of the river
