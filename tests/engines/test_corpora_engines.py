"""Both engines and the oracle on whole corpora, and the figures of the paper's table.

The data are not shipped; without them these tests are skipped.
"""

import numpy as np
import pytest
from row_by_row import Setup, compare

import naive
from bnpstream.inference import adf
from bnpstream.likelihoods import DirichletMultinomial
from bnpstream.mixture import Model, log_joint
from bnpstream.priors import dirichlet_process, normalized_inverse_gaussian

ALPHA = 0.1
LIKELIHOOD = DirichletMultinomial(ALPHA)
NIG = Model(normalized_inverse_gaussian(10.0, 100.0), LIKELIHOOD)
NIG_SETTINGS = adf.Settings(0.5, 1e-4)
DP = Model(dirichlet_process(100.0), LIKELIHOOD)
DP_SETTINGS = adf.Settings(0.1, 1e-4)
ORACLE = naive.Prior("nggp", 10.0, 0.5, 100.0)
SETUP = Setup(NIG, ORACLE, NIG_SETTINGS)
# With twenty times the vocabulary, A = V alpha would be so large that few clusters open.
WIDE_SETUP = Setup(Model(NIG.prior, DirichletMultinomial(0.003)), ORACLE, NIG_SETTINGS)
HELD_OUT, ORDERS = 686, 5


def shuffled(data, *seed):
    """Return the documents in a fixed random order."""
    return data.counts[np.random.default_rng(seed).permutation(data.counts.shape[0])]


def test_engines_respond_alike_to_every_document_of_kos(kos):
    state = compare(SETUP, shuffled(kos, 9, 0), oracle_every=25)
    assert 75 <= state.n_clusters <= 120


@pytest.mark.slow
def test_oracle_responds_alike_to_every_document_of_kos(kos):
    state = compare(SETUP, shuffled(kos, 9, 1), oracle_every=1)
    assert 75 <= state.n_clusters <= 120


def test_engines_respond_alike_to_articles(nyt8447):
    state = compare(SETUP, shuffled(nyt8447, 9, 2)[:1500], oracle_every=50)
    assert state.arrays.table.keys.size == 0


@pytest.mark.slow
def test_engines_respond_alike_to_every_article(nyt8447):
    compare(SETUP, shuffled(nyt8447, 9, 3), oracle_every=25)


def test_engines_respond_alike_to_newsgroups(newsgroups):
    """The vocabulary is wide: rows of statistics are hashed."""
    state = compare(WIDE_SETUP, shuffled(newsgroups, 9, 4)[:1500], oracle_every=50)
    sizes = state.arrays.table.sizes[: state.n_clusters]
    assert len(set(sizes.tolist())) > 4
    assert sizes.sum() < 0.2 * state.n_clusters * state.n_statistics


@pytest.mark.slow
def test_engines_respond_alike_to_every_newsgroup_document(newsgroups):
    compare(WIDE_SETUP, shuffled(newsgroups, 9, 5), oracle_every=25)


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
