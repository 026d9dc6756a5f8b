"""Likelihoods whose rows add what depends on the cluster: every algorithm, the same laws."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
from scipy.stats import norm
from waits import Waits, draw_waits

from bnpstream import GibbsMixture, StreamingMixture, dirichlet_process, normalized_inverse_gaussian
from bnpstream.inference import adf, ep, exact, window
from bnpstream.inference.merge import join_into
from bnpstream.inference.visits import Responsibilities, visit
from bnpstream.kernels.statistics.table import DENSE_UP_TO
from bnpstream.mixture import Model, SiteBuffer
from bnpstream.mixture.sites import totals
from bnpstream.mixture.snapshot import window_arrays, window_from
from bnpstream.testing import check_likelihood
from latent_families import (
    FAMILIES,
    CompiledScaled,
    Saturating,
    Scaled,
    saturating_rows,
    scaled_rows,
)
from states import assert_free_slots_are_zero, bits

PRIOR = normalized_inverse_gaussian(1.0, 1.0)
SETTINGS = adf.Settings(0.5, 1e-4)
SCHEDULES = {
    "adf": {},
    "window": {"revisit": 20, "n_revisits": 2},
    "merges": {"revisit": 30, "merge_threshold": 0.0},
    "fading": {"half_life": 30.0, "revisit": 25},
    "budget": {"max_clusters": 4, "revisit": 20},
    "sites": {"keep_sites": True, "half_life": 200.0},
}

CLASSES = [type(likelihood) for likelihood, _ in FAMILIES.values()]

families = pytest.mark.parametrize("family", FAMILIES)


def mixture(family, **options):
    return StreamingMixture(PRIOR, FAMILIES[family][0], **options)


def assert_sites_add_up(model, batch=None):
    """Assert that what the window's rows have added is the posterior, where it holds all rows."""
    batch = model.window_.batch() if batch is None else batch
    statistics, masses, log_vacancy = totals(model.window_.sites, batch, model.n_clusters_)
    state = model.state_
    assert state.distance(statistics) < 1e-9 * (1.0 + np.abs(state.statistics).max())
    np.testing.assert_allclose(masses, state.masses, rtol=1e-9, atol=1e-9)
    if model.merge_threshold is None:  # the merged cluster's knows no weights of rows
        np.testing.assert_allclose(log_vacancy, state.log_vacancy, rtol=1e-9, atol=1e-9)
    assert_free_slots_are_zero(state)


def passed(likelihood, X, settings=SETTINGS, prior=PRIOR):
    """Return model, batch, posterior and sites after one pass."""
    model = Model(prior, likelihood)
    batch = likelihood.encode(X)
    state, sites = adf.init(model, batch.n_statistics), SiteBuffer(len(batch))
    kernel = model.kernel_arguments(batch)
    list(visit(model, state, batch, SiteBuffer(), sites, settings, kernel))
    return model, batch, state, sites


@families
def test_families_obey_the_laws(family):
    likelihood, draw = FAMILIES[family]
    check_likelihood(likelihood, draw(30))


class Plain(Scaled):
    contributions = Waits.contributions


class Unscored(Scaled):
    log_predictive = Waits.log_predictive


class Short(Scaled):
    def contributions(self, statistics, row, slots):
        return super().contributions(statistics, row, slots)[:, :-1]


class Crowded(Scaled):
    def contributions(self, statistics, row, slots):
        found = super().contributions(statistics, row, slots)
        return found * (1.0 + 0.1 * np.tanh(statistics[:, 0].sum()))


class Endless(Scaled):
    def contributions(self, statistics, row, slots):
        return super().contributions(statistics, row, slots) / 0.0


