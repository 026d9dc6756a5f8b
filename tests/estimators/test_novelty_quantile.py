"""`novelty_quantile`: rows ranked among the last ones of the stream, each one step ahead."""

import numpy as np
import pytest
from scipy.stats import betabinom

from bnpstream import DiagonalGaussian, DocumentMixture, Gaussian, StreamingMixture
from bnpstream.engine.arrivals import MOST, Arrivals
from bnpstream.storage.models import SavedModel

N, D, GROUPS = 3000, 32, 6
CHANCE = 1e-6
"""Of a false alarm, per comparison."""


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def drawn(n, seed):
    """Return vectors of some groups, always the same groups."""
    centres = unit(np.random.default_rng((73, 0)).normal(size=(GROUPS, D)))
    rng = np.random.default_rng((73, seed))
    noise = 0.1 * rng.normal(size=(n, D))
    return unit(centres[rng.integers(GROUPS, size=n)] + noise).astype(np.float32)


@pytest.fixture(scope="module")
def model():
    return StreamingMixture().partial_fit(drawn(N, 1))


def test_ranks_are_counted():
    rng = np.random.default_rng(0)
    arrivals = Arrivals()
    seen = np.round(rng.normal(size=3 * MOST), 2)  # with ties
    for start in range(0, seen.size, 700):
        arrivals.add(seen[start : start + 700])
    rows = np.append(np.round(rng.normal(size=50), 2), [-np.inf, np.inf])
    last = seen[-MOST:].tolist()
    expected = [sum(other > row for other in last) / (MOST + 1) for row in rows.tolist()]
    assert arrivals.quantiles(rows).tolist() == expected
    assert (max(expected), min(expected)) == (MOST / (MOST + 1), 0.0)


def test_rows_are_compared_with_what_was_said_when_they_came(model):
    rows = drawn(50, 3)
    said, now = model.log_evidence_[-MOST:], model.score_samples(rows)
    expected = (said > now[:, None]).sum(axis=1) / (MOST + 1)
    np.testing.assert_array_equal(model.novelty_quantile(rows), expected)


@pytest.mark.parametrize("threshold", [0.25, 0.5, 0.75, 0.9, 0.99])
def test_quantiles_of_the_same_source_are_uniform(model, threshold):
    n = 2000
    above = int((model.novelty_quantile(drawn(n, 2)) > threshold).sum())
    k = int(threshold * (MOST + 1))  # more rows than these must have been more probable
    least, most = betabinom.ppf([CHANCE / 2, 1.0 - CHANCE / 2], n, MOST - k, k + 1)
    assert least <= above <= most


def test_what_belongs_to_no_group_is_beyond_the_last_percent(model):
    strange = unit(np.random.default_rng(5).normal(size=(200, D))).astype(np.float32)
    assert (model.novelty_quantile(strange) > 0.99).all()
    assert (model.novelty(strange) < 0.5).any()  # a fixed threshold would not do


@pytest.mark.parametrize(
    "settings",
    [{}, {"revisit": 100}, {"half_life": 300.0}, {"staleness": 1, "block_rows": 200}],
    ids=["plain", "window", "fading", "rounds"],
)
def test_any_split_saved_anywhere_gives_the_same_bits(settings, tmp_path):
    rows, others = drawn(1500, 1), drawn(40, 2)

    def fresh():
        return StreamingMixture(prefix_rows=200, **settings)

    whole = fresh().partial_fit(rows)
    expected = whole.novelty_quantile(others)
    assert np.unique(expected).size > 10
    parts = fresh()
    for place, (start, stop) in enumerate([(0, 1), (1, 150), (150, 777), (777, 1500)]):
        parts.partial_fit(rows[start:stop]).save(tmp_path / str(place))
        parts = StreamingMixture.load(tmp_path / str(place))
    np.testing.assert_array_equal(parts.novelty_quantile(others), expected)


def test_rows_of_weight_zero_are_not_compared_with():
    rows = drawn(800, 1)
    weights = np.where(np.arange(800) % 3 == 0, 0.0, 1.0)
    some = StreamingMixture(prefix_rows=100).partial_fit(rows, sample_weight=weights)
    only = StreamingMixture(prefix_rows=100).partial_fit(rows[weights > 0])
    others = drawn(40, 2)
    np.testing.assert_array_equal(some.novelty_quantile(others), only.novelty_quantile(others))


def test_models_of_earlier_versions_say_what_is_missing(model):
    tensors = model.to_tensors()
    del tensors.arrays["arrivals"], tensors.document["stream"]["n_arrivals"]
    old = StreamingMixture._of(SavedModel.of(tensors))
    with pytest.raises(ValueError, match=r"no rows to compare with.*partial_fit"):
        old.novelty_quantile(drawn(3, 2))
    old.partial_fit(drawn(120, 4))
    assert old.novelty_quantile(drawn(50, 2)).max() <= 120 / 121


def test_clusters_of_another_kind_have_nothing_to_compare_with(model):
    with pytest.raises(ValueError, match="coarsened"):
        model.coarsened(2).novelty_quantile(drawn(3, 2))
    assert model.novelty_quantile(drawn(3, 2)).shape == (3,)
    numbers = np.random.default_rng(1).normal(size=(50, 2))
    given = DiagonalGaussian(mean=[0.0, 0.0], variance=[1.0, 1.0])
    wide = StreamingMixture(likelihood=given).fit(numbers)
    wide.set_params(likelihood=DiagonalGaussian(mean=[0.0, 0.0], variance=[9.0, 9.0]))
    with pytest.raises(ValueError, match="likelihood was changed"):
        wide.novelty_quantile(numbers)


def test_tables_are_ranked_too():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(1500, 3)) + 8.0 * rng.integers(3, size=1500)[:, None]
    table = StreamingMixture(likelihood=Gaussian()).fit(rows)
    far = table.novelty_quantile([[60.0, -60.0, 60.0], rows[-1]])
    assert far[0] > 0.99 > far[1]


def test_documents_are_refused_with_a_way_out():
    texts = [["cat", "dog"], ["bond", "stock"]] * 20
    documents = DocumentMixture(prefix_rows=10).fit(texts)
    with pytest.raises(ValueError, match="lengths: use surprise"):
        documents.novelty_quantile(texts[:1])
