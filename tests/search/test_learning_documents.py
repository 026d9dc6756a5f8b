"""Base measure and prior of a vocabulary that grows."""

import numpy as np
import pytest

from bnpstream import DocumentMixture, dirichlet_process
from bnpstream.likelihoods import OpenVocabulary, Vocabulary
from bnpstream.likelihoods.documents import DocumentBatch


def drawn(n, seed=0, clusters=8, words=300, length=30):
    """Draw documents of words that follow a power law, clusters around it."""
    rng = np.random.default_rng(seed)
    mean = rng.permutation(1.0 / np.arange(1, words + 1))
    topics = rng.dirichlet(60.0 * mean / mean.sum() + 1e-9, size=clusters)
    counts = rng.multinomial(length, topics[rng.integers(clusters, size=n)])
    return [{f"w{j}": int(row[j]) for j in np.flatnonzero(row)} for row in counts]


DOCUMENTS = drawn(450)


def model(**settings):
    return DocumentMixture(prefix_rows=50, **settings)


def same(one, other):
    here, there = one.to_tensors(), other.to_tensors()
    assert here.document == there.document
    assert here.arrays.keys() == there.arrays.keys()
    for name, array in here.arrays.items():
        assert array.tobytes() == there.arrays[name].tobytes(), name


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("settings", [{}, {"prior": "py"}, {"half_life": 90}], ids=str)
def test_any_split_gives_the_same_bits(engine, settings):
    documents = DOCUMENTS if engine == "compiled" else DOCUMENTS[:120]
    whole = model(engine=engine, **settings).partial_fit(documents)
    parts, start, rng = model(engine=engine, **settings), 0, np.random.default_rng(1)
    while start < len(documents):
        stop = start + int(rng.integers(1, 40))
        parts.partial_fit(documents[start:stop])
        start = stop
    same(whole, parts)


@pytest.mark.parametrize("cut", [20, 50, 70, 99, 100, 180, 210])
def test_saved_at_any_document_it_goes_on_alike(cut, tmp_path):
    whole = model().partial_fit(DOCUMENTS)
    begun = model().partial_fit(DOCUMENTS[:cut])
    begun.save(tmp_path)
    loaded = DocumentMixture.load(tmp_path)
    same(begun, loaded)
    same(whole, loaded.partial_fit(DOCUMENTS[cut:]))


def test_the_base_measure_follows_the_words():
    learnt = model().partial_fit(DOCUMENTS[:400])
    alpha, base = learnt.vocabulary_.likelihood.alpha, learnt.vocabulary_.base
    known = len(learnt.vocabulary_)
    assert alpha[1 : known + 1].sum() + base.rest(known) == pytest.approx(base.A)
    totals = np.zeros(known)
    for document in DOCUMENTS[:400]:
        for word, count in document.items():
            totals[learnt.vocabulary_.numbers[word] - 1] += count
    assert np.corrcoef(totals, alpha[1 : known + 1])[0, 1] > 0.999
    once = np.count_nonzero(totals == 1)
    assert base.rest(known) / base.A == pytest.approx((once + 1) / (totals.sum() + 2))


@pytest.mark.parametrize("factor", [0.1, 1.0, 30.0])
def test_total_and_parts_agree_whatever_is_done(factor):
    vocabulary = Vocabulary(OpenVocabulary(40.0, 9.0))
    vocabulary.add(DOCUMENTS[:30])
    batch = DocumentBatch.of(DOCUMENTS[:30], vocabulary.numbers)
    likelihood = vocabulary.likelihood.rescaled(factor)
    for made in (likelihood, likelihood.relocated(batch.totals(likelihood.n_located))):
        assert made.total == pytest.approx(9.0 * factor)
        assert made.alpha[: len(vocabulary) + 1].sum() == pytest.approx(9.0 * factor)
    vocabulary.likelihood = made
    vocabulary.add(DOCUMENTS[30:400])
    alpha = vocabulary.likelihood.alpha[: len(vocabulary) + 1]
    assert alpha.sum() == pytest.approx(9.0 * factor)
    assert (alpha > 0).all()


def test_learning_predicts_better_than_a_fixed_total():
    held_out = drawn(900)[600:]
    learnt = model().fit(drawn(900)[:600])
    fixed = DocumentMixture(spread=len(learnt.vocabulary_)).fit(drawn(900)[:600])
    assert learnt.score_samples(held_out).mean() > fixed.score_samples(held_out).mean() + 1.0


def test_the_prior_is_learnt_too():
    assert model().fit(DOCUMENTS).prior_.concentration != 1.0
    assert model(prior=dirichlet_process(2.0)).fit(DOCUMENTS).prior_ == dirichlet_process(2.0)


def test_a_stream_that_ended_early_may_go_on():
    mixture = model().partial_fit(DOCUMENTS[:10]).finish()
    for stop in (20, 30, 200):
        mixture.partial_fit(DOCUMENTS[mixture.n_samples_seen_ : stop])
        assert mixture.n_samples_seen_ == stop
        assert not mixture.provisional_
    assert mixture.state_.masses.sum() == pytest.approx(200)
