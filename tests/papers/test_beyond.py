"""What goes beyond the paper: the small run, the exact update, and the printed formula."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import beta, dirichlet

from bnpstream import DirichletMultinomial, GeneralizedGamma, dirichlet_process
from bnpstream.cli.reproduce import ROOT, import_papers
from bnpstream.inference import adf
from bnpstream.inference.response import Settings
from bnpstream.mixture import MixtureState, Model

papers = import_papers(ROOT)
from tank2015.exact_update import ProjectedState, match_logarithms, match_moments  # noqa: E402
from tank2015.printed_rule import PrintedGeneralizedGamma, total_probability  # noqa: E402

PROJECTIONS = [match_logarithms, match_moments]


@pytest.fixture(scope="module")
def small(tmp_path_factory, kos):
    out = tmp_path_factory.mktemp("beyond")
    return papers.reproduce("beyond", out, small=True), out


@pytest.mark.parametrize(
    ("beginning", "verdict"),
    [
        ("A larger threshold leads to a worse", "holds"),
        ("p(U | z) has (U + tau)^(n - a K)", "does not hold"),
        ("An exact ADF update of q(theta) is possible", "holds"),
        ("The mean field update approximates", "does not hold"),
    ],
)
def test_claims_that_hold_at_any_size(small, beginning, verdict):
    (claim,) = [c for c in small[0]["claims"] if c["text"].startswith(beginning)]
    assert claim["verdict"] == verdict, claim["ours"]


def means(results, step, **arguments):
    """Return the means of what steps found."""
    records = [r for r in results["steps"] if r["step"] == step]
    chosen = [r["found"] for r in records if arguments.items() <= r["arguments"].items()]
    return {key: np.mean([one[key] for one in chosen]) for key in chosen[0]}


@pytest.mark.parametrize(("prior", "least"), [("DP", 0.01), ("NIG", 0.5)])
def test_a_larger_threshold_introduces_fewer_clusters(small, prior, least):
    # Of the little of KOS that a small run has, every threshold makes about 25 clusters.
    which = {"stream": "powerlaw", "prior": prior}
    few, many = (means(small[0], "truncate", epsilon=e, **which) for e in (0.9, least))
    assert few["clusters"] < 0.7 * many["clusters"]


def test_frequent_merging_hurts(small):
    for prior in ("DP", "NIG"):
        which = {"stream": "powerlaw", "prior": prior}
        often = means(small[0], "merge", odds=0.0, every=100, **which)
        never = means(small[0], "never_merge", **which)
        assert often["clusters"] < 0.9 * never["clusters"]
        assert often["log_predictive"] < never["log_predictive"] - 0.05


def test_every_part_shows_a_figure_and_a_table(small):
    results, out = small
    parts = {"priors", "epsilon", "merges", "auxiliary", "printed", "updates"}
    for kind, endings in (("figure", ("png", "svg")), ("table", ("csv", "md"))):
        shown = {e["name"] for e in results["exhibits"] if e["kind"] == kind}
        expected = parts | {"updates-few"} if kind == "table" else parts
        assert shown == {f"beyond-{part}" for part in expected}
        files = [out / "results" / f"{name}.{ending}" for name in shown for ending in endings]
        assert all(path.stat().st_size > 100 for path in files)


def mixture_of(b, x, q):
    """Return the density of theta_1, of two words, when the row is the cluster's or is not."""
    with_row, without = beta(*(b + x)), beta(*b)
    return lambda t: q * with_row.pdf(t) + (1.0 - q) * without.pdf(t)


def mean_under(density, f):
    """Return an expectation over theta_1, a trapezoid sum over its logit."""
    v = np.linspace(-36.0, 36.0, 7201)
    t = expit(v)
    return float(np.sum(f(t) * density(t) * t * expit(-v)) * (v[1] - v[0]))


CASES = [((1.5, 2.0), (3, 1), 0.4), ((0.75, 4.0), (0, 6), 0.9), ((12.0, 3.0), (1, 9), 0.05)]


@pytest.mark.parametrize(("b", "x", "q"), CASES)
def test_exact_update_keeps_mean_logarithms_and_is_nearest(b, x, q):
    b, x = np.array(b), np.array(x, float)
    density, c = mixture_of(b, x, q), match_logarithms(b, x, q)
    for f in (np.log, np.log1p):
        sign = 1.0 if f is np.log else -1.0  # log theta_1, log theta_2
        wanted = mean_under(density, lambda t, f=f, s=sign: f(s * t))
        got = mean_under(beta(*c).pdf, lambda t, f=f, s=sign: f(s * t))
        assert got == pytest.approx(wanted, abs=1e-7)

    def divergence(parameters):
        return -mean_under(density, lambda t: beta(*parameters).logpdf(t))

    least = divergence(c)
    for other in (c * [1.05, 1.0], c * [1.0, 1.05], 0.95 * c, match_moments(b, x, q), b + q * x):
        assert divergence(other) > least


@pytest.mark.parametrize(("b", "x", "q"), CASES)
def test_moments_are_those_of_the_marginal(b, x, q):
    b, x = np.array(b), np.array(x, float)
    density, c = mixture_of(b, x, q), match_moments(b, x, q)
    for f in (lambda t: t, lambda t: t**2 + (1 - t) ** 2):
        assert mean_under(beta(*c).pdf, f) == pytest.approx(mean_under(density, f), abs=1e-9)


