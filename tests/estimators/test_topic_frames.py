"""Clusters, topics and their history as data frames, and what topics look like."""

from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from bnpstream import DirichletMultinomial, DocumentMixture, StreamingMixture, dirichlet_process
from bnpstream.engine.parallel.changes import Added
from bnpstream.engine.portraits import TopicPortraits, births
from bnpstream.engine.topic_words import TopicWords
from bnpstream.engine.topics import Topics
from bnpstream.inference.merge import join_into
from bnpstream.likelihoods import frames
from bnpstream.mixture import Event
from bnpstream.plots.events import count_events
from bnpstream.runs.journal import Journal

THEMES = ("rain wind snow hail storm sun", "bond stock yield bank rate loan", "goal team cup match")


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng((20, 1))
    return [" ".join(rng.choice(THEMES[k].split(), size=8)) for k in rng.integers(3, size=150)]


@pytest.fixture(scope="module")
def documents(texts):
    """Return a model whose topics are groups of clusters: with a budget, no rows are kept."""
    prior = dirichlet_process(2.0)
    options = {"spread": 20, "total": 4.0, "n_topics": 3, "max_memory": "1GB"}
    model = DocumentMixture(prior, **options).fit(texts)
    assert model.stream_.topics.units == "clusters"
    return model


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng((20, 2))
    kind = rng.integers(3, size=120)
    rows = np.column_stack([10.0 * kind, -5.0 * kind]) + rng.normal(size=(120, 2))
    frame = pd.DataFrame(rows, columns=["width", "height"])
    return StreamingMixture(likelihood="diagonal", n_topics=2).fit(frame)


@pytest.mark.parametrize("name", ["documents", "table"])
def test_a_line_for_every_cluster(name, request):
    model = request.getfixturevalue(name)
    frame = model.clusters_frame().set_index("id")
    assert frame["share"].is_monotonic_decreasing
    frame = frame.loc[model.cluster_ids_]
    np.testing.assert_array_equal(frame["share"], model.weights_)
    np.testing.assert_allclose(frame["size"], model.weights_ * model.state_.masses.sum())
    np.testing.assert_array_equal(frame["topic"], model.cluster_topics_)
    born = {
        e.id: e.n_observations for e in model.lineage_ if (e.kind, e.level) == ("birth", "cluster")
    }
    assert frame["born"].to_dict() == {id: born[id] for id in model.cluster_ids_.tolist()}


def test_words_and_labels_of_clusters(documents, table):
    frame = documents.clusters_frame(n_words=5).set_index("id").loc[documents.cluster_ids_]
    assert frame["words"].tolist() == [[w for w, _ in top] for top in documents.top_words(5)]
    assert frame["label"].tolist() == [", ".join(words[:3]) for words in frame["words"]]
    frame = table.clusters_frame().set_index("id").loc[table.cluster_ids_]
    for label, mean in zip(frame["label"], table.means_, strict=True):
        parts = {f"width {mean[0]:.3g}", f"height {mean[1]:.3g}"}
        assert set(label.split(", ")) == parts


@pytest.mark.parametrize("name", ["documents", "table"])
def test_a_line_for_every_topic(name, request):
    model = request.getfixturevalue(name)
    frame, clusters = model.topics_frame(), model.clusters_frame().set_index("id")
    assert frame["share"].is_monotonic_decreasing
    assert sorted(frame["id"]) == model.topics_.tolist()
    assert frame["share"].sum() == pytest.approx(1.0)
    assert sorted(id for ids in frame["clusters"] for id in ids) == model.cluster_ids_.tolist()
    for topic, own, size in zip(frame["id"], frame["clusters"], frame["size"], strict=True):
        assert (clusters.loc[own, "topic"] == topic).all()
        assert size == pytest.approx(clusters.loc[own, "size"].sum())
    assert (frame["born"] == model.n_samples_seen_).all()  # a short stream: found at its end


def test_words_of_topics_are_of_one_theme(documents):
    frame = documents.topics_frame(n_words=4)
    themes = [set(theme.split()) for theme in THEMES]
    found = [[set(words) <= theme for theme in themes].index(True) for words in frame["words"]]
    assert sorted(found) == [0, 1, 2]


def test_probabilities_of_words_in_a_topic(documents):
    stream = documents.stream_
    posterior, portraits = stream.posterior, TopicPortraits(stream.topics, stream.posterior)
    likelihood, V = stream.likelihood, len(documents.vocabulary_)
    statistics = posterior.statistics(posterior.order)  # unknown words, words, length
    alpha, total = likelihood.base_measure(V + 1)
    for j in range(3):
        summed = statistics[portraits.groups == j].sum(axis=0)
        expected = (alpha[1:] + summed[1 : V + 1]) / (total + summed[-1])
        np.testing.assert_allclose(portraits.mean(j), expected, rtol=1e-12)


def test_means_of_a_topic_are_those_of_its_clusters_merged(table):
    stream = table.stream_
    portraits = TopicPortraits(stream.topics, stream.posterior)
    for j, topic in enumerate(stream.topics.ids):
        own = table.cluster_ids_[table.cluster_topics_ == topic]
        state = stream.state.copy()
        for id in own[1:]:
            join_into(state, [], int(own[0]), int(id))
        slot = np.flatnonzero(state.ids == own[0])
        merged = stream.likelihood.posterior_mean(state.rows(slot))[0]
        np.testing.assert_allclose(portraits.mean(j), merged, rtol=1e-9)
    assert max(np.bincount(portraits.groups)) > 1


