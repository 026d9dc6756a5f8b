"""What a notebook shows of a model."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone

from bnpstream import DirichletMultinomial, DocumentMixture, StreamingMixture
from bnpstream.datasets import bars
from states import everything

TEXTS = [["<script>alert(1)</script>", "rain", "\"'>&"], ["stocks", "bonds", "stocks"]] * 20


class Reader(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data + " "


@pytest.fixture(scope="module")
def images():
    return StreamingMixture(likelihood=DirichletMultinomial(0.5)).fit(bars(n_images=300).counts)


def test_the_heaviest_clusters_are_shown(images):
    text = " ".join(Reader(images._repr_html_()).text.split())
    assert f"StreamingMixture : {images.n_clusters_} clusters in 300 rows" in text
    evidence = images.total_log_evidence_ / 300
    assert f"({evidence:,.4g} nats per row, one step ahead)" in text
    order = np.argsort(-images.weights_, kind="stable")
    for k in order[:10]:
        assert f"{images.cluster_ids_[k]} {images.weights_[k]:.1%}" in text
    rest = images.weights_[order[10:]].sum()
    assert f"{images.n_clusters_ - 10} smaller clusters hold {rest:.1%}" in text
    top = images.top_features(6, [f"x{i}" for i in range(64)])[order[0]]
    assert re.search(r"\s+".join(name for name, _ in top), text)
    assert "Parameters StreamingMixture(likelihood=DirichletMultinomial" in text


def test_bars_are_as_long_as_shares(images):
    widths = [float(x) for x in re.findall(r"width:([\d.]+)%", images._repr_html_())]
    weights = np.sort(images.weights_)[::-1][:10]
    assert widths == pytest.approx(100 * weights / weights[0], abs=0.06)


def test_words_are_escaped():
    model = DocumentMixture().fit(TEXTS)
    page = Reader(model._repr_html_())
    assert set(page.tags) <= {
        "div", "b", "span", "table", "thead", "tbody", "tr", "th", "td", "bdi", "details",
        "summary", "pre",
    }  # fmt: skip
    assert "<script>alert(1)</script>" in page.text
    assert "\"'>&" in page.text
    for words in model.top_words(3):
        assert " \u2002 ".join(str(word) for word, _ in words) in page.text


def test_a_stream_that_has_just_begun_can_be_shown():
    assert "1 clusters in 1 rows" in DocumentMixture().partial_fit([["a"]])._repr_html_()
    few = StreamingMixture().partial_fit(np.random.default_rng((21, 2)).normal(size=(3, 2)))
    assert "in 3 rows" in few._repr_html_()


def test_columns_show_unusual_means():
    rng = np.random.default_rng((21, 1))
    kind = rng.integers(2, size=200)
    frame = pd.DataFrame({"same": rng.normal(size=200), "<i>": 50.0 * kind + rng.normal(size=200)})
    model = StreamingMixture(likelihood="diagonal").fit(frame)
    page = Reader(model._repr_html_())
    assert "i" not in page.tags
    for _, mean in model.means_:
        assert re.search(rf"<i>\s+{mean:.4g}\s", page.text)


def test_labels_and_families_from_elsewhere_have_no_names():
    frame = pd.DataFrame({"colour": ["red", "blue"] * 50, "x": [0.0, 9.0] * 50})
    assert "clusters in 100 rows" in StreamingMixture().fit(frame)._repr_html_()


def test_the_model_is_not_changed_by_looking(images):
    other = clone(images).fit(bars(n_images=50).counts)
    before = everything(other)
    other.likelihood = DirichletMultinomial(7.0)
    other._repr_html_()
    assert other.likelihood_.alpha == 0.5
    other.likelihood = images.likelihood
    assert everything(other) == before


def test_scikit_learn_shows_what_is_not_fitted(images):
    assert "sk-top-container" in StreamingMixture()._repr_html_()
    assert "sk-top-container" in DocumentMixture()._repr_mimebundle_()["text/html"]
    assert "sk-top-container" not in images._repr_mimebundle_()["text/html"]
    assert images._repr_mimebundle_()["text/plain"] == repr(images)
    with config_context(display="text"):
        assert not hasattr(images, "_repr_html_")
        assert "text/html" not in images._repr_mimebundle_()
