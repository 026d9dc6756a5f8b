"""Bad cells and bad families: the message names place, value and a way out; nothing changes."""

import numpy as np
import pandas as pd
import pytest

from bnpstream import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    DirichletMultinomial,
    Gaussian,
    GibbsMixture,
    Poisson,
    Product,
    SphericalGaussian,
    StreamingMixture,
)
from bnpstream.likelihoods import Automatic
from states import bits, everything

RNG = np.random.default_rng((90, 1))
REAL = RNG.normal(size=(20, 3))
COUNTS = RNG.poisson(3.0, (20, 3)).astype(float)
TRUTHS = (REAL > 0).astype(float)
LABELS = np.where(REAL > 0, "yes", "no").astype(object)
TABLES = {
    "gaussian": REAL,
    "diagonal": REAL,
    "spherical": REAL,
    "poisson": COUNTS,
    "bernoulli": TRUTHS,
    "categorical": LABELS,
}
MIXED = Product(
    [
        ("size", DiagonalGaussian(), [0]),
        ("count", Poisson(), [1]),
        ("truth", Bernoulli(), [2]),
        ("label", Categorical(), [3]),
        ("pair", Gaussian(), [4, 5]),
        ("words", DirichletMultinomial(), [6, 7]),
    ]
)
MIXED_ROWS = np.hstack(
    [
        part.astype(object)
        for part in (REAL[:, :1], COUNTS[:, :1], TRUTHS[:, :1], LABELS[:, :1], REAL[:, :2])
    ]
    + [COUNTS[:, :2].astype(object)]
)


def spoilt(table, value, row=3, column=1):
    other = table.astype(object)
    other[row, column] = value
    return other


def assert_refused(model, bad, message):
    """By every method, with the posterior and what is said of the last rows as they were."""
    before = everything(model)
    for method in (model.fit, model.partial_fit, model.predict, model.score_samples):
        with pytest.raises(ValueError, match=message):
            method(bad)
        assert everything(model) == before


# --- cells ----------------------------------------------------------------------------------------

NUMBERS = ["gaussian", "diagonal", "spherical"]
BAD_CELLS = [
    *((name, np.inf, r"row 3, column 1 is inf: .*up to 1e\+100, or missing") for name in NUMBERS),
    *((name, -np.inf, r"row 3, column 1 is -inf: cells must be numbers") for name in NUMBERS),
    *((name, 1e200, r"row 3, column 1 is 1e\+200: .*up to 1e\+100") for name in NUMBERS),
    *((name, "tall", r"row 3, column 1 is 'tall': X must hold numbers") for name in NUMBERS),
    ("gaussian", np.nan, r"row 3, column 1 is missing \(NaN\).*all cells; DiagonalGaussian"),
    ("gaussian", None, r"row 3, column 1 is missing \(NaN\).*all cells; DiagonalGaussian"),
    ("poisson", -1.0, r"row 3, column 1 is -1\.0: Poisson columns must be whole numbers >= 0"),
    ("poisson", 0.5, r"row 3, column 1 is 0\.5: Poisson columns must be whole numbers >= 0"),
    ("poisson", 2.0**60, r"row 3, column 1 is 1\.15.*e\+18: Poisson columns"),
    ("poisson", np.inf, r"row 3, column 1 is inf"),
    ("bernoulli", 2.0, r"row 3, column 1 is 2\.0: Bernoulli columns must be 0 or 1, False or True"),
    ("bernoulli", 0.5, r"row 3, column 1 is 0\.5: Bernoulli columns"),
    ("bernoulli", "yes", r"row 3, column 1 is 'yes': X must hold numbers"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD_CELLS)
def test_a_bad_cell_is_refused_with_its_place_and_a_way_out(name, value, message):
    model = StreamingMixture(likelihood=name).fit(TABLES[name])
    assert_refused(model, spoilt(TABLES[name], value), message)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (0, "tall", r"part 'size': row 3, column 0 is 'tall': X must hold numbers"),
        (1, -2, r"part 'count': row 3, column 0 is -2\.0: Poisson columns"),
        (2, 3, r"part 'truth': row 3, column 0 is 3\.0: Bernoulli columns"),
        (5, None, r"part 'pair': row 3, column 1 is missing"),
        (7, -1, r"part 'words': row 3, column 1 is -1\.0: a count cannot be negative"),
        (7, np.nan, r"part 'words': row 3, column 1 is (nan|missing)"),
    ],
)
def test_a_bad_cell_of_a_product_is_refused_with_its_part(column, value, message):
    model = StreamingMixture(likelihood=MIXED).fit(MIXED_ROWS)
    assert_refused(model, spoilt(MIXED_ROWS, value, column=column), message)


@pytest.mark.parametrize("name", TABLES)
def test_cells_that_may_be_missing_are_no_error(name):
    model = StreamingMixture(likelihood=name).fit(TABLES[name])
    if name == "gaussian":
        return
    for nothing in (None, np.nan):
        table = spoilt(TABLES[name], nothing)
        expected = StreamingMixture(likelihood=name).fit(spoilt(TABLES[name], None))
        assert bits(StreamingMixture(likelihood=name).fit(table).state_) == bits(expected.state_)
        assert model.predict(table).shape == (20,)
    masked = np.ma.array(np.zeros((20, 3)), mask=np.zeros((20, 3), bool))
    if name != "categorical":
        masked[:] = TABLES[name]
        masked[3, 1] = np.ma.masked
        assert bits(StreamingMixture(likelihood=name).fit(masked).state_) == bits(expected.state_)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table[:, :2], "X has 2 features, but StreamingMixture is expecting 3"),
        (lambda table: table[:, 0], "1 dimension"),
        (lambda table: table[:0], "X is empty|0 sample"),
        (lambda table: table[:, :0], "X is empty|0 feature|X has 0 features"),
    ],
)
def test_a_table_of_another_shape_is_refused(name, change, message):
    model = StreamingMixture(likelihood=name).fit(TABLES[name])
    before = everything(model)
    for method in (model.partial_fit, model.predict):
        with pytest.raises(ValueError, match=message):
            method(change(TABLES[name]))
        assert everything(model) == before


