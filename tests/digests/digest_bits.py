"""Digests: short names for bits, so that two results are alike if and only if these are."""

import dataclasses
import hashlib
import math
from collections.abc import Mapping

import numpy as np
from scipy.sparse import issparse

LENGTH = 16
"""Hexadecimal digits that are kept."""
WIDE = 5000
"""Statistics up to which a posterior is looked at as an array; there is room for 2^31 words."""


def digest(*values):
    """Return the digest of numbers, arrays, strings, and whatever is made of these."""
    found = hashlib.sha256()
    for value in values:
        _add(found, value)
    return found.hexdigest()[:LENGTH]


def _add(found, value):
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        inside = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        value = {"class": type(value).__name__, **inside}
    if issparse(value):
        value = value.toarray()
    if isinstance(value, np.ndarray):
        _add_array(found, value)
    elif isinstance(value, Mapping):
        _say(found, "mapping", len(value))
        for name in sorted(value, key=str):
            _add(found, str(name))
            _add(found, value[name])
    elif isinstance(value, (list, tuple)):
        _say(found, "sequence", len(value))
        for one in value:
            _add(found, one)
    elif isinstance(value, (bool, np.bool_)):
        _say(found, "truth", int(value))
    elif isinstance(value, (int, np.integer)):
        _say(found, "whole", int(value))
    elif isinstance(value, (float, np.floating)):
        number = float(value)
        _say(found, "real", "nan" if math.isnan(number) else number.hex())
    elif value is None or isinstance(value, str):
        _say(found, "text", repr(value))
    elif callable(value):
        _say(found, "function", value.__name__)
    else:
        raise TypeError(f"no digest of a {type(value).__name__}")


def _add_array(found, array):
    if array.dtype.kind not in "biuf":
        _say(found, "objects", array.shape)
        _add(found, array.ravel().tolist())
        return
    whole = array.dtype.kind in "biu"
    plain = np.ascontiguousarray(array, dtype="<i8" if whole else "<f8")
    if not whole:
        plain = np.where(np.isnan(plain), np.nan, plain)
    _say(found, plain.dtype.str, array.shape)
    found.update(plain.tobytes())


def _say(found, kind, what):
    found.update(f"{kind} {what};".encode())


def posterior(state):
    """Return the digest of a posterior, by what is public of it."""
    return digest(
        _statistics(state),
        state.masses,
        state.log_vacancy,
        state.ids,
        [state.n_clusters, state.n_observations, state.next_id],
        [state.total_mass, state.auxiliary, state.log_evidence],
    )


def _statistics(state):
    """Return all statistics: of wide rows those that are not zero, and where they are."""
    if state.n_statistics <= WIDE:
        return np.asarray(state.statistics)
    rows = state.sparse_rows(np.arange(state.n_clusters))
    return [rows.indptr, rows.indices, rows.data]


def history(model):
    """Return the digest of every birth, merge, death and retirement of a cluster."""
    fields = ("kind", "id", "into", "n_observations", "mass")
    events = [event for event in model.lineage_ if event.level == "cluster"]
    return digest([[getattr(event, name) for name in fields] for event in events])


def learnt(model):
    """Return the digest of prior and base measure as they were learnt."""
    prior = model.prior_
    names = ("concentration", "discount", "tilt", "auxiliary", "cluster_count", "learn")
    said = [type(prior).__name__, *(getattr(prior, name, None) for name in names)]
    if hasattr(model, "vocabulary_"):
        base = [model.vocabulary_.base, list(model.vocabulary_.words)]
    else:
        base = model.likelihood_
    return digest(said, base, model.means_)


def answers(model, held):
    """Return the digest of what a model says of rows that it has not seen."""
    return digest(model.predict_ids(held), model.score_samples(held), model.predict_proba(held))


def rows_of_call(model):
    """Return what a model says of the rows of the last call."""
    names = ("label_ids_", "labels_", "probabilities_", "log_evidence_", "novelty_")
    return [np.asarray(getattr(model, name)) for name in names]


def sweeps(model):
    """Return what the sweeps of the last call did."""
    fields = ("n_rows", "change", "log_predictive", "n_clusters", "drift")
    return [[getattr(epoch, name) for name in fields] for epoch in getattr(model, "epochs_", [])]


def of_model(model):
    """Return the digests of what an estimator has learnt."""
    return {
        "posterior": posterior(model.state_),
        "evidence": digest(model.total_log_evidence_, model.n_samples_seen_),
        "learnt": learnt(model),
        "lineage": history(model),
    }


def fitted(model, held, calls):
    """Return the digests of an estimator, by what they cover.

    Parameters
    ----------
    model : StreamingMixture or DocumentMixture
        With nothing left to do.
    held : array, sparse array or list
        Rows that it has not seen.
    calls : list
        What it said of its rows, call by call.
    """
    return of_model(model) | {"rows": digest(calls), "answers": answers(model, held)}
