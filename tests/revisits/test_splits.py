"""Splits by the model's own odds: the odds, the bookkeeping, the lineage, and streams that part."""

import math
from functools import partial

import numpy as np
import pytest
from revisit_cases import (
    ENGINES,
    PRIORS,
    assert_sites_add_up,
    documents,
    first_pass,
    kernel_of,
    sweep,
)
from test_merges import hard, log_marginal, log_moment, model_of, posterior

import naive
from bnpstream import BurstyMultinomial, DirichletMultinomial, StreamingMixture, dirichlet_process
from bnpstream.datasets import bars_components
from bnpstream.inference import exact, merge, split
from bnpstream.inference.budget import Budget
from bnpstream.inference.response import Settings
from bnpstream.mixture import Event, log_prior_weights, survivor, survivors
from bnpstream.mixture.sites import totals

priors = pytest.mark.parametrize("kind", PRIORS)
PLAIN = Settings(0.5, 0.0)


def members_of(batch, sites, slot):
    rows = np.repeat(np.arange(len(batch)), np.diff(sites.arrays.indptr[: len(batch) + 1]))
    entries = np.flatnonzero(sites.arrays.slots[: sites.n_entries] == slot)
    return split._members(batch, sites, rows, entries)


def split_all(model, state, batch, sites, threshold=0.0, settings=PLAIN, engine="reference"):
    kernel_for = partial(kernel_of, model, engine=engine)
    return split.split_all(model, state, batch, sites, threshold, settings, kernel_for)


def two_kinds(number, rows=16, length=9):
    """Return counts of rows of two kinds, in turn, with few words in common."""
    rng = np.random.default_rng((71, number))
    theta = rng.dirichlet(np.full(20, 0.15), size=2)
    return np.array([rng.multinomial(length, theta[i % 2]) for i in range(rows)])


# --- the odds -------------------------------------------------------------------------------------


@priors
def test_gain_of_a_hard_split_is_a_ratio_of_joint_probabilities_given_u(kind):
    model, oracle = model_of(kind), PRIORS[kind][1]
    counts, labels = documents(70, rows=8), np.array([0, 1, 0, 0, 1, 0, 0, 0])
    batch, state, sites = posterior(model, counts, hard(labels))
    members, auxiliary = members_of(batch, sites, 0), log_prior_weights(model.prior, state)[1]
    places, sizes = np.flatnonzero(labels == 0), naive.sizes(labels.tolist())
    for choice in range(1, 2**places.size - 1):
        parts = np.array([float(choice >> bit & 1) for bit in range(places.size)])
        found = split.weigh(model, state, 0, members, parts, auxiliary)
        a, b = places[parts == 1], places[parts == 0]
        expected = log_marginal(counts[a]) + log_marginal(counts[b])
        expected -= log_marginal(counts[places])
        if oracle.kind == "py":
            after = [a.size, b.size, *sizes[1:]]
            expected += naive.log_eppf(oracle, after) - naive.log_eppf(oracle, sizes)
        else:
            u = math.exp(naive.mode(oracle, 8, 2))
            expected += log_moment(oracle, a.size, u) + log_moment(oracle, b.size, u)
            expected -= log_moment(oracle, places.size, u)
        assert found.gain == pytest.approx(expected, abs=1e-7)
        np.testing.assert_allclose(found.masses, [b.size, a.size])


@priors
def test_gain_of_a_soft_split_is_the_negated_odds_of_the_merge(kind):
    model, rng = model_of(kind), np.random.default_rng((72, 0))
    counts, q = documents(72, rows=10), rng.dirichlet(np.ones(3), size=10)
    batch, state, sites = posterior(model, counts, q)
    members, parts = members_of(batch, sites, 1), rng.random(10)
    auxiliary = log_prior_weights(model.prior, state)[1]
    found = split.weigh(model, state, 1, members, parts, auxiliary)
    state.split(1, found.moved, found.masses, found.log_vacancy)
    sites.divide(members.entries, parts, np.full(10, 3))
    state.auxiliary = auxiliary
    pairs = merge.shared_pairs(state, sites)
    at = np.flatnonzero((pairs.slots == [[1], [3]]).all(axis=0))[0]
    fixed = merge.log_odds(model, state, pairs)[at]
    if PRIORS[kind][1].kind == "nggp" and PRIORS[kind][1].discount > 0:
        # The merge takes U from the posterior after the split.
        slots, occupancy = pairs.slots[:, [at]], model.prior.occupancy(state.log_vacancy)
        joint, count = model.prior.occupancy(pairs.log_vacancy[[at]]), occupancy.sum()
        terms = [
            model.prior.log_merge_odds(state.masses[slots], occupancy[slots], joint, count, u)[0]
            for u in (auxiliary, log_prior_weights(model.prior, state)[1])
        ]
        fixed += terms[0] - terms[1]
    assert found.gain == pytest.approx(-fixed, abs=1e-8)


