"""Topics of directions: joins against naive code, and what the margin chooses."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from bnpstream import StreamingMixture
from bnpstream.engine.topic_finder import TopicFinder
from bnpstream.inference import margins
from bnpstream.inference.margins import directions_of
from bnpstream.likelihoods import Directional


def drawn(n_groups, n, D, theme, seed, within=0.65, spread=0.12):
    """Return unit rows; every four groups share a theme, so that centres have that cosine."""
    rng = np.random.default_rng(seed)

    def unit(x):
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    themes = unit(rng.normal(size=(n_groups // 4, D)))[np.arange(n_groups) % (n_groups // 4)]
    centres = unit(
        np.sqrt(theme) * themes + np.sqrt(1 - theme) * unit(rng.normal(size=themes.shape))
    )
    shares = (1.0 + np.arange(n_groups)) ** -0.5
    of = rng.choice(n_groups, size=n, p=shares / shares.sum())
    cosine = np.clip(rng.normal(within, spread, n), 0.1, 0.98)[:, None]
    across = rng.normal(size=(n, D))
    across = unit(across - (across * centres[of]).sum(axis=1, keepdims=True) * centres[of])
    return (cosine * centres[of] + np.sqrt(1 - cosine**2) * across).astype(np.float32), of


def naive_joins(masses, means):
    """Return the partitions that Ward's rule passes through, from all clusters to one."""
    groups = [[k] for k in range(masses.size)]
    found = [list(groups)]

    def cost(a, b):
        n, m = masses[a].sum(), masses[b].sum()
        apart = masses[a] @ means[a] / n - masses[b] @ means[b] / m
        return n * m / (n + m) * apart @ apart

    while len(groups) > 1:
        pairs = [(i, j) for i in range(len(groups)) for j in range(i)]
        i, j = min(pairs, key=lambda pair: cost(groups[pair[0]], groups[pair[1]]))
        groups = [g for k, g in enumerate(groups) if k not in (i, j)] + [groups[i] + groups[j]]
        found.append(list(groups))
    return found


def naive_margin(masses, means, groups):
    """Return how much more rows point to their own group than to others."""
    centre = masses @ means / masses.sum()
    directions = []
    for group in groups:
        mean = masses[group] @ means[group] / masses[group].sum() - centre
        directions.append(mean / np.linalg.norm(mean))
    margin = 0.0
    for own, group in enumerate(groups):
        for k in group:
            pointing = [(means[k] - centre) @ direction for direction in directions]
            others = [0.0, *(p for j, p in enumerate(pointing) if j != own)]
            gap = pointing[own] - max(others)
            margin += masses[k] * gap / masses.sum()
    return margin


@pytest.fixture
def clusters():
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(6, 8))
    means = centres[np.arange(40) % 6] + 0.4 * rng.normal(size=(40, 8))
    means *= 0.8 / np.linalg.norm(means, axis=1, keepdims=True)
    return rng.uniform(1.0, 50.0, 40), means


def test_joins_and_margins_are_those_of_naive_code(clusters):
    masses, means = clusters
    centred = means - masses @ means / masses.sum()
    sums = masses[:, None] * centred
    joins, groups = margins._joins(masses, sums @ sums.T), np.arange(masses.size)
    for J, expected in zip(range(masses.size, 0, -1), naive_joins(masses, means), strict=True):
        names, own = np.unique(groups, return_inverse=True)
        found = {frozenset(np.flatnonzero(own == g).tolist()) for g in range(names.size)}
        assert found == {frozenset(group) for group in expected}
        if J > 1:
            totals = np.stack([sums[own == g].sum(axis=0) for g in range(J)])
            margin = margins._margin(totals @ sums.T, (totals**2).sum(axis=1), own, masses, 0.0)
            assert margin / masses.sum() == pytest.approx(naive_margin(masses, means, expected))
            i, j, _ = joins[masses.size - J]
            groups[groups == j] = i


def test_a_row_is_compared_with_its_group_without_it():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(30, 6))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    own = np.sort(np.append(rng.integers(6, size=29), 6))  # the last row is alone
    totals = np.stack([rows[own == j].sum(axis=0) for j in range(7)])
    expected = 0.0
    for i, j in enumerate(own):
        without = totals - np.where(np.arange(7)[:, None] == j, rows[i], 0.0)
        lengths = np.linalg.norm(without, axis=1)
        pointing = (without @ rows[i]) / np.where(lengths > 0.0, lengths, np.inf)
        expected += pointing[j] - max(0.0, *np.delete(pointing, j))
    squares = (totals**2).sum(axis=1)
    margin = margins._margin(totals @ rows.T, squares, own, np.ones(30), 1.0)
    assert margin == pytest.approx(expected)


def test_splinters_of_few_rows_are_no_clear_groups():
    rows, of = drawn(8, 600, 128, 0.0, seed=2, within=0.4)
    rows, of = rows[np.argsort(of)].astype(float), np.sort(of)
    splinters = np.arange(600) // 3
    sums = np.stack([rows[splinters == k].sum(axis=0) for k in range(200)])
    masses, means = np.full(200, 3.0), sums / 3.0
    assert len(directions_of(masses, means, None, 1.0).units) == 200
    found = directions_of(masses, means, None, 1.0, rows)
    assert 6 <= len(found.units) <= 8
    assert adjusted_rand_score(of, found.best(rows)) > 0.85


