"""A base measure learnt from the stream: by prediction, at row counts, whatever the calls."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from bnpstream import DirichletMultinomial, GibbsMixture, Product, StreamingMixture
from bnpstream.engine.ascent import search
from bnpstream.inference import adf
from bnpstream.likelihoods.multinomial import mean_of
from bnpstream.mixture import Model
from bnpstream.priors import dirichlet_process
from bnpstream.search import Learner, Trial

TRIAL = Trial(
    lambda prior: adf.Settings(0.1, 1e-4), lambda model, batch: model.kernel_arguments(batch)
)


def corpus(n, strength=200.0, words=120, clusters=12, seed=0):
    """Draw documents from clusters around one frequency of words."""
    rng = np.random.default_rng(seed)
    mean = rng.dirichlet(np.full(words, 0.3))
    topics = rng.dirichlet(strength * mean + 1e-9, size=clusters)
    return csr_array(rng.multinomial(50, topics[rng.integers(clusters, size=n)]))


def model(**settings):
    return StreamingMixture("nig", DirichletMultinomial("learn"), prefix_rows=100, **settings)


def same(one, other):
    here, there = one.to_tensors(), other.to_tensors()
    for document in (here.document, there.document):
        document["stream"].pop("epochs", None)  # those of the last call
    assert here.document == there.document
    assert here.arrays.keys() == there.arrays.keys()
    for name, array in here.arrays.items():
        assert array.tobytes() == there.arrays[name].tobytes(), name


@pytest.mark.parametrize("top", [0.03, 0.37, 3.5, 60.0])
def test_the_search_climbs_to_the_top(top):
    asked = []

    def score(c):
        asked.append(c)
        return -(abs(math.log(c / top)) ** 1.5)

    found = search(score, 1.0, 2.0, 12)
    assert abs(math.log(found / top)) < 0.35
    assert len(asked) <= 12
    assert len(asked) == len(set(asked))


def test_the_search_stays_within_bounds():
    assert search(lambda c: c, 1.0, 2.0, 50) <= 4096.0
    assert search(lambda c: -c, 1.0, 2.0, 50) >= 1 / 512
    assert search(lambda c: 0.0, 1.0, 2.0, 50) == pytest.approx(1.0, rel=1)


def test_the_scale_is_what_predicts_best():
    """Against a fine grid over the same rows, the slow way."""
    rows = corpus(100, strength=60.0)
    prior = dirichlet_process(1.0)
    learner = Learner(100)
    guessed = DirichletMultinomial().informed(rows)
    learner.first(TRIAL, Model(prior, guessed), guessed.encode(rows))
    mean = mean_of(np.asarray(rows[:60].sum(axis=0), float))
    guess = guessed.alpha.sum()

    def evidence(scale):
        likelihood = DirichletMultinomial(guess * scale * mean)
        model = StreamingMixture(prior, likelihood, engine="reference", new_cluster_threshold=0.1)
        return model.partial_fit(rows).total_log_evidence_

    grid = np.geomspace(10, 5000, 40) / guess
    best = max(map(evidence, grid))
    assert evidence(learner.scale) > best - 10.0
    assert evidence(learner.scale) > evidence(4.0 * learner.scale) + 10.0


def test_scales_are_compared_without_the_limit_on_clusters_per_row():
    """With it, many like clusters seem to predict badly, and the scale runs away."""
    rng = np.random.default_rng(5)
    theta = rng.dirichlet(np.full(60, 0.3), size=30)
    lengths, topics = rng.integers(2, 6, size=200), rng.integers(0, 30, size=200)
    rows = rng.multinomial(lengths, theta[topics])
    few, all_of_them = (
        StreamingMixture(prefix_rows=200, max_responsibilities=most, engine="reference")
        .partial_fit(rows)
        .likelihood_.alpha
        for most in (1, None)
    )
    np.testing.assert_array_equal(few, all_of_them)


def test_alpha_is_the_smoothed_frequency_of_all_rows_at_every_doubling():
    rows = corpus(900)
    learnt, guess = model(), DirichletMultinomial().informed(rows[:100]).alpha
    for start, stop in ((0, 100), (100, 199)):
        learnt.partial_fit(rows[start:stop])
        np.testing.assert_allclose(learnt.likelihood_.alpha, learnt.stream_.learner.scale * guess)
    alpha = learnt.likelihood_.alpha
    for seen, known in ((200, 200), (399, 200), (400, 400), (799, 400), (900, 800)):
        learnt.partial_fit(rows[learnt.n_samples_seen_ : seen])
        mean = mean_of(np.asarray(rows[:known].sum(axis=0), float))
        found = learnt.likelihood_.alpha
        np.testing.assert_allclose(found / found.sum(), mean, rtol=1e-9)
    assert not np.array_equal(alpha, learnt.likelihood_.alpha)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("settings", [{}, {"revisit": 60}, {"merge_threshold": 0.0}])
def test_any_split_gives_the_same_bits(engine, settings):
    rows = corpus(230 if engine == "reference" else 900)
    whole = model(engine=engine, **settings).partial_fit(rows)
    parts, start, rng = model(engine=engine, **settings), 0, np.random.default_rng(1)
    while start < rows.shape[0]:
        stop = start + int(rng.integers(1, 70))
        parts.partial_fit(rows[start:stop])
        start = stop
    same(whole, parts)


def test_threads_give_the_same_bits():
    rows = corpus(450)
    one, two = (model(n_jobs=n_jobs).partial_fit(rows) for n_jobs in (1, 2))
    assert one.total_log_evidence_ == two.total_log_evidence_
    assert one.prior_ == two.prior_
    assert one.likelihood_.alpha.tobytes() == two.likelihood_.alpha.tobytes()
    assert one.score_samples(rows).tobytes() == two.score_samples(rows).tobytes()


@pytest.mark.parametrize("cut", [50, 100, 150, 170, 199, 200, 350, 399])
def test_saved_at_any_row_it_goes_on_alike(cut, tmp_path):
    rows = corpus(450)
    whole = model().partial_fit(rows)
    begun = model().partial_fit(rows[:cut])
    begun.save(tmp_path)
    loaded = StreamingMixture.load(tmp_path)
    same(begun, loaded)
    same(whole, loaded.partial_fit(rows[cut:]))


def test_learning_predicts_better_than_a_fixed_alpha():
    rows, held_out = corpus(1000, strength=400.0), corpus(1400, strength=400.0)[1000:]
    learnt = model().partial_fit(rows).score(held_out)
    for alpha in (0.01, 0.1, 0.5, 2.0):
        assert learnt > StreamingMixture("nig", DirichletMultinomial(alpha)).fit(rows).score(
            held_out
        )


def test_a_likelihood_given_later_ends_the_learning():
    rows = corpus(300)
    learnt = model().partial_fit(rows[:150])
    learnt.set_params(likelihood=DirichletMultinomial(0.5)).partial_fit(rows[150:])
    assert learnt.likelihood_.alpha == 0.5


def test_provisional_answers_and_short_streams_make_do():
    rows = corpus(40)
    learnt = model().partial_fit(rows)
    assert learnt.provisional_
    assert learnt.n_clusters_ >= 1
    assert learnt.finish().n_samples_seen_ == 40
    assert StreamingMixture("dp", DirichletMultinomial("learn")).fit(rows[:1]).n_clusters_ == 1


def test_passes_and_products_and_gibbs_take_it_too():
    rows = corpus(150)
    passes = StreamingMixture("nig", DirichletMultinomial("learn"), n_passes=3).fit(rows)
    assert passes.likelihood_.alpha.shape == (120,)
    parts = [("words", DirichletMultinomial("learn"), slice(0, 120))]
    assert StreamingMixture("nig", Product(parts)).fit(rows.toarray()).n_clusters_ >= 1
    gibbs = GibbsMixture("dp", DirichletMultinomial("learn"), n_sweeps=3, n_kept=1).fit(rows)
    assert gibbs.likelihood_.alpha.shape == (120,)


def test_what_alpha_may_be():
    with pytest.raises(ValueError, match="\"learn\", got 'auto'"):
        DirichletMultinomial("auto")
    with pytest.raises(ValueError, match=r"call informed\(X\)"):
        DirichletMultinomial("learn").encode(corpus(3))
    with pytest.raises(ValueError, match="row 0, column 0"):
        model().partial_fit([[-1, 2]])


def test_the_first_state_is_the_prior():
    likelihood = DirichletMultinomial("learn").informed(corpus(50))
    state = adf.init(Model(dirichlet_process(1.0), likelihood), 121)
    assert state.n_clusters == 0
    used = np.count_nonzero(np.asarray(corpus(50).sum(axis=0)))
    assert likelihood.alpha.sum() == pytest.approx(0.5 * used)
