"""The claim: where words change their meaning, forgetting makes up for the change.

A small version of ``benchmarks/changing_topics.py``.
"""

import numpy as np

from bnpstream import DirichletMultinomial, StreamingMixture

WORDS, TOPICS, PHASE = 300, 4, 1500


def two_phases():
    """Return documents whose topics exchange a fifth of their words halfway, and their lengths."""
    rng = np.random.default_rng((77, 1))
    theta = np.zeros((TOPICS, WORDS))
    for topic in theta:
        topic[rng.choice(WORDS, 60, replace=False)] = rng.dirichlet(np.ones(60))
    later = theta.copy()
    for topic in later:
        has, lacks = np.flatnonzero(topic), np.flatnonzero(topic == 0)
        lost, won = rng.choice(has, 12, replace=False), rng.choice(lacks, 12, replace=False)
        topic[won], topic[lost] = topic[lost], 0.0
    which = rng.integers(TOPICS, size=2 * PHASE)
    sure = np.where(np.arange(2 * PHASE)[:, None] < PHASE, theta[which], later[which])
    return rng.multinomial(40, sure)


def test_forgetting_makes_up_for_topics_that_change():
    """Chance of a false alarm: differences are some ten standard errors of means of 250 rows."""
    counts, evidence, half_life = two_phases(), {}, 250
    for given in (None, half_life):
        model = StreamingMixture("dp", DirichletMultinomial(0.05), half_life=given)
        evidence[given] = model.partial_fit(counts).log_evidence_ / 40
    before = slice(PHASE - 250, PHASE)
    after_one = slice(PHASE + half_life, PHASE + 2 * half_life)
    last = slice(2 * PHASE - 250, 2 * PHASE)
    kept, forgot = evidence[None], evidence[half_life]
    # What it costs while nothing changes is little; what it is worth afterwards is much.
    assert 0.0 < kept[before].mean() - forgot[before].mean() < 0.05
    assert forgot[after_one].mean() - kept[after_one].mean() > 0.1
    assert forgot[last].mean() - kept[last].mean() > 0.03
    first = slice(PHASE, PHASE + 50)
    lost = forgot[before].mean() - forgot[first].mean()
    assert forgot[before].mean() - forgot[after_one].mean() < 0.3 * lost


def test_clusters_of_topics_that_are_over_retire():
    own = np.kron(np.eye(6, dtype=int), np.ones((1, 20), int))
    rng = np.random.default_rng((77, 2))
    which = np.append(rng.integers(0, 3, size=400), rng.integers(3, 6, size=800))
    counts = rng.multinomial(30, own[which] / 20)
    model = StreamingMixture("nig", DirichletMultinomial(0.1), half_life=40).partial_fit(counts)
    plain = StreamingMixture("nig", DirichletMultinomial(0.1)).partial_fit(counts)
    assert model.n_clusters_ == 3
    assert plain.n_clusters_ >= 6
    # 40 half-lives' worth of rows, 58 / 3 each, fall below .5 after five and a half half-lives.
    retired = [event.n_observations for event in model.lineage_ if event.kind == "retire"]
    assert len(retired) == 3
    assert 400 + 40 * np.log2(10 / 0.5) < min(retired)
    assert max(retired) < 400 + 40 * np.log2(40 / 0.5)
