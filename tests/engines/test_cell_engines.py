"""Rows of cells: reference and compiled loop row by row from the same state, and identical bits.

Families, their rows and the oracle's spelling of each are in ``cell_cases``.
"""

import pickle

import numpy as np
import pytest

from bnpstream import StreamingMixture
from bnpstream.inference import adf, gibbs
from bnpstream.inference.merge import merge_all
from bnpstream.inference.visits import visit
from bnpstream.mixture import Model, SiteBuffer, log_joint
from bnpstream.priors import dirichlet_process, normalized_inverse_gaussian
from cell_cases import ENGINES, FAMILIES, FULL_ROWS, rows_of
from states import assert_free_slots_are_zero, bits, compiled_respond

pytestmark = pytest.mark.kernel
engines = pytest.mark.parametrize("engine", ENGINES)
families = pytest.mark.parametrize("name", FAMILIES)

PRIORS = {
    "dp": dirichlet_process(1.5),
    "nig": normalized_inverse_gaussian(2.0, 1.0),
}


def model_of(name, prior="dp"):
    return Model(PRIORS[prior], FAMILIES[name].likelihood)


def missing(name):
    return 0.0 if name in FULL_ROWS else 0.2


def kernel_of(model, batch, engine):
    return model.kernel_arguments(batch) if engine == "compiled" else None


def weights_for(n, number):
    return np.random.default_rng((70, number)).uniform(0.3, 2.5, n)


def assert_close_states(found, expected):
    assert np.array_equal(found.ids, expected.ids)
    assert np.array_equal(found.arrays.counters, expected.arrays.counters)
    for part in ("masses", "total_mass", "log_evidence"):
        np.testing.assert_allclose(
            getattr(found, part), getattr(expected, part), rtol=1e-10, atol=1e-10, err_msg=part
        )
    # Low digits are the rounding of high ones: the sum is what must agree.
    half = found.n_statistics // 2
    one, other = (s.statistics[:, :half] + s.statistics[:, half:] for s in (found, expected))
    np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(np.exp(found.log_vacancy), np.exp(expected.log_vacancy), atol=1e-10)
    assert_free_slots_are_zero(found)


# --- row by row -----------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS)
@families
def test_both_engines_respond_and_absorb_alike(name, prior):
    model, settings = model_of(name, prior), adf.Settings(0.2, 1e-4)
    batch = model.likelihood.encode(rows_of(name, 40, 1, missing(name)))
    batch = batch.weighted(weights_for(40, 1))
    kernel, state = model.kernel_arguments(batch), adf.init(model, batch.n_statistics)
    decisions = set()
    for i in range(len(batch)):
        reference = adf.respond(model, state, batch.row(i), settings)
        compiled = compiled_respond(model, kernel, state, i, settings)
        assert compiled.opens == reference.opens
        np.testing.assert_allclose(
            compiled.responsibilities, reference.responsibilities, rtol=0, atol=1e-10
        )
        assert np.array_equal(compiled.responsibilities > 0, reference.responsibilities > 0)
        assert abs(compiled.log_evidence - reference.log_evidence) < 1e-10
        decisions.add(reference.opens)
        part, other = batch.part(i, i + 1), state.copy()
        list(adf.run(model, other, part, settings))
        list(adf.run(model, state, part, settings, model.kernel_arguments(part)))
        assert_close_states(state, other)
    assert decisions == {True, False}


def revisit_alike(model, state, batch, sites, settings):
    """Sweep once, both engines from the same posterior at every row; return births and deaths."""
    new, kinds = SiteBuffer(len(batch)), []
    for i in range(len(batch)):
        copies = (state.copy(), sites.copy(), new.copy())
        expected = next(visit(model, copies[0], batch, *copies[1:], settings, None))
        kernel = model.kernel_arguments(batch)
        found = next(visit(model, state, batch, sites, new, settings, kernel))
        assert_close_states(state, copies[0])
        assert [event[:4] for event in found.events] == [event[:4] for event in expected.events]
        for part in ("log_evidence", "change", "shares"):
            one, other = getattr(found.rows, part), getattr(expected.rows, part)
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)
        assert np.array_equal(found.rows.ids, expected.rows.ids)
        for one, other in zip(new.row(i), copies[2].row(i), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)
        kinds += [event.kind for event in found.events]
    sites.replace(new)
    return kinds


@families
def test_both_engines_revisit_alike_before_and_after_merges(name, monkeypatch):
    monkeypatch.setattr("bnpstream.inference.visits.RECORD_ROWS", 1)
    model, settings = model_of(name, "nig"), adf.Settings(0.5, 1e-4, 0.9)
    batch = model.likelihood.encode(rows_of(name, 25, 2, missing(name)))
    batch = batch.weighted(weights_for(25, 2))
    state, sites = adf.init(model, batch.n_statistics), SiteBuffer(len(batch))
    opening = adf.Settings(0.5, 1e-4)  # too many clusters at first
    list(visit(model, state, batch, SiteBuffer(), sites, opening, None))
    revisit_alike(model, state, batch, sites, settings)
    before = state.n_clusters
    merges = merge_all(model, state, sites, -8.0)
    assert state.n_clusters == before - len(merges)
    revisit_alike(model, state, batch, sites, settings)


