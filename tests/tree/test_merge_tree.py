"""The tree of merges: its odds, its order, its cuts, and models that are cut."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import cut_tree, is_valid_linkage
from scipy.special import gammaln

from bnpstream import (
    DirichletMultinomial,
    DocumentMixture,
    GibbsMixture,
    PitmanYor,
    StreamingMixture,
    normalized_inverse_gaussian,
)
from bnpstream.datasets import bars
from bnpstream.evaluation import agreement
from bnpstream.inference import tree as trees
from bnpstream.inference.odds import Odds, pool_of
from bnpstream.inference.tree import MergeTree, merge_tree
from bnpstream.kernels.words.pools import fill_log_gammas
from bnpstream.likelihoods.pools import Pool
from bnpstream.likelihoods.word_pool import WordPool
from bnpstream.mixture import MixtureState, Model, log_prior_weights, survivor
from bnpstream.priors import Prior

NIG = normalized_inverse_gaussian(5.0, 2.0)


def state_of(rows, masses, *, paired=False):
    """Return a posterior with these statistics; ids are not in the order of slots."""
    state = MixtureState(rows.shape[1], paired=paired)
    for _ in rows:
        state.open()
    state.rebuild(rows, masses, -3.0 * masses)
    state.ids[:] = np.roll(3 * np.arange(len(rows)) + 1, 2)
    return state


def words_case(case, n_clusters=12, n_words=30):
    """Return a model of words and clusters of three kinds, counts not whole."""
    rng = np.random.default_rng((1, case))
    topics = rng.dirichlet(np.full(n_words, 0.2), size=3)
    masses = rng.uniform(0.5, 9.0, n_clusters)
    kinds = rng.integers(3, size=n_clusters)
    counts = np.array([rng.poisson(40 * m * topics[k]) for m, k in zip(masses, kinds, strict=True)])
    counts = np.where(counts > 0, counts * rng.uniform(0.5, 1.0, counts.shape), 0.0)
    rows = np.column_stack([counts, counts.sum(axis=1)])
    likelihood = DirichletMultinomial(rng.uniform(0.05, 0.5, n_words))
    return Model(NIG, likelihood), state_of(rows, masses)


def joint_log_marginal(model, state, labels):
    """Return what the sweeps raise: likelihood and prior terms of groups, from scratch."""
    total, auxiliary = 0.0, log_prior_weights(model.prior, state)[1]
    for group in np.unique(labels):
        inside = np.flatnonzero(labels == group)
        row = state.rows(inside).sum(axis=0, keepdims=True)
        total += float(model.likelihood.log_marginal(row)[0])
        mass = np.array([state.masses[inside].sum()])
        total += float(model.prior.log_tilted_moment(mass, np.exp(auxiliary))[0])
    return total


@pytest.mark.kernel
def test_the_table_of_log_gammas_is_exact_to_its_bound():
    x = np.concatenate([np.geomspace(1e-12, 1e7, 20_001), np.linspace(1e-3, 70.0, 20_001)])
    found = np.empty(x.size)
    fill_log_gammas(x, found)
    exact = gammaln(x)
    assert np.abs(found - exact).max() <= 1e-9 + 1e-12 * np.abs(exact).max()


@pytest.mark.kernel
@pytest.mark.parametrize("case", range(3))
def test_words_have_the_odds_of_the_generic_formula_after_joins_too(case):
    model, state = words_case(case)
    fast, slow = pool_of(model, state), Pool(model.likelihood, state.statistics)
    assert isinstance(fast, WordPool)
    others = np.arange(2, 12)
    for _ in range(3):
        before = fast.odds(1, others)
        np.testing.assert_allclose(before, slow.odds(1, others), atol=1e-6)
        others, joined = others[:-1], int(others[-1])
        after = fast.join(1, joined, others, before[:-1])
        np.testing.assert_allclose(after, slow.join(1, joined, others, before[:-1]), atol=1e-6)
        every = np.append(others, 1)  # the joined cluster as the other one, too
        np.testing.assert_allclose(fast.odds(3, every), slow.odds(3, every), atol=1e-6)
    part = np.array([7, 1, 5])
    np.testing.assert_allclose(
        fast.part(part).odds(0, np.array([1, 2])), slow.odds(7, part[1:]), atol=1e-6
    )
    members = np.arange(12) % 4
    again = pool_of(model, state), Pool(model.likelihood, state.statistics)
    one, other = (pool.summed(members, 4).odds(0, np.arange(1, 4)) for pool in again)
    np.testing.assert_allclose(one, other, atol=1e-6)
    members[7] = -1  # in no group so far
    one, other = (pool.groups(members, 4) for pool in again)
    for groups in (one, other):
        groups.move(5, 1, -1)
        groups.move(5, 2, 1)
    some = np.array([3, 2, 0])
    for k, home in ((5, 2), (7, -1)):
        np.testing.assert_allclose(one.gains(k, home, some), other.gains(k, home, some), atol=1e-6)


def test_crumbs_are_left_out_of_words():
    model, state = words_case(0)
    state._write(np.array([4]), np.array([7, 8]), np.array([[0.09, 0.11]]))
    pool = pool_of(model, state)
    assert 0.09 not in pool.rows[4][1]
    assert 0.11 in pool.rows[4][1]


@pytest.mark.parametrize("prior", [NIG, PitmanYor(1.0, 0.3)])
def test_the_first_merge_has_the_best_odds_of_all_pairs(prior):
    model, state = words_case(3, n_clusters=6)
    model = Model(prior, model.likelihood)
    tree = merge_tree(model, state, n_groups=1)
    auxiliary = log_prior_weights(prior, state)[1]
    occupied = prior.occupancy(state.log_vacancy)
    best = -np.inf
    for i in range(6):
        for j in range(i):
            rows = state.rows(np.array([i, j]))
            together = model.likelihood.log_marginal(rows.sum(axis=0, keepdims=True))[0]
            odds = together - model.likelihood.log_marginal(rows).sum()
            joint = prior.occupancy(state.log_vacancy[[i]] + state.log_vacancy[[j]])
            odds += prior.log_merge_odds(
                state.masses[[i, j]][:, None],
                occupied[[i, j]][:, None],
                joint,
                float(occupied.sum()),
                auxiliary,
            )[0]
            if odds > best:
                best, pair = odds, {int(state.ids[i]), int(state.ids[j])}
    assert {int(id) for id in tree.ids[tree.children[0]]} == pair
    assert tree.log_odds[0] == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("case", range(4))
def test_no_cluster_would_rather_be_in_another_group(case):
    """At `n_groups` the joint log marginal has no better neighbour, one cluster moved."""
    model, state = words_case(case, n_clusters=14)
    tree = merge_tree(model, state, n_groups=3)
    labels = tree.cut(3)[np.searchsorted(tree.ids, state.ids)]
    best = joint_log_marginal(model, state, labels)
    for k in range(14):
        if (labels == labels[k]).sum() > 1:
            for group in np.unique(labels):
                moved = labels.copy()
                moved[k] = group
                assert joint_log_marginal(model, state, moved) <= best + 1e-5


def test_cuts_are_nested_and_named_by_the_heaviest_cluster():
    model, state = words_case(5, n_clusters=15)
    tree = merge_tree(model, state, n_groups=4)
    assert tree.ids.tolist() == sorted(state.ids.tolist())
    finer = tree.cut(15)
    assert finer.tolist() == tree.ids.tolist() == tree.cut(99).tolist()
    for n in range(14, 0, -1):
        cut = tree.cut(n)
        assert np.unique(cut).size == n
        for group in np.unique(cut):
            inside = cut == group
            assert group == tree.ids[inside][np.argmax(tree.masses[inside])]
        assert np.unique(np.stack([cut, finer]), axis=1).shape[1] == n + 1  # one pair was joined
        finer = cut
    linkage = tree.linkage()
    assert is_valid_linkage(linkage)
    theirs = cut_tree(linkage, n_clusters=4)[:, 0]
    assert agreement(theirs, tree.cut(4)).ari == 1.0
    with pytest.raises(ValueError, match="n_groups must be at least 1, got 0"):
        tree.cut(0)


def test_the_order_of_slots_does_not_matter():
    model, state = words_case(6)
    order = np.random.default_rng(2).permutation(12)
    other = state_of(state.statistics[order], state.masses[order])
    other.ids[:] = state.ids[order]
    one, two = merge_tree(model, state, 3), merge_tree(model, other, 3)
    assert [one.cut(n).tolist() for n in (2, 3, 6)] == [two.cut(n).tolist() for n in (2, 3, 6)]


def test_joins_are_the_best_of_all_pairs_to_the_end():
    """Every join of one group is that of a search over all pairs, looked at anew each time."""
    model, state = words_case(9, n_clusters=10)
    tree = merge_tree(model, state, n_groups=1)
    odds, order = Odds(model, state, pool_of(model, state)), np.argsort(state.ids)
    rows = {node: [int(slot)] for node, slot in enumerate(order)}
    for t, (children, found) in enumerate(zip(tree.children.tolist(), tree.log_odds, strict=True)):
        names = sorted(rows)
        members = np.zeros(10, np.int64)
        for g, name in enumerate(names):
            members[rows[name]] = g
        grouped = odds.summed(members, len(names))
        every = grouped.table(np.arange(len(names)), np.arange(len(names)))
        np.fill_diagonal(every, -np.inf)
        assert found == pytest.approx(every.max(), abs=1e-6)
        best = np.unravel_index(every.argmax(), every.shape)
        assert {names[g] for g in best} == set(children)
        rows[10 + t] = rows.pop(children[0]) + rows.pop(children[1])


@pytest.mark.parametrize("case", [1, 2])
def test_clusters_that_were_not_started_with_settle_too(case, monkeypatch):
    """Groups begin with the heaviest clusters; no cluster would rather be in another one."""
    rng = np.random.default_rng((10, case))
    topics, masses = rng.dirichlet(np.full(20, 0.3), size=3), rng.uniform(0.5, 9.0, 60)
    kinds = rng.integers(3, size=60)
    rows = rng.poisson(15 * topics[kinds]).astype(float)  # short: two or three move in sweep 2
    rows = np.column_stack([rows, rows.sum(axis=1)])
    model, state = Model(NIG, DirichletMultinomial(0.3)), state_of(rows, masses)
    monkeypatch.setattr(trees, "MOST_STARTED", 4)
    tree = merge_tree(model, state, n_groups=3)
    labels = tree.cut(3)[np.searchsorted(tree.ids, state.ids)]
    best = joint_log_marginal(model, state, labels)
    for k in range(60):
        for group in np.unique(labels):
            moved = labels.copy()
            moved[k] = group
            if np.unique(moved).size == 3:
                assert joint_log_marginal(model, state, moved) <= best + 1e-5


@pytest.mark.parametrize("prior", [NIG, PitmanYor(1.0, 0.3)])
def test_terms_of_clusters_are_those_of_the_merge_odds(prior):
    """A prior's own terms against the definition that any prior has."""
    masses, occupancy = np.array([0.4, 2.5, 17.0]), np.array([0.3, 0.9, 1.0])
    own = prior.log_seated(masses, occupancy, 3.0, 0.3)
    derived = Prior.log_seated(prior, masses, occupancy, 3.0, 0.3)
    np.testing.assert_allclose(own, derived, rtol=1e-12)


