"""A stream as arrays and a JSON document, and back.

Nothing in a snapshot depends on how the rows were split into calls, and it contains no code:
classes are named, and only known ones are created.
"""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bnpstream.engine.arrivals import Arrivals
from bnpstream.engine.checks import require_whole
from bnpstream.engine.codec import decode, encode
from bnpstream.engine.encoder import Encoder, FixedColumns
from bnpstream.engine.learner import Learner
from bnpstream.engine.parallel.rounds import Rounds
from bnpstream.engine.phase import Phase
from bnpstream.engine.prefix import Prefix, n_rows
from bnpstream.engine.settings import Settings
from bnpstream.engine.stream import Stream
from bnpstream.engine.vocabulary import GrowingVocabulary
from bnpstream.inference import ep, window
from bnpstream.inference.forgetting import FIRST_TICKS, Clock
from bnpstream.kernels.arrays import N_OBSERVATIONS
from bnpstream.kernels.vectors.families import SCALES
from bnpstream.mixture.saved import named, require, require_numbers, rows_from
from bnpstream.mixture.snapshot import (
    lineage_arrays,
    lineage_from,
    state_arrays,
    state_from,
    window_arrays,
    window_from,
)
from bnpstream.priors import Prior

Arrays = dict[str, NDArray[Any]]
Document = dict[str, Any]

ENCODERS: dict[str, type[Encoder]] = {
    encoder.name: encoder for encoder in (FixedColumns, GrowingVocabulary)
}


class Snapshot(NamedTuple):
    """A stream at one moment."""

    document: Document
    """JSON."""
    arrays: Arrays


def snapshot(stream: Stream) -> Snapshot:
    """Return everything needed to continue a stream.

    Parameters
    ----------
    stream : Stream
        Between two calls, or two steps of `Stream.finishing`.
    """
    arrays: Arrays = {}
    encoder: Document = {"name": stream.encoder.name}
    stream.encoder.save_into(encoder, arrays)
    document: Document = {
        "phase": stream.phase.value,
        "encoder": encoder,
        "given_prior": encode(stream.given_prior),
        "prior": encode(stream.prior),
        "ticks_per_half_life": stream.ticks_per_half_life,
    }
    if stream.phase is Phase.PREFIX:
        document["prefix"] = _save_prefix(stream, arrays)
    if stream.phase is Phase.RUNNING:
        document["clock"] = None if stream.clock is None else asdict(stream.clock)
        document["keep_rows"] = stream.window.keep_rows
        document["epochs"] = [encode(tuple(epoch._replace(events=[]))) for epoch in stream.epochs]
        finishing = stream.progress
        document["finishing"] = None if finishing is None else [finishing[0], list(finishing[1])]
        if stream.learner is not None:
            stream.learner.save_into(document, arrays)
        arrays |= state_arrays(stream.state) | lineage_arrays(stream.lineage)
        arrays |= window_arrays(stream.window)
        stream.finder.save_into(document, arrays)
        document["n_arrivals"] = stream.arrivals.log_evidence.size
        if document["n_arrivals"]:
            arrays["arrivals"] = stream.arrivals.log_evidence
        if stream.rounds.parts:
            arrays |= {f"waiting.{k}": x for k, x in stream.rounds.rows().arrays().items()}
    return Snapshot(document, arrays)


def restore(
    found: Snapshot,
    settings: Settings,
    classes: Iterable[type] = (),
    encoders: dict[str, type[Encoder]] = ENCODERS,
) -> Stream:
    """Return the stream of a snapshot; ValueError if it is not valid.

    Parameters
    ----------
    found : Snapshot
        What was saved.
    settings : Settings
        Settings of the stream.
    classes : iterable of type
        Dataclasses that it may name besides those of the package.
    encoders : dict
        Encoders by name.
    """
    document, arrays = found
    classes = list(classes)
    encoder = encoders[document["encoder"]["name"]].load_from(document["encoder"], arrays, classes)
    phase = Phase(document["phase"])
    stream = Stream(decode(document["given_prior"], classes), encoder, settings)
    stream.ticks_per_half_life = require_whole(
        "ticks_per_half_life", document.get("ticks_per_half_life", FIRST_TICKS), 1
    )
    if phase is Phase.PREFIX:
        stream.resume_prefix(_load_prefix(encoder, document["prefix"], arrays))
    if phase is Phase.RUNNING:
        encoder.check_columns(arrays)
        state = state_from(arrays, paired=encoder.likelihood.paired)
        learner = None
        if "learner" in document:
            learner = Learner.load_from(document, arrays, encoder.likelihood, state.n_statistics)
            require("counters", state.n_observations <= 4 * learner.n_next)
        kept = window_from(arrays, encoder.likelihood, state, keep_rows=document["keep_rows"])
        stream.resume(state, kept, lineage_from(arrays))
        stream.adopt(decode(document["prior"], classes), None, learner)
        ticks = {"per_half_life": stream.ticks_per_half_life}
        stream.clock = None if document["clock"] is None else Clock(**document["clock"] | ticks)
        stream.epochs = [ep.Epoch(*decode(epoch)) for epoch in document["epochs"]]
        if document["finishing"] is not None:
            stage, progress = document["finishing"]
            stream.progress = (stage, window.Progress(*progress))
        stream.finder = stream.finder.loaded(document, arrays)
        _check_topics(arrays, state.n_statistics)
        if document.get("n_arrivals", 0):  # older states lack them
            known = Arrivals.load_from(arrays["arrivals"], state.n_observations)
            require("arrivals", known.log_evidence.size == document["n_arrivals"])
            stream.arrivals = known
        if named(arrays, "waiting."):
            waiting = rows_from(arrays, "waiting.", encoder.likelihood, state.n_statistics)
            stream.rounds = Rounds([waiting])
    return stream


