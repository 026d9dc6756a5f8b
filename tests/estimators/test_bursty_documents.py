"""Documents that repeat their words, over a vocabulary that grows and over columns of a matrix."""

import numpy as np
import pytest

from bnpstream import BurstyMultinomial, DocumentMixture, StreamingMixture
from bnpstream.inference import adf
from bnpstream.inference.visits import visit
from bnpstream.likelihoods import OpenVocabulary, Vocabulary
from bnpstream.likelihoods.open_vocabulary import BurstyVocabulary
from bnpstream.mixture import MixtureState, Model, SiteBuffer
from bnpstream.priors import dirichlet_process
from bnpstream.runs.mixture import make_model
from bnpstream.runs.options import ModelOptions, OptionError
from bnpstream.testing import check_likelihood

SCHEDULES = {
    "adf": {},
    "window": {"revisit": 20, "merge_threshold": 0.0},
    "fading": {"revisit": 15, "half_life": 40.0},
    "budget": {"max_clusters": 4},
}


def documents(n, seed=0):
    """Return documents of four topics with words in bursts, whose words come one by one."""
    rng = np.random.default_rng((75, seed))
    theta = rng.dirichlet(np.full(60, 0.1), size=4)
    counts = rng.multinomial(9, theta[rng.integers(4, size=n)])
    counts *= rng.integers(1, 5, size=counts.shape)
    return [{f"w{j}": int(row[j]) for j in np.flatnonzero(row)} for row in counts]


def mixture(**options):
    return DocumentMixture(bursty=True, prefix_rows=30, **options)


def trace(model):
    """Return what tells two models apart, to the last bit."""
    state = model.state_
    return [
        state.masses.tobytes(),
        model.means_.tobytes(),
        model.total_log_evidence_,
        model.likelihood_.base,
        model.vocabulary_.words,
        model.lineage_,
    ]


def test_a_vocabulary_says_what_columns_say():
    """Unknown words are the first column of the matrix; the base measure is the same."""
    rows = documents(25)
    vocabulary = Vocabulary(BurstyVocabulary(spread=30, total=40.0, document_strength=6.0))
    vocabulary.add(rows)
    growing = vocabulary.likelihood
    n_words = len(vocabulary) + 1
    alpha, total = growing.base_measure(n_words)
    fixed = BurstyMultinomial(alpha, 6.0)
    assert alpha.sum() == pytest.approx(total)
    counts = np.zeros((len(rows), n_words))
    for row, document in zip(counts, rows, strict=True):
        for word, count in document.items():
            row[vocabulary.numbers[word]] = count
    batch, same = growing.encode(rows), fixed.encode(counts)
    statistics = same.statistics.toarray()[:4]
    for i in range(len(rows)):
        one, other = batch.row(i), same.row(i)
        inside = one._replace(columns=np.append(one.columns[:-1], n_words))
        np.testing.assert_allclose(
            growing.log_predictive(statistics, inside), fixed.log_predictive(statistics, other)
        )
        np.testing.assert_allclose(
            growing.contributions(statistics, inside, np.arange(4)),
            fixed.contributions(statistics, other, np.arange(4)),
        )
    np.testing.assert_allclose(batch.totals(n_words), same.totals(n_words))
    np.testing.assert_allclose(batch.totals(n_words), (counts > 0).sum(axis=0))


@pytest.mark.kernel
def test_engines_agree_row_by_row_while_words_come():
    vocabulary = Vocabulary(BurstyVocabulary(spread=10, total=30.0, document_strength=4.0))
    state, settings = None, adf.Settings(0.1, 1e-6)
    for document in documents(50, 1):
        vocabulary.add([document])
        model = Model(dirichlet_process(1.0), vocabulary.likelihood)
        batch = vocabulary.batch([document])
        state = MixtureState(batch.n_statistics) if state is None else state
        other, sites, others = state.copy(), SiteBuffer(1), SiteBuffer(1)
        kernel = model.kernel_arguments(batch)
        (found,) = visit(model, state, batch, SiteBuffer(), sites, settings, kernel)
        (expected,) = visit(model, other, batch, SiteBuffer(), others, settings, None)
        np.testing.assert_allclose(found.rows.log_evidence, expected.rows.log_evidence, atol=1e-10)
        assert np.array_equal(sites.row(0)[0], others.row(0)[0])
        np.testing.assert_allclose(sites.row(0)[1], others.row(0)[1], atol=1e-10)
        np.testing.assert_allclose(sites.lines(0), others.lines(0), rtol=1e-10)
    assert state.n_clusters > 2


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_neither_calls_nor_saving_change_a_bit(schedule, tmp_path):
    rows, options = documents(110, 2), SCHEDULES[schedule]
    whole = mixture(**options).partial_fit(rows).finish()
    for n_before in (20, 70):
        model = mixture(**options).partial_fit(rows[:11]).partial_fit(rows[11:n_before])
        model.save(tmp_path / str(n_before))
        model = DocumentMixture.load(tmp_path / str(n_before))
        assert model.bursty
        assert trace(model.partial_fit(rows[n_before:]).finish()) == trace(whole)
    assert whole.n_clusters_ > 1


def test_what_is_given_stays():
    rows = documents(60, 3)
    model = mixture(spread=25.0, total=70.0).partial_fit(rows)
    assert model.likelihood_.learnt(1.0)["alpha_total"] == 70.0
    open_total = mixture().partial_fit(rows).likelihood_
    words = np.mean([len(row) for row in rows[:30]])
    assert open_total.total == pytest.approx(50 * words)
    assert open_total.base.document_strength < 100.0


def test_a_strength_that_cannot_be():
    with pytest.raises(ValueError, match="document_strength must be a number > 0, got -1"):
        BurstyVocabulary(10.0, 5.0, -1)


def test_plain_documents_are_what_they_were():
    rows = documents(60, 4)
    plain = DocumentMixture(prefix_rows=30).fit(rows)
    assert not plain.likelihood_.latent
    assert type(plain.likelihood_.base) is OpenVocabulary


def test_runs_of_texts_and_of_counts_may_ask_for_it():
    model = make_model(ModelOptions(likelihood="bursty"), "documents")
    assert model.parameters["bursty"]
    model.absorb(documents(120, 5))
    assert set(model.learnt()) == {"concentration", "alpha_total", "document_strength"}
    assert "bursty=True" in repr(model)
    counts = make_model(ModelOptions(likelihood="bursty", alpha=0.2), "counts")
    assert counts.likelihood.alpha == 0.2
    assert counts.likelihood.document_strength == "learn"
    assert not make_model(ModelOptions(likelihood="multinomial"), "documents").parameters["bursty"]
    with pytest.raises(OptionError, match="--likelihood needs a fixed vocabulary"):
        make_model(ModelOptions(likelihood="poisson"), "documents")


def test_bursts_do_not_make_clusters():
    """Two topics with documents that repeat words of their own, which make no third topic."""
    rng = np.random.default_rng((75, 6))
    theta = rng.dirichlet(np.full(300, 0.3), size=2)
    labels = rng.integers(2, size=400)
    shares = rng.standard_gamma(40.0 * theta[labels] + 1e-12)
    X = rng.multinomial(100, shares / shares.sum(axis=1, keepdims=True))
    plain, bursty = (StreamingMixture(likelihood=name).fit(X) for name in ("multinomial", "bursty"))
    assert bursty.total_log_evidence_ > plain.total_log_evidence_ + 1000.0
    assert np.sort(bursty.weights_)[-2:].sum() > 0.95
    assert plain.n_clusters_ > 10 * bursty.n_clusters_
    check_likelihood(bursty.likelihood_, X[:8])
