"""What `bnpstream.river.StreamingMixture` promises."""

import copy
import inspect
import itertools
import math
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from river.checks import common

from bnpstream import DocumentMixture, dirichlet_process
from bnpstream import StreamingMixture as ArrayMixture
from bnpstream.engine import Phase, Settings, Stream
from bnpstream.likelihoods import DiagonalGaussian
from bnpstream.river import StreamingMixture
from bnpstream.river.records import NumberRecords
from river import base, checks, cluster, datasets, feature_extraction, metrics, preprocessing

# --- river's own checks ---------------------------------------------------------------------------

DATASETS = {
    "numbers": datasets.ImageSegments,
    "missing": datasets.TrumpApproval,
    "counts": lambda: Counted(),
}
NEEDS_NOTHING = list(checks.yield_checks(StreamingMixture()))
NEEDS_DATA = [
    check
    for name, check in inspect.getmembers(common, inspect.isfunction)
    if name.startswith("check_") and "dataset" in inspect.signature(check).parameters
    if name != "check_debug_one"  # of pipelines
]


class Counted:
    """Records of counts, as `BagOfWords` makes them, with a label."""

    def take(self, n):
        rng = np.random.default_rng((95, 0))
        for _ in range(n):
            topic = int(rng.integers(3))
            words = rng.choice(12, size=8) + 10 * topic
            yield {f"w{word}": int((words == word).sum()) for word in words.tolist()}, topic


def test_check_estimator():
    checks.check_estimator(StreamingMixture())


@pytest.mark.parametrize("check", NEEDS_NOTHING, ids=lambda check: check.__name__)
@pytest.mark.parametrize("likelihood", ["auto", "counts", "gaussian"])
def test_checks_that_need_no_data(check, likelihood):
    check(StreamingMixture(prior=dirichlet_process(2.0), likelihood=likelihood))


@pytest.mark.parametrize("data", DATASETS)
@pytest.mark.parametrize("check", NEEDS_DATA, ids=lambda check: check.__name__)
def test_checks_on_data(check, data):
    """river has no data for clusterers and runs none of these on them by itself."""
    n = 300 if check.__name__ == "check_bounded_memory_growth" else 120
    records = list(DATASETS[data]().take(n))
    if (
        check.__name__ == "check_learn_many_matches_learn_one"
    ):  # it reads all of the first's features
        records = [({**dict.fromkeys(records[0][0], 0), **x}, y) for x, y in records]
    check(StreamingMixture(prefix_rows=40), records)


# --- records of either kind -----------------------------------------------------------------------


def counted(n=150):
    return [x for x, _ in Counted().take(n)]


def numbers(n=150, missing=0.0, case=0):
    """Return records of three clusters in four columns, cells missing at random."""
    rng = np.random.default_rng((96, case))
    centres = 8.0 * rng.standard_normal((3, 4))
    cells = centres[rng.integers(3, size=n)] + rng.standard_normal((n, 4))
    there = rng.random(cells.shape) >= missing
    return [
        {name: float(x) for name, x, seen in zip("abcd", row, kept, strict=True) if seen}
        for row, kept in zip(cells, there, strict=True)
    ]


def appearing(n=150):
    """Return records in which a feature appears, one vanishes, and one is seen a few times."""
    records = numbers(n, missing=0.1)
    for i, record in enumerate(records):
        if i >= 60:
            record["late"] = 3.0 * record.get("a", 0.0) + 1.0
            record.pop("b", None)
        if i % 50 == 1:
            record["rare"] = float(i)
    return records


KINDS = {"counts": counted, "numbers": numbers, "missing": lambda: numbers(150, 0.3)}
KINDS |= {"appearing": appearing}
kinds = pytest.mark.parametrize("kind", KINDS)


def learned(records, **settings):
    model = StreamingMixture(**{"prefix_rows": 40, **settings})
    for record in records:
        model.learn_one(record)
    return model


def answers(model, records):
    return [(model.predict_one(x), model.predict_proba_one(x), model.score_one(x)) for x in records]


