"""Both engines and the oracle on all of KOS, and the figures of the paper's table.

The data are not shipped; without them these tests are skipped.
"""

import numpy as np
import pytest

import naive
from bnpstream.inference import adf
from bnpstream.likelihoods import DirichletMultinomial
from bnpstream.mixture import Model, log_joint
from bnpstream.priors import dirichlet_process, normalized_inverse_gaussian
from states import compiled_respond

ALPHA = 0.1
LIKELIHOOD = DirichletMultinomial(ALPHA)
NIG = Model(normalized_inverse_gaussian(10.0, 100.0), LIKELIHOOD)
NIG_SETTINGS = adf.Settings(0.5, 1e-4)
DP = Model(dirichlet_process(100.0), LIKELIHOOD)
DP_SETTINGS = adf.Settings(0.1, 1e-4)
HELD_OUT, ORDERS = 686, 5


def oracle_respond(state, row, n_words):
    """Return the oracle's response to a row; of the state it reads this row's words only."""
    document = {
        int(word): int(count) for word, count in zip(row.columns[:-1], row.values[:-1], strict=True)
    }
    seen = naive.State(
        [
            dict(zip(document, words, strict=True))
            for words in state.statistics[:, list(document)].tolist()
        ],
        state.statistics[:, -1].tolist(),
        state.masses.tolist(),
        state.log_vacancy.tolist(),
        state.total_mass,
    )
    prior = naive.Prior("nggp", 10.0, 0.5, 100.0)
    return naive.respond(seen, document, prior, [ALPHA] * n_words, 0.5, 1e-4)


def assert_alike(found, expected):
    assert found.opens == expected.opens
    np.testing.assert_allclose(
        found.responsibilities, expected.responsibilities, rtol=0, atol=1e-10
    )
    assert abs(found.log_evidence - expected.log_evidence) < 1e-10


def compare_row_by_row(counts, oracle_every):
    """Advance with the compiled engine; at every row compare what each would do next."""
    n_words = counts.shape[1]
    batch = LIKELIHOOD.encode(counts)
    kernel = NIG.kernel_arguments(batch)
    state = adf.init(NIG, batch.n_statistics)
    for i in range(len(batch)):
        row, slots = batch.row(i), state.n_clusters + 1
        reference = adf.respond(NIG, state, row, NIG_SETTINGS)
        found = compiled_respond(NIG, kernel, state, i, NIG_SETTINGS)
        assert_alike(found, reference)
        if i % oracle_every == 0:
            assert_alike(reference, oracle_respond(state, row, n_words))
        part = batch.part(i, i + 1)
        list(adf.run(NIG, state, part, NIG_SETTINGS, NIG.kernel_arguments(part)))
        assert (state.n_clusters == slots) == found.opens
    assert state.n_observations == len(batch)
    assert 75 <= state.n_clusters <= 120


def test_engines_respond_alike_to_every_document(kos):
    order = np.random.default_rng((9, 0)).permutation(kos.counts.shape[0])
    compare_row_by_row(kos.counts[order], oracle_every=25)


@pytest.mark.slow
def test_oracle_responds_alike_to_every_document(kos):
    order = np.random.default_rng((9, 1)).permutation(kos.counts.shape[0])
    compare_row_by_row(kos.counts[order], oracle_every=1)


def held_out_scores(model, settings, counts, *, compiled_engine):
    """Return the summed log predictive of the held-out documents and K, for every order."""
    permutation = np.random.default_rng(0).permutation(counts.shape[0])
    test, rest = LIKELIHOOD.encode(counts[permutation[:HELD_OUT]]), permutation[HELD_OUT:]
    scores, clusters = [], []
    for order in range(ORDERS):
        rows = np.random.default_rng(order).permutation(rest)
        batch = LIKELIHOOD.encode(counts[rows])
        kernels = [model.kernel_arguments(b) if compiled_engine else None for b in (batch, test)]
        state = adf.init(model, batch.n_statistics)
        list(adf.run(model, state, batch, settings, kernels[0]))
        joint = log_joint(model, state, test, kernels[1])
        scores.append(np.logaddexp.reduce(joint, axis=1).sum())
        clusters.append(state.n_clusters)
    return np.array(scores), np.array(clusters)


@pytest.mark.parametrize(
    ("model", "settings"), [(DP, DP_SETTINGS), (NIG, NIG_SETTINGS)], ids=["DP(100)", "NIG(10, 100)"]
)
def test_engines_agree_end_to_end_on_the_figures_of_the_paper(kos, model, settings):
    """Rounding is amplified along a pass: end to end, engines agree as well as orders do."""
    scores, clusters = held_out_scores(model, settings, kos.counts, compiled_engine=True)
    other_scores, _ = held_out_scores(model, settings, kos.counts, compiled_engine=False)
    standard_error = scores.std(ddof=1) / np.sqrt(ORDERS)
    assert abs(scores.mean() - other_scores.mean()) < standard_error
    assert np.all((scores > -348_500) & (scores < -344_500))
    assert np.all((clusters >= 75) & (clusters <= 120))