class Undeclared(Scaled):
    latent: ClassVar[bool] = False


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (Plain, "latent but does not define contributions"),
        (Unscored, "latent but does not define log_predictive"),
        (Short, "contributions must be"),
        (Crowded, "depend on the cluster alone"),
        (Endless, "must be finite"),
        (Undeclared, "only latent families"),
    ],
)
def test_a_broken_family_is_told_what_is_wrong(broken, law):
    with pytest.raises(AssertionError, match=law):
        check_likelihood(broken(), scaled_rows(20))


# --- the pair (cluster, scale) as one latent, by enumeration --------------------------------------


class Pairs:
    """Visits by enumeration of all pairs (k, g), in plain Python, for a Dirichlet process."""

    def __init__(self, concentration, threshold, family):
        self.a, self.threshold, self.rho = concentration, threshold, family.rho
        self.scales = list(zip(family.precisions, family.shares, strict=True))
        self.clusters, self.log_evidence, self.n_reborn = [], [], 0

    def density(self, cluster, x, precision):
        P = self.rho + sum(n * p for n, (p, _) in zip(cluster["n"], self.scales, strict=True))
        spread = math.sqrt(1 / P + 1 / precision)
        return math.prod(
            norm.pdf(value, s / P, spread) for value, s in zip(x, cluster["sum"], strict=True)
        )

    def change(self, x, q, sign):
        """Add what a row contributes, or take it out."""
        for k, cluster in enumerate(self.clusters):
            mine = [q.get((k, g), 0.0) for g in range(len(self.scales))]
            for g, (precision, _) in enumerate(self.scales):
                cluster["n"][g] += sign * mine[g]
                for d, value in enumerate(x):
                    cluster["sum"][d] += sign * mine[g] * precision * value
            cluster["mass"] += sign * sum(mine)
            if sum(mine) > 0:
                cluster["vacancy"] += sign * math.log1p(-min(sum(mine), 1 - 2**-53))

    def visit(self, x, old=None):
        if old:
            self.change(x, old, -1.0)
        empty = {"n": [0.0] * len(self.scales), "sum": [0.0] * len(x), "mass": 0.0, "vacancy": 0.0}
        total = sum(cluster["mass"] for cluster in self.clusters)
        scores = {
            (k, g): (cluster["mass"] if cluster is not empty else self.a if total > 1e-9 else 1.0)
            / (total + self.a if total > 1e-9 else 1.0)
            * share
            * self.density(cluster, x, precision)
            for k, cluster in enumerate([*self.clusters, empty])
            for g, (precision, share) in enumerate(self.scales)
        }
        evidence, new = sum(scores.values()), len(self.clusters)
        q = {pair: score / evidence for pair, score in scores.items()}
        opens = sum(q[new, g] for g in range(len(self.scales))) > self.threshold
        dead = [k for k, _ in (old or {}) if self.clusters[k]["mass"] <= 1e-9]
        if opens and dead:  # the same cluster again
            self.n_reborn += 1
            q = {(dead[0] if k == new else k, g): q[k, g] for k, g in q if k != dead[0]}
        elif opens:
            self.clusters.append(empty)
        else:
            kept = sum(value for (k, _), value in q.items() if k < new)
            q = {pair: value / kept for pair, value in q.items() if pair[0] < new}
        self.change(x, q, 1.0)
        self.log_evidence.append(math.log(evidence))
        return q


