"""The screen: bounds that are never too low, kept up to date, and without a trace in results."""

from typing import NamedTuple

import numpy as np
import pytest

import naive
from bnpstream.inference import adf, ep, gibbs, window
from bnpstream.inference.visits import visit
from bnpstream.kernels.arrays import Clusters, make_scratch
from bnpstream.kernels.measures.rules import Rule
from bnpstream.kernels.passes.steps import log_joint_rows
from bnpstream.kernels.special import LOG_2
from bnpstream.kernels.statistics.table import empty_table, scatter
from bnpstream.kernels.words.documents import MARGIN
from bnpstream.kernels.words.levels import (
    CHORDS,
    COUNTS,
    LARGEST_LEVEL,
    LONGEST,
    chords,
    count_class,
    level_of,
)
from bnpstream.kernels.words.screen import bound, fill_bounds
from bnpstream.likelihoods import BurstyMultinomial, DirichletMultinomial
from bnpstream.likelihoods import word_screen as screening
from bnpstream.likelihoods.word_screen import class_counts, knots_of, no_screen
from bnpstream.mixture import MixtureState, Model, SiteBuffer
from bnpstream.mixture.window import Window
from bnpstream.priors import PitmanYor, dirichlet_process, normalized_inverse_gaussian
from states import bits, from_python

bound, fill_bounds, chords = map(from_python, (bound, fill_bounds, chords))

pytestmark = pytest.mark.kernel

WORDS, CAPACITY = 40, 128
TINY, HUGE = 1e-30, 1e30


# --- bounds of scores -----------------------------------------------------------------------------


def clusters_of(statistics, masses):
    """Return clusters with these (K, V) statistics, their sums, and masses."""
    K, V = statistics.shape
    table = empty_table(CAPACITY, V + 1)
    for k, words in enumerate(statistics):
        columns = np.append(np.flatnonzero(words), V)
        table = scatter(table, k, columns, np.append(words[columns[:-1]], words.sum()))
    padded, ids = np.zeros(CAPACITY), np.arange(CAPACITY)
    padded[:K] = masses
    return Clusters(table, padded, padded * -1.0, ids, np.array([K, K, K]), np.zeros(3))


def screen_of(likelihood, clusters):
    return likelihood.cache(clusters.table, clusters.masses, int(clusters.counters[0]))


def random_alpha(rng, kind):
    """Return a base measure: one number from a wide or an ordinary range, or one a word."""
    if kind == "any":
        return float(10 ** rng.uniform(-30, 30))
    if kind == "ordinary":
        return float(10 ** rng.uniform(-3, 1))
    if kind == "ends":
        return float(rng.choice([TINY, HUGE, 2.0**-7, np.nextafter(2.0**-7, 1.0)]))
    low, high = np.sort(rng.uniform(-30, 30, size=2))
    alpha = 10 ** rng.uniform(low, high, size=WORDS)
    alpha[:2] = [[TINY, HUGE], [0.1, 1.0]][int(rng.integers(2))]
    return alpha


def random_statistics(rng, clusters):
    """Return soft counts from 0 to 1e9, some clusters full and some almost empty."""
    top = rng.uniform(-2, 9, size=(clusters, 1))
    filled = rng.random((clusters, WORDS)) < rng.random((clusters, 1))
    return np.where(filled, 10 ** rng.uniform(top - 6, top, size=(clusters, WORDS)), 0.0)


def random_documents(rng, rows):
    """Return documents with a word at least, whose counts reach thousands."""
    largest = rng.uniform(0, 3.5, size=(rows, 1))
    counts = np.rint(10 ** rng.uniform(0, largest, size=(rows, WORDS))).astype(int)
    counts[rng.random((rows, WORDS)) < rng.uniform(0.2, 0.95, size=(rows, 1))] = 0
    counts[np.arange(rows), rng.integers(0, WORDS, size=rows)] += 1
    assert counts.sum(axis=1).max() < LONGEST
    return counts


def exact_scores(likelihood, clusters, batch):
    """Return the compiled (n, K + 1) log mass + log predictive without log h(x)."""
    rows = batch.kernel_rows._replace(log_base=np.zeros(len(batch)))
    K, rule = int(clusters.counters[0]), Rule(0.0, 1.0, 0.0, 0.0)
    parameters, nothing = likelihood.kernel_parameters(batch.n_statistics), no_screen(CAPACITY)
    out = np.empty((len(batch), K + 1))
    log_joint_rows(
        parameters, clusters, nothing, rows, clusters.masses, rule, -np.inf, 0, len(batch), out
    )
    return out