@priors
@pytest.mark.parametrize("number", range(3))
def test_joint_of_a_hard_partition_does_not_fall(kind, number):
    """Enumerated for n = 7, with the exact EPPF: U integrated out."""
    model, counts = model_of(kind), two_kinds(number, rows=7)
    batch = model.likelihood.encode(counts)
    enumerated = exact.run(model, batch)
    log_joint = dict(zip(enumerated.partitions, enumerated.log_probabilities, strict=True))
    rng, gains = np.random.default_rng((73, number)), []
    for labels in [(0,) * 7, *(enumerated.partitions[i] for i in rng.integers(0, 877, 12))]:
        _, state, sites = posterior(model, counts, hard(labels))
        events = split_all(model, state, batch, sites, settings=Settings(0.5, 0.5))
        found = sites.matrix(state.n_clusters).argmax(axis=1)
        _, first = np.unique(found, return_index=True)
        names = {int(found[i]): k for k, i in enumerate(np.sort(first))}
        after = tuple(names[int(slot)] for slot in found)
        assert (after == labels) == (not events)
        masses = dict(zip(state.ids.tolist(), state.masses.tolist(), strict=True))
        assert all(masses[event.id] >= masses[event.others[0]] for event in events)
        gains.append(log_joint[after] - log_joint[labels])
    assert min(gains) >= 0
    assert max(gains) > 0


# --- bookkeeping ----------------------------------------------------------------------------------


@priors
@pytest.mark.parametrize("engine", ENGINES)
def test_sites_add_up_after_splits_and_sweeps(kind, engine):
    model, counts = model_of(kind), two_kinds(20, rows=40)
    settings = Settings(max(0.3, model.prior.smallest_mass), 1e-4, 0.3)
    batch, state, sites = posterior(model, counts, np.full((40, 1), 1.0))
    events = split_all(model, state, batch, sites, settings=settings, engine=engine)
    assert [event.kind for event in events] == ["split"]
    assert_sites_add_up(state, batch, sites)
    sweep(model, state, batch, sites, settings, engine)
    assert_sites_add_up(state, batch, sites)
    kinds = sites.matrix(state.n_clusters).argmax(axis=1)
    assert len(set(kinds[::2])) == len(set(kinds[1::2])) == 1
    assert kinds[0] != kinds[1]


@priors
def test_engines_propose_the_same(kind):
    model = model_of(kind)
    settings = Settings(max(0.5, model.prior.smallest_mass), 1e-4)
    batch, state, sites = first_pass(model, documents(74, topics=8), settings, "reference")
    state.count_row(0.0)  # as if a row were out of sight
    state.add(np.eye(state.n_clusters)[0], batch.row(5))
    proposed = 0
    for slot in range(state.n_clusters):
        members = members_of(batch, sites, slot)
        found = [
            split.propose(model, state, slot, members, partial(kernel_of, model, engine=engine))
            for engine in ENGINES
        ]
        if found[0] is not None:
            proposed += 1
            np.testing.assert_allclose(found[0], found[1], atol=1e-9)
        assert (found[0] is None) == (found[1] is None)
    assert proposed > 0


