"""Where a stream starts: concentration and scale together, judged by rows that come later."""

import gzip
import json
from itertools import islice, pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array, vstack
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import normalized_mutual_info_score

from bnpstream import (
    DirichletMultinomial,
    DocumentMixture,
    Gaussian,
    StreamingMixture,
    dirichlet_process,
)
from bnpstream.datasets import data_directory
from bnpstream.engine.learner import JUDGES, Learner
from bnpstream.engine.rehearsal import DOUBT, STARTS, Rehearsal, Start, chosen, starting
from bnpstream.likelihoods.multinomial import mean_of
from bnpstream.mixture import MixtureState, Model

PRIOR = dirichlet_process(1.0)
TITLES = data_directory() / "stackoverflow" / "titles.jsonl.gz"


def drawn(n, topics, length, strength, seed, words=400):
    """Draw texts of topics around a power law of words; the topics' sizes follow one too."""
    rng = np.random.default_rng((20, seed))
    mean = 1.0 / np.arange(1, words + 1)
    theta = rng.dirichlet(strength * mean / mean.sum() + 1e-9, size=topics)
    shares = 1.0 / np.arange(1, topics + 1)
    labels = rng.choice(topics, size=n, p=shares / shares.sum())
    return csr_array(rng.multinomial(length, theta[labels]).astype(float)), labels


@pytest.mark.parametrize("n", [1, 2, 9, 40, 333])
def test_no_block_is_predicted_with_its_own_words(n):
    """Against frequencies of the rows before it, counted the slow way."""
    rows = drawn(n, 5, 8, 20.0, 1)[0].toarray()
    guess = DirichletMultinomial().informed(rows)
    seen = []

    def absorb(model, state, part):
        seen.append((len(part), model.likelihood.alpha))
        return np.zeros(len(part))

    rehearsal = Rehearsal(absorb, Model(PRIOR, guess), guess.encode(rows))
    rehearsal.end(rehearsal.begin(PRIOR, 3.0))
    ends = np.cumsum([0, *(size for size, _ in seen)])
    assert ends[-1] == n
    for (start, stop), (_, alpha) in zip(pairwise(ends.tolist()), seen, strict=True):
        known = rows[: start or stop].sum(axis=0)  # the very first rows have none before them
        np.testing.assert_allclose(alpha, 3.0 * guess.alpha.sum() * mean_of(known), rtol=1e-12)


def start(concentration, log_evidence):
    state = MixtureState(2, paired=False)
    return Start(dirichlet_process(concentration), 1.0, state, [np.zeros(100), log_evidence])


def test_the_largest_concentration_within_the_doubt_wins():
    noise = np.random.default_rng(2).normal(size=100)
    noise = (noise - noise.mean()) / noise.std()  # its sum is 0, with a standard error of 10
    best, level = start(1.0, np.zeros(100)), start(10.0, noise - 0.09)
    behind = start(100.0, noise - 0.11)
    assert chosen([best, level, behind], 1.0) is level
    assert chosen([best, level, behind], 1.2) is behind
    assert chosen([best, level, behind], 0.0) is best


def test_few_rows_leave_no_doubt():
    few = [Start(PRIOR, 1.0, MixtureState(2, paired=False), [x]) for x in np.eye(2, 20)]
    few[1].log_evidence = [np.linspace(-3.0, 2.0, 20) - 1.0]
    assert chosen(few, 1.0) is few[0]


def test_what_is_tried():
    words = DirichletMultinomial(np.ones(3))
    known = [prior.concentration for prior in starting(Model(PRIOR.learning(), words))]
    assert known == list(STARTS)
    given = dirichlet_process(7.0).learning()
    assert [p.concentration for p in starting(Model(given, words))] == [1.0, 7.0, 10.0, 100.0]
    assert starting(Model(dirichlet_process(7.0), words)) == [dirichlet_process(7.0)]
    cells = Gaussian().informed(np.random.default_rng(0).normal(size=(20, 2)))
    assert starting(Model(given, cells)) == [given]


TOPICS = [(5, 8, 20), (50, 8, 20), (300, 8, 20), (1, 20, 50), (5, 40, 50), (50, 40, 50)]
TOPICS += [(300, 40, 200), (100, 6, 5), (1000, 8, 10)]
QUICK = ((50, 8, 20), (1000, 8, 10))


