"""Saving in the middle of anything and loading again changes no bit of what follows."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from bnpstream import (
    Categorical,
    DiagonalGaussian,
    DirichletMultinomial,
    DocumentMixture,
    NumericalMeasure,
    PitmanYor,
    Poisson,
    Product,
    StreamingMixture,
    normalized_inverse_gaussian,
)
from bnpstream.datasets import bars
from bnpstream.extending import Batch, Likelihood
from bnpstream.storage import RunError

NIG = normalized_inverse_gaussian(10, 100)
IMAGES = bars(n_images=160, seed=0).counts


def numbers(missing=0.0):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(160, 3)) + 8.0 * rng.integers(3, size=160)[:, None]
    rows[rng.random(rows.shape) < missing] = np.nan
    return rows


def wide():
    rng = np.random.default_rng(4)
    dense = rng.poisson(0.02, size=(160, 9000)) + 3 * (rng.integers(9000, size=(160, 9000)) < 4)
    return csr_array(dense)


def labels():
    rng = np.random.default_rng(5)
    kind = rng.integers(3, size=160)
    table = np.empty((160, 3), object)
    table[:, 0] = (1e6 + 5.0 * kind + rng.normal(size=160)).tolist()
    table[:, 1] = np.array(["red", "green", "blue"])[kind].tolist()
    table[:, 2] = (rng.random(160) < 0.2 + 0.3 * kind).tolist()
    table[::7, 0] = table[3::9, 1] = None
    return table


def texts():
    rng = np.random.default_rng(6)
    return [[f"w{j}" for j in 10 * rng.integers(3) + rng.integers(10, size=6)] for _ in range(160)]


CASES = {
    "documents": (lambda: StreamingMixture(NIG, DirichletMultinomial(0.5)), IMAGES),
    "one alpha a word": (
        lambda: StreamingMixture("py", DirichletMultinomial(np.linspace(0.1, 1, 64))),
        IMAGES,
    ),
    "window": (
        lambda: StreamingMixture(NIG, DirichletMultinomial(0.5), revisit=30, n_revisits=2),
        IMAGES,
    ),
    "merges": (
        lambda: StreamingMixture(NIG, DirichletMultinomial(0.5), merge_threshold=0, merge_every=40),
        IMAGES,
    ),
    "sites": (lambda: StreamingMixture(NIG, DirichletMultinomial(0.5), keep_sites=True), IMAGES),
    "all rows": (
        lambda: StreamingMixture(NIG, DirichletMultinomial(0.5), revisit="all", n_revisits=3),
        IMAGES,
    ),
    "hashed rows": (lambda: StreamingMixture(NIG, DirichletMultinomial(0.1)), wide()),
    "automatic": (lambda: StreamingMixture("nig", prefix_rows=90), numbers()),
    "missing": (lambda: StreamingMixture("nig", prefix_rows=90), numbers(0.1)),
    "labels": (lambda: StreamingMixture("nig", prefix_rows=90), labels()),
    "sparse reals": (
        lambda: StreamingMixture("dp", "gaussian", prefix_rows=90),
        csr_array(numbers()),
    ),
    "product": (
        lambda: StreamingMixture(
            PitmanYor(2.0, 0.3),
            Product([("count", Poisson(), slice(0, 2)), ("real", DiagonalGaussian(), [2])]),
            prefix_rows=50,
            revisit=40,
        ),
        np.column_stack([IMAGES.toarray()[:, :2], numbers()[:, 2]]),
    ),
    "growing vocabulary": (lambda: DocumentMixture("nig", prefix_rows=70), texts()),
    "given spread": (lambda: DocumentMixture("nig", spread=20.0), texts()),
}


def rows_of(data, start, stop):
    return data[start:stop]


def same(one, other):
    """Both estimators are the same to the last bit."""
    here, there = one.to_tensors(), other.to_tensors()
    assert here.document == there.document
    assert here.arrays.keys() == there.arrays.keys()
    for name, array in here.arrays.items():
        assert array.dtype == there.arrays[name].dtype, name
        assert array.tobytes() == there.arrays[name].tobytes(), name


@pytest.mark.parametrize("cut", [1, 45, 100])
@pytest.mark.parametrize("case", CASES)
def test_saved_and_loaded_in_the_middle(case, cut, tmp_path):
    make, data = CASES[case]
    whole = make().partial_fit(rows_of(data, 0, cut)).partial_fit(rows_of(data, cut, 160))
    begun = make().partial_fit(rows_of(data, 0, cut))
    begun.save(tmp_path / "model")
    loaded = type(begun).load(tmp_path / "model")
    same(begun, loaded)
    assert loaded.get_params(deep=False).keys() == begun.get_params(deep=False).keys()
    same(whole, loaded.partial_fit(rows_of(data, cut, 160)))
    np.testing.assert_array_equal(whole.predict_ids(data[:50]), loaded.predict_ids(data[:50]))
    np.testing.assert_array_equal(whole.score_samples(data[:50]), loaded.score_samples(data[:50]))
    if hasattr(whole, "finish"):
        same(whole.finish(), loaded.finish())


def test_attributes_of_the_last_call_come_along(tmp_path):
    frame = pd.DataFrame(numbers(), columns=["a", "b", "c"])
    model = StreamingMixture("nig").fit(frame)
    model.save(tmp_path / "model")
    loaded = StreamingMixture.load(tmp_path / "model")
    for name in ("labels_", "label_ids_", "probabilities_", "log_evidence_", "novelty_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
    assert list(loaded.feature_names_in_) == ["a", "b", "c"]
    assert loaded.lineage_ == model.lineage_
    assert loaded.predict(frame).tolist() == model.predict(frame).tolist()


def test_unfitted_models_can_be_saved(tmp_path):
    StreamingMixture("nig", revisit=7).save(tmp_path)
    assert StreamingMixture.load(tmp_path).revisit == 7


@pytest.mark.parametrize(
    ("merge_threshold", "split_threshold"), [(None, None), (0.0, None), ("auto", None), (0.0, 0.0)]
)
def test_finishing_goes_on_between_any_two_steps(tmp_path, merge_threshold, split_threshold):
    def make():
        kind = "diagonal" if merge_threshold == "auto" else DirichletMultinomial(0.5)
        rows = numbers() if merge_threshold == "auto" else IMAGES
        model = StreamingMixture(
            NIG,
            kind,
            revisit="all",
            n_revisits=6,
            tol=1e-9,
            merge_threshold=merge_threshold,
            split_threshold=split_threshold,
            prefix_rows=50,
        )
        return model.partial_fit(rows), rows

    whole, rows = make()
    n_steps = len(list(whole.finishing()))
    assert n_steps >= 2
    at_once = StreamingMixture(**{**whole.get_params(deep=False), "revisit": 0, "n_passes": 7})
    at_once.fit(rows)
    np.testing.assert_array_equal(at_once.state_.masses, whole.state_.masses)
    for steps in range(1, n_steps + 1):
        model, _ = make()
        finishing = model.finishing()
        for _ in range(steps):
            next(finishing)
        model.save(tmp_path / str(steps))
        loaded = StreamingMixture.load(tmp_path / str(steps))
        assert len(list(loaded.finishing())) == n_steps - steps
        same(whole, loaded)


@dataclasses.dataclass(frozen=True)
class Coins(Likelihood):
    """Tosses of a coin, of a third party."""

    heads: float = 1.0

    def encode(self, X):
        tosses = np.asarray(X, dtype=np.float64)
        return Batch(np.hstack([tosses, 1.0 - tosses]), np.zeros(len(tosses)))

    def log_normalizer(self, statistics):
        from scipy.special import betaln

        return betaln(statistics[:, 0] + self.heads, statistics[:, 1] + 1.0)


def test_classes_of_others_must_be_named(tmp_path):
    tosses = np.random.default_rng(0).integers(2, size=(30, 1))
    model = StreamingMixture("dp", Coins(2.0), revisit=10).partial_fit(tosses)
    model.save(tmp_path)
    with pytest.raises(ValueError, match=r"load it with classes=\[Coins\]"):
        StreamingMixture.load(tmp_path)
    same(model, StreamingMixture.load(tmp_path, classes=[Coins]))


def test_what_cannot_be_saved_is_named(tmp_path):
    def log_intensity(s):
        return -s - np.log(s)

    model = StreamingMixture(NumericalMeasure(log_intensity))
    with pytest.raises(ValueError, match=r"log_intensity.* cannot be saved"):
        model.save(tmp_path)
    words = DocumentMixture(spread=5).partial_fit([[("a", "b"), ("c", "d")]])
    with pytest.raises(
        ValueError, match=r"word \('a', 'b'\) is not a string, so it cannot be saved"
    ):
        words.save(tmp_path)


def test_the_other_estimator_is_named(tmp_path):
    DocumentMixture(spread=5).partial_fit([["a", "b"]]).save(tmp_path)
    with pytest.raises(RunError, match=r"load it with DocumentMixture\.load"):
        StreamingMixture.load(tmp_path)


def test_saving_again_replaces_the_model(tmp_path):
    model = StreamingMixture("dp", Categorical()).fit(labels()[:, 1:2])
    model.save(tmp_path)
    model.partial_fit(labels()[:, 1:2]).save(tmp_path)
    assert StreamingMixture.load(tmp_path).n_samples_seen_ == 320
