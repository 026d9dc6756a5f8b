"""Every feature of the stream engine works through every face, with the bits of the engine."""

import json

import numpy as np
import pytest

from bnpstream import DocumentMixture, StreamingMixture
from bnpstream.datasets import synthetic_corpus
from bnpstream.engine import GrowingVocabulary, Settings, Stream, resolve_prior
from bnpstream.mixture.snapshot import state_arrays
from bnpstream.priors import PitmanYor
from bnpstream.runs.feed import Feed
from bnpstream.runs.journal import Journal
from bnpstream.runs.mixture import Mixture
from bnpstream.runs.options import Pace
from bnpstream.runs.signals import Interrupts
from bnpstream.sources import Options, open_source

N_ROWS, PREFIX = 240, 40
COUNTS = synthetic_corpus(N_ROWS, 60, 25.0, 10.0, PitmanYor(3.0, discount=0.3), seed=11).counts
WEIGHTS = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 2.0], N_ROWS)
TIMES = np.cumsum(np.random.default_rng(6).exponential(size=N_ROWS))

FEATURES = {
    "plain": {},
    "window": {"revisit": 50},
    "all rows": {"revisit": "all", "n_revisits": 2},
    "sites": {"keep_sites": True},
    "merges": {"merge_threshold": 0.0, "merge_every": 60},
    "splits": {"revisit": 50, "merge_threshold": 0.0, "split_threshold": 0.0},
    "half-life": {"half_life": 80.0},
    "window that fades": {"revisit": 50, "half_life": 80.0, "merge_threshold": 0.0},
    "budget": {"max_clusters": 4},
    "blocks side by side": {"staleness": 1, "block_rows": 45, "learn_threads": 2},
    "weights": {},
    "times": {"half_life": 60.0},
}


def bits(state):
    """Return every byte of a posterior; a vocabulary that grows has too many columns for rows."""
    return {name: x.tobytes() for name, x in state_arrays(state).items()}


given = pytest.mark.parametrize("feature", FEATURES)


def documents():
    """Return the rows as counts by word."""
    rows = COUNTS.tocsr()
    return [
        {f"w{j}": int(x) for j, x in zip(row.indices, row.data, strict=True)}
        for row in (rows[i : i + 1] for i in range(N_ROWS))
    ]


DOCUMENTS = documents()
SPREAD = float(len(set().union(*DOCUMENTS[:PREFIX])))


def columns(feature):
    """Return what rows are given with, by the names of the engine."""
    return {
        "weights": WEIGHTS if feature == "weights" else None,
        "timestamps": TIMES if feature == "times" else None,
    }


def part(values, start, stop):
    return {name: None if x is None else x[start:stop] for name, x in values.items()}


def settings(feature):
    return {"prefix_rows": PREFIX, **FEATURES[feature]}


def expected(feature, spread=SPREAD):
    """Return the posterior of the engine, given all documents in one call."""
    encoder = GrowingVocabulary(spread)
    stream = Stream(resolve_prior("dp"), encoder, Settings(**settings(feature)))
    stream.absorb(DOCUMENTS, **columns(feature))
    stream.finish()
    return bits(stream.state)


def named(values):
    """Return what rows are given with, by scikit-learn's names."""
    return {"sample_weight": values["weights"], "timestamps": values["timestamps"]}


@given
def test_document_mixture(feature):
    model, values = DocumentMixture(spread=SPREAD, **settings(feature)), columns(feature)
    for start, stop in ((0, 7), (7, 90), (90, N_ROWS)):
        model.partial_fit(DOCUMENTS[start:stop], **named(part(values, start, stop)))
    assert bits(model.finish().state_) == expected(feature)
    assert ((model.novelty(DOCUMENTS[:5]) >= 0.0) & (model.novelty(DOCUMENTS[:5]) <= 1.0)).all()


@given
def test_document_mixture_saved_in_the_middle(feature, tmp_path):
    model, values = DocumentMixture(spread=SPREAD, **settings(feature)), columns(feature)
    model.partial_fit(DOCUMENTS[:110], **named(part(values, 0, 110))).save(tmp_path)
    model = DocumentMixture.load(tmp_path)
    model.partial_fit(DOCUMENTS[110:], **named(part(values, 110, N_ROWS)))
    assert bits(model.finish().state_) == expected(feature)


@given
def test_a_learnt_vocabulary_of_documents(feature, tmp_path):
    """With all that is left open learnt, saved while the first documents are kept."""
    model, values = DocumentMixture(**settings(feature)), columns(feature)
    model.partial_fit(DOCUMENTS[:20], **named(part(values, 0, 20))).save(tmp_path)
    model = DocumentMixture.load(tmp_path)
    model.partial_fit(DOCUMENTS[20:], **named(part(values, 20, N_ROWS)))
    assert bits(model.finish().state_) == expected(feature, None)


@given
def test_river(feature, tmp_path):
    river = pytest.importorskip("bnpstream.river", reason="river is missing")
    if feature == "blocks side by side":
        pytest.skip("river gives one record at a time")
    model, values = (
        river.StreamingMixture(likelihood="counts", **settings(feature)),
        columns(feature),
    )
    for i, record in enumerate(DOCUMENTS):
        weight = 1.0 if values["weights"] is None else values["weights"][i]
        if weight == 0.0:
            continue  # river has no record that counts for nothing
        time = None if values["timestamps"] is None else values["timestamps"][i]
        model.learn_one(record, w=weight, t=time)
        if i == 130:
            model.save(tmp_path)
            model = river.StreamingMixture.load(tmp_path)
    model.finish()
    # The first records that count decide on the spread.
    counted = [d for d, w in zip(DOCUMENTS, WEIGHTS, strict=True) if feature != "weights" or w > 0]
    spread = float(len(set().union(*counted[:PREFIX])))
    assert bits(model.stream.state) == expected(feature, spread)
    assert 0.0 <= model.novelty_one(DOCUMENTS[0]) <= 1.0


@given
def test_a_run(feature, tmp_path):
    """The rows of a file of JSON lines: what ``fit`` and ``stream`` do."""
    if feature == "weights":
        pytest.skip("records of a source have no weights")
    path = tmp_path / "rows.jsonl"
    lines = [
        json.dumps({"counts": document, "at": float(time)})
        for document, time in zip(DOCUMENTS, TIMES, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    field = "at" if feature == "times" else None
    with open_source(str(path), Options(counts_field="counts", time_field=field)) as source:
        model = Mixture.made(prior=resolve_prior("dp"), spread=SPREAD, **settings(feature))
        feed = Feed(model, source, Journal(source.schema.names), source.beginning())
        assert feed.run(Pace(batch_rows=33), Interrupts(), lambda status: None)
    assert bits(model.stream.state) == expected(feature)


@given
def test_streaming_mixture_is_the_engine_over_columns(feature):
    from bnpstream import DirichletMultinomial
    from bnpstream.engine import FixedColumns

    likelihood, values = DirichletMultinomial(0.2), columns(feature)
    stream = Stream(resolve_prior("dp"), FixedColumns(likelihood), Settings(**settings(feature)))
    stream.absorb(COUNTS, **values)
    stream.finish()
    model = StreamingMixture("dp", likelihood, **settings(feature))
    for start, stop in ((0, 31), (31, 32), (32, N_ROWS)):
        model.partial_fit(COUNTS[start:stop], **named(part(values, start, stop)))
    assert bits(model.finish().state_) == bits(stream.state)
