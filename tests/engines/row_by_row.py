"""Comparing reference, compiled loop and oracle row by row, each from the same posterior."""

from typing import NamedTuple

import numpy as np

import naive
from bnpstream.inference import adf
from bnpstream.mixture import MixtureState, Model
from states import compiled_respond


class Setup(NamedTuple):
    """A model with one alpha, the oracle's spelling of its prior, and settings."""

    model: Model
    oracle: naive.Prior
    settings: adf.Settings


def oracle_respond(setup, state, row):
    """Return the oracle's response to a row; of the state it reads this row's words only."""
    columns = np.asarray(row.columns)
    document = {
        int(word): int(count) for word, count in zip(columns[:-1], row.values[:-1], strict=True)
    }
    read = state.candidates[:, columns][:-1]
    seen = naive.State(
        [dict(zip(document, words, strict=True)) for words in read[:, :-1].tolist()],
        read[:, -1].tolist(),
        state.masses.tolist(),
        state.log_vacancy.tolist(),
        state.total_mass,
    )
    alpha = [setup.model.likelihood.alpha] * (state.n_statistics - 1)
    settings = setup.settings
    return naive.respond(
        seen,
        document,
        setup.oracle,
        alpha,
        settings.new_cluster_threshold,
        settings.min_responsibility,
        settings.max_responsibilities,
    )


def assert_alike(found, expected):
    """The same decisions, and scores equal to rounding."""
    shares = np.array(expected.responsibilities)
    assert found.opens == expected.opens
    np.testing.assert_allclose(found.responsibilities, shares, rtol=0, atol=1e-10)
    assert np.array_equal(found.responsibilities > 0, shares > 0)
    assert abs(found.novelty - expected.novelty) <= 1e-8 * expected.novelty
    assert abs(found.log_evidence - expected.log_evidence) < 1e-10


def compare(setup, counts, oracle_every):
    """Advance with the compiled engine; at every row compare what each would do next.

    Return the posterior of all rows.
    """
    model, settings = setup.model, setup.settings
    batch = model.likelihood.encode(counts)
    kernel, state = model.kernel_arguments(batch), MixtureState(batch.n_statistics)
    for i in range(len(batch)):
        row, before = batch.row(i), state.n_clusters
        reference = adf.respond(model, state, row, settings)
        found = compiled_respond(model, kernel, state, i, settings)
        assert_alike(found, reference)
        if i % oracle_every == 0:
            assert_alike(reference, oracle_respond(setup, state, row))
        part = batch.part(i, i + 1)
        (record,) = adf.run(model, state, part, settings, model.kernel_arguments(part))
        assert state.n_clusters - before == reference.opens
        assert abs(record.rows.novelty[0] - reference.novelty) < 1e-10
        assert record.rows.ids[0] == state.ids[np.argmax(reference.responsibilities)]
    assert state.n_observations == len(batch)
    return state
