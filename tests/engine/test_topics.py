"""Topics: found without a number, the same for any split into calls, with ids that last."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import gammaln
from sklearn.metrics import adjusted_rand_score

from bnpstream import Directional, DirichletMultinomial, DocumentMixture, StreamingMixture
from bnpstream.engine import row_sample, topic_finder, topic_words
from bnpstream.engine.row_sample import Memory, Words, row_keys
from bnpstream.inference import topics as inference
from bnpstream.inference.topic_tree import joined, resized
from bnpstream.inference.topic_units import Units, adapted, evidence
from bnpstream.inference.topics import (
    QUICK,
    THOROUGH,
    damped,
    few_apart,
    followed,
    grouped,
    grouped_by_odds,
    readable,
    separate_evidence,
    tables_of,
)

V, J = 120, 6


def drawn(n, seed=0, length=10, n_topics=J):
    """Return short documents of some topics over one vocabulary, and their topics."""
    rng = np.random.default_rng(seed)
    base = rng.dirichlet(np.full(V, 2.0))
    words = rng.dirichlet(12.0 * base, size=n_topics)
    labels = rng.integers(n_topics, size=n)
    counts = np.stack([rng.multinomial(length, words[j]) for j in labels])
    return csr_array(counts), labels


@pytest.fixture(scope="module")
def corpus():
    return drawn(1500)


def units_of(rows):
    """Return rows as units over the frequencies of their words."""
    frequencies = np.asarray(rows.sum(axis=0)) + 0.5
    return Units(rows.astype(float), frequencies / frequencies.sum())


def stream_of(rows, splits, make=StreamingMixture, **settings):
    model = make(**settings)
    for a, b in pairwise(np.cumsum([0, *splits]).tolist()):
        model.partial_fit(rows[a:b])
    return model


def bits(model):
    found = model.stream_.topics
    document, arrays = {}, {}
    model.stream_.finder.save_into(document, arrays)
    found.save_into(document, arrays)
    return document, {name: x.tobytes() for name, x in arrays.items()}


# The joint and its parts, against formulas that share nothing with them.


@pytest.mark.parametrize("alpha", [0.01, 0.7, 5.0])
@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_tables_are_expected_tables_of_a_chinese_restaurant(alpha, count):
    expected = sum(alpha / (alpha + seated) for seated in range(count))
    assert damped(np.array([float(count)]), np.array([alpha]))[0] == pytest.approx(expected)


def test_less_than_one_word_is_no_more_than_that():
    assert damped(np.array([0.3]), np.array([0.01]))[0] == 0.3


def naive_joint(units, topics, strength):
    """Return the log joint: a Dirichlet-multinomial of every topic, and the seats of units."""
    dense, total = units.tables.toarray(), -gammaln(1.0 + topics.size)
    for j in np.unique(topics):
        summed = dense[topics == j].sum(axis=0)
        alpha = strength * units.base
        total += gammaln(strength) - gammaln(strength + summed.sum())
        total += (gammaln(alpha + summed) - gammaln(alpha)).sum() + gammaln((topics == j).sum())
    return total


def test_the_joint_of_a_grouping_is_that_of_the_formula(corpus):
    rows, _ = corpus
    units = Units(rows[:300].astype(float), np.full(V, 1.0 / V))
    found = grouped(units)
    assert found.n_topics > 2
    refitted = units._replace(base=found.base)
    assert found.base.sum() == pytest.approx(1.0)
    assert found.log_joint == pytest.approx(naive_joint(refitted, found.topics, found.strength))
    for factor in (0.7, 1.43):  # c1 is at its best, to within a step
        assert naive_joint(refitted, found.topics, factor * found.strength) < found.log_joint


def test_the_base_measure_follows_the_topics(corpus):
    rows, labels = corpus
    units = units_of(rows)
    found = adapted(units, labels, 100.0)
    given = max(naive_joint(units, found.topics, c) for c in 10.0 ** np.linspace(0, 5, 60))
    assert found.log_joint > given + 50.0


def test_rows_apart_have_the_joint_of_the_formula():
    rows, labels = drawn(40)
    base, c = np.full(V, 1.0 / V), 30.0
    found = separate_evidence(rows.astype(float), labels, base, c)
    dense, best = rows.toarray(), -np.inf
    words = 0.0
    for j in np.unique(labels):
        summed = dense[labels == j].sum(axis=0)
        words += gammaln(c) - gammaln(c + summed.sum())
        words += (gammaln(c * base + summed) - gammaln(c * base)).sum()
    sizes = np.bincount(labels)
    for a in 2.0 ** np.arange(-4, 24):
        seats = sizes.size * np.log(a) + gammaln(sizes).sum() + gammaln(a) - gammaln(a + 40)
        best = max(best, seats)
    assert found == pytest.approx(words + best)


def test_drawn_topics_are_found_without_their_number(corpus):
    rows, labels = corpus
    found = grouped(units_of(rows))
    assert J <= found.n_topics <= J + 3
    assert adjusted_rand_score(labels, found.topics) > 0.85
    truth = naive_joint(units_of(rows), labels, found.strength)
    assert found.log_joint > truth - 10.0  # no worse than the topics that rows were drawn from


def test_words_drawn_from_one_topic_stay_one_topic():
    rows, _ = drawn(400, n_topics=1)
    found = grouped(units_of(rows))
    assert found.n_topics == 1


def few_texts(n_topics, n=150, alike=60.0):
    """Return some texts of 7 words, and their topics: words that one text has are left out."""
    rng = np.random.default_rng(0)
    base = 1.0 / np.arange(1, 1001)
    words = rng.dirichlet(alike * base / base.sum() + 1e-9, size=n_topics)
    labels = rng.integers(n_topics, size=n)
    counts = np.stack([rng.multinomial(7, words[j]) for j in labels])
    counts = counts[:, counts.sum(axis=0) > 1].astype(float)
    return Units(csr_array(counts), counts.sum(axis=0) / counts.sum()), labels


def test_few_texts_have_topics_though_the_joint_of_one_is_larger():
    units, labels = few_texts(8)
    found, one = grouped(units), adapted(units, np.zeros(150, np.int64), 1000.0)
    assert found.log_joint < one.log_joint
    assert adjusted_rand_score(labels, found.topics) > 0.5
    assert grouped(few_texts(1)[0]).n_topics == 1


def test_topics_that_hold_together_are_shown_though_evidence_wants_one():
    units, labels = few_texts(8, alike=120.0)
    assert grouped(units).n_topics == 1
    assert adjusted_rand_score(labels, readable(units).topics) > 0.3
    counts = csr_array(units.tables.toarray().astype(np.int64))
    model = StreamingMixture().fit(counts)
    assert adjusted_rand_score(labels, model.topic_labels_) > 0.3


@pytest.mark.parametrize("effort", [QUICK, THOROUGH])
def test_topics_that_are_shown_are_few(effort):
    units, labels = few_texts(60, n=1500)
    found = readable(units, effort)
    assert 16 <= found.n_topics <= 32
    assert adjusted_rand_score(labels, found.topics) > 0.15


def test_words_drawn_at_random_rarely_have_topics():
    """One in ten at most: four of ten sets with a chance of 1 %."""
    n_found, n_survived, share = 0, 0, np.arange(1.0, 401.0) ** -0.8
    for seed in range(10):
        counts = np.random.default_rng((7, seed)).multinomial(8, share / share.sum(), size=600)
        counts = counts[:, counts.sum(axis=0) > 1].astype(float)
        units = Units(csr_array(counts), counts.sum(axis=0) / counts.sum())
        n_survived += inference._surviving(units, THOROUGH) is not None
        n_found += readable(units) is not None
    assert n_found < 4 < n_survived


def test_one_topic_is_no_answer_where_several_are_wanted():
    units, _ = few_texts(1)
    several = grouped(units, several=True)
    assert several.n_topics > 1
    counts = csr_array((units.tables.toarray() * 1.0).astype(np.int64))
    model = StreamingMixture(n_topics=5).fit(counts)
    assert np.unique(model.topic_labels_).size == 5


def naive_evidence(units, found):
    """Return the evidence of topics, unit by unit and word by word."""
    x, z, m, c = units.tables.toarray(), found.topics, found.base, found.strength
    n, n_topics = x.shape[0], found.n_topics
    tables = np.zeros(m.size)
    for j in range(n_topics):
        for w, count in enumerate(x[z == j].sum(axis=0)):
            tables[w] += sum(c * m[w] / (c * m[w] + i) for i in range(int(count)))
    if n_topics == 1:
        tables = x.sum(axis=0)
    value = found.log_joint - sum(t * np.log(t / tables.sum()) for t in tables if t > 0)
    best = -np.inf
    for g in 2.0 ** np.arange(-6.0, 8.0):
        each = sum(gammaln(g + t) - gammaln(g) for t in tables if t > 0)
        all_words = g * np.count_nonzero(tables)
        best = max(best, each + gammaln(all_words) - gammaln(all_words + tables.sum()))
    value += best
    for i in range(n if n_topics > 1 else 0):
        odds = []
        for j in range(n_topics):
            others = (z == j) & (np.arange(n) != i)
            T = x[others].sum(axis=0)
            words = x[i] @ np.log((c * m + T) / (c * m.sum() + T.sum()))
            odds.append(np.exp(words) * (others.sum() + 0.1))
        value -= np.log(odds[z[i]] / sum(odds))
    return value


@pytest.mark.parametrize("labels", [[0, 0, 0, 0, 0], [0, 0, 1, 1, 2], [1, 0, 0, 1, 0]])
def test_the_evidence_of_topics_is_that_of_the_formula(labels):
    counts = np.random.default_rng(3).poisson(1.2, size=(5, 6)).astype(float) + np.eye(5, 6)
    units = Units(csr_array(counts), np.full(6, 1.0 / 6.0))
    found = adapted(units, np.array(labels), 7.0)._replace(strength=7.0)
    assert evidence(units, found) == pytest.approx(naive_evidence(units, found), rel=1e-12)


def test_a_joint_that_cannot_be_reached_is_given_up(corpus):
    rows = corpus[0].astype(float)
    assert grouped(Units(rows, np.full(V, 1.0 / V)), least=0.0) is None


def many_groups(n_groups, seed, n_each=14, length=6, n_words=1200):
    """Return short rows of many groups with eight words of their own each, and the groups."""
    rng = np.random.default_rng((330, seed))
    own = rng.integers(n_words, size=(n_groups, 8))
    labels = rng.permutation(np.repeat(np.arange(n_groups), n_each))
    words = own[labels[:, None], rng.integers(8, size=(labels.size, length))]
    of = np.repeat(np.arange(labels.size), length)
    rows = csr_array((np.ones(words.size), (of, words.ravel())), shape=(labels.size, n_words))
    rows.sum_duplicates()
    return rows, labels


@pytest.mark.parametrize("n_groups", [100, 150, 250])
@pytest.mark.parametrize("effort", [QUICK, THOROUGH])
def test_many_small_groups_are_topics_though_the_joint_rises_with_every_cut(n_groups, effort):
    rows, labels = many_groups(n_groups, seed=n_groups)
    units = units_of(rows)
    least = separate_evidence(rows, labels, units.base, 20.0) - 2000.0
    found = grouped(units, least, effort=effort)
    assert found is not None
    assert adjusted_rand_score(labels, found.topics) > 0.95


def test_groups_of_a_few_rows_are_clusters_and_no_topics():
    for n_each, is_level in ((6, False), (14, True)):
        rows, labels = many_groups(150, seed=3, n_each=n_each)
        units = units_of(rows)
        least = separate_evidence(rows, labels, units.base, 20.0) - 2000.0
        assert (grouped(units, least) is not None) == is_level


def test_slightly_more_topics_than_clusters_are_joined_and_far_more_left_to_clusters():
    rows, labels = many_groups(100, seed=1)
    words = Words(rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data)
    masses, used = np.ones(labels.size), np.arange(rows.shape[1])

    def found(ids):
        units = topic_words.WordUnits(words, masses, used, units_of(rows), 20.0, ids)
        return topic_words.topics_of_rows(units, THOROUGH, False)

    topics = found(np.where(labels < 40, labels // 2, labels)).topics  # 80 clusters
    assert topics.max() + 1 == 80
    for group in range(100):  # no group is torn apart
        shares = np.bincount(topics[labels == group])
        assert shares.max() >= 0.9 * shares.sum()
    assert found(labels // 2) is None


def test_topics_that_want_no_end_of_a_base_measure_are_one(corpus, monkeypatch):
    units = units_of(corpus[0])
    alike = np.arange(corpus[1].size) % 2
    endless = adapted(units, alike, 1.0)._replace(strength=2e9, log_joint=0.0)
    monkeypatch.setattr(inference, "_polished", lambda *_: endless)
    assert grouped(units).n_topics == 1


def test_any_numbers_of_topics_are_cuts_of_one_tree(corpus):
    rows = corpus[0].astype(float)
    units = Units(tables_of(rows, np.full(V, 1.0 / V), 50.0), np.full(V, 1.0 / V))
    found = grouped(units)
    numbers = (1, 2, found.n_topics - 1, found.n_topics, found.n_topics + 1, 10, 20, 40, 80)
    assert list(numbers) == sorted(numbers)
    for coarse, fine in pairwise(resized(units, found, n) for n in numbers):
        pairs = set(zip(fine.topics.tolist(), coarse.topics.tolist(), strict=True))
        assert len(pairs) == fine.n_topics > coarse.n_topics  # every finer one lies in one
    assert [resized(units, found, n).n_topics for n in numbers] == list(numbers)


def test_units_that_are_all_alike_can_still_be_split():
    units = Units(csr_array(np.ones((5, 3))), np.full(3, 1.0 / 3.0))
    found = adapted(units, np.zeros(5, np.int64), 10.0)
    assert np.bincount(resized(units, found, 9).topics).tolist() == [1] * 5


def test_topics_are_joined_while_the_joint_rises(corpus):
    rows, labels = corpus
    units = units_of(rows)
    halves = 2 * labels + np.random.default_rng(3).integers(2, size=labels.size)
    found = adapted(units, halves, 20.0)
    once = joined(units, found)
    assert adjusted_rand_score(labels, once.topics) == 1.0
    assert once.log_joint > found.log_joint
    assert joined(units, once) is once
    i, j = 0, 1  # the gain of one pair is the difference of two joints
    pair = np.where(once.topics == j, i, once.topics)
    assert naive_joint(units, pair, once.strength) < once.log_joint


def test_a_quick_search_finds_the_same_drawn_topics(corpus):
    rows, labels = corpus
    found = grouped(units_of(rows), effort=QUICK)
    assert adjusted_rand_score(labels, found.topics) > 0.95
    assert found.n_topics == J


def test_topics_that_are_followed_take_in_new_rows_and_new_topics():
    rows, labels = drawn(3000, seed=3)
    early = np.flatnonzero(labels < J - 1)[:800]  # of one topic no row has come so far
    before = grouped(units_of(rows[early]), effort=QUICK)
    assert before.n_topics == J - 1
    sums = units_of(rows[early]).sums(before.topics, J - 1) + before.strength * before.base[:, None]
    start = np.argmax(rows @ np.log(sums / sums.sum(axis=0)), axis=1)
    found = followed(units_of(rows), start, before.strength)
    assert found.n_topics == J
    assert adjusted_rand_score(labels, found.topics) > adjusted_rand_score(labels, start) + 0.1
    assert found.log_joint > adapted(units_of(rows), labels, found.strength).log_joint - 30.0


def test_on_the_way_topics_of_rows_go_on_from_those_before(monkeypatch):
    rows, labels = drawn(2100, seed=2)
    calls = []
    monkeypatch.setattr(topic_finder, "FACTOR", 2)
    for search in (grouped, followed):

        def watched(units, *args, search=search, **settings):
            calls.append((search.__name__, units.tables.nnz))
            return search(units, *args, **settings)

        monkeypatch.setattr(topic_words, search.__name__, watched)
    model = stream_of(rows, [2100])
    assert [name for name, _ in calls] == ["grouped", "followed"]  # at 1000 and 2000 rows
    assert calls[1][1] <= topic_finder.WORDS_PER_ROW * 2000 // 2
    assert adjusted_rand_score(labels, model.predict_topics(rows)) > 0.8
    model.finish()
    assert model.topics_.size == J
    assert calls[-1][0] == "grouped"


def test_no_more_topics_than_allowed_are_found(corpus):
    units = units_of(corpus[0])
    assert grouped(units, most=1).n_topics == 1
    found = grouped(units, most=2)  # and four times as many when they are settled again
    assert found.n_topics == J


# Along a stream.


def test_any_split_into_calls_gives_the_same_topics(corpus):
    rows, _ = corpus
    whole = bits(stream_of(rows, [1500]))
    assert bits(stream_of(rows, [3, 997, 1, 499])) == whole
    assert bits(stream_of(rows, [100] * 15)) == whole


def test_topics_go_on_after_saving_as_if_nothing_had_happened(corpus, tmp_path):
    rows, _ = corpus
    whole = stream_of(rows, [1500])
    model = stream_of(rows, [700])
    model.save(tmp_path / "model")
    again = StreamingMixture.load(tmp_path / "model").partial_fit(rows[700:])
    assert bits(again) == bits(whole)
    again.save(tmp_path / "model")
    loaded = StreamingMixture.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.topics_, whole.topics_)
    np.testing.assert_array_equal(loaded.predict_topics(rows), whole.predict_topics(rows))


def test_short_texts_are_grouped_by_rows_and_labelled_well(corpus):
    rows, labels = corpus
    model = StreamingMixture().fit(rows)
    assert model.stream_.topics.units == "rows"
    assert adjusted_rand_score(labels, model.topic_labels_) > 0.8
    assert set(model.topic_labels_) <= set(model.topics_)
    np.testing.assert_array_equal(model.predict_topics(rows), model.topic_labels_)
    assert set(model.cluster_topics_) <= set(model.topics_)
    assert model.cluster_topics_.shape == model.cluster_ids_.shape


def test_long_texts_in_tight_clusters_are_grouped_by_clusters():
    rng = np.random.default_rng(4)
    topics_ = rng.dirichlet(np.full(V, 0.2), size=3)
    stories = np.stack([rng.dirichlet(60 * topics_[k % 3]) for k in range(24)])
    of = rng.integers(24, size=1200)
    rows = csr_array(np.stack([rng.multinomial(120, stories[k]) for k in of]))
    model = StreamingMixture(likelihood=DirichletMultinomial(0.3)).fit(rows)
    assert model.stream_.topics.units == "clusters"
    assert adjusted_rand_score(of % 3, model.predict_topics(rows)) > 0.9


def test_words_that_come_along_have_topics_too(corpus):
    rows, labels = corpus
    texts = [[f"w{w}" for w in np.repeat(row.indices, row.data)] for row in rows]
    whole = stream_of(texts, [1500], DocumentMixture).finish()
    parts = stream_of(texts, [250, 1250], DocumentMixture).finish()
    assert bits(parts) == bits(whole)
    assert adjusted_rand_score(labels, whole.predict_topics(texts)) > 0.8


def test_ids_last_and_what_happens_to_topics_is_in_the_lineage(corpus, monkeypatch):
    rows, _ = drawn(3000, seed=2)
    monkeypatch.setattr(topic_finder, "FACTOR", 2)
    model = stream_of(rows, [1500])
    before = model.predict_topics(rows)
    model.partial_fit(rows[1500:])  # found again at 2000
    after = model.predict_topics(rows)
    assert model.stream_.topics.n_observations == 2000
    assert (before == after).mean() > 0.8
    events = model.topic_lineage_
    assert {event.level for event in model.lineage_} == {"cluster"}
    assert {event.id for event in events if event.kind == "birth"} >= {0}
    born = {e.id for e in events if e.kind == "birth"} | {x for e in events for x in e.others}
    gone = {e.id for e in events if e.kind in ("merge", "death")}
    assert born - gone == set(model.topics_.tolist())


def test_a_number_or_a_granularity_sets_how_many(corpus):
    rows, _ = corpus
    assert StreamingMixture(n_topics=4).fit(rows).topics_.size == 4
    found = StreamingMixture().fit(rows).topics_.size
    assert StreamingMixture(granularity=2.0).fit(rows).topics_.size == 2 * found
    for settings, said in (({"n_topics": 0}, "n_topics"), ({"granularity": 0}, "granularity")):
        with pytest.raises(ValueError, match=said):
            StreamingMixture(**settings).fit(rows)


def test_cells_are_grouped_by_the_odds_of_the_model():
    rng = np.random.default_rng(0)
    centres = np.array([-40.0, 0.0, 40.0])
    of = rng.integers(3, size=600)
    rows = (centres[of] + rng.normal(size=600))[:, None]
    model = StreamingMixture(likelihood="diagonal").fit(rows)
    groups = grouped_by_odds(model.stream_.model, model.state_)
    assert groups.max() + 1 == model.topics_.size <= model.n_clusters_
    assert adjusted_rand_score(of, model.predict_topics(rows)) > 0.9
    assert StreamingMixture(likelihood="diagonal", n_topics=2).fit(rows).topics_.size == 2


def test_few_clusters_that_have_nothing_in_common_are_topics():
    rng = np.random.default_rng(0)
    of = np.arange(1200) % 3
    words = 8 * of[:, None] + rng.integers(8, size=(1200, 5))
    texts = [["the", "report", *(f"w{w}" for w in row)] for row in words]
    model = DocumentMixture().fit(texts)
    assert model.topics_.size == 3
    assert adjusted_rand_score(of, model.topic_labels_) == 1.0


def test_clusters_of_single_rows_are_no_topics():
    units = units_of(csr_array(np.kron(np.eye(40), [[3.0, 2.0, 1.0]])))
    one = adapted(units, np.zeros(40, np.int64), 100.0)
    assert few_apart(units, one, np.ones(40)) is one
    assert few_apart(units, one, np.full(40, 6.0)).n_topics == 36  # these hold 90 % of the rows
    one_large = np.array([100.0, *[2.0] * 39])  # more than five rows each in the mean only
    assert few_apart(units, one, one_large) is one


def test_heavy_clusters_that_are_alike_are_no_topics(corpus):
    rows, _ = corpus
    of = np.arange(rows.shape[0]) % 8  # dealt out, so that each has of everything
    clusters = units_of(csr_array((np.ones(of.size), (of, np.arange(of.size)))) @ rows)
    one = adapted(clusters, np.zeros(8, np.int64), float(clusters.tables.sum()))
    assert few_apart(clusters, one, np.bincount(of).astype(float)) is one


def test_words_that_one_row_has_are_left_out():
    words = Words(np.array([0, 2, 3, 5]), np.array([4, 7, 4, 9, 7]), np.arange(1.0, 6.0))
    common = words.common()
    assert common.indptr.tolist() == [0, 2, 3, 4]
    assert common.columns.tolist() == [4, 7, 4, 7]
    assert common.values.tolist() == [1.0, 2.0, 3.0, 5.0]
    alone = Words(np.array([0, 1, 2]), np.array([3, 5]), np.ones(2))
    assert alone.common() is alone


def test_few_rows_and_empty_documents_have_topics(corpus):
    model = StreamingMixture(likelihood=DirichletMultinomial(0.5)).partial_fit(
        np.eye(3, 5, dtype=int)
    )
    assert model.topics_.size >= 1
    assert model.predict_topics(np.zeros((2, 5), dtype=int)).shape == (2,)
    empty = StreamingMixture(likelihood=DirichletMultinomial(0.5)).fit(np.zeros((4, 5), dtype=int))
    np.testing.assert_array_equal(empty.topic_labels_, np.zeros(4))


def test_a_stream_that_forgets_has_topics_of_its_last_rows():
    """Half of the topics end; of 5 half-lives of rows since then, none of theirs is left."""
    rows, labels = drawn(4000)
    early = np.flatnonzero(labels < 3)[:1000]
    late = np.flatnonzero(labels >= 3)[:1500]
    model = StreamingMixture(half_life=300.0)
    model.partial_fit(rows[early]).partial_fit(rows[late]).finish()
    assert model.stream_.topics.units == "rows"
    assert 2 <= model.stream_.topics.ids.size <= 5
    assert adjusted_rand_score(labels[late], model.predict_topics(rows[late])) > 0.7


# The sample of rows.


def test_hashes_of_rows_are_even():
    keys = row_keys(np.arange(100_000)) >> np.uint64(60)
    counts = np.bincount(keys.astype(np.int64), minlength=16)
    assert abs(counts / 6250 - 1).max() < 0.05
    assert np.unique(row_keys(np.arange(100_000))).size == 100_000


def test_the_sample_is_bounded_and_does_not_depend_on_calls(corpus, monkeypatch):
    monkeypatch.setattr(row_sample, "ENTRIES", 2000)
    rows, _ = corpus
    likelihood = DirichletMultinomial(0.5)
    found = []
    for size in (1500, 77, 1):
        memory = Memory()
        for start in range(0, 1500, size):
            part = likelihood.encode(rows[start : start + size])
            memory.add(part, np.arange(start, min(start + size, 1500)))
        found.append(memory.rows())
    for words, ids in found:
        assert 500 < words.columns.size <= 2000
        np.testing.assert_array_equal(ids, found[0][1])
        np.testing.assert_array_equal(words.columns, found[0][0].columns)
    words, ids = found[0]
    for at in (0, ids.size - 1):
        inside = slice(words.indptr[at], words.indptr[at + 1])
        row = rows[[int(ids[at])]]
        np.testing.assert_array_equal(words.columns[inside], row.indices)
        np.testing.assert_array_equal(words.values[inside], row.data)


def test_of_a_stream_that_forgets_the_last_rows_are_kept(corpus, monkeypatch):
    monkeypatch.setattr(row_sample, "ENTRIES", 500)
    rows, _ = corpus
    ids, sizes = np.arange(rows.shape[0]), np.diff(rows.indptr)
    n_last = np.searchsorted(np.cumsum(sizes[::-1]), 500, "right")
    for step in (1, 17, 1500):
        memory = Memory()
        for start in range(0, 1500, step):
            part = DirichletMultinomial(0.1).encode(rows[start : start + step])
            memory.add(part, ids[start : start + step], forgets=True)
        words, kept = memory.rows()
        assert kept.tolist() == ids[-n_last:].tolist()
        assert words.columns.tolist() == rows[-n_last:].indices.tolist()
    assert memory.rows(last=10.0)[1].tolist() == ids[-10:].tolist()


def test_some_of_the_sample_is_a_sample(corpus):
    rows, likelihood = corpus[0], DirichletMultinomial(0.5)
    memory, parts = Memory(), Memory()
    memory.add(likelihood.encode(rows), np.arange(1500))
    for start in range(0, 1500, 100):
        parts.add(likelihood.encode(rows[start : start + 100]), np.arange(start, start + 100))
    words, ids = memory.rows(3000)
    longest = int(np.diff(rows.indptr).max())
    assert 3000 - longest < words.columns.size <= 3000
    assert abs(np.mean(ids) / 750 - 1) < 0.2  # early and late ones alike
    np.testing.assert_array_equal(ids, parts.rows(3000)[1])
    np.testing.assert_array_equal(words.columns, rows[ids].indices)
    assert memory.rows()[1].size == 1500


def test_in_the_middle_few_words_are_looked_at_and_all_at_the_end(corpus, monkeypatch):
    rows, _ = corpus
    looked = []

    def watched(units, *args, **settings):
        looked.append(units.tables.nnz)
        return grouped(units, *args, **settings)

    monkeypatch.setattr(topic_words, "grouped", watched)
    monkeypatch.setattr(topic_finder, "WORDS_PER_ROW", 2)
    model = StreamingMixture().fit(rows)
    assert max(looked) <= 2 * 1000
    looked.clear()
    assert model.topics_.size > 1
    shared = (rows > 0).sum(axis=0) > 1  # a word that one row has joins nothing
    assert max(looked) == rows[:, shared].nnz


def test_labels_do_not_change_before_topics_are_found_again(corpus):
    rows, _ = corpus
    texts = [[f"w{w}" for w in np.repeat(row.indices, row.data)] for row in rows]
    model = DocumentMixture().partial_fit(texts[:1000])
    before = model.predict_topics(texts)
    model.partial_fit([[*text, "new", "newer"] for text in texts[1000:]])  # m is another
    assert model.stream_.topics.n_observations == 1000
    np.testing.assert_array_equal(model.predict_topics(texts), before)


def test_asked_on_the_way_topics_are_those_of_a_stream_that_ended():
    rows, labels = drawn(3900, seed=4)
    order = np.argsort(labels >= J // 2, kind="stable")  # half of the topics come later
    rows, labels = rows[order], labels[order]
    model = StreamingMixture().partial_fit(rows)
    ended = StreamingMixture().fit(rows)
    assert model.stream_.topics.n_observations == 1000
    np.testing.assert_array_equal(model.predict_topics(rows), ended.predict_topics(rows))
    np.testing.assert_array_equal(model.topics_, ended.topics_)
    assert adjusted_rand_score(labels, model.predict_topics(rows)) > 0.8


def test_who_asked_when_does_not_matter_for_what_is_kept(tmp_path):
    rows, _ = drawn(4500, seed=4)
    splits = [700, 100, 700, 1500, 900, 600]
    silent, asked = stream_of(rows, splits), StreamingMixture()
    for a, b in pairwise(np.cumsum([0, *splits]).tolist()):
        asked.partial_fit(rows[a:b])
        assert asked.topics_.size > 1
        assert set(asked.predict_topics(rows)) <= set(asked.topics_)
    assert bits(asked) == bits(silent)
    assert asked.lineage_ == silent.lineage_
    np.testing.assert_array_equal(asked.finish().topics_, silent.finish().topics_)


def test_topics_are_not_found_for_every_answer(monkeypatch):
    rows, _ = drawn(3900, seed=4)
    looked, search = [], topic_finder.TopicFinder.search

    def watched(finder, posterior, *how):
        looked.append(posterior.state.n_observations)
        return search(finder, posterior, *how)

    monkeypatch.setattr(topic_finder.TopicFinder, "search", watched)
    model = StreamingMixture()
    for start in range(0, 3900, 100):
        model.partial_fit(rows[start : start + 100]).predict_topics(rows[:10])
    assert sorted({n for n in looked if n >= 1000}) == [1000, 1500, 2300, 3500]
    model.finish().predict_topics(rows[:10])
    model.predict_topics(rows[:10])
    assert looked[-2:] == [3500, 3900]
    model.set_params(n_topics=3).partial_fit(rows[:1])
    assert model.topics_.size == 3


def test_groupings_are_numbered_by_size(corpus):
    sizes = np.bincount(grouped(units_of(corpus[0])).topics)
    assert (np.diff(sizes) <= 0).all()
    assert sizes.min() > 0


def test_an_interrupted_search_is_made_up_for(corpus, monkeypatch):
    rows, _ = corpus
    whole = bits(stream_of(rows, [1500]))
    model, search = StreamingMixture(), topic_finder.TopicFinder.search

    def interrupt(finder, posterior, before, effort):
        raise KeyboardInterrupt

    monkeypatch.setattr(topic_finder.TopicFinder, "search", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(rows[:1200])
    monkeypatch.setattr(topic_finder.TopicFinder, "search", search)
    seen = model.stream_.state.n_observations
    assert seen == 1000
    assert bits(model.partial_fit(rows[seen:])) == whole


def test_vectors_are_grouped_by_the_means_of_their_clusters():
    rng = np.random.default_rng(1)
    D, n = 64, 4000
    topics_ = rng.normal(size=(5, D))
    stories = topics_[np.arange(150) % 5] + rng.normal(size=(150, D))
    of = rng.integers(150, size=n)
    rows = stories[of] + 0.2 * rng.normal(size=(n, D))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    fine = Directional(floor=4.0)
    model = StreamingMixture(likelihood=fine).fit(rows)
    assert adjusted_rand_score(of, model.labels_) > 0.8
    assert adjusted_rand_score(of, model.predict_topics(rows)) > 0.8
    assert model.topics_.size < 160
    told = StreamingMixture(likelihood=fine, n_topics=5).fit(rows)
    assert adjusted_rand_score(of % 5, told.predict_topics(rows)) > 0.8
