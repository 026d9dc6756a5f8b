"""Merging by the model's own odds: the odds, the bookkeeping, the lineage, and the bars."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from revisit_cases import (
    PRIORS,
    WORDS,
    assert_sites_add_up,
    bits,
    dense,
    documents,
    first_pass,
    sweep,
)
from scipy.sparse import csr_array

import naive
from bnpstream import DirichletMultinomial, PitmanYor, StreamingMixture, normalized_inverse_gaussian
from bnpstream.datasets import bars, bars_components
from bnpstream.inference import exact, merge
from bnpstream.inference.response import Settings
from bnpstream.kernels.arrays import GONE
from bnpstream.likelihoods import OpenVocabulary, Vocabulary
from bnpstream.mixture import Event, MixtureState, Model, SiteBuffer, survivor

priors = pytest.mark.parametrize("kind", PRIORS)
ALPHA = 0.3


def posterior(model, counts, responsibilities):
    """Return batch, posterior and sites of rows with given responsibilities, shape (n, K)."""
    batch = model.likelihood.encode(counts)
    state = MixtureState(batch.n_statistics)
    sites = SiteBuffer()
    for _ in range(responsibilities.shape[1]):
        state.open()
    for i, q in enumerate(responsibilities):
        state.add(q, batch.row(i))
        state.count_row(0.0)
        sites.append(np.flatnonzero(q), q[q > 0])
    return batch, state, sites


def model_of(kind):
    return Model(PRIORS[kind][0], DirichletMultinomial(ALPHA))


def hard(labels):
    return np.eye(max(labels) + 1)[list(labels)]


def all_pairs(state):
    """Return every pair of hard clusters: nothing is shared, so nothing is corrected."""
    slots = np.array(list(combinations(range(state.n_clusters), 2))).T
    return merge.Pairs(slots, np.zeros(slots.shape[1]), state.log_vacancy[slots].sum(axis=0))


def log_marginal(counts):
    """Return log p of rows in one cluster, their log h(x) left out."""
    words = {w: int(c) for w, c in enumerate(np.atleast_2d(counts).sum(axis=0)) if c}
    return naive.log_predictive({}, 0.0, words, [ALPHA] * WORDS, ALPHA * WORDS)


def log_moment(oracle, m, u):
    """Return log kappa_m(u) of an NGGP."""
    _, a, sigma, tau, *_ = oracle
    return (
        math.log(a)
        + math.lgamma(m - sigma)
        - math.lgamma(1 - sigma)
        + (sigma - m) * math.log(u + tau)
    )


# --- the odds -------------------------------------------------------------------------------------


@priors
def test_odds_of_hard_clusters_are_a_ratio_of_joint_probabilities_given_u(kind):
    model, oracle = model_of(kind), PRIORS[kind][1]
    counts, labels = documents(60, rows=12), [0, 1, 0, 2, 2, 2, 1, 3, 0, 0, 2, 4]
    _, state, _ = posterior(model, counts, hard(labels))
    pairs = all_pairs(state)
    found = merge.log_odds(model, state, pairs)
    sizes = naive.sizes(labels)
    for p, (i, j) in enumerate(pairs.slots.T):
        of = [counts[np.isin(labels, members)] for members in ([i, j], [i], [j])]
        expected = log_marginal(of[0]) - log_marginal(of[1]) - log_marginal(of[2])
        if oracle.kind == "py":
            joint = [size for k, size in enumerate(sizes) if k not in (i, j)]
            joint.append(sizes[i] + sizes[j])
            expected += naive.log_eppf(oracle, joint) - naive.log_eppf(oracle, sizes)
        else:
            u = math.exp(naive.mode(oracle, sum(sizes), len(sizes)))
            expected += log_moment(oracle, sizes[i] + sizes[j], u)
            expected -= log_moment(oracle, sizes[i], u) + log_moment(oracle, sizes[j], u)
        assert found[p] == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("kind", ["dp", "py"])
def test_odds_of_hard_clusters_are_those_of_the_exact_posterior(kind):
    """Where no U stands between: the ratio of two entries of the enumeration."""
    model = model_of(kind)
    counts = documents(61, rows=6)
    labels = (0, 1, 0, 2, 1, 2)
    batch, state, _ = posterior(model, counts, hard(labels))
    enumerated = exact.run(model, batch)
    log_probability = dict(
        zip(enumerated.partitions, enumerated.log_probabilities.tolist(), strict=True)
    )
    found = merge.log_odds(model, state, all_pairs(state))
    joined = [(0, 0, 0, 1, 0, 1), (0, 1, 0, 0, 1, 0), (0, 1, 0, 1, 1, 1)]
    for odds, partition in zip(found, joined, strict=True):
        assert odds == pytest.approx(log_probability[partition] - log_probability[labels], abs=1e-9)


@priors
def test_only_pairs_that_cannot_merge_are_ruled_out(kind):
    """Above a threshold odds are those of a look at all pairs, to the last bit."""
    model = model_of(kind)
    rng = np.random.default_rng((66, 0))
    counts, q = documents(66, rows=40), rng.dirichlet(np.full(12, 0.1), size=40)
    _, state, _ = posterior(model, counts, q)
    pairs = all_pairs(state)
    every = merge.log_odds(model, state, pairs)
    nearly = model.likelihood.nearly_odds(state.sparse_rows(np.arange(12)), pairs.slots)
    for p, (i, j) in enumerate(pairs.slots.T):
        alone = model.likelihood.log_marginal(state.rows(np.array([i, j]))).sum()
        both = model.likelihood.log_marginal(state.rows(np.array([i, j])).sum(axis=0)[None])[0]
        assert nearly[p] == pytest.approx(both - alone, abs=1e-3)
    for threshold in np.quantile(every, [0.1, 0.5, 0.9]):
        found = merge.log_odds(model, state, pairs, threshold)
        assert np.array_equal(found[every > threshold], every[every > threshold])
        assert (found[every <= threshold] <= threshold).all()
        assert np.isneginf(found).any()


@priors
def test_odds_of_soft_clusters_give_up_the_entropy_of_shared_rows(kind):
    model = model_of(kind)
    rng = np.random.default_rng((62, 0))
    counts, q = documents(62, rows=10), rng.dirichlet(np.ones(3), size=10)
    _, state, sites = posterior(model, counts, q)
    pairs = merge.shared_pairs(state, sites)
    without = pairs._replace(entropy=np.zeros(3))
    np.testing.assert_allclose(
        merge.log_odds(model, state, pairs),
        merge.log_odds(model, state, without) - pairs.entropy,
        atol=1e-10,
    )
    assert (pairs.entropy > 0.5).all()


@pytest.mark.parametrize("theta", [-0.39, -0.2, 0.0, 1.0])
def test_odds_are_finite_for_every_legal_pitman_yor(theta):
    """E[K'] of soft clusters may be below two: theta + sigma (E[K'] - 1) must not turn negative."""
    model = Model(PitmanYor(theta, 0.4), DirichletMultinomial(ALPHA))
    counts = documents(63, rows=4)
    for share in (0.02, 0.3, 0.5, 0.9):
        q = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1 - share, share]])
        _, state, sites = posterior(model, counts, q)
        assert np.isfinite(merge.log_odds(model, state, merge.shared_pairs(state, sites))).all()


def test_odds_are_the_same_in_blocks(monkeypatch):
    model = model_of("nig")
    batch, state, sites = first_pass(model, documents(64), Settings(0.5, 0.0), "reference")
    pairs = merge.shared_pairs(state, sites)
    expected = merge.log_odds(model, state, pairs)
    assert expected.size > 5
    monkeypatch.setattr(merge, "SCORED_CELLS", 2 * batch.n_statistics)
    np.testing.assert_array_equal(merge.log_odds(model, state, pairs), expected)


# --- what is shared -------------------------------------------------------------------------------


def random_responsibilities(number, rows=25, clusters=6):
    """Return responsibilities of one, two, three and more clusters a row."""
    rng = np.random.default_rng((65, number))
    q = np.zeros((rows, clusters))
    for i in range(rows):
        chosen = rng.choice(clusters, size=1 + i % 5, replace=False)
        q[i, chosen] = rng.dirichlet(np.ones(chosen.size))
    q[:, -1] = 0.0
    empty = q.sum(axis=1) == 0
    q[empty, 0] = 1.0
    return q / q.sum(axis=1, keepdims=True)


def log_vacancy(q):
    return math.log1p(-min(q, naive.LARGEST_BELOW_ONE))


@pytest.mark.parametrize("held", [1, merge.PAIRS_HELD])
@pytest.mark.parametrize(("number", "rows"), [(0, 25), (0, 3), (1, 25), (2, 25), (3, 25)])
def test_shared_pairs_are_those_of_a_double_loop_over_dense_rows(number, rows, held, monkeypatch):
    monkeypatch.setattr(merge, "PAIRS_HELD", held)
    model, counts = model_of("nig"), documents(number, rows=25)[:rows]
    q = random_responsibilities(number)
    assert (np.count_nonzero(q, axis=1) >= 3).sum() > 5
    q = q[:rows]
    _, state, sites = posterior(model, counts, q)
    if number == 3:  # the second cluster has died since: its entries are gone
        moved = state.drop(1)
        sites.relabel(1, moved)
        q = q[:, [0, 5, 2, 3, 4]]
    pairs = merge.shared_pairs(state, sites)
    expected = {}
    for i, j in combinations(range(q.shape[1]), 2):
        shared = [(row[i], row[j]) for row in q if row[i] > 0 and row[j] > 0]
        if not shared:
            continue
        entropy = -sum(
            one * math.log(one / (one + other)) + other * math.log(other / (one + other))
            for one, other in shared
        )
        expected[i, j] = (entropy, sum(log_vacancy(row[i] + row[j]) for row in q))
    assert [tuple(pair) for pair in pairs.slots.T.tolist()] == sorted(expected)
    for pair, entropy, vacancy in zip(
        pairs.slots.T.tolist(), pairs.entropy, pairs.log_vacancy, strict=True
    ):
        assert entropy == pytest.approx(expected[tuple(pair)][0], abs=1e-12)
        assert math.exp(vacancy) == pytest.approx(math.exp(expected[tuple(pair)][1]), rel=1e-9)
    assert not np.isin(5 if number != 3 else 1, pairs.slots)  # the empty one


@pytest.mark.parametrize("rows", [3, 25])
def test_pairs_are_added_up_in_one_order(rows, monkeypatch):
    counts, q = documents(0, rows=25)[:rows], random_responsibilities(0)[:rows]
    _, state, sites = posterior(model_of("nig"), counts, q)
    whole = merge.shared_pairs(state, sites)
    monkeypatch.setattr(merge, "PAIRS_HELD", 4)
    parts = merge.shared_pairs(state, sites)
    assert [x.tobytes() for x in parts] == [x.tobytes() for x in whole]


def test_clusters_without_a_row_in_common_are_no_pair_and_stay():
    model, counts = model_of("dp"), np.repeat(documents(66)[:1], 8, axis=0)
    batch, state, sites = posterior(model, counts, hard([0, 1] * 4))
    assert merge.shared_pairs(state, sites).slots.shape == (2, 0)
    assert merge.log_odds(model, state, merge.shared_pairs(state, sites)).shape == (0,)
    before = bits(state)
    assert merge.merge_all(model, state, sites, -math.inf) == []
    assert bits(state) == before
    assert_sites_add_up(state, batch, sites)


# --- merging --------------------------------------------------------------------------------------


@priors
def test_identical_clusters_merge_and_different_ones_do_not(kind):
    model = model_of(kind)
    counts = np.zeros((24, WORDS), dtype=int)
    counts[:12, :5] = 8
    counts[12:, 5:12] = 8
    q = np.zeros((24, 3))
    q[:12, 0], q[:12, 1] = 0.4, 0.6
    q[12:, 2] = 1.0
    q[0] = [0.4, 0.59, 0.01]  # so that all pairs are candidates
    batch, state, sites = posterior(model, counts, q)
    pairs = merge.shared_pairs(state, sites)
    odds = dict(
        zip(map(tuple, pairs.slots.T.tolist()), merge.log_odds(model, state, pairs), strict=True)
    )
    assert odds.keys() == {(0, 1), (0, 2), (1, 2)}
    assert odds[0, 1] > 5
    assert max(odds[0, 2], odds[1, 2]) < -50
    mass = float(state.masses[0])
    events = merge.merge_all(model, state, sites, 0.0)
    assert events == [Event("merge", 0, 1, 24, mass)]  # the heavier one survives with its id
    assert sorted(state.ids.tolist()) == [1, 2]
    assert dense(state, sites)[0] == {1: pytest.approx(0.99), 2: 0.01}
    assert dense(state, sites)[5] == {1: pytest.approx(1.0)}
    assert_sites_add_up(state, batch, sites)


@pytest.mark.parametrize(("winner", "loser"), list(permutations(range(4), 2)))
def test_merging_any_pair_leaves_the_totals_of_the_merged_sites(winner, loser):
    """Whatever slots the two have, the last one among them too."""
    model, counts = model_of("nig"), documents(67, rows=25)
    batch, state, sites = posterior(model, counts, random_responsibilities(7, clusters=5)[:, :4])
    before, ids = dense(state, sites), state.ids.tolist()
    pairs = merge.shared_pairs(state, sites)
    place = pairs.slots.T.tolist().index(sorted([winner, loser]))
    event = merge.join_into(state, [sites], winner, loser, pairs.log_vacancy[place])
    assert event[:4] == ("merge", loser, winner, 25)
    assert set(state.ids.tolist()) == set(ids) - {loser}
    for old, new in zip(before, dense(state, sites), strict=True):
        joint = old.pop(loser, 0.0)
        if joint:
            old[winner] = old.get(winner, 0.0) + joint
        assert new == pytest.approx(old, abs=1e-15)
    assert_sites_add_up(state, batch, sites)
    assert abs(state.total_mass - 25) < 1e-10


@priors
def test_merging_goes_on_until_no_odds_exceed_the_threshold(kind):
    model, sigma = model_of(kind), PRIORS[kind][1].discount
    for number in range(3):
        batch, state, sites = first_pass(
            model, documents(number + 70, rows=40), Settings(max(sigma, 0.15), 0.0), "reference"
        )
        K, left = state.n_clusters, []
        for threshold in (1e9, 2.0, 0.0, -3.0):
            events = merge.merge_all(model, state, sites, threshold)
            K -= len(events)
            assert state.n_clusters == K
            assert len({event.id for event in events}) == len(events)
            odds = merge.log_odds(model, state, merge.shared_pairs(state, sites))
            assert odds.max(initial=-np.inf) <= threshold
            assert_sites_add_up(state, batch, sites)
            left.append(K)
            if threshold == 1e9:
                assert events == []
        assert left[-1] < left[0]


def test_the_best_pair_merges_first_and_no_cluster_twice_in_a_round(monkeypatch):
    """Odds of what a merge changed are looked up anew."""
    model = model_of("dp")
    counts = np.repeat(documents(68, length=20)[:1], 30, axis=0)
    q = np.tile([0.1, 0.2, 0.3, 0.4], (30, 1))
    batch, state, sites = posterior(model, counts, q)
    rounds = []
    real = merge.log_odds

    def recording(model, state, pairs, above):
        odds = real(model, state, pairs, above)
        rounds.append(dict(zip(map(tuple, pairs.slots.T.tolist()), odds, strict=True)))
        return odds

    monkeypatch.setattr(merge, "log_odds", recording)
    events = merge.merge_all(model, state, sites, -math.inf)
    assert len(events) == 3
    assert len(rounds) == 3  # two disjoint pairs, then one, then none
    best = max(rounds[0], key=rounds[0].get)  # in the first round slots are ids
    assert {events[0].id, events[0].into} == set(best)
    assert {events[1].id, events[1].into} == {0, 1, 2, 3} - set(best)
    for event in events[:2]:
        assert event.into > event.id  # the heavier: masses rise with the ids
    assert state.ids.tolist() == [3]
    assert_sites_add_up(state, batch, sites)


def test_a_merge_in_a_window_keeps_what_frozen_rows_contributed():
    model = model_of("nig")
    _, state, sites = first_pass(model, documents(69, rows=40), Settings(0.5, 0.0), "reference")
    total, words = state.total_mass, state.statistics.sum(axis=0)
    sites.forget(25)
    before = state.masses.copy(), state.ids.tolist()
    events = merge.merge_all(model, state, sites, -2.0)
    assert events
    np.testing.assert_allclose(state.statistics.sum(axis=0), words, atol=1e-9)
    assert state.masses.sum() == pytest.approx(total, abs=1e-9)
    mass = dict(zip(before[1], before[0].tolist(), strict=True))
    for event in events:
        assert event.mass == pytest.approx(mass[event.id], abs=1e-9)
        mass[event.into] += mass.pop(event.id)
    assert dict(zip(state.ids.tolist(), state.masses.tolist(), strict=True)) == pytest.approx(mass)


def test_sweeps_after_a_merge_go_on_from_the_merged_sites():
    model, settings = model_of("nig"), Settings(0.5, 1e-4, 0.5)
    batch, state, sites = first_pass(model, documents(72, rows=40), settings, "reference")
    assert merge.merge_all(model, state, sites, -2.0)
    assert any((sites.row(i)[0] == GONE).any() for i in range(40))  # shared rows were joined
    epoch = sweep(model, state, batch, sites, settings, "reference")
    # Joined entries weigh nothing any more: no row can move by more than all of itself.
    assert 0 < epoch.change <= 1
    assert_sites_add_up(state, batch, sites)


# --- the lineage ----------------------------------------------------------------------------------


def stream(**options):
    counts = documents(73, rows=120)
    return counts, StreamingMixture(
        PRIORS["nig"][0], DirichletMultinomial(ALPHA), merge_threshold=-1.0, **options
    )


@pytest.mark.parametrize(
    "options", [{"merge_every": 30}, {"revisit": 30}, {"n_passes": 3}], ids=str
)
def test_the_lineage_tells_what_became_of_every_cluster(options):
    counts, model = stream(**options)
    model.fit(counts)
    living, times = {}, []
    kinds = set()
    for event in model.lineage_:
        kinds.add(event.kind)
        times.append(event.n_observations)
        if event.kind == "birth":
            assert event.id not in living
            assert event.into is None
            living[event.id] = event.mass
        else:
            assert event.id in living
            del living[event.id]
        if event.kind == "merge":
            assert event.into in living
    assert {"birth", "merge"} <= kinds
    assert times == sorted(times)
    assert sorted(living) == model.cluster_ids_.tolist()
    born = [event.id for event in model.lineage_ if event.kind == "birth"]
    assert sorted(born) == list(range(model.state_.next_id))


@pytest.mark.parametrize(
    "options", [{"merge_every": 30}, {"revisit": 30}, {"n_passes": 3}], ids=str
)
def test_an_old_id_resolves_to_its_survivor(options):
    counts, model = stream(**options)
    model.fit(counts)
    dead = {event.id for event in model.lineage_ if event.kind == "death"}
    into = {event.id: event.into for event in model.lineage_ if event.kind == "merge"}
    chains = 0
    for id in range(model.state_.next_id):
        last, steps = id, 0
        while last in into:
            last, steps = into[last], steps + 1
        chains = max(chains, steps)
        assert model.resolve_id(id) == (None if last in dead else last)
        assert model.resolve_id(id) in {None, *model.cluster_ids_.tolist()}
    assert into
    assert chains >= 2 or options != {"merge_every": 30}
    assert set(model.predict_ids(counts)) <= set(model.cluster_ids_)
    np.testing.assert_array_equal(model.cluster_ids_[model.labels_], model.predict_ids(counts))


def test_chains_of_merges_and_deaths_are_followed_in_order():
    log = [
        Event("merge", 3, 1, 10, 2.0),
        Event("merge", 1, 0, 20, 5.0),
        Event("merge", 4, 2, 20, 1.0),
        Event("death", 2, None, 30, 0.1),
        Event("birth", 5, None, 31, 0.6),
    ]
    assert [survivor(id, log) for id in range(6)] == [0, 0, None, 0, None, 5]


@pytest.mark.parametrize("id", [-1, 7])
def test_an_id_that_no_cluster_ever_had_is_refused(id):
    model = StreamingMixture("dp").fit(csr_array(np.diag([9] * 7)))
    assert [model.resolve_id(known) for known in range(7)] == list(range(7))
    with pytest.raises(ValueError, match=f"ever had the id {id}; ids so far are 0 to 6"):
        model.resolve_id(id)


def test_a_huge_threshold_merges_nothing():
    counts, model = stream(n_passes=3)
    model.set_params(merge_threshold=1e9).fit(counts)
    never = StreamingMixture(PRIORS["nig"][0], DirichletMultinomial(ALPHA), n_passes=3).fit(counts)
    assert bits(model.state_) == bits(never.state_)
    assert not any(event.kind == "merge" for event in model.lineage_)


@pytest.mark.parametrize("theta", [-0.35, -0.2])
def test_a_huge_threshold_merges_nothing_whatever_the_concentration(theta):
    rng = np.random.default_rng((74, 0))
    for _ in range(30):
        counts = rng.multinomial(3, [0.2, 0.3, 0.5], size=3)
        model = StreamingMixture(
            PitmanYor(theta, 0.4), DirichletMultinomial(ALPHA), min_responsibility=0.0,
            merge_threshold=1e6,
        ).fit(counts)  # fmt: skip
        assert [event for event in model.lineage_ if event.kind == "merge"] == []


# --- bars -----------------------------------------------------------------------------------------


def matches(model):
    """Return which clusters are which bars: cosine >= .95, shape (K, 16)."""
    means, truth = model.means_, bars_components()
    lengths = np.linalg.norm(means, axis=1)[:, None] * np.linalg.norm(truth, axis=1)
    return means @ truth.T / lengths >= 0.95


@pytest.mark.parametrize("options", [{}, {"n_passes": 5}, {"revisit": 100}], ids=str)
def test_bars_are_recovered_exactly_once_with_merges_and_are_present_without(options):
    extra = 0
    for seed in range(20):
        images = bars(n_images=200, seed=seed).counts
        model = StreamingMixture(
            normalized_inverse_gaussian(10, 100), DirichletMultinomial(0.5), **options
        ).fit(images)
        assert matches(model).any(axis=0).all()
        extra += model.n_clusters_ - 16
        model.set_params(merge_threshold=0.0).fit(images)
        assert matches(model).sum(axis=0).tolist() == [1] * 16
        assert model.n_clusters_ == 16
    assert extra > 0  # so that there was something to merge


@priors
def test_clusters_of_a_vocabulary_that_grows_merge_by_the_same_odds(kind):
    """Rows of two billion columns give the odds of the same rows over the words that there are."""
    rng = np.random.default_rng(17)
    counts = rng.integers(0, 4, size=(12, 8))
    counts[6:, :4] = 0
    shares = rng.dirichlet(np.full(4, 0.4), size=12)
    vocabulary = Vocabulary(OpenVocabulary(6.0, 3.0))
    named = [{f"w{j}": int(n) for j, n in enumerate(row) if n} for row in counts]
    vocabulary.add(named)
    growing = Model(PRIORS[kind][0], vocabulary.likelihood)
    _, wide, wide_sites = posterior(growing, named, shares)
    order = [int(word[1:]) for word in vocabulary.words]
    alpha = vocabulary.likelihood.alpha[: len(order) + 1]
    fixed = Model(PRIORS[kind][0], DirichletMultinomial(alpha))  # column 0: words not known
    columns = np.hstack([np.zeros((12, 1), int), counts[:, order]])
    _, narrow, narrow_sites = posterior(fixed, columns, shares)
    assert (wide.is_wide, narrow.is_wide) == (True, False)
    found, expected = (
        merge.log_odds(model, state, merge.shared_pairs(state, sites))
        for model, state, sites in ((growing, wide, wide_sites), (fixed, narrow, narrow_sites))
    )
    assert found.size == 6
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    threshold = float(np.median(expected))
    merged = merge.merge_all(growing, wide, wide_sites, threshold)
    assert [event.id for event in merged] == [
        event.id for event in merge.merge_all(fixed, narrow, narrow_sites, threshold)
    ]
    assert len(merged) > 0