@pytest.mark.parametrize(
    "about",
    [pytest.param(x, marks=[] if x in QUICK else [pytest.mark.slow]) for x in TOPICS],
    ids=str,
)
def test_learnt_parameters_predict_as_well_as_the_best_of_a_grid(about):
    """Within .01 nats a token, held out; and no fewer topics are found than half of that."""
    texts, labels = drawn(2000, *about, seed=sum(about))
    rows, held_out, true = texts[:1600], texts[1600:], labels[1600:]

    def outcome(model):
        model.fit(rows)
        score = model.score_samples(held_out).sum() / held_out.sum()
        return score, normalized_mutual_info_score(true, model.predict(held_out))

    mean = mean_of(np.asarray(rows.sum(axis=0)))
    grid = [
        outcome(StreamingMixture(dirichlet_process(a), DirichletMultinomial(c * mean)))
        for a in (1.0, 10.0, 100.0)
        for c in (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
    ]
    (best, as_found), learnt = max(grid), outcome(StreamingMixture())
    assert learnt[0] > best - 0.01
    assert learnt[1] >= 0.5 * as_found


def test_a_stream_that_began_with_one_topic_comes_back(monkeypatch):
    """Its first rows speak for few clusters; rows afresh do not."""

    def scores():
        found = []
        for seed in (0, 1):
            one, many = drawn(300, 1, 8, 20, seed)[0], drawn(3300, 300, 8, 20, seed + 50)[0]
            rows, held_out = vstack([one, many[:2700]], format="csr"), many[2700:]
            model = StreamingMixture(prefix_rows=300).fit(rows)
            found.append(model.score_samples(held_out).sum() / held_out.sum())
        return np.array(found)

    back = scores()
    monkeypatch.setattr(Learner, "_other_start", lambda *given: None)
    assert (back > scores() + 0.02).all()


def test_a_stream_that_knows_its_clusters_is_not_started_anew():
    """From nothing, a larger concentration predicts its rows better: it finds known ones sooner."""
    rows = drawn(2000, 30, 25, 20, 2)[0]
    model = StreamingMixture(dirichlet_process(100.0).learning()).fit(rows)
    assert model.prior_.concentration < 8.0
    assert model.n_clusters_ < 60


def test_learners_saved_by_earlier_versions_stay_as_they_were():
    saved = {"learner": {"n_first": 500, "scale": 2.0, "n_next": 1000}}
    old = Learner.load_from(saved, {}, DirichletMultinomial(1.0), 4)
    assert not old.wide
    assert old.n_probe == JUDGES
    new, document = Learner(500, 2.0), {}
    new.save_into(document, {})
    assert Learner.load_from(
        json.loads(json.dumps(document)), {}, DirichletMultinomial(1.0), 4
    ).wide


@pytest.mark.skipif(not TITLES.exists(), reason=f"no question titles at {TITLES}")
@pytest.mark.parametrize("doubt", [0.0, DOUBT])
def test_titles_in_the_order_of_their_file_have_many_clusters(doubt, monkeypatch):
    """The first hundred speak for one topic. They are not believed, or not for long."""
    monkeypatch.setattr("bnpstream.engine.learner.DOUBT", doubt)
    with gzip.open(TITLES) as lines:
        titles = [json.loads(line)["text"] for line in islice(lines, 4000)]
    model = DocumentMixture().partial_fit(titles)
    assert model.prior_.concentration > 10.0
    assert model.n_clusters_ > 200


@pytest.mark.skipif(not TITLES.exists(), reason=f"no question titles at {TITLES}")
@pytest.mark.parametrize("seed", [9, 14])
def test_a_start_is_large_where_500_titles_do_not_clearly_speak_against_it(seed):
    """In these orders they prefer 10 to 100 by 2.8 standard errors; all 20 000 prefer 100."""
    with gzip.open(TITLES) as lines:
        titles = [json.loads(line)["text"] for line in lines]
    counts = CountVectorizer().fit_transform(titles)
    first = np.random.default_rng(seed).permutation(len(titles))[:600]
    model = StreamingMixture().partial_fit(counts[first])
    assert model.weights_.max() < 0.05