@kinds
@pytest.mark.parametrize("cuts", [(), (1, 39, 40, 41), (150,), range(1, 150, 7)], ids=str)
def test_learn_many_gives_the_same_bits_as_one_by_one(kind, cuts):
    records = KINDS[kind]()
    one, many = learned(records), StreamingMixture(prefix_rows=40)
    for start, stop in itertools.pairwise([0, *cuts, len(records)]):
        if start < stop:
            many.learn_many(pd.DataFrame(records[start:stop]))
    assert answers(one, records[::10]) == answers(many, records[::10])
    states = [model.stream.state.arrays for model in (one, many)]
    for mine, other in zip(states[0][1:], states[1][1:], strict=True):
        assert mine.tobytes() == other.tobytes()


@kinds
def test_asking_changes_nothing(kind):
    records = KINDS[kind]()
    quiet, asked = learned(records[:0]), learned(records[:0])
    for record in records:
        given = copy.deepcopy(record)
        asked.predict_one(record), asked.predict_proba_one(record), asked.score_one(record)
        asked.predict_one({**record, "never": 1}), asked.score_one({})
        assert record == given
        quiet.learn_one(record)
        asked.learn_one(record)
    assert answers(quiet, records[::10]) == answers(asked, records[::10])


@kinds
def test_probabilities_are_those_of_the_likeliest(kind):
    records = KINDS[kind]()
    model = learned(records)
    assert model.n_clusters > 2
    for record in records[::10]:
        shares = model.predict_proba_one(record)
        assert math.isclose(math.fsum(shares.values()), 1.0, rel_tol=1e-12)
        assert max(shares, key=shares.get) == model.predict_one(record)
        assert math.isfinite(model.score_one(record))


@kinds
@pytest.mark.parametrize("cut", [30, 100])
def test_pickles_carry_on_alike(kind, cut):
    records = KINDS[kind]()
    part = pickle.loads(pickle.dumps(learned(records[:cut])))
    for record in records[cut:]:
        part.learn_one(record)
    assert answers(part, records[::10]) == answers(learned(records), records[::10])


@kinds
def test_order_of_features_does_not_matter(kind):
    records = KINDS[kind]()
    turned = [dict(reversed(record.items())) for record in records]
    assert answers(learned(records), records[::10]) == answers(learned(turned), turned[::10])


@pytest.mark.parametrize(
    ("kind", "odd"), [("counts", {"w0": 900, "w25": 900}), ("numbers", {"a": 1e9, "d": 2.0})]
)
def test_a_record_like_no_other_has_a_likeliest_cluster_all_the_same(kind, odd):
    """Where a new cluster is better by far, the known ones are still told apart."""
    model = learned(KINDS[kind]())
    posterior = model.stream.posterior
    joint = posterior.log_joint(model.stream.view([odd]), log_cut=-math.inf)[0][0]
    assert joint[-1] > joint[:-1].max() + (50.0 if kind == "numbers" else 5.0)
    shares = model.predict_proba_one(odd)
    assert math.isclose(math.fsum(shares.values()), 1.0, rel_tol=1e-12)
    likeliest = int(posterior.ids[np.argmax(joint[:-1])])
    assert model.predict_one(odd) == likeliest == max(shares, key=shares.get)


def test_before_any_record():
    model = StreamingMixture()
    assert (model.predict_one({"a": 1}), model.predict_proba_one({}), model.n_clusters) == (
        0,
        {},
        0,
    )
    assert math.isnan(model.score_one({"a": 1}))


@kinds
def test_in_the_prefix_answers_are_those_of_its_records_alone(kind):
    records = KINDS[kind]()
    young = learned(records[:20])
    assert young.stream.phase is Phase.PREFIX
    known = answers(young, records[:40:5])
    assert known == answers(learned(records[:20]), records[:40:5])
    whole = learned(records[:40])
    assert whole.stream.phase is Phase.RUNNING
    assert whole.stream.prefix.n_rows == 0


# --- the same core as the other estimators --------------------------------------------------------


