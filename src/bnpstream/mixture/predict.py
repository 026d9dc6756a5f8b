"""What a posterior says about rows it has not absorbed."""

import numpy as np
from numpy.typing import NDArray

from bnpstream.kernels.adf import log_joint_rows
from bnpstream.likelihoods import Batch, Row
from bnpstream.mixture.model import KernelArguments, Model
from bnpstream.mixture.state import MixtureState

Floats = NDArray[np.float64]


def log_joint_row(model: Model, state: MixtureState, row: Row) -> tuple[Floats, float]:
    """Return log(prior weight x predictive) of one row, and the log auxiliary behind it.

    Returns
    -------
    log_scores : ndarray of shape (K + 1,)
        log h(x) left out; the last entry is the new cluster's. Eq. (17), not normalised.
    auxiliary : float
        Root of the mode equation, the warm start of the next row.
    """
    auxiliary = model.prior.solve_auxiliary(
        state.masses, state.log_vacancy, state.total_mass, state.auxiliary
    )
    log_weights = model.prior.log_weights(
        state.masses, state.log_vacancy, state.total_mass, auxiliary
    )
    return log_weights + model.likelihood.log_predictive(state.candidates, row), auxiliary


def log_joint(
    model: Model, state: MixtureState, batch: Batch, kernel: KernelArguments | None
) -> Floats:
    """Return log(prior weight x predictive) of every row in every cluster and a new one.

    Parameters
    ----------
    model, state
        The posterior; not changed.
    batch : Batch
        n encoded rows.
    kernel : KernelArguments or None
        From `Model.kernel_arguments` for the compiled engine; None for the reference.

    Returns
    -------
    log_scores : ndarray of shape (n, K + 1)
        log h(x) included: their logsumexp is the log predictive of the row.
    """
    out = np.empty((len(batch), state.n_clusters + 1))
    if kernel is not None:
        log_joint_rows(kernel.prior, kernel.likelihood, state.arrays, kernel.rows, out)
        return out
    for i in range(len(batch)):
        row = batch.row(i)
        out[i] = log_joint_row(model, state, row)[0] + row.log_base
    return out
