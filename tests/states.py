"""What the tests of posteriors share: their bits, their free slots, the compiled response."""

import numpy as np

from bnpstream.inference import adf
from bnpstream.kernels import adf as compiled


def bits(state):
    """Return every byte of a posterior that means something."""
    parts = (state.statistics, state.masses, state.log_vacancy, state.ids)
    return [part.tobytes() for part in (*parts, state.arrays.counters, state.arrays.totals)]


def assert_free_slots_are_zero(state):
    arrays, K = state.arrays, state.n_clusters
    for part in (arrays.masses, arrays.log_vacancy, arrays.ids):
        assert not part[K:].any()
    assert not state.rows(np.arange(K, arrays.masses.size)).any()


def compiled_respond(model, kernel, state, i, settings):
    """Return what `adf.respond` does to row i, from the compiled functions."""
    longest = int(np.diff(kernel.rows.indptr).max())
    scratch = compiled.make_scratch_compiled(state.arrays.masses.size, longest)
    rule = compiled.weigh(kernel.prior, state.arrays)
    screen, cut = state.screen(model.likelihood), settings.log_min_responsibility
    candidates = compiled.score(
        kernel.likelihood,
        state.arrays,
        screen,
        kernel.rows,
        i,
        state.arrays.masses,
        rule,
        cut,
        scratch,
    )
    kept, log_evidence, opens = compiled.respond(candidates, settings.options(model), scratch)
    responsibilities = np.zeros(state.n_clusters + opens)
    responsibilities[scratch.slots[:kept]] = scratch.shares[:kept]
    return adf.Response(
        responsibilities, opens, log_evidence + kernel.rows.log_base[i], rule.log_auxiliary
    )