def test_counts_are_clustered_as_documents():
    records = counted()
    words = len(set().union(*records[:40]))
    other = DocumentMixture(spread=float(words), prefix_rows=40).partial_fit(records)
    model = learned(records)
    assert model.stream.state.log_evidence == other.total_log_evidence_
    found = [model.score_one(record) for record in records[:20]]
    np.testing.assert_allclose(found, other.score_samples(records[:20]), rtol=1e-12)
    ids = [model.predict_one(record) for record in records[:20]]
    assert ids == other.predict_ids(records[:20]).tolist()


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_numbers_are_clustered_as_rows_with_missing_cells(missing):
    records = numbers(150, missing)
    cells = np.array([[record.get(name, math.nan) for name in "abcd"] for record in records])
    likelihood = DiagonalGaussian().informed(cells[:40])
    other = ArrayMixture("dp", likelihood, prefix_rows=40).partial_fit(cells)
    model = learned(records)
    assert math.isclose(model.stream.state.log_evidence, other.total_log_evidence_, rel_tol=1e-12)
    found = [model.score_one(record) for record in records[:20]]
    np.testing.assert_allclose(found, other.score_samples(cells[:20]), rtol=1e-12)


def test_a_feature_that_appears_is_a_column_that_was_missing_so_far():
    """As if the column had been there with its base measure, and no value up to then."""
    records = appearing()
    model = learned(records)
    learner = model.stream.encoder
    assert list(learner.columns) == ["a", "b", "c", "d", "late"]
    assert learner.waiting.keys() == {"rare"}
    needed = 4  # a tenth of the prefix
    first = [record["late"] for record in records if "late" in record][:needed]
    likelihood = learner.likelihood
    expected = DiagonalGaussian().informed(np.array(first)[:, None])
    assert likelihood.mean[-1] == expected.mean[0]
    assert likelihood.variance[-1] == expected.variance[0]
    cells = np.array(
        [[record.get(name, math.nan) for name in learner.columns] for record in records]
    )
    cells[: 60 + needed, -1] = math.nan
    other = ArrayMixture("dp", likelihood, prefix_rows=40).partial_fit(cells)
    np.testing.assert_allclose(
        other.total_log_evidence_, model.stream.state.log_evidence, rtol=1e-12
    )
    assert other.n_clusters_ == model.n_clusters
    np.testing.assert_allclose(
        likelihood.posterior_mean(model.stream.state.statistics),
        likelihood.posterior_mean(other.state_.statistics),
        rtol=1e-12,
    )


def test_columns_without_enough_values_wait():
    records = [{"a": float(i), "b": 1.0} if i < 3 else {"a": float(i)} for i in range(40)]
    stream = Stream(dirichlet_process(), NumberRecords(4), Settings(prefix_rows=40))
    stream.absorb(records)
    assert list(stream.encoder.columns) == ["a"]
    assert {name: len(seen) for name, seen in stream.encoder.waiting.items()} == {"b": 3}
    stream.absorb([{"b": 2.0}])
    assert list(stream.encoder.columns) == ["a", "b"]


def test_a_stream_may_begin_without_features():
    model = learned([{}] * 10, likelihood="gaussian", prefix_rows=3)
    for i in range(10):
        model.learn_one({"a": float(i)})
    assert list(model.stream.encoder.columns) == ["a"]
    assert math.isfinite(model.score_one({"a": 3.0}))


# --- which kind -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        ({"a": 1, "b": 0}, "CountRecords"),
        ({"a": np.int32(3)}, "CountRecords"),
        ({"a": 1.0}, "CountRecords"),
        ({"a": 1, "b": 0.5}, "NumberRecords"),
        ({"a": 1, "b": math.nan}, "NumberRecords"),
        ({"a": 1, "b": -1}, "NumberRecords"),
        ({"a": 1, "b": None}, "NumberRecords"),
    ],
    ids=str,
)
def test_kind_is_decided_by_the_first_records(record, kind):
    model = learned([record] * 5, prefix_rows=5)
    assert type(model.stream.encoder).__name__ == kind
    for name in ("counts", "gaussian"):
        assert (
            type(learned([{"a": 1}] * 5, prefix_rows=5, likelihood=name).stream.encoder).__name__
            == {
                "counts": "CountRecords",
                "gaussian": "NumberRecords",
            }[name]
        )


