"""What the tests of posteriors share: their bits, their free slots, the compiled response."""

import json

import numpy as np
from numba import njit

from bnpstream.inference import adf
from bnpstream.kernels.measures.rules import make_space, weights_of
from bnpstream.kernels.passes import steps as compiled
from bnpstream.kernels.passes.kinds import make_scratch, score


def from_python(function):
    """Return a function of compiled loops so that Python can call it."""
    return njit(getattr(function, "py_func", function))


def bits(state):
    """Return every byte of a posterior that means something."""
    parts = (state.statistics, state.masses, state.log_vacancy, state.ids)
    return [part.tobytes() for part in (*parts, state.arrays.counters, state.arrays.totals)]


PER_ROW = ("labels_", "label_ids_", "probabilities_", "log_evidence_", "novelty_")


def per_row(model):
    """Return every byte that an estimator says of the rows of the last call."""
    return {name: getattr(model, name).tobytes() for name in PER_ROW}


def everything(model):
    """Return all that a fitted estimator is made of, byte by byte."""
    arrays, document = model.to_tensors()
    return (
        bits(model.state_),
        per_row(model),
        list(model.lineage_),
        list(model.epochs_),
        json.dumps(document, sort_keys=True),
        {name: (x.dtype.str, x.shape, x.tobytes()) for name, x in arrays.items()},
        repr((model.prior_, model.likelihood_)),
    )


def assert_free_slots_are_zero(state):
    arrays, K = state.arrays, state.n_clusters
    for part in (arrays.masses, arrays.log_vacancy, arrays.ids):
        assert not part[K:].any()
    assert not state.rows(np.arange(K, arrays.masses.size)).any()


@njit
def _respond(kernel, clusters, cache, i, options):
    scratch = make_scratch(kernel.rows, i, i + 1, clusters.masses.size)
    space, cut = make_space(kernel.prior, clusters.masses.size), options.log_min_responsibility
    most = options.most_responsibilities
    weights = weights_of(kernel.prior, clusters, space)
    rule = compiled.weigh(kernel.prior, clusters, space)
    candidates = score(
        cache, kernel.likelihood, clusters, kernel.rows, i, weights, rule, cut, most, scratch
    )
    response = compiled.respond(candidates, options, scratch)
    return response, rule.log_auxiliary, scratch.slots, scratch.shares


def compiled_respond(model, kernel, state, i, settings):
    """Return what `adf.respond` does to row i, from the compiled functions."""
    cache, options = state.cache(model.likelihood), settings.options(model, state)
    found = _respond(kernel, state.arrays, cache, i, options)
    (kept, log_evidence, opens, novelty), log_auxiliary, slots, shares = found
    responsibilities = np.zeros(state.n_clusters + opens)
    responsibilities[slots[:kept]] = shares[:kept]
    return adf.Response(
        responsibilities, opens, novelty, log_evidence + kernel.rows.log_base[i], log_auxiliary
    )
