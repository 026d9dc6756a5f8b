"""The laws of likelihoods: what must hold for every conjugate family, from non-empty rows."""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

import naive
from bnpstream.kernels.measures.rules import Rule
from bnpstream.kernels.passes.steps import log_joint_rows
from bnpstream.kernels.special import log_rising
from bnpstream.kernels.words.tables import LONG_RUN
from bnpstream.likelihoods import DirichletMultinomial, Likelihood
from bnpstream.mixture import MixtureState

V = 6
ALPHAS = [0.1, 3.0, np.array([0.02, 0.5, 1.0, 4.0, 0.3, 25.0])]
LIKELIHOODS = [DirichletMultinomial(alpha) for alpha in ALPHAS]


def fractional_statistics(case, K=4):
    """Return K rows of words shared in fractions, and their totals: what soft updates leave."""
    rng = np.random.default_rng((2, case))
    words = rng.gamma(0.7, 5.0, size=(K, V)) * (rng.random((K, V)) < 0.8)
    return np.column_stack([words, words.sum(axis=1)])


def documents(case, n=12, mean=2.0):
    """Return counts, shape (n, V); the first document is empty."""
    counts = np.random.default_rng((3, case)).poisson(mean, size=(n, V))
    counts[0] = 0
    return counts


def alpha_list(likelihood, n_words=V):
    """Return alpha word by word."""
    return np.broadcast_to(likelihood.alpha, n_words).tolist()


# --- the derived and the overridden predictive ----------------------------------------------------


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_predictive_is_a_ratio_of_normalizers(likelihood):
    statistics = fractional_statistics(0)
    batch = likelihood.encode(documents(0))
    for i in range(len(batch)):
        derived = Likelihood.log_predictive(likelihood, statistics, batch.row(i))
        np.testing.assert_allclose(
            likelihood.log_predictive(statistics, batch.row(i)), derived, atol=1e-10
        )


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_predictive_equals_the_oracle(likelihood):
    statistics, counts = fractional_statistics(1), documents(1)
    batch, alpha = likelihood.encode(counts), alpha_list(likelihood)
    for i, document in enumerate(counts.tolist()):
        sparse_document = {word: count for word, count in enumerate(document) if count}
        assert abs(batch.log_base[i] - naive.log_base(sparse_document)) < 1e-10
        for found, (*words, length) in zip(
            likelihood.log_predictive(statistics, batch.row(i)), statistics.tolist(), strict=True
        ):
            expected = naive.log_predictive(
                dict(enumerate(words)), length, sparse_document, alpha, math.fsum(alpha)
            )
            assert abs(found - expected) < 1e-10


@pytest.mark.parametrize("length", [0, 1, 5])
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_predictive_sums_to_one_over_all_documents_of_a_length(likelihood, length):
    statistics = fractional_statistics(2)
    everything = [
        document
        for document in itertools.product(range(length + 1), repeat=V)
        if sum(document) == length
    ]
    batch = likelihood.encode(everything)
    scores = [
        likelihood.log_predictive(statistics, batch.row(i)) + batch.log_base[i]
        for i in range(len(batch))
    ]
    np.testing.assert_allclose(np.exp(scores).sum(axis=0), 1, rtol=1e-11)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_marginal_is_the_product_of_predictives_in_any_order(likelihood):
    batch = likelihood.encode(documents(3))
    rows = batch.statistics.toarray()
    marginal = likelihood.log_marginal(rows.sum(axis=0, keepdims=True))
    for case in range(3):
        seen, total = np.zeros((1, V + 1)), 0.0
        for i in np.random.default_rng((4, case)).permutation(len(batch)):
            total += likelihood.log_predictive(seen, batch.row(i))
            seen += rows[i]
        np.testing.assert_allclose(total, marginal, atol=1e-9)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_predictive_is_a_ratio_of_marginals(likelihood):
    statistics = fractional_statistics(4)
    batch = likelihood.encode(documents(4))
    for i in range(len(batch)):
        after = statistics + batch.statistics[[i]].toarray()
        ratio = likelihood.log_marginal(after) - likelihood.log_marginal(statistics)
        np.testing.assert_allclose(
            likelihood.log_predictive(statistics, batch.row(i)), ratio, atol=1e-10
        )