def test_topics_of_rows_have_the_shares_and_words_of_their_rows(documents):
    posterior, words = documents.stream_.posterior, documents.vocabulary_.words
    places = {word: 1 + column for column, word in enumerate(words)}  # unknown words come first
    tables = np.zeros((2, len(words) + 1))
    for word in THEMES[0].split():
        tables[0, places[word]] = 30.0
    for word in THEMES[1].split():
        tables[1, places[word]] = 90.0
    base = np.full(tables.shape[1], 1.0 / tables.shape[1])
    found = TopicWords(csr_array(tables), np.array([20.0, 60.0]), 50.0, base)
    portraits = TopicPortraits(Topics(np.array([4, 9]), found, "rows", 150, 10), posterior)
    np.testing.assert_allclose(portraits.weights, [0.25, 0.75])
    np.testing.assert_allclose(portraits.sizes, [37.5, 112.5])
    for telling, theme in zip(portraits.telling(6), THEMES[:2], strict=True):
        assert {words[v] for v in telling.words} == set(theme.split())


def test_a_topic_without_clusters_is_listed(documents):
    posterior, found = documents.stream_.posterior, documents.stream_.topics
    words = found.found
    tables = csr_array(np.vstack([words.tables.toarray(), np.zeros(words.tables.shape[1])]))
    more = TopicWords(tables, np.append(words.masses, 0.0), words.strength, words.base)
    portraits = TopicPortraits(Topics(np.arange(4), more, "clusters", 150, 4), posterior)
    assert portraits.weights[3] == 0.0
    assert [len(one.words) > 0 for one in portraits.telling(3)] == [True, True, True, False]


def test_the_history_of_both_levels(documents):
    frame = documents.lineage_frame()
    events = documents.stream_.lineage
    assert frame["kind"].tolist() == [event.kind for event in events]
    assert frame["row"].tolist() == [event.n_observations for event in events]
    assert (frame["level"] == "topic").sum() == 3
    ended = DocumentMixture(spread=20, total=4.0).fit(["rain wind", "bond stock"] * 9)
    assert (ended.lineage_frame()["level"] == "topic").any()  # nobody had asked for topics before


@pytest.mark.parametrize("method", ["clusters_frame", "topics_frame", "lineage_frame"])
def test_frames_of_other_libraries_hold_the_same(documents, method):
    plain = getattr(documents, method)()
    polars = getattr(documents, method)(to="polars")
    arrow = getattr(documents, method)(to="arrow")
    assert type(polars).__module__.startswith("polars")
    assert type(arrow).__module__.startswith("pyarrow")
    for name in plain.columns:
        expected = [None if x is None or x != x else x for x in plain[name].tolist()]
        assert polars[name].to_list() == expected
        assert arrow[name].to_pylist() == expected


def test_names_of_columns_come_through(texts):
    counts = DirichletMultinomial(0.5)
    pipeline = make_pipeline(CountVectorizer(), StreamingMixture("dp", counts)).fit(texts)
    names = pipeline[:-1].get_feature_names_out()
    model = pipeline[-1]
    for method in (model.clusters_frame, model.topics_frame):
        named, plain = method(feature_names=names), method()
        assert set().union(*named["words"]) <= set(names)
        columns = [[names[int(column)] for column in words] for words in plain["words"]]
        assert named["words"].tolist() == columns
    with pytest.raises(ValueError, match=f"3 names for {len(names)} columns"):
        model.clusters_frame(feature_names=names[:3])


def test_what_frames_refuse(documents, monkeypatch):
    with pytest.raises(ValueError, match='"pandas", "polars", "arrow", got \'excel\''):
        documents.clusters_frame(to="excel")
    with pytest.raises(ValueError, match="these are texts"):
        documents.topics_frame(feature_names=["a"])
    with pytest.raises(ValueError, match="n_words"):
        documents.topics_frame(n_words=0)

    def lacking(name):
        if name == "polars":
            raise ModuleNotFoundError(name)
        return import_module(name)

    monkeypatch.setattr(frames, "import_module", lacking)
    with pytest.raises(ModuleNotFoundError, match="pip install polars"):
        documents.lineage_frame(to="polars")
    assert len(documents.lineage_frame()) > 0


LOG = [
    Event("birth", 0, None, 1, 1.0),
    Event("birth", 1, None, 2, 1.0),
    Event("birth", 0, None, 1000, 600.0, (), "topic"),
    Event("split", 0, 0, 4000, 2000.0, (1,), "topic"),
    Event("merge", 1, 0, 5000, 300.0, (), "topic"),
]


def test_topics_born_by_splits():
    assert births(LOG) == {0: 1, 1: 2}
    assert births(LOG, "topic") == {0: 1000, 1: 4000}


def test_what_becomes_of_topics_does_not_happen_to_clusters():
    counts = count_events([2000, 6000], LOG)
    assert counts["birth"].tolist() == [2, 0]
    assert counts["merge"].tolist() == counts["split"].tolist() == [0, 0]
    journal = Journal()
    journal.trend.add(np.array([0, 1, 1]), np.zeros(3), np.full(3, 2))
    journal.follow(LOG)
    assert journal.trend.counts(1) == [0, 1, 1]


def test_births_of_topics_are_no_births_of_a_part(documents):
    state = documents.stream_.state
    part = Added.between(state, state.copy(), LOG, None)
    assert part.born.size == 2


THEMES = (
    "rain wind storm snow frost hail",
    "bank rate stock bond loan fund",
    "goal team coach cup",
)


@pytest.mark.parametrize("seed", [1, 4, 6, 8, 15, 20, 22, 26, 33, 39])
def test_every_topic_of_few_texts_has_some_of_them(seed):
    rng = np.random.default_rng((340, seed))
    texts = [" ".join(rng.choice(THEMES[i % 3].split(), 6)) for i in range(30)]
    frame = DocumentMixture().fit(texts).topics_frame()
    assert (frame["size"] > 0.0).all()
    assert frame["label"].str.len().min() > 0