# --- with the rest of river -----------------------------------------------------------------------

TEXTS = [
    "the cat and the dog, a cat",
    "stocks or bonds, bonds or stocks",
    "a dog and a cat, the dog",
    "bonds or yields, stocks or yields",
]


def test_pipeline_after_bag_of_words():
    model = feature_extraction.BagOfWords() | StreamingMixture(prefix_rows=4)
    assert isinstance(model, base.Clusterer)
    for text in TEXTS * 5:
        model.predict_one(text)
        model.learn_one(text)
    found = [model.predict_one(text) for text in TEXTS]
    assert found[0] == found[2] != found[1] == found[3]
    assert model.predict_one("cats, dog, whatever") == found[0]


def test_pipeline_of_frames_after_bag_of_words():
    one, many = (feature_extraction.BagOfWords() | StreamingMixture(prefix_rows=4) for _ in "ab")
    for text in TEXTS * 5:
        one.learn_one(text)
    many.learn_many(pd.Series(TEXTS * 5))
    last = [model["StreamingMixture"] for model in (one, many)]
    records = [one["BagOfWords"].transform_one(text) for text in TEXTS]
    assert answers(last[0], records) == answers(last[1], records)


def test_pipeline_after_a_scaler():
    model = preprocessing.StandardScaler() | StreamingMixture(prefix_rows=40)
    score = metrics.AdjustedRand()
    for x, y in datasets.ImageSegments().take(600):
        model.learn_one(x)
        score.update(y, model.predict_one(x))
    assert score.get() > 0.2
    assert cluster.KMeans.__mro__[1] is StreamingMixture.__mro__[1]


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "bad", "message"),
    [
        ({}, {"a": "red"}, "feature 'a' is 'red': features must be numbers.*OneHotEncoder"),
        ({}, {"a": math.inf}, "feature 'a' is inf: features must be numbers up to 1e"),
        ({"likelihood": "counts"}, {"a": 0.5}, "word 'a' is 0.5: a count cannot be a fraction"),
        ({"likelihood": "counts"}, {"a": -2}, "negative.*use likelihood='gaussian'"),
    ],
)
@pytest.mark.parametrize("n", [20, 60])
def test_bad_records_are_named_and_change_nothing(settings, bad, message, n):
    good = [{"a": 1 + i % 3, "b": 2} for i in range(n)]
    if not settings:
        good = [{**record, "c": 0.5 * i} for i, record in enumerate(good)]
    model = learned(good, **settings)
    before = answers(model, good[::10])
    with pytest.raises(ValueError, match=message):
        model.learn_one(bad)
    frame = pd.DataFrame([good[0], bad])
    with pytest.raises(ValueError, match=message):
        model.learn_many(frame)
    assert answers(model, good[::10]) == before


@pytest.mark.parametrize("n", [30, 60])
def test_fractions_after_counts_are_named_and_change_nothing(n):
    model = learned([{"a": 1 + i % 2, "b": 3} for i in range(n)])
    before = answers(model, [{"a": 1}, {"b": 2}])
    frame = pd.DataFrame([{"a": 2.0}] * 20 + [{"a": 0.5}])
    with pytest.raises(ValueError, match="use likelihood='gaussian'"):
        model.learn_many(frame)
    assert answers(model, [{"a": 1}, {"b": 2}]) == before


@pytest.mark.parametrize(
    "settings",
    [{"likelihood": "poisson"}, {"prior": "crp"}, {"prefix_rows": 0}, {"min_responsibility": 2}],
    ids=str,
)
def test_bad_parameters_are_named(settings):
    (name,) = settings
    with pytest.raises(ValueError, match=f"{name} must be"):
        StreamingMixture(**settings)


def test_without_river_the_way_out_is_named():
    code = "import sys; sys.modules['river'] = None; import bnpstream.river"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: bnpstream.river needs river: pip install 'bnpstream[river]'" in run.stderr
