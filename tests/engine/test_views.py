"""How far clusters of vectors are joined: agreement of two views against naive code."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score
from test_margins import drawn

from bnpstream import StreamingMixture
from bnpstream.engine import topic_finder
from bnpstream.engine.row_sample import LEAST_VECTORS, MOST_VECTORS, Memory, row_keys
from bnpstream.engine.topic_finder import TopicFinder
from bnpstream.inference import agreement, margins
from bnpstream.inference.agreement import View, natural_number
from bnpstream.likelihoods import Directional


@pytest.mark.parametrize("n_groups", [1, 2, 9, 40])
def test_agreement_is_the_adjusted_mutual_information(n_groups):
    rng = np.random.default_rng(n_groups)
    a = rng.integers(n_groups, size=300)
    b = np.where(rng.uniform(size=300) < 0.3, rng.integers(n_groups, size=300), a)
    expected = adjusted_mutual_info_score(a, b) if n_groups > 1 else 0.0
    assert agreement.agreement(a, b) == pytest.approx(expected, abs=1e-10)


def naive_labels(rows, sums, members):
    """Return the group that each row points to, its own being taken without it."""
    own = [int(np.argmax([row @ s / np.linalg.norm(s) for s in sums])) for row in rows]
    labels = []
    for row, cluster in zip(rows, own, strict=True):
        pointing = []
        for group in members:
            total = sums[group].sum(axis=0) - (row if cluster in group else 0.0)
            pointing.append(row @ total / np.linalg.norm(total))
        labels.append(int(np.argmax(pointing)))
    return labels


def test_labels_of_a_view_are_those_of_naive_code():
    rng = np.random.default_rng(0)
    sums, rows = rng.normal(size=(6, 8)) * 9.0, rng.normal(size=(50, 8))
    view, own = View(rows, sums), agreement._own(rows, sums)
    view.join(1, 4)
    view.join(0, 1)
    alive, places = np.array([0, 2, 3, 5]), np.array([0, 0, 1, 2, 0, 3])
    found = view.labels(alive, places[own], np.zeros(50, np.bool_))
    assert found.tolist() == naive_labels(rows, sums, [[0, 1, 4], [2], [3], [5]])


def test_a_row_alone_in_its_group_does_not_point_to_it():
    sums = np.array([[3.0, 0.0], [0.2, 2.0]])
    view = View(np.array([[0.1, 1.0]]), sums)
    own = np.array([1])
    assert view.labels(np.arange(2), own, np.array([True])).tolist() == [0]


def groups_in_themes(theme, within):
    """Return rows of 32 groups in 8 themes, and clusters that are the groups."""
    rows, of = drawn(32, 4000, 64, theme, seed=3, within=within, spread=0.05)
    masses = np.bincount(of).astype(float)
    means = np.stack([rows[of == k].mean(axis=0) for k in range(32)]).astype(float)
    return rows.astype(float), masses, means


def test_themes_do_not_swallow_their_groups():
    rows, masses, means = groups_in_themes(0.5, 0.85)
    assert len(margins.directions_of(masses, means, None, 1.0).units) == 8
    found = margins.directions_of(masses, means, None, 1.0, rows[:1000])
    assert 29 <= len(found.units) <= 32
    assert len(margins.directions_of(masses, means, None, 0.5, rows[:1000]).units) <= 16


@pytest.mark.parametrize(("n_groups", "n_columns"), [(3, 64), (5, 64), (40, 256)])
def test_groups_far_apart_are_not_joined(n_groups, n_columns):
    rng = np.random.default_rng(5)
    labels = rng.integers(n_groups, size=50 * n_groups)
    rows = rng.normal(size=(n_groups, n_columns))[labels]
    rows += 0.3 * rng.normal(size=rows.shape)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    model = StreamingMixture().fit(rows)
    assert adjusted_rand_score(labels, model.topic_labels_) == 1.0


def test_clusters_without_groups_are_one_topic():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(600, 64)) / 8.0
    masses, sums = np.full(20, 30.0), rows.reshape(20, 30, 64).sum(axis=1)
    joins = margins._joins(masses, sums @ sums.T)
    assert natural_number(rows, masses, sums, joins, [20, 7, 1]) == 1


def splintered(within):
    """Return rows of 12 groups, from their centre, and clusters that are groups in ten pieces."""
    rows, of = drawn(12, 4000, 64, 0.0, seed=7, within=within)
    pieces = 10 * of + np.argmax(rows @ np.random.default_rng(7).normal(size=(64, 10)), axis=1)
    found, pieces = np.unique(pieces, return_inverse=True)
    rows = rows.astype(float) - rows.mean(axis=0)
    sums = np.stack([rows[pieces == k].sum(axis=0) for k in range(found.size)])
    masses = np.bincount(pieces).astype(float)
    return rows[:2000], masses, sums, margins._joins(masses, sums @ sums.T)


def test_the_finest_peak_that_views_confirm_is_taken():
    held = splintered(0.65)
    n, clear = agreement.CLEAR, agreement._agreements(*held, [60, 12])
    assert [agreed > n for agreed, _ in clear] == [False, True]
    assert natural_number(*held, [60, 12, 3]) == 12
    assert natural_number(*held, [12, 3]) == 12


def test_where_views_confirm_no_peak_they_say_how_far_to_join():
    held = splintered(0.4)
    (agreed, _), *_ = agreement._agreements(*held, [60])
    assert agreed < agreement.CLEAR
    assert natural_number(*held, [60]) == agreement._agreed_number(*held) != 60


@pytest.mark.parametrize(
    ("n", "D", "room"),
    [(20_000, 64, MOST_VECTORS), (20_000, 400, 2**21 // 400), (5000, 1200, LEAST_VECTORS)],
)
def test_kept_rows_depend_on_their_numbers_only(n, D, room):
    rows, _ = drawn(8, n, D, 0.0, seed=4)
    batch = Directional().informed(rows[:500]).encode(rows)
    memory, parts = Memory(), Memory()
    memory.add(batch, np.zeros(n, np.int64))
    for start, stop in ((0, 1), (1, n // 3), (n // 3, n)):
        parts.add(batch.part(start, stop), np.zeros(stop - start, np.int64))
    kept = row_keys(np.arange(n)) >> np.uint64(62) == 0
    assert room // 2 < kept.sum() < room
    for found in (memory.vectors(), parts.vectors()):
        np.testing.assert_array_equal(found, rows[kept].astype(np.float16))


def test_on_the_way_fewer_rows_are_looked_at(monkeypatch):
    rows, _ = drawn(8, 1200, 64, 0.0, seed=5)
    looked, found_directions = [], topic_finder.found_directions

    def spy(posterior, means, n_topics, granularity, vectors):
        looked.append(len(vectors))
        return found_directions(posterior, means, n_topics, granularity, vectors)

    monkeypatch.setattr(topic_finder, "found_directions", spy)
    monkeypatch.setattr(topic_finder, "QUICK_VECTORS", 100)
    model = StreamingMixture()
    for start in range(0, 1200, 100):
        model.partial_fit(rows[start : start + 100])
    assert looked == [100]
    assert model.topics_.size == 8
    assert looked == [100, 1200]


def test_saved_rows_are_checked():
    rows, _ = drawn(8, 1200, 64, 0.0, seed=5)
    model = StreamingMixture().fit(rows)
    document, arrays = {}, {}
    model.stream_.finder.save_into(document, arrays)
    again = TopicFinder().loaded(document, arrays)
    np.testing.assert_array_equal(again.memory.vectors(), rows.astype(np.float16))
    for wrong in (rows, rows[:-1].astype(np.float16), rows[0].astype(np.float16)):
        with pytest.raises(ValueError, match=r"topics\.memory\.vectors is"):
            TopicFinder().loaded(document, arrays | {"topics.memory.vectors": wrong})


def test_groups_within_themes_are_topics_of_a_stream():
    rows, of = drawn(40, 4000, 128, 0.4, seed=0, within=0.8, spread=0.08)
    model = StreamingMixture().fit(rows)
    assert adjusted_rand_score(of, model.predict_topics(rows)) > 0.85
    assert 32 <= model.topics_.size <= 42