def test_labels_among_numbers_that_were_chosen_as_such_are_refused():
    frame = pd.DataFrame({"size": REAL[:, 0], "label": LABELS[:, 0]})
    model = StreamingMixture().fit(frame)
    later = frame.astype({"size": object})
    later.loc[3, "size"] = "tall"
    before = everything(model)
    for method in (model.partial_fit, model.predict):
        with pytest.raises(ValueError, match="part 'number': row 3, column 0 is 'tall'"):
            method(later)
        assert everything(model) == before


@pytest.mark.parametrize(("name", "value", "message"), BAD_CELLS[::3])
def test_chains_refuse_bad_cells_too(name, value, message):
    with pytest.raises(ValueError, match=message):
        GibbsMixture(likelihood=name).fit(spoilt(TABLES[name], value))


# --- families -------------------------------------------------------------------------------------

SQUARE = [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Gaussian(covariance=[[1.0, 2.0], [2.0, 1.0]]), "covariance must be positive def"),
        (lambda: Gaussian(covariance=[[1.0, 0.5], [0.0, 1.0]]), "covariance must be symmetric"),
        (lambda: Gaussian(covariance=[1.0, 1.0]), r"square matrix, got shape \(2,\)"),
        (lambda: Gaussian(mean=[0.0], covariance=SQUARE), "mean has 1 columns, covariance has 2"),
        (lambda: Gaussian(covariance=SQUARE, degrees=3.0), r"degrees must be > 3, got 3\.0"),
        (lambda: Gaussian(mean=[0.0, np.nan]), "mean must be finite, got nan"),
        (lambda: Gaussian(mean=["a"]), r"mean must be numbers, got \['a'\]"),
        (lambda: Gaussian(mean=0.0), "mean must be one number per column"),
        (lambda: Gaussian(mean_strength=0.0), r"mean_strength must be > 0, got 0\.0"),
        (lambda: DiagonalGaussian(degrees=2.0), r"degrees must be > 2, got 2\.0"),
        (lambda: DiagonalGaussian(variance=[1.0, 0.0]), r"variance must be > 0, got 0\.0"),
        (lambda: DiagonalGaussian(mean=[0.0], variance=[1.0, 1.0]), "one number per column"),
        (lambda: SphericalGaussian(variance=[1.0, 2.0]), r"variance must be one number, got \[1"),
        (lambda: SphericalGaussian(variance=-1.0), r"variance must be > 0, got -1\.0"),
        (lambda: Poisson(mean=[0.0]), r"mean must be > 0, got 0\.0"),
        (lambda: Poisson(shape=-1.0), r"shape must be > 0, got -1\.0"),
        (lambda: Bernoulli(mean=[0.5, 1.0]), r"mean must be in \(0, 1\)"),
        (lambda: Bernoulli(strength=0.0), r"strength must be > 0, got 0\.0"),
        (lambda: Categorical(alpha=0.0), r"alpha must be > 0, got 0\.0"),
        (lambda: Categorical(levels=[["a", "b", "a"]]), r"levels\[0\] names a label twice"),
        (lambda: Product([]), "at least one family"),
        (lambda: Product([("a", Poisson())]), r"a part is \(name, likelihood, columns\)"),
        (lambda: Product([("a", Automatic(), [0])]), "part 'a' is Automatic: a Product takes"),
        (
            lambda: Product([("a", Poisson(), [0]), ("a", Poisson(), [1])]),
            r"different names, got \['a', 'a'\]",
        ),
    ],
)
def test_bad_parameters_are_refused_when_given(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["size", "weight"], "part 'a': X has no column 'weight'; it has 'size', 'label'"),
        ([0, 2], "part 'a': X has no column 2; it has 2"),
    ],
)
def test_a_product_says_which_column_it_lacks(columns, message):
    frame = pd.DataFrame({"size": REAL[:, 0], "label": REAL[:, 1]})
    model = StreamingMixture(likelihood=Product([("a", DiagonalGaussian(), columns)]))
    before = dict(vars(model))
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=message):
            method(frame)
        assert vars(model) == before


@pytest.mark.parametrize("family", [Gaussian(), DiagonalGaussian(), Poisson(), Bernoulli()])
def test_a_family_that_is_still_open_says_so(family):
    with pytest.raises(ValueError, match=r"has no base measure yet: call informed\(X\)"):
        family.encode(TRUTHS)
    with pytest.raises(ValueError, match=r"call informed\(X\) with some rows"):
        Automatic().encode(TRUTHS)


def test_a_family_says_how_many_columns_it_has():
    model = StreamingMixture(likelihood=DiagonalGaussian(mean=[0.0, 0.0], variance=[1.0, 1.0]))
    before = dict(vars(model))
    with pytest.raises(ValueError, match="X has 3 columns, but DiagonalGaussian has 2"):
        model.partial_fit(REAL)
    assert vars(model) == before
