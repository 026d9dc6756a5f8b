"""A row takes part in few clusters: the best ones, the same in both engines and with any screen."""

import numpy as np
import pytest

from bnpstream import DiagonalGaussian, DirichletMultinomial, StreamingMixture, dirichlet_process
from bnpstream.inference import adf
from bnpstream.likelihoods.word_screen import no_screen
from bnpstream.mixture import MixtureState, Model, log_joint
from bnpstream.storage.models import SavedModel
from states import bits, compiled_respond

pytestmark = pytest.mark.kernel

WORDS, CLUSTERS = 40, 60


class Unscreened(DirichletMultinomial):
    """Documents whose scores are all exact."""

    def cache(self, table, masses, n_clusters):
        return no_screen(table.starts.size)


def short_documents(number, rows):
    """Return counts of many overlapping topics, so short that many clusters would do."""
    rng = np.random.default_rng((41, number))
    theta = rng.dirichlet(np.full(WORDS, 0.2), size=CLUSTERS)
    lengths = rng.integers(1, 6, size=rows)
    return rng.multinomial(lengths, theta[rng.integers(0, CLUSTERS, size=rows)])


def streamed(likelihood, counts, settings):
    """Return the posterior of one compiled pass, and the responsibilities of its rows."""
    model = Model(dirichlet_process(20), likelihood)
    batch = likelihood.encode(counts)
    state = adf.init(model, batch.n_statistics)
    records = list(adf.run(model, state, batch, settings, model.kernel_arguments(batch)))
    return model, state, [record.responsibilities for record in records]


@pytest.mark.parametrize("cut", [1e-4, 0.0])
@pytest.mark.parametrize("most", [1, 2, 4, 7, 500])
def test_rows_take_part_in_the_best_clusters(most, cut):
    settings = adf.Settings(0.1, cut, max_responsibilities=most)
    model, state, _ = streamed(DirichletMultinomial(0.05), short_documents(0, 150), settings)
    batch = model.likelihood.encode(short_documents(1, 25))
    kernel, exact = model.kernel_arguments(batch), log_joint(model, state, batch, None)
    assert state.n_clusters > 8
    crowded = 0
    for i in range(len(batch)):
        scores = exact[i]
        wanted = scores[:-1] >= scores.max() + (np.log(cut) if cut > 0 else -np.inf)
        crowded += wanted.sum() > most
        best = sorted(np.flatnonzero(wanted), key=lambda k: (-scores[k], k))[:most]
        total = np.logaddexp.reduce([*scores[best], scores[-1]])
        for found in (
            adf.respond(model, state, batch.row(i), settings),
            compiled_respond(model, kernel, state, i, settings),
        ):
            shares = found.responsibilities[: state.n_clusters]
            assert np.flatnonzero(shares).tolist() == sorted(best)
            assert abs(found.responsibilities.sum() - 1) < 1e-12
            if scores[-1] >= scores.max() - 9:
                assert abs(found.log_evidence - total) < 1e-10
                assert abs(found.novelty - np.exp(scores[-1] - total)) < 1e-10
    assert crowded > 0 or most == 500


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_of_equal_clusters_the_first_slots_win(engine):
    model = Model(dirichlet_process(1), DirichletMultinomial(0.5))
    batch = model.likelihood.encode(np.array([[2, 1, 0]]))
    state = MixtureState(batch.n_statistics)
    for _ in range(5):  # five clusters of one and the same document each
        state.open()
        state.add(np.append(np.zeros(state.n_clusters - 1), 1.0), batch.row(0))
    settings = adf.Settings(0.5, 1e-4, max_responsibilities=3)
    kernel = model.kernel_arguments(batch)
    if engine == "compiled":
        found = compiled_respond(model, kernel, state, 0, settings)
    else:
        found = adf.respond(model, state, batch.row(0), settings)
    np.testing.assert_allclose(found.responsibilities, [1 / 3, 1 / 3, 1 / 3, 0, 0], atol=1e-12)


@pytest.mark.parametrize("most", [1, 3, 4])
def test_the_screen_changes_no_bit(most):
    settings = adf.Settings(0.1, 1e-4, max_responsibilities=most)
    counts = short_documents(2, 400)
    _, screened, shares = streamed(DirichletMultinomial(0.05), counts, settings)
    _, scored, exact = streamed(Unscreened(0.05), counts, settings)
    assert screened.n_clusters > 2 * most
    assert bits(screened) == bits(scored)
    for part, other in zip(shares, exact, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(part[:3], other[:3], strict=True))
        assert np.diff(part.indptr).max() <= most + 1


def test_no_limit_and_no_cut_are_the_paper():
    counts, given = short_documents(3, 120), (dirichlet_process(20), DirichletMultinomial(0.05))
    exact = StreamingMixture(*given, min_responsibility=0.0, max_responsibilities=None)
    exact.partial_fit(counts)
    settings = adf.Settings(0.1, 0.0, max_responsibilities=10**6)
    _, state, shares = streamed(given[1], counts, settings)
    assert bits(exact.state_) == bits(state)
    last = shares[-1]
    assert last.indptr[-1] - last.indptr[-2] >= state.n_clusters - 1


def test_of_rows_of_numbers_too_the_best_are_kept():
    rng = np.random.default_rng(43)
    rows = rng.normal(size=(60, 2)) + 3 * rng.integers(0, 3, size=(60, 2))
    given = (
        dirichlet_process(5),
        DiagonalGaussian(mean=[3.0, 3.0], variance=[1.0, 1.0], mean_strength=0.1),
    )
    few, all_of_them = (
        StreamingMixture(*given, min_responsibility=0.0, max_responsibilities=most)
        for most in (2, None)
    )
    for model in (few, all_of_them):
        model.partial_fit(rows)
    entries = np.diff(few.stream_.last.absorbed.responsibilities.indptr)
    assert entries.max() <= 3
    assert np.diff(all_of_them.stream_.last.absorbed.responsibilities.indptr).max() > 3


def test_a_model_saved_before_there_was_a_limit_has_none():
    model = StreamingMixture(dirichlet_process(20), DirichletMultinomial(0.05))
    tensors = model.partial_fit(short_documents(4, 100)).to_tensors()
    assert SavedModel.of(tensors).settings["max_responsibilities"] == 4
    del tensors.document["model"]["settings"]["max_responsibilities"]
    assert SavedModel.of(tensors).settings["max_responsibilities"] is None