def bounds_of(likelihood, screen, clusters, batch):
    """Return the (n, K) bounds that `kernels.words.documents` compares with these scores."""
    rows, K = batch.kernel_rows, int(clusters.counters[0])
    scratch = make_scratch(CAPACITY, int(np.diff(rows.indptr).max()))
    new, found = exact_scores(likelihood, clusters, batch)[:, -1], np.empty((len(batch), K))
    for i in range(len(batch)):
        bound(screen, rows, i, K, new[i], scratch)
        found[i] = scratch.bounds[:K]
    return found


def oracle_scores(alpha, statistics, counts):
    """Return the (n, K) log predictives without log h(x), token by token."""
    alphas = np.broadcast_to(alpha, counts.shape[1]).tolist()
    documents = [{w: int(c) for w, c in enumerate(row) if c} for row in counts]
    clusters = [(dict(enumerate(words.tolist())), float(words.sum())) for words in statistics]
    total = float(np.sum(alphas))
    return np.array(
        [
            [naive.log_predictive(*cluster, document, alphas, total) for cluster in clusters]
            for document in documents
        ]
    )


def assert_bounds(bounds, exact):
    """Bounds may be too low by the rounding of scores, for which `score` leaves a margin."""
    assert np.all(np.isfinite(exact))
    assert np.all(bounds >= exact - MARGIN / 2)


@pytest.mark.parametrize("kind", ["any", "ordinary", "ends", "vector"])
@pytest.mark.parametrize("case", range(12))
def test_bounds_are_never_below_the_scores(case, kind):
    rng = np.random.default_rng((61, case, len(kind)))
    alpha = random_alpha(rng, kind)
    likelihood, statistics = DirichletMultinomial(alpha), random_statistics(rng, 5)
    counts, masses = random_documents(rng, 3), 10 ** rng.uniform(-9, 9, size=5)
    clusters, batch = clusters_of(statistics, masses), likelihood.encode(counts)
    bounds = bounds_of(likelihood, screen_of(likelihood, clusters), clusters, batch)
    exact = exact_scores(likelihood, clusters, batch)[:, :-1]
    oracle = np.log(masses) + oracle_scores(alpha, statistics, counts)
    np.testing.assert_allclose(exact, oracle, rtol=1e-12, atol=1e-9)
    assert_bounds(bounds, exact)
    assert_bounds(bounds, oracle)


@pytest.mark.parametrize("kind", ["any", "ordinary", "ends", "vector"])
@pytest.mark.parametrize("case", range(12))
def test_bounds_of_bursty_documents_are_never_below_the_scores(case, kind):
    rng = np.random.default_rng((61, case, len(kind), 1))
    strength = 10 ** (rng.uniform(-1, 5) if case % 3 else rng.uniform(-30, 30))
    likelihood = BurstyMultinomial(random_alpha(rng, kind), strength)
    statistics, masses = random_statistics(rng, 5), 10 ** rng.uniform(-9, 9, size=5)
    clusters, batch = clusters_of(statistics, masses), likelihood.encode(random_documents(rng, 3))
    bounds = bounds_of(likelihood, screen_of(likelihood, clusters), clusters, batch)
    exact = exact_scores(likelihood, clusters, batch)[:, :-1]
    tables = np.column_stack([statistics, statistics.sum(axis=1)])
    reference = [likelihood.log_predictive(tables, batch.row(i)) for i in range(3)]
    np.testing.assert_allclose(exact, np.log(masses) + reference, rtol=1e-12, atol=1e-9)
    assert_bounds(bounds, exact)