def test_topics_are_where_the_margin_is_largest(clusters, monkeypatch):
    monkeypatch.setattr(margins, "SWEEPS", 0)
    masses, means = clusters
    best = max(naive_joins(masses, means)[:-1], key=lambda g: naive_margin(masses, means, g))
    found = directions_of(masses, means, None, 1.0)
    assert 1 < len(found.units) == len(best) < 12
    topics = found.best(means)
    for group in best:
        assert np.unique(topics[group]).size == 1
    sizes = np.bincount(topics, masses)
    assert all(a >= b for a, b in pairwise(sizes))


def test_peaks_are_those_of_naive_code(monkeypatch):
    """Four themes of seven groups: the margin falls between groups and themes."""
    rng = np.random.default_rng(8)
    themes = rng.normal(size=(4, 64))[np.arange(84) % 4]
    groups = rng.normal(size=(28, 64))[np.arange(84) % 28]
    means = themes + 1.2 * groups + 0.4 * rng.normal(size=(84, 64))
    means *= 0.8 / np.linalg.norm(means, axis=1, keepdims=True)
    masses = rng.uniform(1.0, 50.0, 84)
    levels = naive_joins(masses, means)
    curve = [naive_margin(masses, means, groups) for groups in levels[:-1]]
    expected, best, low = [], 0.0, 0.0
    for groups, margin in zip(levels, curve, strict=False):
        if margin > best:
            if low > margins.DIP * best:
                expected.pop()
            expected.append(len(groups))
            best = low = margin
        low = min(low, margin)
    sums = masses[:, None] * (means - masses @ means / masses.sum())
    monkeypatch.setattr(margins, "ALL_UP_TO", 84)
    found = margins._peaks(sums @ sums.T, margins._joins(masses, sums @ sums.T), masses, 0.0)
    assert found == expected == [28, 4]


@pytest.mark.parametrize(("n_topics", "factor", "expected"), [(9, 1.0, 9), (None, 0.4, 2)])
def test_another_number_of_topics(clusters, n_topics, factor, expected):
    assert len(directions_of(*clusters, n_topics, factor).units) == expected


def test_light_clusters_have_the_best_topic_of_the_others(clusters, monkeypatch):
    whole = directions_of(*clusters, None, 1.0)
    monkeypatch.setattr(margins, "MOST_MEANS", 25)
    found = directions_of(*clusters, None, 1.0)
    assert len(found.units) == len(whole.units)
    expected = whole.best(clusters[1])
    assert adjusted_rand_score(expected, found.best(clusters[1])) == 1.0


@pytest.mark.parametrize("K", [1, 2])
def test_one_or_two_clusters(K):
    means = np.eye(K, 4)
    found = directions_of(np.arange(K) + 1.0, means, None, 1.0)
    assert len(found.units) == K
    assert np.unique(found.best(means)).size == K


def test_groups_of_one_theme_are_not_joined():
    """Centres of a theme have cosine 0.3; rows are closer to theirs than that."""
    rows, of = drawn(40, 5000, 64, 0.3, seed=0, within=0.8, spread=0.08)
    model = StreamingMixture().fit(rows)
    assert adjusted_rand_score(of, model.predict_topics(rows)) > 0.85
    assert 30 <= model.topics_.size <= 42


def test_splinters_are_joined():
    """A floor that is far too high breaks groups into pieces; topics put them together again."""
    rows, of = drawn(10, 3000, 64, 0.0, seed=1)
    model = StreamingMixture(likelihood=Directional(floor=1.4)).fit(rows)
    assert model.n_clusters_ > 40
    fine = adjusted_rand_score(of, model.predict(rows))
    coarse = adjusted_rand_score(of, model.predict_topics(rows))
    assert model.topics_.size <= 12
    assert coarse > 0.95
    assert coarse > fine


def test_means_of_rows_are_those_of_the_rows():
    rows, _ = drawn(4, 2000, 64, 0.0, seed=5)
    model = StreamingMixture().fit(rows)
    means = model.likelihood_.row_means(model.state_.statistics[np.argsort(model.state_.ids)])
    labels = model.predict(rows)
    for k in np.flatnonzero(np.bincount(labels, minlength=len(means)) > 200):
        np.testing.assert_allclose(means[k], rows[labels == k].mean(axis=0), atol=0.04)


def test_rows_have_the_topic_that_they_point_to():
    rows, _ = drawn(20, 1500, 64, 0.3, seed=2)
    model = StreamingMixture().fit(rows)
    centre, units = model.stream_.topics.found
    expected = [int(np.argmax(units @ (row.astype(float) - centre))) for row in rows]
    np.testing.assert_array_equal(model.predict_topics(rows), model.topics_[expected])


def test_topics_are_saved_and_found_again_for_any_split():
    rows, _ = drawn(20, 1500, 64, 0.3, seed=2)
    found = []
    for sizes in ([1500], [1, 998, 501]):
        model, start = StreamingMixture(), 0
        for size in sizes:
            model.partial_fit(rows[start : start + size])
            start += size
        document, arrays = {}, {}
        model.stream_.finder.save_into(document, arrays)
        found.append(b"".join(array.tobytes() for _, array in sorted(arrays.items())))
    assert found[0] == found[1]
    again = TopicFinder().loaded(document, arrays)
    posterior, batch = model.stream_.posterior, model.stream_.view(rows)
    expected = model.stream_.topics.of_rows(posterior, batch)
    np.testing.assert_array_equal(again.topics.of_rows(posterior, batch), expected)
    for name, wrong in (("centre", np.zeros(3)), ("units", arrays["topics.units"] * np.nan)):
        with pytest.raises(ValueError, match=f"topics.{name}|topics.units"):
            TopicFinder().loaded(document, arrays | {f"topics.{name}": wrong})
