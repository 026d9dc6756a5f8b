"""EP-NRM, Algorithm 2: against an oracle that sums all other sites anew, and its laws."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from revisit_cases import (
    CASES,
    ENGINES,
    PRIORS,
    WORDS,
    assert_sites_add_up,
    dense,
    documents,
    first_pass,
    kernel_of,
    separated,
    sweep,
)

import naive
from bnpstream import StreamingMixture, dirichlet_process
from bnpstream.inference import ep, merge
from bnpstream.inference.response import Settings
from bnpstream.inference.visits import visit
from bnpstream.kernels.arrays import GONE
from bnpstream.likelihoods import DirichletMultinomial
from bnpstream.mixture import MixtureState, Model, SiteBuffer
from bnpstream.mixture.sites import totals
from bnpstream.priors import (
    GeneralizedGamma,
    NormalizedRandomMeasure,
    normalized_inverse_gaussian,
)

kernel = pytest.mark.kernel
engines = pytest.mark.parametrize("engine", ENGINES)
priors = pytest.mark.parametrize("kind", PRIORS)


# --- the oracle -----------------------------------------------------------------------------------


def summed(documents, sites, ids):
    """Return the posterior that sites (dicts id -> q) make of their documents."""
    words = {id: Counter() for id in ids}
    lengths, masses, log_vacancy = (dict.fromkeys(ids, 0.0) for _ in range(3))
    for document, site in zip(documents, sites, strict=True):
        for id, q in site.items():
            for word, count in document.items():
                words[id][word] += q * count
            lengths[id] += q * sum(document.values())
            masses[id] += q
            log_vacancy[id] += math.log1p(-min(q, naive.LARGEST_BELOW_ONE))
    parts = ([part[id] for id in ids] for part in (words, lengths, masses, log_vacancy))
    return naive.State(*parts, math.fsum(masses.values()))


class Visited(NamedTuple):
    """What became of a row."""

    site: dict[int, float]
    ids: list[int]
    """Clusters before any is dropped."""
    dropped: dict[int, float]
    """Their masses."""
    log_evidence: float
    reborn: bool


def visited(documents, sites, ids, i, next_id, case):
    """Return what Algorithm 2 makes of row i; the cavity is summed anew, nothing is subtracted."""
    settings = case.settings
    others = [site if j != i else {} for j, site in enumerate(sites)]
    cavity = summed(documents, others, ids)
    masses = dict(zip(ids, cavity.masses, strict=True))
    response = naive.respond(
        cavity if cavity.n > 1e-9 else naive.empty_state(),
        documents[i],
        case.oracle,
        [case.alpha] * WORDS,
        settings.new_cluster_threshold,
        settings.min_responsibility,
        settings.max_responsibilities,
    )
    q = response.responsibilities
    known = ids if cavity.n > 1e-9 else []
    site = {id: share for id, share in zip(known, q, strict=False) if share > 0}
    least = max(case.oracle.discount, settings.prune_threshold)
    homes = [(share, id) for id, share in sites[i].items() if masses[id] <= least + 1e-9]
    after = list(ids)
    if response.opens and homes:
        home = max(homes, key=lambda pair: pair[0])[1]
        site[home] = site.get(home, 0.0) + q[-1]
    elif response.opens:
        site[next_id] = q[-1]
        after.append(next_id)
    heavier = {id: masses[id] + site.get(id, 0.0) for id in sites[i]}
    dropped = {id: mass for id, mass in heavier.items() if mass < settings.prune_threshold}
    reborn = response.opens and bool(homes)
    return Visited(site, after, dropped, response.log_evidence, reborn)


def as_documents(batch):
    counts = batch.statistics.toarray()[:, :-1]
    return [{w: int(c) for w, c in enumerate(row) if c} for row in counts]


def one_row(case, state, batch, old, new, engine):
    """Visit the next row; `RECORD_ROWS` must be 1."""
    records = visit(
        case.model, state, batch, old, new, case.settings, kernel_of(case.model, batch, engine)
    )
    return next(records)


def as_one(old, new):
    """Return the sites of all rows in the middle of a sweep: those already visited are new."""
    both = new.copy()
    for i in range(new.n_visited, old.n_visited):
        both.append(*old.row(i))
    return both


# --- row by row -----------------------------------------------------------------------------------


@kernel
@engines
@priors
def test_two_sweeps_follow_the_oracle_row_by_row(kind, engine, monkeypatch):
    monkeypatch.setattr("bnpstream.inference.visits.RECORD_ROWS", 1)
    met = Counter()
    for case in (case for case in CASES if case.kind == kind):
        counts = documents(case.number, rows=22)
        batch, state, sites = first_pass(case.model, counts, case.settings, "reference")
        for _ in range(2):
            new = SiteBuffer(len(batch))
            for _ in range(len(batch)):
                met += follow_the_oracle(case, state, batch, sites, new, engine)
            sites.replace(new)
    # What this test is worth: every branch was met.
    assert met.keys() == {"birth", "death", "reborn", "gone"}


def follow_the_oracle(case, state, batch, old, new, engine):
    """Visit the next row and compare; return what kinds of things happened."""
    i, before = new.n_visited, dense(state, as_one(old, new))
    slots, shares = old.row(i)
    gone = float(shares[slots == GONE].sum())
    ids, next_id = state.ids.tolist(), state.next_id
    expected = visited(as_documents(batch), before, ids, i, next_id, case)
    site, dropped = expected.site, expected.dropped
    record = one_row(case, state, batch, old, new, engine)

    assert set(state.ids.tolist()) == set(expected.ids) - set(dropped)
    after = dense(state, as_one(old, new))
    for j in range(len(batch)):
        if j != i:
            assert after[j] == {id: q for id, q in before[j].items() if id not in dropped}
    for id in {*after[i], *site} - set(dropped):
        assert abs(after[i].get(id, 0.0) - site.get(id, 0.0)) < 1e-9
    if case.settings.min_responsibility > 0:
        assert set(after[i]) == set(site) - set(dropped)
    assert_sites_add_up(state, batch, as_one(old, new), 1e-9)

    born = [event.id for event in record.events if event.kind == "birth"]
    died = {event.id: event.mass for event in record.events if event.kind == "death"}
    assert born == [id for id in expected.ids if id == next_id]
    assert died.keys() == dropped.keys()
    for id, mass in died.items():
        assert abs(mass - dropped[id]) < 1e-9
    moved = sum(abs(site.get(id, 0.0) - before[i].get(id, 0.0)) for id in {*site, *before[i]})
    assert abs(record.rows.change[0] - 0.5 * (moved + gone)) < 1e-9
    assert abs(record.rows.log_evidence[0] - expected.log_evidence) < 1e-9
    assert site[record.rows.ids[0]] > max(site.values()) - 1e-9
    assert record.rows.n_clusters[0] == state.n_clusters
    assert record.n_observations == len(batch)
    happened = {"birth": born, "death": died, "reborn": expected.reborn, "gone": gone}
    return Counter(kind for kind, thing in happened.items() if thing)


@kernel
@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_engines_revisit_a_row_alike_from_the_same_state(case, monkeypatch):
    monkeypatch.setattr("bnpstream.inference.visits.RECORD_ROWS", 1)
    counts = documents(case.number + 10, rows=30)
    batch, state, sites = first_pass(case.model, counts, case.settings, "reference")
    for _ in range(2):
        new = SiteBuffer(len(batch))
        for i in range(len(batch)):
            other, other_old, other_new = state.copy(), sites.copy(), new.copy()
            record = one_row(case, state, batch, sites, new, "reference")
            twin = one_row(case, other, batch, other_old, other_new, "compiled")
            assert other.ids.tolist() == state.ids.tolist()
            assert other.next_id == state.next_id
            assert other_new.row(i)[0].tolist() == new.row(i)[0].tolist()
            np.testing.assert_allclose(other_new.row(i)[1], new.row(i)[1], rtol=0, atol=1e-10)
            for j in range(i):
                assert other_new.row(j)[0].tolist() == new.row(j)[0].tolist()
            for j in range(i + 1, len(batch)):
                assert other_old.row(j)[0].tolist() == sites.row(j)[0].tolist()
            for name in ("statistics", "masses", "total_mass", "auxiliary", "log_evidence"):
                np.testing.assert_allclose(
                    getattr(other, name), getattr(state, name), rtol=1e-10, atol=1e-10
                )
            np.testing.assert_allclose(
                np.exp(other.log_vacancy - state.log_vacancy), 1.0, atol=1e-3
            )
            assert [event[:4] for event in twin.events] == [event[:4] for event in record.events]
            for one, two in zip(twin.events, record.events, strict=True):
                assert abs(one.mass - two.mass) < 1e-10
            for one, two in zip(twin.rows, record.rows, strict=True):
                np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-10)
        sites.replace(new)


# --- at a fixed point -----------------------------------------------------------------------------


@kernel
@engines
@priors
def test_at_a_fixed_point_a_sweep_changes_nothing(kind, engine):
    model, settings = Model(PRIORS[kind][0], DirichletMultinomial(0.1)), Settings(0.5, 1e-4, 0.5)
    batch, state, sites = first_pass(model, separated(1), settings, engine)
    epochs = []
    while not epochs or epochs[-1].change > 1e-13:
        epochs.append(sweep(model, state, batch, sites, settings, engine))
        assert len(epochs) < 30
    ids, next_id, before = state.ids.copy(), state.next_id, dense(state, sites)
    statistics, masses = state.statistics.copy(), state.masses.copy()
    for _ in range(2):
        epoch = sweep(model, state, batch, sites, settings, engine)
        assert epoch.change <= 1e-13
        assert epoch.events == []
        assert state.ids.tolist() == ids.tolist()
        assert (state.next_id, epoch.n_clusters) == (next_id, ids.size)
        for site, expected in zip(dense(state, sites), before, strict=True):
            assert site.keys() == expected.keys()
            assert all(abs(q - expected[id]) < 1e-12 for id, q in site.items())
        np.testing.assert_allclose(state.statistics, statistics, rtol=0, atol=1e-12)
        np.testing.assert_allclose(state.masses, masses, rtol=0, atol=1e-12)


@kernel
@engines
@priors
def test_a_singleton_keeps_slot_and_id_through_sweeps(kind, engine):
    model, settings = Model(PRIORS[kind][0], DirichletMultinomial(0.1)), Settings(0.5, 1e-4, 0.5)
    counts = separated(2)
    # The row that nothing is like comes in the middle: clusters open before and after it.
    counts = counts[[*range(2), len(counts) - 1, *range(2, len(counts) - 1)]]
    batch, state, sites = first_pass(model, counts, settings, engine)
    alone = int(np.flatnonzero(state.statistics[:, :-1][:, counts[2] > 0].any(axis=1))[0])
    assert 0 < alone < state.n_clusters - 1
    assert state.masses[alone] == 1.0
    ids = state.ids.tolist()
    for _ in range(3):
        epoch = sweep(model, state, batch, sites, settings, engine)
        assert epoch.events == []
        assert state.ids.tolist() == ids
        assert sites.row(2)[0].tolist() == [alone]
        assert sites.row(2)[1].tolist() == [1.0]
        assert state.next_id == len(ids)


@kernel
@engines
def test_the_only_row_keeps_its_cluster(engine):
    model, settings = Model(PRIORS["nig"][0], DirichletMultinomial(0.1)), Settings(0.5, 1e-4, 0.5)
    batch, state, sites = first_pass(model, [[2, 1, 0]], settings, engine)
    epoch = sweep(model, state, batch, sites, settings, engine)
    assert (epoch.events, epoch.change, state.ids.tolist()) == ([], 0.0, [0])
    assert_sites_add_up(state, batch, sites)


@engines
def test_a_corpus_may_lose_its_last_cluster_and_find_one_again(engine):
    """Asking for more mass than there is drops everything; the next sweep begins anew."""
    model = Model(PRIORS["dp"][0], DirichletMultinomial(0.1))
    batch, state, sites = first_pass(model, [[3, 0], [0, 4]], Settings(0.5, 1e-4), engine)
    epoch = sweep(model, state, batch, sites, Settings(0.5, 1e-4, 5.0), engine)
    assert [event.kind for event in epoch.events] == ["death", "death"]
    assert (state.n_clusters, epoch.n_clusters) == (0, 0)
    assert abs(state.total_mass) < 1e-12
    epoch = sweep(model, state, batch, sites, Settings(0.5, 1e-4, 0.5), engine)
    assert [event.kind for event in epoch.events] == ["birth", "birth"]
    assert_sites_add_up(state, batch, sites)


@dataclass(frozen=True, repr=False)
class KnownByTwoFunctions(NormalizedRandomMeasure):
    """What a user would write: an NGGP, but only phi and kappa are told."""

    same: GeneralizedGamma

    @property
    def smallest_mass(self):
        return self.same.discount

    def laplace_exponent(self, u):
        return self.same.laplace_exponent(u)

    def log_tilted_moment(self, m, u):
        return self.same.log_tilted_moment(m, u)


@pytest.mark.parametrize("auxiliary", ["mode", "quadrature"])
@pytest.mark.parametrize("number", [3, 5])
def test_a_measure_known_by_its_two_functions_is_revisited_too(auxiliary, number):
    """Empty cavities included: the row that nothing is like is alone."""
    same = GeneralizedGamma(1.5, 0.25, 0.7, auxiliary=auxiliary)
    priors = (same, KnownByTwoFunctions(same, auxiliary=auxiliary))
    counts, settings = separated(number, rows=21), Settings(0.5, 1e-4, 0.5)
    found = []
    for prior in priors:
        model = Model(prior, DirichletMultinomial(0.1))
        batch, state, sites = first_pass(model, counts, settings, "reference")
        epochs = [sweep(model, state, batch, sites, settings, "reference") for _ in range(2)]
        found.append((state.ids.tolist(), [epoch.log_predictive for epoch in epochs]))
        assert np.isfinite(state.masses).all()
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-6)


# --- sum of sites == state ------------------------------------------------------------------------


@kernel
@engines
@priors
def test_sites_add_up_after_any_mixture_of_opens_drops_and_merges(kind, engine):
    met, sigma = Counter(), PRIORS[kind][1].discount
    model = Model(PRIORS[kind][0], DirichletMultinomial(0.4))
    for number in range(2):
        rng = np.random.default_rng((33, number))
        opening = max(sigma, 0.15)
        batch, state, sites = first_pass(
            model, documents(number + 20, rows=40), Settings(opening, 1e-4), engine
        )
        for _ in range(8):
            if rng.random() < 0.6:
                prune = float(rng.choice([0.0, opening, 0.8, 1.5]))
                settings = Settings(opening, float(rng.choice([0.0, 1e-4, 1e-2])), prune)
                # Without a rebuild, so that it is the loop itself that keeps the books.
                new = SiteBuffer(len(batch))
                twin = kernel_of(model, batch, engine)
                records = list(visit(model, state, batch, sites, new, settings, twin))
                events = [event for record in records for event in record.events]
                sites.replace(new)
            else:
                threshold = float(rng.choice([-4.0, -1.0, 0.0, 3.0]))
                events = merge.merge_all(model, state, sites, threshold)
            met.update(event.kind for event in events)
            assert_sites_add_up(state, batch, sites)
        settings = Settings(opening, 1e-4, opening)
        sweep(model, state, batch, sites, settings, engine)  # with one: to the last bit
        for found, expected in zip(
            (state.statistics, state.masses, state.log_vacancy),
            totals(sites, batch, state.n_clusters),
            strict=True,
        ):
            np.testing.assert_array_equal(found, expected)
    assert met.keys() == {"birth", "death", "merge"}


@kernel
@engines
@priors
def test_light_clusters_are_dropped_logged_and_gone_from_the_sites(kind, engine):
    """Heavier than a row is too much to ask of a row that is alone: it dies, whole."""
    model, settings = Model(PRIORS[kind][0], DirichletMultinomial(0.1)), Settings(0.5, 1e-4, 1.5)
    batch, state, sites = first_pass(model, separated(3), settings, engine)
    n, last = len(batch), len(batch) - 1
    alone = int(state.ids[sites.row(last)[0][0]])
    assert state.masses[sites.row(last)[0][0]] == 1.0
    epoch = sweep(model, state, batch, sites, settings, engine)
    (event,) = epoch.events
    assert event[:4] == ("death", alone, None, n)
    assert abs(event.mass - 1.0) < 1e-12
    assert alone not in state.ids.tolist()
    assert sites.row(last)[0].tolist() == [GONE]
    assert dense(state, sites)[last] == {}
    assert abs(state.total_mass - (n - 1)) < 1e-10
    assert state.n_observations == n
    assert_sites_add_up(state, batch, sites)
    # Given again, the row counts as one that was visited: it opens a cluster anew, under a new id.
    epoch = sweep(model, state, batch, sites, settings, engine)
    (event,) = epoch.events
    assert event.kind == "birth"
    assert event.id > alone
    assert abs(state.total_mass - n) < 1e-10
    assert abs(epoch.change - 1 / n) < 1e-12
    assert state.n_observations == n


@kernel
@engines
@priors
def test_the_mass_of_the_prior_rule_is_what_is_left_after_drops(kind, engine):
    model = Model(PRIORS[kind][0], DirichletMultinomial(0.4))
    opening = max(0.15, PRIORS[kind][1].discount)
    settings = Settings(opening, 0.0, 0.95)
    dead = 0
    for number in range(40, 44):
        batch, state, sites = first_pass(model, documents(number), settings, engine)
        epoch = sweep(model, state, batch, sites, settings, engine)
        lost = [event.mass for event in epoch.events if event.kind == "death"]
        assert all(0.0 <= mass < 0.95 for mass in lost)
        # What a row lost before its own visit it has got back in it; the rest is missing.
        kept = [sum(site.values()) for site in dense(state, sites)]
        assert abs(state.total_mass - sum(kept)) < 1e-10
        assert abs(state.masses.sum() - sum(kept)) < 1e-10
        assert len(batch) - sum(kept) <= sum(lost) + 1e-10
        assert (len(batch) - sum(kept) > 1e-6) <= bool(lost)
        dead += len(lost)
    assert dead > 0


# --- what a sweep reports -------------------------------------------------------------------------


@engines
@priors
def test_an_epoch_reports_the_mean_change_and_the_log_predictives_of_its_rows(kind, engine):
    case = next(case for case in CASES if case.kind == kind)
    batch, state, sites = first_pass(case.model, documents(7), case.settings, engine)
    other, other_sites, before = state.copy(), sites.copy(), dense(state, sites)
    epoch = sweep(case.model, state, batch, sites, case.settings, engine)
    new = SiteBuffer()
    twin = kernel_of(case.model, batch, engine)
    (record,) = visit(case.model, other, batch, other_sites, new, case.settings, twin)
    assert epoch.n_rows == len(batch)
    assert epoch.change == pytest.approx(record.rows.change.mean(), rel=1e-14)
    assert epoch.log_predictive == pytest.approx(record.rows.log_evidence.sum(), rel=1e-14)
    assert epoch.n_clusters == state.n_clusters
    assert epoch.events == record.events
    if not any(event.kind == "death" for event in epoch.events):
        after = dense(state, sites)
        moved = [
            sum(abs(new.get(id, 0.0) - old.get(id, 0.0)) for id in {*new, *old}) / 2
            for new, old in zip(after, before, strict=True)
        ]
        assert epoch.change == pytest.approx(np.mean(moved), abs=1e-12)
        assert epoch.change > 0.01


@engines
def test_evidence_and_rows_seen_do_not_move_in_a_sweep(engine):
    case = CASES[0]
    batch, state, sites = first_pass(case.model, documents(8), case.settings, engine)
    before = (state.log_evidence, state.n_observations)
    changes = [
        sweep(case.model, state, batch, sites, case.settings, engine).change for _ in range(3)
    ]
    assert changes[0] > 0
    assert (state.log_evidence, state.n_observations) == before


@engines
def test_sweeps_stop_at_the_tolerance_or_after_so_many(engine):
    model, settings = CASES[0].model, CASES[0].settings
    counts = documents(9)

    def epochs(n_sweeps, tolerance):
        batch, state, sites = first_pass(model, counts, settings, engine)
        twin = kernel_of(model, batch, engine)
        options = {"n_sweeps": n_sweeps, "tolerance": tolerance}
        return list(ep.run(model, state, batch, sites, settings, twin, **options))

    assert epochs(0, 0.0) == []
    changes = [epoch.change for epoch in epochs(12, 0.0)]
    for count in (1, 3):
        assert [epoch.change for epoch in epochs(count, 0.0)] == changes[:count]
    assert changes[0] > changes[2] > 0
    stopped = [epoch.change for epoch in epochs(12, changes[2])]
    assert stopped == changes[: len(stopped)]
    assert stopped[-1] <= changes[2] < min(stopped[:-1])
    model = StreamingMixture(
        model.prior, model.likelihood, n_passes=13, tol=changes[2], engine=engine,
        new_cluster_threshold=settings.new_cluster_threshold,
        min_responsibility=settings.min_responsibility, prune_threshold=settings.prune_threshold,
        max_responsibilities=settings.max_responsibilities,
    ).fit(counts)  # fmt: skip
    assert [epoch.change for epoch in model.epochs_] == stopped


@engines
def test_no_rebuild_where_the_sites_are_not_all_there_is(engine):
    """Frozen rows have no site: totals rebuilt from the window would forget them."""
    case = CASES[2]
    batch, state, sites = first_pass(case.model, documents(12), case.settings, engine)
    sites.forget(20)
    window = batch.part(20, len(batch))
    gone = sum(float(sites.row(i)[1][sites.row(i)[0] == GONE].sum()) for i in range(len(window)))
    assert gone == 0.0
    epoch = sweep(case.model, state, window, sites, case.settings, engine)
    dead = sum(event.mass for event in epoch.events if event.kind == "death")
    assert state.total_mass > len(batch) - dead - 1e-9
    assert state.masses.sum() == pytest.approx(state.total_mass, abs=1e-9)
    assert np.isnan(epoch.drift)


# --- a corpus -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "prior", [dirichlet_process(100.0), normalized_inverse_gaussian(10.0, 100.0)], ids=repr
)
def test_fifty_epochs_of_kos_drift_less_than_1e_8(kos, prior, monkeypatch):
    model = Model(prior, DirichletMultinomial(0.1))
    epsilon = max(prior.discount, 0.1)
    settings = Settings(epsilon, 1e-4, epsilon)
    batch, state, sites = first_pass(model, kos.counts, settings, "compiled")
    unrebuilt, other_sites = state.copy(), sites.copy()
    twin = model.kernel_arguments(batch)
    for _ in range(50):
        epoch = ep.sweep(model, state, batch, sites, settings, twin)
        assert 0.0 < epoch.drift < 1e-8
    monkeypatch.setattr(MixtureState, "rebuild", lambda *_: None)
    for _ in range(50):
        ep.sweep(model, unrebuilt, batch, other_sites, settings, twin)
    statistics, masses, log_vacancy = totals(other_sites, batch, unrebuilt.n_clusters)
    drifts = [
        np.abs(unrebuilt.statistics - statistics).max(),
        np.abs(unrebuilt.masses - masses).max(),
        np.abs(unrebuilt.log_vacancy - log_vacancy).max(),
        abs(unrebuilt.total_mass - masses.sum()),
    ]
    assert max(drifts) < 1e-8
    assert max(drifts) > 0.0