def test_marginal_of_nothing_is_one():
    assert np.array_equal(LIKELIHOODS[0].log_marginal(np.zeros((2, V + 1))), [0.0, 0.0])


def test_vector_of_equal_alphas_is_the_scalar():
    scalar, vector = DirichletMultinomial(0.3), DirichletMultinomial([0.3] * V)
    statistics, batch = fractional_statistics(5), scalar.encode(documents(5))
    assert np.array_equal(
        vector.encode(documents(5)).statistics.toarray(), batch.statistics.toarray()
    )
    for method in ("log_normalizer", "log_marginal", "posterior_mean"):
        np.testing.assert_allclose(
            getattr(vector, method)(statistics), getattr(scalar, method)(statistics), rtol=1e-12
        )
    for i in range(len(batch)):
        np.testing.assert_allclose(
            vector.log_predictive(statistics, batch.row(i)),
            scalar.log_predictive(statistics, batch.row(i)),
            atol=1e-11,
        )


# --- the parameters -------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_posterior_mean_is_the_predictive_of_one_word(likelihood):
    statistics = fractional_statistics(6)
    means = likelihood.posterior_mean(statistics)
    assert means.shape == (len(statistics), V)
    words = likelihood.encode(np.eye(V))
    for word in range(V):
        predictive = np.exp(likelihood.log_predictive(statistics, words.row(word)))
        np.testing.assert_allclose(means[:, word], predictive, rtol=1e-12)
    np.testing.assert_allclose(means.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_sampled_documents_have_the_posterior_mean(likelihood):
    draws, length = 4000, 7
    statistics = fractional_statistics(7, K=2)
    rng = np.random.default_rng((5, 0))
    for k in range(2):
        counts = likelihood.sample(np.repeat(statistics[[k]], draws, axis=0), rng, length=length)
        assert counts.shape == (draws, V)
        assert np.all(counts.sum(axis=1) == length)
        expected = length * likelihood.posterior_mean(statistics[[k]])[0]
        errors = (counts.mean(axis=0) - expected) / (counts.std(axis=0) / math.sqrt(draws) + 1e-9)
        assert np.all(np.abs(errors) < 4)


def test_sampled_documents_are_as_spread_as_the_predictive():
    """Words of a document share one theta: a multinomial at the mean would vary less."""
    likelihood, draws = DirichletMultinomial(0.5), 4000
    pairs = likelihood.sample(np.zeros((draws, 3)), np.random.default_rng((5, 1)), length=2)
    both_first = likelihood.encode([[2, 0]]).row(0)
    twice = math.exp(likelihood.log_predictive(np.zeros((1, 3)), both_first)[0])
    error = math.sqrt(twice * (1 - twice) / draws)
    assert abs((pairs[:, 0] == 2).mean() - twice) < 4 * error


# --- the compiled score ---------------------------------------------------------------------------


def compiled_log_predictive(likelihood, statistics, batch, i):
    """Return the compiled twin of `log_predictive`, the empty cluster last."""
    state = MixtureState(statistics.shape[1])
    for _ in statistics:
        state.open()
    state.rebuild(statistics, np.ones(len(statistics)), np.zeros(len(statistics)))
    parameters = likelihood.kernel_parameters(batch.n_statistics)
    part, K = batch.part(i, i + 1), len(statistics)
    state_screen = likelihood.cache(state.arrays.table, state.arrays.masses, K)
    scores = np.empty((1, K + 1))
    log_joint_rows(
        parameters, state.arrays, state_screen, part.kernel_rows, state.arrays.masses,
        Rule(0.0, 1.0, 0.0, 0.0), -np.inf, 0, 1, scores,
    )  # fmt: skip
    return scores[0] - part.log_base


EXTREME_ALPHAS = [
    1e-12,
    0.1,
    1e6,
    np.array([1e-12, 0.1, 1.0, 30.0, 1e6, 2e-5]),
    np.array([1e-30, 1e30, 1e-30, 1e-30, 1e30, 1e30]),
]
LONG = int(LONG_RUN)
EXTREME_DOCUMENTS = np.array(
    [
        [0, 0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0],
        [2, 0, 3, 0, 1, 1],
        [1, 1, 1, 1, 1, 3],  # eight tokens: one full product
        [LONG - 1, 0, 0, 0, LONG - 1, 0],
        [LONG, 0, LONG + 1, 0, 1, 0],
        [0, 1000, 3, 0, 0, 90],
        [17, 17, 17, 17, 17, 17],
        [LONG, LONG + 1, 1, 30, 2, 400],  # long runs among the first four words and after
        [0, 8, 0, 0, LONG + 1, 9],  # a long run where the exponent would be moved apart
    ]
)


@pytest.mark.kernel
@pytest.mark.parametrize("scale", [1.0, 1e5, 1e7])
@pytest.mark.parametrize("alpha", EXTREME_ALPHAS)
def test_compiled_score_equals_the_reference(alpha, scale):
    likelihood = DirichletMultinomial(alpha)
    words = scale * np.random.default_rng((6, 0)).gamma(0.3, 1.0, size=(9, V))
    words[3] = 0.0
    words[4, 2:] = 0.0
    statistics = np.column_stack([words, words.sum(axis=1)])
    candidates = np.vstack([statistics, np.zeros(V + 1)])
    batch = likelihood.encode(EXTREME_DOCUMENTS)
    for i in range(len(batch)):
        np.testing.assert_allclose(
            compiled_log_predictive(likelihood, statistics, batch, i),
            likelihood.log_predictive(candidates, batch.row(i)),
            rtol=1e-13,
            atol=1e-10,
        )


@pytest.mark.kernel
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_compiled_score_equals_the_reference_on_soft_statistics(likelihood):
    statistics = fractional_statistics(8, K=14)
    candidates = np.vstack([statistics, np.zeros(V + 1)])
    batch = likelihood.encode(documents(8, n=30, mean=5.0))
    for i in range(len(batch)):
        np.testing.assert_allclose(
            compiled_log_predictive(likelihood, statistics, batch, i),
            likelihood.log_predictive(candidates, batch.row(i)),
            atol=1e-10,
        )


@pytest.mark.kernel
@pytest.mark.parametrize("n", [0, 1, 2, 7, 11, 12, 13, 24, 100, 1000, 20_000])
def test_log_rising_is_a_sum_of_logarithms(n):
    starts = [*np.logspace(-30, 30, 61), 0.5, 1.0, 2.0, 11.0, 11.999, 12.0, 12.5, 1e7 + 0.3]
    for x in map(float, starts):
        expected = naive.log_rising(x, n)
        assert abs(log_rising(x, float(n)) - expected) <= 1e-13 * max(1.0, n, abs(expected))


# --- the door -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1, 0, 2], [0, 3, -1]], r"row 1, column 2 is -1: .*negative"),
        ([[1, 0.5]], r"row 0, column 1 is 0\.5: .*fraction"),
        ([[1, 2], [math.nan, 0]], r"row 1, column 0 is nan: NaN"),
        ([[1, 2], [0, 1], [0, math.inf]], r"row 2, column 1 is inf"),
        ([[1, -math.inf]], r"row 0, column 1 is -inf: .*negative"),
        ([[2.0**53 + 2]], r"row 0, column 0 is 9007199254740994\.0: .*larger"),
        ([1, 2, 3], r"got 1 dimension.*reshape\(1, -1\)"),
        (np.zeros((2, 2, 2)), r"got 3 dimension"),
        (5, r"got 0 dimension"),
        (np.zeros((0, 3)), r"X is empty, its shape is \(0, 3\)"),
        (np.zeros((3, 0)), r"X is empty, its shape is \(3, 0\)"),
        ([["two", "words"]], r"X must hold numbers, got dtype <U5"),
    ],
)
def test_rows_that_are_no_counts_are_refused_by_place(rows, message):
    with pytest.raises(ValueError, match=message):
        DirichletMultinomial(0.5).encode(rows)