def _check_topics(arrays: Arrays, n_statistics: int) -> None:
    """Raise ValueError if the rows kept for topics are not rows of the stream."""
    if "topics.memory.numbers" not in arrays:
        return
    numbers = arrays["topics.memory.numbers"]
    n_seen = arrays["topics.memory.counters"][0]
    inside = (numbers >= 0) & (numbers < n_seen)
    require("topics.memory.numbers", inside.all() and (np.diff(numbers) > 0).all())
    require("topics.memory.counters", n_seen <= arrays["counters"][N_OBSERVATIONS])
    if "topics.memory.vectors" in arrays:
        vectors = arrays["topics.memory.vectors"]
        fits = vectors.shape[1] == n_statistics - SCALES
        require("topics.memory.vectors", fits and bool((np.abs(vectors) < 2.0).all()))
    else:
        columns, values = arrays["topics.memory.columns"], arrays["topics.memory.values"]
        require("topics.memory.columns", (columns < n_statistics - 1).all())
        require("topics.memory.values", (values >= 0.0).all())
    if "topics.data" in arrays:
        require("topics.data", (arrays["topics.data"] >= 0.0).all())
        require_numbers("topics.masses", arrays["topics.masses"], arrays["topics.ids"].shape, 0.0)
    ids = arrays.get("topics.ids", np.empty(0))
    require("topics.ids", np.unique(ids).size == ids.size)


def _save_prefix(stream: Stream, arrays: Arrays) -> Document:
    """Return rows that wait as a document; arrays are added to `arrays`."""
    prefix = stream.prefix
    document: Document = {"n_last": prefix.n_last}
    stream.encoder.save_rows(prefix.rows(), document, arrays)
    if (weights := prefix.weights()) is not None:
        arrays["prefix.weights"] = weights
    if (stamps := prefix.stamps()) is not None:
        arrays["prefix.stamps"] = stamps
    return document


def _load_prefix(encoder: Encoder, document: Document, arrays: Arrays) -> Prefix:
    """Return rows that wait."""
    rows = encoder.load_rows(document, arrays)
    n = n_rows(rows)
    encoder.check(rows)  # as on arrival
    weights, stamps = arrays.get("prefix.weights", np.ones(n)), arrays.get("prefix.stamps")
    require_numbers("prefix.weights", weights, (n,), 0.0)
    if stamps is not None:
        require_numbers("prefix.stamps", stamps, (n,), -np.inf)
    prefix, first = Prefix(), n - require_whole("n_last", document["n_last"], 0)
    require_whole("rows before the last call", first, 0)
    for part in (slice(0, first), slice(first, n)):
        if part.stop > part.start:
            times = None if stamps is None else stamps[part]
            prefix = prefix.with_rows(rows[part], weights[part], times)
    return prefix


def from_format_1(
    document: Document, arrays: Arrays, given: Prior, vocabulary: Document
) -> Snapshot:
    """Return a snapshot from format 1, in which each estimator saved itself in its own way.

    Parameters
    ----------
    document, arrays
        What a `StreamingMixture` or `DocumentMixture` saved.
    given : Prior
        The prior among its settings.
    vocabulary : dict
        Settings of a growing vocabulary; empty for fixed columns.
    """
    found: Document = {"given_prior": encode(given), "phase": "empty"}
    kept = document.get("prefix")
    if vocabulary:
        found["encoder"] = {"name": GrowingVocabulary.name, "learn_total": True, **vocabulary}
        if kept:
            found["prefix"] = {"documents": kept, "n_last": 0}
        elif "base" in document:
            found["encoder"]["base"] = document["base"]
            arrays = {"window.indptr": np.zeros(1, np.int64), **arrays}
            arrays |= {"window.slots": np.empty(0, np.int64), "window.shares": np.empty(0)}
    elif kept:
        found["encoder"] = {"name": FixedColumns.name, "likelihood": kept["likelihood"]}
        found["prefix"] = kept
    elif "likelihood" in document:
        found["encoder"] = {"name": FixedColumns.name, "likelihood": document["likelihood"]}
    found["prior"] = document.get("prior", found["given_prior"])
    if kept:
        found["phase"] = "prefix"
    elif "masses" in arrays:
        found["phase"] = "running"
        found |= {name: document[name] for name in ("learner",) if name in document}
        found["clock"], found["finishing"] = document.get("clock"), document.get("finishing")
        found["keep_rows"] = document.get("keep_rows", False)
        found["epochs"] = document.get("epochs", [])
    return Snapshot(found, arrays)
