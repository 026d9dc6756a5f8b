"""Tables of any kind: what "auto" makes of them, and data frames by name."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from bnpstream import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    DirichletMultinomial,
    Gaussian,
    Poisson,
    Product,
    SphericalGaussian,
    StreamingMixture,
)
from bnpstream.likelihoods import NAMED_LIKELIHOODS
from states import bits

RNG = np.random.default_rng((82, 1))
COUNTS = RNG.poisson(2.0, (30, 3))
WORDS = np.eye(9, dtype=int)[COUNTS[:, 0].clip(max=8)]
REAL = RNG.normal(size=(30, 3))
HOLES = np.where(RNG.random((30, 3)) < 0.2, np.nan, REAL)
TRUTHS = REAL > 0.3
FRAME = pd.DataFrame(
    {
        "size": REAL[:, 0],
        "colour": np.where(TRUTHS[:, 0], "red", "blue"),
        "sold": TRUTHS[:, 1],
        "number": COUNTS[:, 0],
    }
)
GAPS = FRAME.astype({"colour": object, "sold": object})
GAPS.loc[[1, 5], "size"] = np.nan
GAPS.loc[[2, 5], "colour"] = None
GAPS.loc[[3, 5], "sold"] = None
MIXED = {"number": DiagonalGaussian, "truth": Bernoulli, "label": Categorical}


def kinds(likelihood):
    """Return the class of a likelihood, or names, classes and columns of a product's parts."""
    if not isinstance(likelihood, Product):
        return type(likelihood)
    return {name: (type(family), columns) for name, family, columns in likelihood.parts}


# --- auto -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (csr_array(COUNTS), DirichletMultinomial),
        (csr_array(COUNTS.astype(float)), DirichletMultinomial),
        (WORDS, DirichletMultinomial),
        (WORDS.tolist(), DirichletMultinomial),
        (COUNTS, Gaussian),
        (COUNTS - 1, Gaussian),
        (REAL, Gaussian),
        (REAL.astype(np.float32), Gaussian),
        (COUNTS.astype(float), Gaussian),
        (HOLES, DiagonalGaussian),
        (np.ma.masked_invalid(HOLES), DiagonalGaussian),
        (TRUTHS, Bernoulli),
        (pd.DataFrame(REAL), Gaussian),
        (pd.DataFrame(HOLES), DiagonalGaussian),
        (pd.DataFrame(WORDS), DirichletMultinomial),
        (pd.DataFrame(COUNTS), Gaussian),
        (pd.DataFrame(TRUTHS), Bernoulli),
        (np.where(TRUTHS, "yes", "no"), {"label": (Categorical, [0, 1, 2])}),
        (
            FRAME,
            {
                "number": (DiagonalGaussian, [0, 3]),
                "truth": (Bernoulli, [2]),
                "label": (Categorical, [1]),
            },
        ),
    ],
)
def test_auto_chooses_the_documented_family(table, expected):
    model = StreamingMixture().fit(table)
    assert kinds(model.likelihood_) == expected
    assert model.n_features_in_ == np.shape(table)[1]
    assert model.labels_.shape == (30,)
    np.testing.assert_allclose(model.predict_proba(table).sum(axis=1), 1.0)


def test_sparse_fractions_are_refused_with_a_way_out():
    with pytest.raises(ValueError, match="CountVectorizer"):
        StreamingMixture().fit(csr_array(COUNTS + 0.5 * (COUNTS > 2)))


MIXED_TABLES = {
    "objects": GAPS,
    "integers for names": GAPS.set_axis(range(4), axis=1),
    "pandas nullable": GAPS.convert_dtypes(),
    "pandas categories": GAPS.astype({"colour": "category"}),
    "lists": [[None if pd.isna(x) else x for x in row] for row in GAPS.to_numpy().tolist()],
    "array of objects": GAPS.to_numpy(),
}


@pytest.mark.parametrize("kind", MIXED_TABLES)
def test_mixed_tables_of_every_kind_are_the_same_rows(kind):
    table = MIXED_TABLES[kind]
    model = StreamingMixture(n_passes=2).fit(table)
    assert kinds(model.likelihood_) == {
        "number": (DiagonalGaussian, [0, 3]),
        "truth": (Bernoulli, [2]),
        "label": (Categorical, [1]),
    }
    assert bits(model.state_) == bits(StreamingMixture(n_passes=2).fit(GAPS).state_)
    cells = model.likelihood_.encode(GAPS.to_numpy()).cells
    assert np.isnan(cells[5, [0, 2, 3]]).all()
    assert np.isnan(cells).sum() == 6
    assert not np.isnan(cells[:, 1]).any()


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries_are_the_same_rows(library):
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    columns = {name: [None if pd.isna(x) else x for x in GAPS[name]] for name in GAPS}
    table = module.DataFrame(columns) if library == "polars" else module.table(columns)
    model = StreamingMixture(n_passes=2).fit(table)
    assert bits(model.state_) == bits(StreamingMixture(n_passes=2).fit(GAPS).state_)
    np.testing.assert_array_equal(model.predict(table), model.predict(GAPS))


