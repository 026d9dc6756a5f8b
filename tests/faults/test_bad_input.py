"""Bad input gets a clear error, and nothing changes."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bnpstream import DirichletMultinomial, GeneralizedGamma, PitmanYor, StreamingMixture
from bnpstream.datasets import bars
from states import bits, everything, per_row

X = bars(n_images=60, seed=2).counts


def spoiled(value: float, row: int = 3, column: int = 7) -> np.ndarray:
    dense = X.toarray().astype(float)
    dense[row, column] = value
    return dense


BAD_ROWS = [
    (spoiled(-1.0), r"row 3, column 7 is -1\.0: a count cannot be negative"),
    (csr_array(spoiled(-1.0)), r"row 3, column 7 is -1\.0: a count cannot be negative"),
    (spoiled(0.5), r"row 3, column 7 is 0\.5: a count cannot be a fraction"),
    (spoiled(np.nan), r"row 3, column 7 is nan: NaN is not a count"),
    (spoiled(np.inf), r"row 3, column 7 is inf: a count cannot be larger"),
    (spoiled(-np.inf), r"row 3, column 7 is -inf: a count cannot be negative"),
    (spoiled(2.0**60), r"row 3, column 7 .*larger than"),
    (np.empty((0, 64)), r"X is empty, its shape is \(0, 64\)"),
    (np.empty((3, 0)), r"X is empty, its shape is \(3, 0\)"),
    (np.ones(64), "1 dimension"),
    (np.array([["a", "b"]]), "must hold numbers"),
    (np.array([[1, None]], dtype=object), "row 0, column 1 is nan"),
    (np.ma.masked_equal([[1, 7]], 7), "row 0, column 1 is nan"),
    (np.array([[1, 2j]]), "must hold numbers, got dtype complex"),
    ([[1, 2], [3]], "inhomogeneous|rows of the same length"),
    (None, "must be a matrix"),
]


@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict", "score_samples"])
@pytest.mark.parametrize(("bad", "message"), BAD_ROWS)
def test_bad_rows_name_their_place_and_change_nothing(method, bad, message):
    model = StreamingMixture("nig", "multinomial").fit(X)
    before = everything(model)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(bad)
    assert everything(model) == before


@pytest.mark.parametrize("method", ["partial_fit", "predict", "score_samples"])
def test_a_wrong_number_of_columns_says_which_is_right(method):
    model = StreamingMixture("nig").fit(X)
    before = everything(model)
    with pytest.raises(ValueError, match="X has 10 features, but StreamingMixture is expecting 64"):
        getattr(model, method)(X[:, :10])
    assert everything(model) == before
    assert model.fit(X[:, :10]).n_features_in_ == 10


def test_a_first_call_that_fails_leaves_no_trace():
    model = StreamingMixture("nig", "multinomial")
    before = dict(vars(model))
    with pytest.raises(ValueError, match="row 3, column 7"):
        model.partial_fit(spoiled(-1.0))
    assert vars(model) == before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior": "crp"}, "prior must be a Prior or one of 'dp', 'nig', .*, got 'crp'"),
        ({"prior": 3}, "prior must be a Prior or one of .*, got 3"),
        (
            {"likelihood": "normal"},
            "likelihood must be a Likelihood or one of 'auto', 'multinomial'",
        ),
        ({"prior": "nig", "new_cluster_threshold": 0.3}, r"in \[0\.5, 1\).*got 0\.3"),
        ({"prior": "dp", "new_cluster_threshold": -0.1}, r"in \[0, 1\).*got -0\.1"),
        ({"prior": "dp", "new_cluster_threshold": 1.0}, r"in \[0, 1\).*got 1\.0"),
        ({"new_cluster_threshold": np.nan}, "got nan"),
        ({"min_responsibility": 1.0}, r"min_responsibility must be in \[0, 1\), got 1\.0"),
        ({"min_responsibility": -1e-3}, r"min_responsibility must be in \[0, 1\)"),
        ({"engine": "gpu"}, "engine must be .* got 'gpu'"),
        ({"likelihood": DirichletMultinomial(np.ones(5))}, "alpha has 5 values.*64 columns"),
    ],
)
def test_bad_settings_say_what_is_allowed_and_change_nothing(settings, message):
    model = StreamingMixture("nig").fit(X)
    before = everything(model)
    given = model.get_params()
    model.set_params(**settings)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X)
    assert bits(model.state_) == before[0]  # can be read whatever the parameters are
    assert per_row(model) == before[1]
    if "likelihood" not in settings:  # one that was to be learnt cannot be given again
        model.set_params(**{name: given[name] for name in settings})
        assert everything(model) == before


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: GeneralizedGamma(1.0, 1.0), r"discount \(sigma\) must be in \[0, 1\), got 1\.0"),
        (lambda: GeneralizedGamma(1.0, -0.1), r"in \[0, 1\), got -0\.1"),
        (lambda: GeneralizedGamma(0.0, 0.5), r"concentration \(a\) must be .* > 0, got 0\.0"),
        (lambda: PitmanYor(-0.5, 0.5), r"concentration \(theta\) must be .* > -0\.5, got -0\.5"),
        (lambda: DirichletMultinomial(0.0), r"alpha must be > 0.*got 0\.0"),
        (lambda: DirichletMultinomial(-1.0), r"alpha must be > 0.*got -1\.0"),
        (lambda: DirichletMultinomial(np.nan), r"alpha must be > 0.*got nan"),
        (lambda: DirichletMultinomial([0.1, 0.0, 1.0]), r"alpha\[1\] must be > 0.*got 0\.0"),
        (lambda: DirichletMultinomial([[1.0]]), r"shape \(1, 1\)"),
        (lambda: DirichletMultinomial([]), r"shape \(0,\)"),
        (lambda: DirichletMultinomial("learned"), "alpha must be a number, .*'learned'"),
    ],
)
def test_bad_parameters_are_refused_when_given(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_the_compiled_engine_says_when_it_cannot():
    class NoTwin(DirichletMultinomial):
        def kernel_parameters(self, n_statistics):
            return None

    with pytest.raises(ValueError, match="has no compiled engine"):
        StreamingMixture("dp", NoTwin(), engine="compiled").fit(X)
    reference = StreamingMixture("dp", NoTwin()).fit(X)
    same = StreamingMixture("dp", engine="reference").fit(X)
    np.testing.assert_array_equal(reference.weights_, same.weights_)


def test_the_input_is_never_changed():
    rows = csr_array(
        (np.array([2.0, 1.0, 0.0, 3.0]), np.array([2, 2, 1, 0]), np.array([0, 3, 4])), shape=(2, 3)
    )
    before = [part.copy() for part in (rows.data, rows.indices, rows.indptr)]
    StreamingMixture().fit(rows)
    for part, old in zip((rows.data, rows.indices, rows.indptr), before, strict=True):
        np.testing.assert_array_equal(part, old)


def test_entries_given_twice_are_one_count():
    twice = csr_array((np.array([2.0, 1.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    once = csr_array(np.array([[0.0, 3.0, 0.0]]))
    likelihood = DirichletMultinomial(0.5)
    found, expected = likelihood.encode(twice), likelihood.encode(once)
    np.testing.assert_array_equal(found.row(0).values, expected.row(0).values)
    np.testing.assert_array_equal(found.row(0).columns, expected.row(0).columns)
    assert found.log_base == expected.log_base