def test_revisits_above_met_births_deaths_and_merges(monkeypatch):
    """What the test before is worth."""
    monkeypatch.setattr("bnpstream.inference.visits.RECORD_ROWS", 1)
    met = set()
    for name in ("diagonal", "poisson"):
        model = model_of(name, "nig")
        batch = model.likelihood.encode(rows_of(name, 25, 2, 0.2))
        state, sites = adf.init(model, batch.n_statistics), SiteBuffer(len(batch))
        list(visit(model, state, batch, SiteBuffer(), sites, adf.Settings(0.5, 1e-4), None))
        settings = adf.Settings(0.5, 1e-4, 1.6)
        for _ in range(2):
            met |= set(revisit_alike(model, state, batch, sites, settings))
        met |= {event.kind for event in merge_all(model, state, sites, -8.0)}
    assert met == {"birth", "death", "merge"}


@pytest.mark.parametrize("name", ["gaussian", "diagonal", "mixed"])
def test_both_engines_move_a_window_alike(name):
    """Row by row, both from the same estimator; six windows are swept and frozen."""
    rows = rows_of(name, 45, 3, missing(name))
    weights = weights_for(45, 3)
    model = StreamingMixture(
        PRIORS["nig"], FAMILIES[name].likelihood, revisit=12, merge_threshold=3.0, engine="compiled"
    )
    for i in range(45):
        other = pickle.loads(pickle.dumps(model)).set_params(engine="reference")
        for each in (model, other):
            each.partial_fit(rows[i : i + 1], sample_weight=weights[i : i + 1])
        assert np.array_equal(other.label_ids_, model.label_ids_)
        np.testing.assert_allclose(other.log_evidence_, model.log_evidence_, atol=1e-9)
        assert_close_states(model.state_, other.state_)
    assert 0 < model.window_.n_rows < 12


@pytest.mark.parametrize("prior", ["dp", "nig"])
@families
def test_both_engines_sample_the_same_path(name, prior):
    model = model_of(name, prior)
    batch = model.likelihood.encode(rows_of(name, 25, 4, missing(name)))
    start = np.arange(25) % 6  # too many clusters: some must die
    one, other = (gibbs.chain_at(model, batch, start, np.nan) for _ in range(2))
    rng = np.random.default_rng((70, 4))
    seen = {6}
    for _ in range(6):
        log_u = gibbs.draw_auxiliary(model.prior, one.state.masses, one.state.auxiliary, rng)
        one.state.auxiliary = other.state.auxiliary = log_u
        uniforms = rng.random(len(batch))
        gibbs.sweep(model, one, batch, uniforms, None)
        gibbs.sweep(model, other, batch, uniforms, model.kernel_arguments(batch))
        assert one.assignments.tolist() == other.assignments.tolist()
        assert one.state.masses.tolist() == other.state.masses.tolist()
        half = batch.n_statistics // 2
        np.testing.assert_allclose(
            one.state.statistics[:, :half], other.state.statistics[:, :half], rtol=1e-12, atol=1e-12
        )
        seen.add(one.state.n_clusters)
    assert len(seen) > 1


# --- identical bits -------------------------------------------------------------------------------


@engines
@pytest.mark.parametrize("schedule", [{}, {"revisit": 16}, {"merge_threshold": 0.0}], ids=str)
@families
def test_any_split_and_a_pickle_in_mid_stream_give_the_same_bits(name, schedule, engine):
    rows = rows_of(name, 40, 5, missing(name))
    weights = weights_for(40, 5)

    def fitted(sizes):
        schedule_ = {"merge_every": 10, **schedule}
        model = StreamingMixture("nig", FAMILIES[name].likelihood, engine=engine, **schedule_)
        for part in np.split(np.arange(40), np.cumsum(sizes)[:-1]):
            model = pickle.loads(pickle.dumps(model))
            model.partial_fit(rows[part], sample_weight=weights[part])
        return model.finish()

    whole = fitted([40])
    for sizes in ([3, 1, 30, 6], [1] * 40):
        assert bits(fitted(sizes).state_) == bits(whole.state_)


@families
def test_threads_predict_the_same_bits(name):
    rows = rows_of(name, 50, 6, missing(name))
    model = StreamingMixture("nig", FAMILIES[name].likelihood, engine="compiled").fit(rows)
    alone = (model.predict_proba(rows), model.score_samples(rows))
    model.set_params(n_jobs=3)
    for found, expected in zip(
        (model.predict_proba(rows), model.score_samples(rows)), alone, strict=True
    ):
        assert found.tobytes() == expected.tobytes()
    batch = model.likelihood_.encode(rows)
    joint = [
        log_joint(Model(PRIORS["nig"], model.likelihood_), model.state_, part, arguments)
        for part, arguments in (
            (part, Model(PRIORS["nig"], model.likelihood_).kernel_arguments(part))
            for part in (batch, *(batch.part(i, i + 7) for i in range(0, 50, 7)))
        )
    ]
    assert np.concatenate(joint[1:]).tobytes() == joint[0].tobytes()


@families
def test_both_engines_score_new_rows_alike(name):
    model, rows = model_of(name), rows_of(name, 60, 7, missing(name))
    batch = model.likelihood.encode(rows)
    state = adf.init(model, batch.n_statistics)
    list(adf.run(model, state, batch.part(0, 40), adf.Settings(0.2, 1e-4)))
    before, part = bits(state), batch.part(40, 60)
    reference = log_joint(model, state, part, None)
    found = log_joint(model, state, part, model.kernel_arguments(part))
    np.testing.assert_allclose(found, reference, rtol=1e-12, atol=1e-10)
    assert bits(state) == before