def test_a_label_that_comes_up_later_is_no_error():
    model = StreamingMixture(prefix_rows=20).fit(GAPS)
    later = GAPS.assign(colour="violet")
    assert model.predict(later).shape == (30,)
    assert model.partial_fit(later).n_samples_seen_ == 60


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in NAMED_LIKELIHOODS if name != "auto"])
def test_a_name_stands_for_its_family(name):
    table = {"poisson": COUNTS, "multinomial": COUNTS, "bernoulli": TRUTHS}.get(name, REAL)
    table = np.where(TRUTHS, "yes", "no") if name == "categorical" else table
    table = COUNTS if name == "bursty" else table
    if name == "directional":
        table = REAL / np.linalg.norm(REAL, axis=1, keepdims=True)
    found = StreamingMixture(likelihood=name).fit(table)
    assert type(found.likelihood_) is type(NAMED_LIKELIHOODS[name])
    instance = StreamingMixture(likelihood=type(NAMED_LIKELIHOODS[name])()).fit(table)
    assert bits(found.state_) == bits(instance.state_)


def test_parts_of_a_product_find_their_columns_by_name_position_and_slice():
    def fitted(*columns):
        families = (DiagonalGaussian(), Categorical(), Bernoulli())
        parts = list(zip("abc", families, columns, strict=True))
        return bits(StreamingMixture(likelihood=Product(parts)).fit(GAPS).state_)

    expected = fitted(["size", "number"], ["colour"], ["sold"])
    assert fitted([0, 3], 1, 2) == expected
    assert fitted(np.array([0, 3]), np.int64(1), [np.int64(2)]) == expected
    assert fitted([0, -1], "colour", slice(2, 3)) == expected
    assert fitted(["number", "size"], 1, 2) != expected


def test_a_product_is_learnt_from_a_frame_as_from_its_cells():
    parts = [("a", DiagonalGaussian(), ["size", "number"]), ("b", Categorical(), slice(1, 2))]
    named = Product(parts).informed(GAPS)
    placed = Product([("a", DiagonalGaussian(), [0, 3]), ("b", Categorical(), [1])])
    placed = placed.informed(GAPS.to_numpy())
    np.testing.assert_array_equal(named.encode(GAPS).cells, placed.encode(GAPS.to_numpy()).cells)


def test_frames_must_have_the_names_they_were_fitted_with():
    model = StreamingMixture().fit(FRAME)
    before = bits(model.state_)
    swapped = FRAME[["colour", "size", "sold", "number"]]
    for method in (model.predict, model.partial_fit):
        with pytest.raises(ValueError, match=r"feature names|part 'number'"):
            method(swapped)
    assert bits(model.state_) == before
    np.testing.assert_array_equal(model.feature_names_in_, list(FRAME))


# --- another likelihood in mid-stream -------------------------------------------------------------


def test_a_likelihood_given_in_mid_stream_takes_over():
    base = DiagonalGaussian(mean=[0.0] * 3, variance=[1.0] * 3)
    wider = DiagonalGaussian(mean=[0.0] * 3, variance=[9.0] * 3)
    rounder = SphericalGaussian(mean=[0.0] * 3, variance=2.0)
    model = StreamingMixture(likelihood=base).partial_fit(HOLES)
    for other in (wider, rounder):
        model.set_params(likelihood=other)
        reference = StreamingMixture(likelihood=other, engine="reference").partial_fit(HOLES)
        reference.stream_.resume(model.state_.copy(), reference.window_, reference.lineage_)
        found, expected = model.score_samples(HOLES), reference.score_samples(HOLES)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
        assert model.likelihood_ is other
    assert model.partial_fit(HOLES).n_samples_seen_ == 60


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("gaussian", "'gaussian' must be learnt from the first rows.*call fit"),
        (DiagonalGaussian(), "must be learnt from the first rows.*call fit"),
        (Gaussian(mean=[0.0] * 2, covariance=np.eye(2)), "needs other statistics.*call fit"),
        (DiagonalGaussian(mean=[0.0], variance=[1.0]), "needs other statistics.*call fit"),
        (Poisson(mean=[1.0] * 3), "needs other statistics.*call fit"),
        (DirichletMultinomial(0.1), "needs other statistics.*call fit"),
    ],
)
def test_a_likelihood_of_other_statistics_cannot_take_over(other, message):
    """Gaussians of two columns have as many statistics with a full covariance as without."""
    base = DiagonalGaussian(mean=[0.0] * 2, variance=[1.0] * 2)
    model = StreamingMixture(likelihood=base).partial_fit(REAL[:, :2])
    before = bits(model.state_)
    model.set_params(likelihood=other)
    for method in (model.partial_fit, model.predict):
        with pytest.raises(ValueError, match=message):
            method(REAL[:, :2])
    model.set_params(likelihood=base)
    assert bits(model.state_) == before
    assert model.predict(REAL[:, :2]).shape == (30,)


def test_cells_that_are_no_labels_are_named():
    rows = pd.DataFrame({"size": [1.0, 2.0, 3.0], "tags": [["a"], ["b"], []]})
    with pytest.raises(ValueError, match="row 0, column 1 has a list: give numbers, booleans or"):
        StreamingMixture(engine="reference").fit(rows)