def test_split_then_merge_is_the_identity():
    model, rng = model_of("nig"), np.random.default_rng((75, 0))
    counts, q = documents(75, rows=12), rng.dirichlet(np.ones(3), size=12)
    batch, state, sites = posterior(model, counts, q)
    state.add(np.array([0.0, 1.0, 0.0]), batch.row(4))  # a row without a site
    before, shares = state.copy(), sites.matrix(3).toarray()
    members, parts = members_of(batch, sites, 1), np.round(rng.random(12), 1)
    auxiliary = log_prior_weights(model.prior, state)[1]
    found = split.weigh(model, state, 1, members, parts, auxiliary)
    new = state.split(1, found.moved, found.masses, found.log_vacancy)
    sites.divide(members.entries, parts, np.full(12, new))
    assert state.n_clusters == 4
    pairs = merge.shared_pairs(state, sites)
    at = np.flatnonzero((pairs.slots == [[1], [new]]).all(axis=0))[0]
    merge.join_into(state, [sites], state.ids[1], state.ids[new], pairs.log_vacancy[at])
    np.testing.assert_allclose(state.statistics, before.statistics, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(state.masses, before.masses, rtol=1e-9)
    np.testing.assert_allclose(state.log_vacancy, before.log_vacancy, rtol=1e-9)
    assert state.total_mass == pytest.approx(before.total_mass, rel=1e-12)
    np.testing.assert_allclose(sites.matrix(3).toarray(), shares, rtol=1e-9, atol=1e-12)


def test_what_is_out_of_sight_stays_with_the_heavier_child_which_keeps_the_id():
    model, counts = model_of("dp"), two_kinds(21, rows=20)
    batch, state, sites = posterior(model, counts, np.ones((20, 1)))
    unseen = 30
    for _ in range(unseen):  # rows of the first kind that nobody can revisit
        state.add(np.ones(1), batch.row(0))
    (event,) = split_all(model, state, batch, sites, settings=Settings(0.5, 1e-4))
    assert event == Event("split", 0, 0, 20, 50.0, others=(1,))
    np.testing.assert_allclose(state.masses, [unseen + 10, 10], atol=0.1)
    np.testing.assert_allclose(
        state.statistics[1], sites.matrix(2).toarray()[:, 1] @ batch.statistics, atol=1e-12
    )


def test_a_child_too_light_to_have_a_weight_is_none():
    model, counts = model_of("nig"), documents(76, rows=6)
    batch, state, sites = posterior(model, counts, np.ones((6, 1)))
    members = members_of(batch, sites, 0)
    light = np.array([0.49, 0, 0, 0, 0, 0])
    assert split.weigh(model, state, 0, members, light, 0.0) is None
    assert split.weigh(model, state, 0, members, light + 0.02, 0.0) is not None


def test_no_more_clusters_than_the_budget_allows():
    model, counts = model_of("dp"), two_kinds(22, rows=30)
    labels = np.arange(30) // 10
    batch, state, sites = posterior(model, counts, hard(labels))
    settings = Settings(0.5, 1e-4, budget=Budget(4, None))
    assert len(split_all(model, state, batch, sites, settings=settings)) == 1
    assert state.n_clusters == 4


# --- what a revisit does --------------------------------------------------------------------------


def test_what_was_split_is_not_merged_in_the_same_round():
    model, counts = model_of("dp"), two_kinds(23, rows=12)
    _, state, sites = posterior(model, counts, np.full((12, 2), 0.5))
    assert not merge.merge_all(model, state, sites, -np.inf, apart=[(0, 1)])
    assert merge.merge_all(model, state, sites, -np.inf)
    with pytest.raises(ValueError, match=r"split_threshold must be .*2"):
        StreamingMixture(merge_threshold=-2.0, split_threshold=1.0, revisit=5).fit(counts)
    with pytest.raises(ValueError, match=r"split_threshold=0\.0 splits .* give revisit"):
        StreamingMixture(split_threshold=0.0).fit(counts)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_fused_bars_separate(engine):
    """One cluster holds two bars; without splits the sweeps have nowhere to put either."""
    rng = np.random.default_rng((77, 0))
    images = [rng.multinomial(30, bars_components()[k % 2]) for k in range(40)]
    fused = {"prior": dirichlet_process(1e-12), "likelihood": DirichletMultinomial(0.5)}
    shared = {"new_cluster_threshold": 0.999, "n_passes": 3, "engine": engine}
    # The first row is half of either bar, so that both kinds join its cluster.
    first = (bars_components()[0] + bars_components()[1]) * 60
    rows = np.vstack([np.round(first)[None], images]).astype(int)
    plain = StreamingMixture(**fused, **shared).fit(rows)
    parted = StreamingMixture(**fused, **shared, split_threshold=0.0).fit(rows)
    assert plain.n_clusters_ == 1
    labels = parted.labels_[1:]
    assert len(set(labels[::2])) == len(set(labels[1::2])) == 1
    assert labels[0] != labels[1]
    (event,) = (event for event in parted.lineage_ if event.kind == "split")
    assert survivors(0, parted.lineage_) == [0, *event.others]
    assert survivor(0, parted.lineage_) == 0


def test_a_topic_that_becomes_two_is_followed():
    rng = np.random.default_rng((78, 0))
    theta = np.zeros((2, 20))
    theta[0, :12], theta[1, 8:] = 1 / 12, 1 / 12
    mixed = [rng.multinomial(25, theta.mean(axis=0)) for _ in range(200)]
    parted = [rng.multinomial(25, theta[i % 2]) for i in range(200)]
    settings = {"revisit": 100, "new_cluster_threshold": 0.99}
    given = (dirichlet_process(1e-6), DirichletMultinomial(0.5))
    model = StreamingMixture(*given, **settings, split_threshold=0.0).fit(mixed + parted)
    assert [event.kind for event in model.lineage_].count("birth") == 1
    labels = model.predict(parted)
    assert np.mean(labels[::2] == labels[0]) > 0.95
    assert np.mean(labels[1::2] == labels[1]) > 0.95
    assert labels[0] != labels[1]


@pytest.mark.parametrize("likelihood", ["gaussian", "diagonal", "spherical", "bursty", "wide"])
@pytest.mark.parametrize("engine", ENGINES)
def test_splits_of_other_families_add_up(likelihood, engine):
    rng = np.random.default_rng((79, 0))
    if likelihood == "bursty":
        chosen = BurstyMultinomial(0.3, 10.0)
        rows = two_kinds(24, rows=40)
    elif likelihood == "wide":  # statistics are sparse beyond 8192 columns
        chosen, rows = DirichletMultinomial(0.01), np.zeros((40, 9000), int)
        rows[:, ::450] = two_kinds(24, rows=40, length=60)
    else:
        chosen, rows = likelihood, rng.normal(size=(60, 2)) + 4.0 * (np.arange(60) % 2)[:, None]
    model = StreamingMixture(
        dirichlet_process(1.0), chosen, keep_sites=True, engine=engine, merge_threshold=None
    ).fit(rows)
    stream = model._stream
    state, sites = stream.state, stream.window.sites
    batch = stream.encoder.view(stream.encoder.prepared(rows))
    while state.n_clusters > 1:
        merge.join_into(state, [sites], state.ids[0], state.ids[1])
    kernel_for = partial(stream.kernel, stream.model)
    events = split.split_all(stream.model, state, batch, sites, 0.0, stream.visits, kernel_for)
    assert len(events) == 1
    statistics, masses, _ = totals(sites, batch, state.n_clusters)
    assert state.distance(statistics) < 1e-9 * np.abs(statistics).max()
    np.testing.assert_allclose(state.masses, masses, rtol=1e-9)


def test_model_with_splits_does_not_depend_on_calls():
    rows, given = two_kinds(25, rows=120), (dirichlet_process(1e-6), DirichletMultinomial(0.5))
    settings = {"revisit": 30, "new_cluster_threshold": 0.99, "split_threshold": 0.0}
    whole = StreamingMixture(*given, **settings).partial_fit(rows)
    parts = StreamingMixture(*given, **settings)
    for start, stop in [(0, 1), (1, 31), (31, 77), (77, 120)]:
        parts.partial_fit(rows[start:stop])
    assert whole.n_clusters_ > 1
    assert whole.state_.statistics.tobytes() == parts.state_.statistics.tobytes()
    assert whole.lineage_ == parts.lineage_