def test_moments_of_many_words_agree_with_draws():
    rng = np.random.default_rng(0)
    b, x, q = rng.gamma(2.0, size=8) + 0.1, rng.multinomial(12, np.ones(8) / 8).astype(float), 0.3
    size = 400_000
    with_row = rng.random(size) < q
    drawn = np.where(with_row[:, None], rng.dirichlet(b + x, size), rng.dirichlet(b, size))
    moments, logarithms = dirichlet(match_moments(b, x, q)), match_logarithms(b, x, q)
    assert moments.mean() == pytest.approx(drawn.mean(axis=0), abs=1e-3)
    summed = (moments.var() + moments.mean() ** 2).sum()
    assert summed == pytest.approx((drawn**2).sum(axis=1).mean(), abs=1e-3)
    mine = np.log(rng.dirichlet(logarithms, size)).mean(axis=0)
    assert mine == pytest.approx(np.log(drawn).mean(axis=0), abs=0.02)


@pytest.mark.parametrize("project", PROJECTIONS)
@pytest.mark.parametrize("n_words", [2, 100])
def test_a_row_that_is_surely_in_or_out_is_no_approximation(project, n_words):
    rng = np.random.default_rng(n_words)
    b = rng.gamma(1.0, size=n_words) + 0.05
    x = rng.multinomial(40, rng.dirichlet(np.full(n_words, 0.3))).astype(float)
    assert project(b, x, 0.0) == pytest.approx(b, rel=1e-9)
    assert project(b, x, 1.0) == pytest.approx(b + x, rel=1e-9)


@pytest.mark.parametrize("project", PROJECTIONS)
def test_projected_state_follows_a_pass(project):
    model = Model(dirichlet_process(1.0), DirichletMultinomial(0.5))
    rows = [[4, 0, 1], [0, 3, 2], [1, 1, 1]]
    plain, projected = MixtureState(4), ProjectedState(3, 0.5, project)
    for state in (plain, projected):
        list(adf.run(model, state, model.likelihood.encode(rows[:2]), Settings(0.0, 0.0)))
    # The second row was the first to be shared: masses are the same, statistics are not.
    assert projected.masses == pytest.approx(plain.masses)
    q = projected.masses[1]
    for k, (b, share) in enumerate([(np.array([4.5, 0.5, 1.5]), 1 - q), (np.full(3, 0.5), q)]):
        c = project(b, np.array([0.0, 3.0, 2.0]), share)
        assert projected.statistics[k, :3] + 0.5 == pytest.approx(c)
        assert projected.statistics[k, 3] + 1.5 == pytest.approx(c.sum())
    assert not np.allclose(projected.statistics, plain.statistics, atol=1e-3)


def test_printed_formula_gives_no_probabilities():
    # The numbers of docs/errata.md, where they are computed without the package.
    cases = {(1.0, 1.0, 3): 11.67, (1.0, 1.0, 5): 226.4, (0.2, 1.0, 5): 0.1188}
    for (a, tau, n), wanted in cases.items():
        assert total_probability(PrintedGeneralizedGamma(a, 0.5, tau), n) == pytest.approx(
            wanted, rel=1e-3
        )
        assert total_probability(GeneralizedGamma(a, 0.5, tau), n) == pytest.approx(1.0, abs=1e-9)


def new_weight(prior, counts):
    """Return log U at its mode, and the odds of a new cluster against all others times n."""
    counts, surely = np.array(counts, float), np.full(len(counts), -np.inf)
    mode = prior.solve_auxiliary(counts, surely, counts.sum(), np.nan)
    weights = np.exp(prior.log_weights(counts, surely, counts.sum(), mode))
    return mode, weights[-1] / weights[0] * (counts[0] - prior.discount)


@pytest.mark.parametrize(("a", "tau"), [(1.0, 1000.0), (100.0, 0.1), (0.3, 2.0)])
def test_printed_mode_and_weight_of_a_new_cluster(a, tau):
    prior, counts = PrintedGeneralizedGamma(a, 0.5, tau), [40, 7, 1, 1]
    mode, weight = new_weight(prior, counts)
    hard = np.ones(4)
    around = prior.log_auxiliary_joint(
        mode + np.array([-0.01, 0.0, 0.01]), np.array(counts, float), hard, 49.0
    )
    assert around[1] == around.max()
    assert weight == pytest.approx(4 * a + 49.0 * tau / np.exp(mode))


def test_printed_formula_is_right_where_a_is_sigma_and_tells_twins_apart():
    counts = [40, 7, 1, 1]
    same = new_weight(PrintedGeneralizedGamma(0.5, 0.5, 3.0), counts)
    assert same == pytest.approx(new_weight(GeneralizedGamma(0.5, 0.5, 3.0), counts), rel=1e-9)
    twins = [(1.0, 1000.0), (100.0, 0.1)]
    one, other = (new_weight(GeneralizedGamma(a, 0.5, tau), counts)[1] for a, tau in twins)
    assert one == pytest.approx(other, rel=1e-9)
    one, other = (new_weight(PrintedGeneralizedGamma(a, 0.5, tau), counts)[1] for a, tau in twins)
    assert other > 2 * one