@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csc_array, sparse.coo_array])
def test_place_of_a_bad_count_is_the_same_in_every_layout(layout):
    rows = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, -2, 1]])
    with pytest.raises(ValueError, match=r"row 2, column 2 is -2:"):
        DirichletMultinomial(0.5).encode(layout(rows))


def test_negative_count_hidden_by_a_duplicate_is_refused():
    rows = sparse.csr_array(([5.0, -2.0], [1, 1], [0, 0, 2]), shape=(2, 3))
    with pytest.raises(ValueError, match=r"row 1, column 1 is -2\.0"):
        DirichletMultinomial(0.5).encode(rows)


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        (0.0, r"alpha must be > 0.*got 0\.0"),
        (-0.5, r"alpha must be > 0.*got -0\.5"),
        (math.nan, r"alpha must be.*got nan"),
        (math.inf, r"alpha must be.*got inf"),
        (1e-31, r"alpha must be.*1e-30.*got 1e-31"),
        ([0.5, 2.0, -1.0], r"alpha\[2\] must be > 0.*got -1\.0"),
        ([[0.5]], r"alpha must be a number.*shape \(1, 1\)"),
        ([], r"alpha must be a number.*shape \(0,\)"),
    ],
)
def test_impossible_alpha_is_refused(alpha, message):
    with pytest.raises(ValueError, match=message):
        DirichletMultinomial(alpha)