def test_more_clusters_than_pairs_are_looked_at(monkeypatch):
    model, state = words_case(7, n_clusters=14)
    monkeypatch.setattr(trees, "MOST_PAIRED", 5)
    tree = merge_tree(model, state, n_groups=3)
    assert np.unique(tree.cut(3)).size == 3
    assert np.unique(tree.cut(1)).size == 1


def test_one_cluster_is_a_tree():
    model, state = words_case(0, n_clusters=1)
    assert merge_tree(model, state).cut(1).tolist() == state.ids.tolist()


@pytest.mark.parametrize(
    ("prior", "likelihood"),
    [("nig", "diagonal"), ("dp", "gaussian"), ("py", "poisson")],
)
def test_blobs_in_pairs_are_joined_in_pairs(prior, likelihood):
    """Eight blobs, two and two near each other: four groups are the pairs."""
    rng = np.random.default_rng((8, 0))
    middles = np.array([[20, 20], [20, 400], [400, 20], [400, 400]], float)
    near = np.repeat(middles, 2, axis=0) + np.tile([[0, 0], [45, 0]], (4, 1))
    blobs = np.repeat(np.arange(8), 40)
    X = np.rint(near[blobs] + 3.0 * rng.normal(size=(320, 2))).clip(0)
    order = rng.permutation(320)
    X, pairs = X[order], blobs[order] // 2
    model = StreamingMixture(prior, likelihood, merge_threshold=None).fit(X)
    assert model.n_clusters_ >= 6
    coarse = model.coarsened(4)
    assert agreement(pairs, coarse.predict(X)).ari > 0.99
    assert agreement(pairs, coarse.label_ids_).ari > 0.99