@pytest.mark.parametrize("total", [3e-29, 1e-3, 0.7, 30.0, 700.0, 1e7, 1e31])
def test_length_costs_no_less_than_its_bound(total):
    """sum_{j < n} log(x + j) of x = A + S, all of it: no word gains, so the bound is minus it."""
    rng = np.random.default_rng((62, 0))
    lengths = np.concatenate([[0.0, 1e9], 10 ** rng.uniform(-12, 9, size=30)])
    statistics = np.column_stack([lengths, np.zeros((32, 9))])
    likelihood = DirichletMultinomial(total / 10)
    screen = screen_of(likelihood, clusters_of(statistics, np.ones(32)))
    sums, bounds = np.zeros(CAPACITY, np.uint32), np.empty(CAPACITY)
    for n in (1, 2, 3, 20, 300, 5000):
        least = naive.log_rising(screen.total + 1.0, n - 1)
        fill_bounds(screen, sums, 0.0, screen.total, least, float(n), bounds, 32)
        x = screen.total + lengths
        exact = -np.array([naive.log_rising(float(start), n) for start in x])
        gap = bounds[:32] - exact
        assert np.all(gap > -MARGIN / 2)
        # Where the cluster is no shorter than the row, a ten thousandth of a nat a token is lost,
        # and what is meant to be more than rounding.
        longer = x > max(n, 10)
        assert np.all(gap[longer] < 1e-4 * n + 1e-3 + 2e-12 * x[longer])


def ordinary_corpus(case, repeats):
    """Return clusters over 1000 words and documents of 100 of them, `repeats` times on average."""
    rng = np.random.default_rng((63, case))
    theta = rng.dirichlet(np.full(1000, 0.05), size=20)
    statistics = np.array([rng.multinomial(10 ** rng.uniform(2, 6), row) for row in theta])
    counts = np.zeros((5, 1000), dtype=int)
    for row in counts:
        words = rng.choice(1000, size=100, replace=False, p=theta.mean(axis=0))
        row[words] = 1 + rng.poisson(repeats - 1, size=100)
    return statistics * rng.uniform(0.5, 1.0, size=(20, 1)), counts


@pytest.mark.parametrize("strength", [None, 300.0, 3.0])
@pytest.mark.parametrize("repeats", [1, 3])
def test_bounds_are_not_much_above_the_scores_of_ordinary_documents(repeats, strength):
    """A first token costs less than two levels; further ones lie under chords."""
    likelihood = DirichletMultinomial(0.1) if strength is None else BurstyMultinomial(0.1, strength)
    statistics, counts = ordinary_corpus(repeats, repeats)
    clusters, batch = clusters_of(statistics, np.ones(20)), likelihood.encode(counts)
    screen = screen_of(likelihood, clusters)
    bounds = bounds_of(likelihood, screen, clusters, batch)
    gap = bounds - exact_scores(likelihood, clusters, batch)[:, :-1]
    further = counts.sum(axis=1, keepdims=True) - 100
    assert screen.resolution == 128
    assert gap.min() > -MARGIN / 2
    assert np.all(gap < 100 * 2 * LOG_2 / 128 + 0.1 + 0.25 * further)


