"""Labels of the rows of a call: cluster, responsibility, evidence, novelty."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bnpstream.engine.absorption import Absorption, Checked
from bnpstream.engine.stream import Stream
from bnpstream.kernels.arrays import Floats


class Labels(NamedTuple):
    """Labels of n rows."""

    positions: NDArray[np.intp]
    """Position of the most likely cluster among the ids in ascending order."""
    ids: NDArray[np.int64]
    """Its stable id."""
    shares: Floats
    """Its responsibility."""
    log_evidence: Floats
    """One-step-ahead log predictive."""
    novelty: Floats
    """Responsibility of a new cluster."""


def labels_of(stream: Stream, given: Checked) -> Labels:
    """Return the labels of the rows of a stream's last call.

    The cluster of a row is the most likely one when it arrived; or the most likely one now if the
    row was revised since, if that cluster is gone, or if the row has weight zero.

    Parameters
    ----------
    stream : Stream
        Has just absorbed or kept the rows; while they are kept, a provisional posterior answers.
    given : Checked
        The rows.
    """
    answering = stream.answering
    assert answering.last is not None
    absorption = answering.last.own()
    rows, known = absorption.absorbed.rows, answering.posterior.ids
    if absorption.n_revised == 0 and rows.ids.size == given.n_rows:
        positions = np.searchsorted(known, rows.ids)
        if (known[np.minimum(positions, known.size - 1)] == rows.ids).all():
            return Labels(positions, rows.ids, rows.shares, rows.log_evidence, rows.novelty)
    return _labelled_anew(answering, given, absorption)


def _labelled_anew(stream: Stream, given: Checked, absorption: Absorption) -> Labels:
    """Return labels of rows, some of which must be scored again."""
    posterior, encoder, n = stream.posterior, stream.encoder, given.n_rows
    rows, places, known = absorption.absorbed.rows, absorption.places, posterior.ids
    found = Labels(np.empty(n, np.intp), np.empty(n, np.int64), *np.empty((3, n)))
    found.ids[places], found.shares[places] = rows.ids, rows.shares
    found.log_evidence[places], found.novelty[places] = rows.log_evidence, rows.novelty
    absent = np.setdiff1d(np.arange(n), places)
    is_old = (np.arange(places.size) < absorption.n_revised) | ~np.isin(rows.ids, known)
    again = np.union1d(places[is_old], absent)
    prepared = given.rows if given.prefix is None else encoder.prepared(given.rows)
    if absent.size > 0:
        joint = np.concatenate(posterior.log_joint(encoder.view(prepared.chosen(absent))))
        found.log_evidence[absent] = logsumexp(joint, axis=1)
        found.novelty[absent] = np.exp(joint[:, -1] - found.log_evidence[absent])
    if again.size > 0:
        batch = encoder.view(prepared.chosen(again))
        _, found.ids[again], found.shares[again] = posterior.assigned(batch)
    found.positions[:] = np.searchsorted(known, found.ids)
    return found