@pytest.mark.parametrize("family", [Scaled(), CompiledScaled()], ids=["reference", "compiled"])
def test_scales_are_the_enumeration_of_pairs(family):
    X = np.append(scaled_rows(14, 4), [[60.0, -60.0]], axis=0)
    oracle = Pairs(0.7, 0.3, family)
    model = Model(dirichlet_process(0.7), family)
    batch, settings = family.encode(X), adf.Settings(0.3, 0.0)
    kernel = model.kernel_arguments(batch)
    state, sites = adf.init(model, batch.n_statistics), SiteBuffer(len(batch))
    records = list(visit(model, state, batch, SiteBuffer(), sites, settings, kernel))
    stored = [oracle.visit(x.tolist()) for x in X]
    for _ in range(3):
        found = np.concatenate([record.rows.log_evidence for record in records])
        np.testing.assert_allclose(found, oracle.log_evidence, rtol=1e-9)
        assert state.n_clusters == len(oracle.clusters) > 2
        for slot, cluster in enumerate(oracle.clusters):
            expected = [*cluster["sum"], *cluster["n"]]
            np.testing.assert_allclose(state.statistics[slot], expected, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(state.masses[slot], cluster["mass"], rtol=1e-9)
            np.testing.assert_allclose(state.log_vacancy[slot], cluster["vacancy"], rtol=1e-8)
        for i in range(len(X)):  # a site is q and, line by line, sum_g r_g t_g
            slots, shares = sites.row(i)
            for slot, share, line in zip(slots, shares, sites.lines(i), strict=True):
                pairs = [stored[i].get((int(slot), g), 0.0) for g in range(3)]
                np.testing.assert_allclose(share, sum(pairs), rtol=1e-8, atol=1e-12)
                np.testing.assert_allclose(share * line[2:], pairs, rtol=1e-8, atol=1e-12)
        oracle.log_evidence, new = [], SiteBuffer(len(batch))
        records = list(visit(model, state, batch, sites, new, settings, kernel))
        sites = new
        stored = [oracle.visit(x.tolist(), q) for x, q in zip(X, stored, strict=True)]
    assert oracle.n_reborn > 0


# --- laws of every algorithm ----------------------------------------------------------------------


@dataclass(frozen=True)
class LatentWaits(Waits):
    latent: ClassVar[bool] = True


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_latent_family_that_adds_t_is_the_plain_one(schedule):
    X, _ = draw_waits(90, 3)
    plain, latent = (
        StreamingMixture(PRIOR, likelihood, engine="reference", **SCHEDULES[schedule])
        .partial_fit(X)
        .finish()
        for likelihood in (Waits(), LatentWaits())
    )
    if schedule == "merges":  # means of what was added are rounded
        for one, other in zip(plain.state_.statistics, latent.state_.statistics, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    else:
        assert bits(plain.state_) == bits(latent.state_)
        assert plain.lineage_ == latent.lineage_
    for one, other in zip(plain.epochs_, latent.epochs_, strict=True):
        np.testing.assert_allclose(one.change, other.change, atol=1e-9)


@families
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_bits_do_not_depend_on_batching(family, schedule):
    X = FAMILIES[family][1](90, 1)
    whole, parts = (mixture(family, **SCHEDULES[schedule]) for _ in range(2))
    whole.partial_fit(X).finish()
    for start, stop in [(0, 1), (1, 40), (40, 41), (41, 90)]:
        parts.partial_fit(X[start:stop])
    parts.finish()
    assert bits(whole.state_) == bits(parts.state_)
    assert whole.lineage_ == parts.lineage_


@families
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_saved_in_the_middle_it_goes_on_with_the_same_bits(family, schedule, tmp_path):
    X, options = FAMILIES[family][1](90, 2), SCHEDULES[schedule]
    model = mixture(family, **options).partial_fit(X[:47])
    model.save(tmp_path / "half")
    again = StreamingMixture.load(tmp_path / "half", classes=CLASSES)
    for half in (model, again):
        half.partial_fit(X[47:]).finish()
    assert bits(model.state_) == bits(again.state_)
    kept = [half.window_.sites.contributions for half in (model, again)]
    assert (kept[0] is None) == (kept[1] is None)
    if kept[0] is not None:
        assert kept[0].values.tobytes() == kept[1].values.tobytes()


@families
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("half_life", [None, 60.0])
@pytest.mark.parametrize("merging", [None, -30.0])
def test_the_posterior_is_the_sum_of_what_was_added(family, weighted, half_life, merging):
    """Also where rows count for less and less, and where clusters were merged meanwhile."""
    X = FAMILIES[family][1](80, 4)
    weights = np.random.default_rng(5).uniform(0.5, 2.0, size=80) if weighted else None
    options = {"half_life": half_life, "merge_threshold": merging, "prune_threshold": 0.0}
    model = mixture(family, revisit=200, n_revisits=2, **options)
    model.partial_fit(X, sample_weight=weights)
    assert_sites_add_up(model)
    stream = model.stream_
    schedule = stream.settings.schedule(all_rows=False)
    posterior = (stream.model, stream.state, stream.window, stream.visits)
    outcomes = list(window.finish(*posterior, schedule, lambda batch: None))
    assert_sites_add_up(model)
    assert merging is None or outcomes[0].events
    again = totals(model.window_.sites, model.window_.rows(), model.n_clusters_)[0]
    assert weighted or half_life is None or model.state_.distance(again) > 0.1


@families
def test_sweeps_settle_where_the_sites_are_consistent(family):
    X = FAMILIES[family][1](60, 6)
    model = mixture(family, n_passes=30, tol=1e-6, keep_sites=True).fit(X)
    changes = [epoch.change for epoch in model.epochs_]
    assert changes[-1] < 0.1 * changes[0]
    assert max(epoch.drift for epoch in model.epochs_) < 1e-9
    assert_sites_add_up(model, model.likelihood_.encode(X))
    refined = model.refine(X)
    assert_sites_add_up(refined, model.likelihood_.encode(X))


def test_a_row_that_stays_in_its_cluster_still_moves():
    """One cluster, all shares one: what rows add changes until it no longer does."""
    X = scaled_rows(40, 7) * 0.1
    model = Model(dirichlet_process(1e-9), Scaled())
    _, batch, state, sites = passed(Scaled(), X, adf.Settings(0.9, 1e-4), dirichlet_process(1e-9))
    changes = [ep.sweep(model, state, batch, sites, SETTINGS).change for _ in range(30)]
    assert state.n_clusters == 1
    assert changes[0] > 1e-3
    assert changes[-1] < 1e-9
    assert all(one >= other for one, other in pairwise(changes[:10]))


@families
def test_what_was_added_is_taken_out_as_it_was(family):
    """The cluster has changed since, and with it what a row would add now."""
    model, batch, state, sites = passed(FAMILIES[family][0], FAMILIES[family][1](50, 8))
    moved = 0
    for i in range(40):
        row, (slots, shares) = batch.row(i), sites.row(i)
        now = model.likelihood.contributions(state.candidates, row, slots)
        moved += not np.allclose(now, sites.lines(i))
        before = state.rows(slots)[:, row.columns]
        state.take_out(slots, shares, sites.added(i, row))
        expected = before - shares[:, None] * sites.lines(i)
        np.testing.assert_allclose(state.rows(slots)[:, row.columns], expected, atol=1e-12)
    assert moved > 10


@families
def test_a_merge_sums_what_was_added_to_the_two(family):
    settings = adf.Settings(0.5, 0.0)
    _, batch, state, sites = passed(FAMILIES[family][0], FAMILIES[family][1](50, 9), settings)
    shared = [i for i in range(50) if set(sites.row(i)[0].tolist()) >= {0, 1}]
    assert shared
    before = {i: (sites.row(i)[1].copy(), sites.lines(i).copy()) for i in shared}
    ids = state.ids.tolist()
    join_into(state, [sites], ids[0], ids[1])
    for i, (shares, lines) in before.items():
        place = int(np.flatnonzero(sites.row(i)[0] == 0)[0])
        found = sites.row(i)[1][place] * sites.lines(i)[place]
        np.testing.assert_allclose(found, shares[:2] @ lines[:2], rtol=1e-12)
    assert state.distance(totals(sites, batch, state.n_clusters)[0]) < 1e-9
    coarse = mixture(family, keep_sites=True).fit(FAMILIES[family][1](50, 9)).coarsened(2)
    assert coarse.n_clusters_ == 2


def test_wide_rows_are_hashed():
    X = np.zeros((40, DENSE_UP_TO + 50), np.int64)
    X[:, ::400] = saturating_rows(40, 10, n_words=-(-X.shape[1] // 400))
    model, batch, state, sites = passed(Saturating(0.001), X)
    assert state.is_hashed
    assert 1 < state.n_clusters < 30
    for _ in range(2):
        epoch = ep.sweep(model, state, batch, sites, SETTINGS)
        assert epoch.drift < 1e-9
    narrow = passed(Saturating(0.001), X[:, : DENSE_UP_TO - 50])
    assert not narrow[2].is_hashed


def test_sites_travel_by_id_with_what_they_added():
    _, batch, state, sites = passed(Scaled(), scaled_rows(40, 11))
    parts = [Responsibilities.of(state, sites, *part) for part in [(0, 13), (13, 13), (13, 40)]]
    again = Responsibilities.joined(parts).sites(state)
    for one, other in zip(again.arrays, sites.arrays, strict=True):
        np.testing.assert_array_equal(one, other[: one.size])
    np.testing.assert_array_equal(again.contributions.values, sites.contributions.values)
    rest = sites.part(13)
    np.testing.assert_array_equal(rest.lines(2), sites.lines(15))
    assert state.distance(totals(again, batch, state.n_clusters)[0]) < 1e-9


def test_only_latent_families_keep_what_rows_add():
    X = saturating_rows(30)
    plain = StreamingMixture(PRIOR, Waits(), revisit=50).partial_fit(X + 1.0)
    assert not any("contributions" in name for name in window_arrays(plain.window_))
    latent = mixture("words", revisit=50).partial_fit(X)
    assert any("contributions" in name for name in window_arrays(latent.window_))
    passing = mixture("words").partial_fit(X)
    assert passing.absorbed_.responsibilities.contributions is None


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("indptr", lambda x: x[:-1]),
        ("indptr", lambda x: np.append(x[:-2] + 1, x[-2:])),
        ("values", lambda x: x[:-1]),
        ("values", lambda x: x.astype(np.float32)),
        ("values", lambda x: np.full_like(x, np.nan)),
    ],
)
def test_contributions_that_cannot_be_are_refused(name, spoil):
    model = mixture("words", revisit=50).partial_fit(saturating_rows(30))
    arrays = window_arrays(model.window_)
    full = f"window.contributions.{name}"
    arrays[full] = spoil(arrays[full])
    with pytest.raises(ValueError, match="is not valid"):
        window_from(arrays, model.likelihood_, model.state_, keep_rows=True)


def test_what_needs_plain_rows_says_so():
    X, model = scaled_rows(8), Model(PRIOR, Scaled())
    with pytest.raises(ValueError, match="exact enumeration needs rows that add the same"):
        exact.run(model, Scaled().encode(X))
    with pytest.raises(ValueError, match="Gibbs sampling needs rows that add the same"):
        GibbsMixture(PRIOR, Scaled()).fit(X)
    with pytest.raises(ValueError, match="no compiled engine"):
        StreamingMixture(PRIOR, Scaled(), engine="compiled").fit(X)


class NoTwinParameters(NamedTuple):
    rho: float


class HalfCompiled(Scaled):
    """Has parameters for compiled loops, but nothing that says what a row adds."""

    def kernel_parameters(self, n_statistics):
        return NoTwinParameters(self.rho)


def test_latent_families_without_a_compiled_contribution_use_the_reference():
    rows = scaled_rows(60)
    half = StreamingMixture(PRIOR, HalfCompiled()).fit(rows)
    whole = StreamingMixture(PRIOR, Scaled(), engine="reference").fit(rows)
    assert bits(half.state_) == bits(whole.state_)
    with pytest.raises(ValueError, match="has no compiled engine"):
        StreamingMixture(PRIOR, HalfCompiled(), engine="compiled").fit(rows)