def test_documents_that_are_too_long_for_the_screen_are_scored_exactly():
    """The sums of levels of so many words leave 32 bits."""
    likelihood = DirichletMultinomial(2.0**-10)
    statistics = np.zeros((40, WORDS))
    statistics[:20] = 2.0 ** np.linspace(10, 50, 20)[:, None]
    statistics[20:, :5] = 2.0 ** np.linspace(0, 40, 20)[:, None]
    counts = np.full((2, WORDS), LONGEST // WORDS)
    counts[1] *= 2
    state, batch = with_clusters(statistics), likelihood.encode(counts)
    assert LONGEST - WORDS < counts[0].sum() < LONGEST <= counts[1].sum()
    screen = state.cache(likelihood)
    assert screen.levels.max() > LARGEST_LEVEL - 600
    bounds = bounds_of(likelihood, screen, state.arrays, likelihood.encode(counts[:1]))
    assert_bounds(bounds, exact_scores(likelihood, state.arrays, batch)[:1, :-1])
    for i in range(2):
        screened = score_row(likelihood, state, batch, i, np.log(1e-4))
        assert screened == score_row(likelihood, state, batch, i, np.log(1e-4), no_screen(CAPACITY))


# --- the parts of a bound -------------------------------------------------------------------------


def gain_of_further_tokens(alpha, base, most):
    """Yield count and sum_{0 < j < count} log((base + j) / (alpha + j)) for counts 2..most."""
    gain = np.zeros(base.shape)
    for j in range(1, most):
        gain = gain + np.log1p((base - alpha) / (alpha + j))
        yield j + 1, gain


def chords_of(knots, levels, count):
    """Return the chords in units of levels, as ``kernels.words.screen`` has them."""
    k1, k2, k3, k4, offset = knots
    eight = levels + 2 * sum(np.maximum(levels, k) for k in (k1, k2, k3)) + np.maximum(levels, k4)
    return (count - 1) * (eight - offset) / 8


@pytest.mark.parametrize("resolution", [128, 32])
@pytest.mark.parametrize("octave", [-99, -40, -10, -3, 0, 5, 20, 60, 100])
def test_chords_lie_above_the_gain_of_further_tokens(octave, resolution):
    """At every level, for counts of their own class and, from 32 on, of shared ones."""
    knots, levels = knots_of(octave, resolution), np.arange(LARGEST_LEVEL + 1)
    assert np.array_equal(knots[:, CHORDS], 2 * knots[:, :3].sum(axis=1) + knots[:, 3])
    assert np.all(np.diff(knots[:, :CHORDS], axis=1) >= 0)
    assert np.all((knots[:, :CHORDS] >= 0) & (knots[:, :CHORDS] <= LARGEST_LEVEL))
    for part in (1.0, 0.7, 0.5 + 1e-9):
        alpha = part * 2.0**octave
        base, loosest = alpha * 2.0 ** (levels / resolution), 0.0
        for count, gain in gain_of_further_tokens(alpha, base, 70):
            bound = chords_of(knots[count_class(float(count))], levels, count)
            gap = bound - gain * resolution / LOG_2
            assert gap.min() > -1e-5
            loosest = max(loosest, gap.max() * LOG_2 / resolution / (count - 1))
        if part == 1.0 and octave > -4:
            assert loosest < 0.35


@pytest.mark.parametrize("octave", [-20, -3, 5, 12, 19, 20])
def test_chords_lie_above_the_gain_of_words_that_occur_thousands_of_times(octave):
    knots, levels = knots_of(octave, 128), np.arange(0, LARGEST_LEVEL + 1, 455)
    assert levels[-1] > LARGEST_LEVEL - 455
    for count in (71, 1000, 4095, 60_000, LONGEST - 1):
        alpha = 2.0**octave
        seen = np.arange(1.0, count)
        gain = [np.log1p((alpha * 2.0 ** (q / 128) - alpha) / (alpha + seen)).sum() for q in levels]
        bound = chords_of(knots[count_class(float(count))], levels, count)
        assert np.all(bound >= np.array(gain) * 128 / LOG_2 * (1 - 1e-12) - 1e-5)


def test_chords_are_the_same_in_sixteen_bits():
    rng = np.random.default_rng((64, 0))
    knots = np.sort(rng.integers(0, LARGEST_LEVEL + 1, size=(40, 4)), axis=1)
    knots[:3] = [[0] * 4, [LARGEST_LEVEL] * 4, [0, 0, 0, LARGEST_LEVEL]]
    for row in knots:
        for level in (0, int(rng.integers(LARGEST_LEVEL)), int(row[1]), LARGEST_LEVEL):
            found = chords(np.uint16(level), *(np.uint16(knot) for knot in row))
            assert found == 8 * chords_of([*row, 0], level, 2)


def test_every_count_has_the_class_whose_smallest_count_is_next_below():
    smallest = class_counts()
    assert np.all(np.diff(smallest) > 0)
    assert len(knots_of(0, 128)) == smallest.size
    counts = np.arange(1, LONGEST)
    classes = np.array([count_class(float(count)) for count in counts])
    assert np.array_equal(classes, np.searchsorted(smallest, counts, side="right") - 1)
    assert np.array_equal(classes[: COUNTS - 1], counts[: COUNTS - 1])
    assert np.all(counts - smallest[classes] < np.maximum(1, counts / 8))


@pytest.mark.parametrize("alpha", [TINY, 1e-9, 0.1, HUGE])
def test_level_is_the_logarithm_rounded_up_by_less_than_two(alpha):
    screen = screen_of(DirichletMultinomial(alpha), clusters_of(np.zeros((0, 2)), []))
    resolution = screen.resolution
    assert resolution >= 32
    assert (53 - np.log2(alpha)) * resolution <= LARGEST_LEVEL
    rng = np.random.default_rng((65, 0))
    edges = np.concatenate([2.0 ** np.arange(12) - 1, np.arange(1, 256) / 256])
    edges = np.concatenate([np.nextafter(edges, -1), edges, np.nextafter(edges, 1e9)])
    drawn = 10 ** np.concatenate([rng.uniform(-25, 0, 300), rng.uniform(0, 60, 600)])
    ratios = np.sort(np.concatenate([edges[edges > 0], drawn]))
    levels = np.array([level_of(float(x), resolution, screen.steps) for x in ratios])
    exact = resolution * np.log1p(ratios) / LOG_2
    inside = exact <= LARGEST_LEVEL - 2
    assert np.all(levels >= np.minimum(exact * (1 - 1e-14), LARGEST_LEVEL))
    assert np.all(levels[inside] < exact[inside] + 2)
    assert np.all(levels <= LARGEST_LEVEL)
    assert np.all(np.diff(levels) >= 0)
    assert levels[0] >= 1
    for ratio in (0.0, -1e-17, -0.5, -3.0):
        assert level_of(ratio, resolution, screen.steps) == 0


# --- posteriors -----------------------------------------------------------------------------------


class Case(NamedTuple):
    """A model, settings, and rows."""

    name: str
    model: Model
    settings: adf.Settings
    counts: np.ndarray
    n_jobs: int = 1

    def __str__(self):
        return self.name

    @property
    def batch(self):
        return self.model.likelihood.encode(self.counts)

    def kernel(self, batch):
        return self.model.kernel_arguments(batch, self.n_jobs)


def documents(number, rows=60, topics=7, mean=12):
    """Return counts of overlapping topics over WORDS words, with repeats and an empty row."""
    rng = np.random.default_rng((66, number))
    theta = rng.dirichlet(np.full(WORDS, 0.15), size=topics)
    lengths = 1 + rng.poisson(rng.gamma(2.0, mean / 2, size=rows))
    counts = rng.multinomial(lengths, theta[rng.integers(0, topics, size=rows)])
    counts[5] = 0
    counts[9] *= 9  # beyond the counts that have knots of their own
    return counts


CASES = [
    Case(
        "dp",
        Model(dirichlet_process(1.0), DirichletMultinomial(0.1)),
        adf.Settings(0.1, 1e-4, 0.9),
        documents(0),
    ),
    Case(
        "nig",
        Model(normalized_inverse_gaussian(3.0, 2.0), DirichletMultinomial(0.02)),
        adf.Settings(0.5, 1e-2, 1.2),
        documents(1),
    ),
    Case(
        "py vector",
        Model(
            PitmanYor(0.5, 0.3),
            DirichletMultinomial(10 ** np.random.default_rng((67, 0)).uniform(-2, 0.5, size=WORDS)),
        ),
        adf.Settings(0.3, 1e-8, 0.9),
        documents(2),
    ),
    Case(
        "bursty",
        Model(dirichlet_process(1.0), BurstyMultinomial(0.1, 20.0)),
        adf.Settings(0.1, 1e-4, 0.9),
        documents(3),
    ),
]


def with_clusters(statistics):
    """Return a posterior of clusters of equal mass with given statistics."""
    state = MixtureState(statistics.shape[1] + 1)
    for _ in statistics:
        state.open()
    K, sums = len(statistics), statistics.sum(axis=1)
    state.rebuild(np.column_stack([statistics, sums]), np.full(K, 3.0), np.full(K, -40.0))
    return state


def score_row(likelihood, state, batch, i, log_cut, screen=None, *, passing=True):
    """Return {slot: exact log score} of the candidates, or of those that pass the cut."""
    screen = state.cache(likelihood) if screen is None else screen
    arrays, rows, rule = state.arrays, batch.kernel_rows, Rule(0.05, 1.5, 2.0, 0.0)
    parameters = likelihood.kernel_parameters(batch.n_statistics)
    out = np.empty((len(batch), state.n_clusters + 1))
    log_joint_rows(parameters, arrays, screen, rows, arrays.masses, rule, log_cut, i, i + 1, out)
    floor = out[i].max() + log_cut if passing else -np.inf
    return {k: x for k, x in enumerate(out[i].tolist()) if x >= floor and x > -np.inf}


def first_pass(case, rows=None):
    """Return batch, posterior and sites after the compiled engine's first pass."""
    batch = case.batch.part(0, rows or len(case.counts))
    state, sites = MixtureState(batch.n_statistics), SiteBuffer(len(batch))
    go_over(case, state, batch, SiteBuffer(), sites)
    return batch, state, sites


def go_over(case, state, batch, old, new):
    return list(visit(case.model, state, batch, old, new, case.settings, case.kernel(batch)))


def again(case, state, batch, sites):
    """Revisit every row as a sweep does, without rebuilding the totals; return sites, events."""
    new = SiteBuffer(len(batch))
    records = go_over(case, state, batch, sites, new)
    return new, [event for record in records for event in record.events]


def share_rows(monkeypatch, n_rows):
    """Let the screen have so many rows only."""
    monkeypatch.setattr(screening, "SCREEN_BYTES", 2 * CAPACITY * n_rows)


def levels_of(screen, n_clusters):
    """Return the (V, K) levels as seen from words."""
    return screen.levels[screen.rows, :n_clusters].astype(int)


def private(state, likelihood, monkeypatch):
    """Return a screen made anew in which no word shares a row."""
    with monkeypatch.context() as patch:
        patch.setattr(screening, "SCREEN_BYTES", 2**28)
        return screen_of(likelihood, state.arrays)


def assert_kept(case, state, monkeypatch, *, exactly):
    """The screen that the state has is no lower than one made anew; equal if no row is shared."""
    kept = state.cache(case.model.likelihood)
    made, K = private(state, case.model.likelihood, monkeypatch), state.n_clusters
    found, expected = levels_of(kept, K), levels_of(made, K)
    assert expected.any()
    assert np.all(found >= expected)
    assert not kept.levels[-1].any()
    assert not kept.levels[:, K:].any()
    for name in ("heads", "lengths", "log_lengths", "inverse_lengths", "log_dampings", "shifts"):
        assert np.array_equal(getattr(kept, name)[:K], getattr(made, name)[:K])
    assert np.all(kept.heads[K:] == -np.inf)
    if exactly:
        assert np.array_equal(found, expected)


def assert_bounds_rows(case, state, batch):
    """Bounds from the screen that the state has are none too low; empty rows have none."""
    likelihood = case.model.likelihood
    full = [i for i in range(len(batch)) if batch.row(i).values[-1] > 0][:12]
    part = likelihood.encode(case.counts[full])
    bounds = bounds_of(likelihood, state.cache(likelihood), state.arrays, part)
    assert_bounds(bounds, exact_scores(likelihood, state.arrays, part)[:, :-1])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_score_finds_all_that_pass_the_cut(case):
    batch, state, _ = first_pass(case)
    likelihood, nothing = case.model.likelihood, no_screen(CAPACITY)
    for log_cut in (-60.0, np.log(1e-4), np.log(0.3)):
        for i in range(len(batch)):
            screened = score_row(likelihood, state, batch, i, log_cut)
            assert screened == score_row(likelihood, state, batch, i, log_cut, nothing)
    exact = score_row(likelihood, state, batch, 0, -np.inf)
    assert len(exact) == state.n_clusters + 1


def test_clusters_that_have_no_word_of_a_row_need_no_exact_score():
    statistics = np.kron(np.eye(20), np.full((1, 2), 50.0))
    likelihood, state = DirichletMultinomial(0.1), with_clusters(statistics)
    batch = likelihood.encode(np.kron(np.eye(20, dtype=int), np.full((1, 2), 3)))
    for i in range(20):
        scored = score_row(likelihood, state, batch, i, np.log(1e-4), passing=False)
        assert list(scored) == [i, 20]


# --- kept up to date ------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=str)
def test_pass_keeps_the_screen_up_to_date(case, monkeypatch):
    batch, state, _ = first_pass(case, rows=20)
    screen = state.cache(case.model.likelihood)
    assert_kept(case, state, monkeypatch, exactly=True)
    rest = case.batch.part(20, len(case.counts))
    go_over(case, state, rest, SiteBuffer(), SiteBuffer(len(rest)))
    assert state.cache(case.model.likelihood) is screen
    assert_kept(case, state, monkeypatch, exactly=True)
    assert_bounds_rows(case, state, batch)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_revisits_with_drops_keep_the_screen_up_to_date(case, shared, monkeypatch):
    if shared:
        share_rows(monkeypatch, 9)
    batch, state, sites = first_pass(case)
    screen, deaths = state.cache(case.model.likelihood), 0
    assert screen.shared.any() == shared
    for _ in range(3):
        sites, events = again(case, state, batch, sites)
        assert state.cache(case.model.likelihood) is screen
        assert_kept(case, state, monkeypatch, exactly=not shared)
        assert_bounds_rows(case, state, batch)
        deaths += sum(event.kind == "death" for event in events)
    assert deaths > 0


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("case", [c for c in CASES if not c.model.likelihood.latent], ids=str)
def test_gibbs_keeps_the_screen_up_to_date(case, shared, monkeypatch):
    if shared:
        share_rows(monkeypatch, 9)
    model, batch, rng = case.model, case.batch, np.random.default_rng((68, 0))
    start = np.arange(len(batch)) % 12
    chain = gibbs.chain_at(model, batch, start, -0.5)
    screen = chain.state.cache(model.likelihood)
    sizes = set()
    for _ in range(4):
        gibbs.sweep(model, chain, batch, rng.random(len(batch)), model.kernel_arguments(batch))
        assert chain.state.cache(model.likelihood) is screen
        assert_kept(case, chain.state, monkeypatch, exactly=not shared)
        assert_bounds_rows(case, chain.state, batch)
        sizes.add(chain.state.n_clusters)
    assert min(sizes) < 12


def growing_case():
    """Return rows that open 150 clusters, more than the first capacity, and then come again."""
    counts = np.vstack([9 * np.eye(150, dtype=int)] * 2)
    model = Model(dirichlet_process(5.0), DirichletMultinomial(0.05))
    return Case("growing", model, adf.Settings(0.5, 1e-4), counts)


@pytest.mark.parametrize("shared", [False, True])
def test_more_slots_keep_the_screen_up_to_date(shared, monkeypatch):
    """Growing, the screen takes the levels along, or is made anew where words must share rows."""
    case = growing_case()
    unscreened = fitted_without_screen(case)
    monkeypatch.setattr(screening, "SCREEN_BYTES", 2 * 160 * CAPACITY * (1 if shared else 2))
    state, batch = MixtureState(151), case.batch
    list(adf.run(case.model, state, batch, case.settings, case.model.kernel_arguments(batch)))
    assert state.n_clusters == 150
    levels = state.cache(case.model.likelihood).levels
    assert levels.shape == ((81 if shared else 151), 2 * CAPACITY)
    assert_kept(case, state, monkeypatch, exactly=not shared)
    assert bits(state) == unscreened


def test_screen_follows_when_something_else_changes_the_posterior():
    """It is made anew, or after a merge, or where nothing has changed, kept: to the same levels."""
    case = CASES[0]
    batch, state, _ = first_pass(case)
    likelihood = case.model.likelihood

    def changed(change):
        before = state.cache(likelihood)
        change()
        after = state.cache(likelihood)
        made = screen_of(likelihood, state.arrays)
        for name in ("levels", "heads", "lengths"):
            assert np.array_equal(getattr(after, name), getattr(made, name))
        return after is not before

    row, q = batch.row(0), np.zeros(state.n_clusters)
    q[:2] = [0.25, 0.75]
    slots, shares = np.arange(2), q[:2]
    assert changed(lambda: state.add(q, row))
    assert changed(lambda: state.take_out(slots, shares, row))
    assert changed(lambda: state.move(1, row, 1.0))
    assert not changed(lambda: state.merge(2, 0, -9.0))
    K = state.n_clusters
    assert changed(lambda: state.rebuild(2 * state.statistics, np.ones(K), np.full(K, -1.0)))
    assert not changed(lambda: state.count_row(0.0))
    other = DirichletMultinomial(3.0)
    assert state.cache(other).total == 3.0 * WORDS
    assert state.cache(likelihood).total == 0.1 * WORDS


def test_a_screen_follows_a_cluster_that_is_dropped():
    case = CASES[0]
    _, state, _ = first_pass(case)
    likelihood = case.model.likelihood
    before = state.cache(likelihood)
    state.drop(0)
    after, K = state.cache(likelihood), state.n_clusters
    made = screen_of(likelihood, state.arrays)
    assert after is before
    assert np.array_equal(after.levels, made.levels)
    for name in ("heads", "lengths"):  # of free slots only the heads matter
        assert np.array_equal(getattr(after, name)[:K], getattr(made, name)[:K])
    assert np.array_equal(after.heads, made.heads)
    assert state.copy().cache(likelihood) is not state.cache(likelihood)


# --- shared rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [2, 3, 9, 39])
@pytest.mark.parametrize("case", range(4))
def test_bounds_of_words_that_share_rows_are_never_below_the_scores(case, n_rows, monkeypatch):
    share_rows(monkeypatch, n_rows)
    rng = np.random.default_rng((69, case))
    alpha = random_alpha(rng, ["any", "ordinary", "vector", "ends"][case])
    likelihood, statistics = DirichletMultinomial(alpha), random_statistics(rng, 5)
    clusters = clusters_of(statistics, 10 ** rng.uniform(-3, 3, size=5))
    batch, screen = likelihood.encode(random_documents(rng, 3)), screen_of(likelihood, clusters)
    assert screen.levels.shape[0] == n_rows + 1
    assert screen.rows.max() == n_rows - 1
    users = np.bincount(screen.rows, minlength=n_rows + 1)
    assert users[:-1].min() >= 1
    assert np.all(screen.shared | (users <= 1))
    assert not screen.shared[-1]
    # Words that most clusters have keep rows of their own.
    spread = (statistics > 0).sum(axis=0)
    own = ~screen.shared[screen.rows]
    assert own.sum() == n_rows // 2
    assert spread[own].min() >= spread[~own].max()
    bounds = bounds_of(likelihood, screen, clusters, batch)
    assert_bounds(bounds, exact_scores(likelihood, clusters, batch)[:, :-1])
    monkeypatch.undo()
    expected, found = levels_of(screen_of(likelihood, clusters), 5), levels_of(screen, 5)
    assert np.array_equal(found[own], expected[own])
    for row in np.flatnonzero(screen.shared):
        together = screen.rows == row
        assert np.array_equal(found[together], [expected[together].max(axis=0)] * users[row])


# --- no trace in results --------------------------------------------------------------------------


def site_bits(sites):
    n = sites.n_entries
    parts = (sites.arrays.indptr[: sites.n_visited + 1], *(x[:n] for x in sites.arrays[1:]))
    return [part.tobytes() for part in parts]


def run_adf(case):
    state, batch = MixtureState(case.counts.shape[1] + 1), case.batch
    records = list(adf.run(case.model, state, batch, case.settings, case.kernel(batch)))
    return [*bits(state), *(part.tobytes() for record in records for part in record.rows)]


def run_ep(case):
    batch, state, sites = first_pass(case)
    posterior = (case.model, state, batch, sites)
    epochs = list(ep.run(*posterior, case.settings, case.kernel(batch), n_sweeps=3))
    return [*bits(state), *site_bits(sites), epochs]


def run_window(case):
    state, kept = MixtureState(case.counts.shape[1] + 1), Window()
    schedule = window.Schedule(16, 2, merge_threshold=0.0)
    kept.prepare(size=16, keep_rows=True)
    posterior = (case.model, state, kept)
    settings = case.settings, schedule, case.kernel
    outcomes = list(window.run(*posterior, case.batch, *settings))
    outcomes += window.finish(*posterior, *settings)
    return [*bits(state), *site_bits(kept.sites), [outcome.events for outcome in outcomes]]


def run_gibbs(case):
    model, batch = case.model, case.batch
    chain = gibbs.chain_at(model, batch, np.arange(len(batch)) % 9, -0.5)
    rng, path = np.random.default_rng((70, 0)), []
    for _ in range(5):
        gibbs.sweep(model, chain, batch, rng.random(len(batch)), model.kernel_arguments(batch))
        path.append(chain.assignments.tolist())
    return [*bits(chain.state), path]


RUNS = {"adf": run_adf, "ep": run_ep, "window": run_window, "gibbs": run_gibbs}


def unscreened(case, patch):
    patch.setattr(
        type(case.model.likelihood),
        "cache",
        lambda self, table, *_: no_screen(table.starts.size),
    )


def fitted_without_screen(case):
    with pytest.MonkeyPatch.context() as patch:
        unscreened(case, patch)
        state, batch = MixtureState(case.counts.shape[1] + 1), case.batch
        kernel = case.model.kernel_arguments(batch)
        list(adf.run(case.model, state, batch, case.settings, kernel))
        return bits(state)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_results_are_the_same_bits_with_a_screen_without_and_with_shared_rows(
    case, run, monkeypatch
):
    if run == "gibbs" and case.model.likelihood.latent:
        return
    screened = RUNS[run](case)
    with monkeypatch.context() as patch:
        unscreened(case, patch)
        assert screened == RUNS[run](case)
    for n_rows in (2, 11):
        with monkeypatch.context() as patch:
            share_rows(patch, n_rows)
            assert screened == RUNS[run](case)