class TestCoarsened:
    images = bars(n_images=300, seed=0).counts

    def fitted(self, **options):
        model = StreamingMixture("nig", DirichletMultinomial(0.1), **options)
        return model.partial_fit(self.images)

    def test_sums_are_kept_and_the_fine_model_is_as_it_was(self):
        model = self.fitted()
        before, lineage = model.state_.copy(), list(model.lineage_)
        tree = model.merge_tree(4)
        coarse = model.coarsened(4)
        assert model.lineage_ == lineage
        assert np.array_equal(model.state_.statistics, before.statistics)
        groups = tree.cut(4)
        assert coarse.cluster_ids_.tolist() == np.unique(groups).tolist()
        for id in coarse.cluster_ids_:
            inside = np.isin(model.state_.ids, tree.ids[groups == id])
            slot = coarse.state_.ids == id
            np.testing.assert_allclose(
                coarse.state_.statistics[slot][0], model.state_.statistics[inside].sum(axis=0)
            )
            assert coarse.state_.masses[slot] == pytest.approx(model.state_.masses[inside].sum())
            vacancy = model.state_.log_vacancy[inside].sum()
            assert coarse.state_.log_vacancy[slot] == pytest.approx(vacancy)
        merged = {survivor(id, coarse.lineage_) for id in model.cluster_ids_.tolist()}
        assert merged == set(coarse.cluster_ids_.tolist())
        where = np.searchsorted(tree.ids, model.label_ids_)
        assert np.array_equal(coarse.label_ids_, groups[where])
        assert np.array_equal(coarse.cluster_ids_[coarse.labels_], coarse.label_ids_)

    def test_it_goes_on_and_sites_follow(self):
        model = self.fitted(revisit="all", n_revisits=1)
        coarse = model.coarsened(4)
        matrix = coarse.window_.sites.matrix(4)
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0)
        np.testing.assert_allclose(matrix.sum(axis=0), coarse.state_.masses)
        coarse.partial_fit(self.images[:50]).finish()
        assert coarse.n_samples_seen_ == 350
        assert model.n_samples_seen_ == 300

    def test_a_learner_is_not_shared(self):
        model = StreamingMixture("dp", DirichletMultinomial("learn"), prefix_rows=40)
        model.partial_fit(self.images)
        next_time = model.stream_.learner.n_next  # 320: among the rows that follow
        model.coarsened(3).partial_fit(self.images)
        assert model.stream_.learner.n_next == next_time

    def test_one_tree_is_cut_at_several_levels(self):
        model = self.fitted()
        tree = model.merge_tree(6)
        for n in (6, 3):
            assert model.coarsened(n, tree).cluster_ids_.tolist() == np.unique(tree.cut(n)).tolist()

    def test_a_prefix_that_is_filling(self):
        model = StreamingMixture("nig", DirichletMultinomial("learn"), prefix_rows=500)
        model.partial_fit(self.images)
        coarse = model.coarsened(3)
        assert (coarse.n_clusters_, coarse.provisional_, model.provisional_) == (3, False, True)

    def test_documents(self):
        texts = [["cat", "dog", "cat"], ["stock", "bond"], ["ball", "goal"], ["dog", "cat"]] * 10
        model = DocumentMixture(spread=5, new_cluster_threshold=0.05).partial_fit(texts)
        coarse = model.coarsened(2)
        assert coarse.n_clusters_ == min(2, model.n_clusters_)
        assert coarse.state_.masses.sum() == pytest.approx(40)
        assert np.isin(coarse.predict_ids(texts), coarse.cluster_ids_).all()

    def test_gibbs(self):
        model = GibbsMixture("nig", DirichletMultinomial(0.1), n_sweeps=5, n_kept=1)
        model.fit(self.images[:80])
        tree = model.merge_tree(3)
        assert np.array_equal(tree.ids, np.unique(model.labels_))
        assert np.unique(tree.cut(3)).size == 3
        assert isinstance(tree, MergeTree)

    @pytest.mark.parametrize("wrong", [0, 2.5, "many"])
    def test_a_number_of_clusters(self, wrong):
        with pytest.raises(ValueError, match=f"n_clusters must be a whole number >= 1.*{wrong}"):
            self.fitted().coarsened(wrong)