@pytest.mark.parametrize("n_words", [1, 2, 4])
def test_alpha_of_the_wrong_length_is_refused(n_words):
    with pytest.raises(ValueError, match=f"alpha has 3 values, but the rows have {n_words} col"):
        DirichletMultinomial([0.1, 0.2, 0.3]).encode(np.ones((2, n_words)))


def test_single_alpha_in_a_list_is_not_spread_over_the_words():
    with pytest.raises(ValueError, match="alpha has 1 values, but the rows have 2 columns"):
        DirichletMultinomial([0.1]).encode([[1, 2]])


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_encoding_leaves_its_input_alone_and_sums_duplicates(dtype):
    """Unsorted, with a word given twice and a stored zero; doubles would need no conversion."""
    data, indices, indptr = np.array([4, 1, 2, 0, 3], dtype), np.array([2, 0, 2, 1, 1]), [0, 4, 5]
    rows = sparse.csr_array((data.copy(), indices.copy(), indptr), shape=(2, 3))
    batch = DirichletMultinomial(0.5).encode(rows)
    encoded = [(row.columns.tolist(), row.values.tolist()) for row in map(batch.row, range(2))]
    assert encoded == [([0, 2, 3], [1, 6, 7]), ([1, 3], [3, 3])]
    assert np.array_equal(rows.data, data)
    assert np.array_equal(rows.indices, indices)
    assert np.array_equal(rows.indptr, indptr)


@pytest.mark.parametrize(
    "layout", [np.asarray, sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix]
)
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
def test_encoded_rows_are_canonical_in_every_layout(layout, dtype):
    counts = documents(9)
    batch = DirichletMultinomial(0.5).encode(layout(counts.astype(dtype)))
    statistics = batch.statistics
    assert np.array_equal(statistics.toarray(), np.column_stack([counts, counts.sum(axis=1)]))
    for i in range(len(batch)):
        columns = batch.row(i).columns
        assert np.all(np.diff(columns) > 0)
        assert columns[-1] == V
        assert np.array_equal(batch.row(i).values[:-1], counts[i][counts[i] > 0])
    assert np.array_equal(batch.kernel_rows.log_base, batch.log_base)


def test_part_of_a_batch_is_the_batch_of_a_part():
    likelihood, counts = LIKELIHOODS[0], documents(10)
    part, whole = likelihood.encode(counts).part(3, 8), likelihood.encode(counts[3:8])
    assert len(part) == 5
    assert np.array_equal(part.log_base, whole.log_base)
    for i in range(5):
        for found, expected in zip(part.row(i), whole.row(i), strict=True):
            assert np.array_equal(found, expected)
