"""The exact posterior of a few rows, by summing over all set partitions."""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods import Batch, plus
from bnpstream.mixture import Model
from bnpstream.mixture.model import require_plain
from bnpstream.priors.partitions import set_partitions

MOST_ROWS = 8
"""Eight things have 4140 partitions, nine 21147."""


class ExactPosterior(NamedTuple):
    """Every partition of the rows, with its posterior probability."""

    partitions: list[tuple[int, ...]]
    """Labels in order of appearance."""
    log_probabilities: Floats
    """(P,): normalised."""
    log_evidence: float
    """log p(x_1..x_n), including log h(x)."""


def run(model: Model, batch: Batch) -> ExactPosterior:
    """Return the exact posterior over partitions: EPPF times marginal likelihoods.

    Parameters
    ----------
    model : Model
        Any prior and likelihood.
    batch : Batch
        At most eight rows.

    Examples
    --------
    >>> from bnpstream import DirichletMultinomial, dirichlet_process
    >>> from bnpstream.inference import exact
    >>> from bnpstream.mixture import Model
    >>> model = Model(dirichlet_process(1.0), DirichletMultinomial(alpha=1.0))
    >>> posterior = exact.run(model, model.likelihood.encode([[3, 0], [0, 3]]))
    >>> posterior.partitions, np.exp(posterior.log_probabilities).round(3)
    ([(0, 0), (0, 1)], array([0.103, 0.897]))
    """
    require_plain(model, "exact enumeration")
    n = len(batch)
    if n > MOST_ROWS:
        raise ValueError(f"exact enumeration takes at most {MOST_ROWS} rows, got {n}")

    @cache
    def log_marginal(rows: tuple[int, ...]) -> float:
        return float(model.likelihood.log_marginal(_summed(model, batch, rows))[0])

    @cache
    def log_eppf(sizes: tuple[int, ...]) -> float:
        return model.prior.log_eppf(np.array(sizes, dtype=np.float64))

    partitions = list(set_partitions(n))
    log_joint = np.array(
        [
            log_eppf(tuple(sorted(len(rows) for rows in clusters)))
            + sum(log_marginal(rows) for rows in clusters)
            for clusters in map(_clusters, partitions)
        ]
    )
    log_total = float(logsumexp(log_joint))
    log_evidence = log_total + float(batch.log_base.sum())
    return ExactPosterior(partitions, log_joint - log_total, log_evidence)


def log_predictive(model: Model, batch: Batch, posterior: ExactPosterior, new: Batch) -> Floats:
    """Return the exact log predictive of new rows, each given only the rows of `batch`.

    Parameters
    ----------
    model, batch, posterior
        As given to and returned by `run`.
    new : Batch
        Rows to predict.

    Returns
    -------
    log_predictive : ndarray of shape (len(new),)
        Including log h(x).
    """
    scores = np.empty((len(posterior.partitions), len(new)))
    for p, partition in enumerate(posterior.partitions):
        clusters = _clusters(partition)
        counts = np.array([len(rows) for rows in clusters], dtype=np.float64)
        statistics = np.concatenate([_summed(model, batch, rows) for rows in (*clusters, ())])
        log_rule = np.log(model.prior.predictive_rule(counts))
        for i in range(len(new)):
            row = new.row(i)
            log_rows = model.likelihood.log_predictive(statistics, row) + row.log_base
            scores[p, i] = logsumexp(log_rule + log_rows)
    return logsumexp(scores + posterior.log_probabilities[:, None], axis=0)


def _clusters(partition: tuple[int, ...]) -> list[tuple[int, ...]]:
    labels = range(max(partition) + 1)
    return [tuple(i for i, label in enumerate(partition) if label == k) for k in labels]


def _summed(model: Model, batch: Batch, rows: tuple[int, ...]) -> Floats:
    """Return the (1, D) summed statistics of some rows."""
    total, paired = np.zeros((1, batch.n_statistics)), model.likelihood.paired
    for i in rows:
        row = batch.row(i)
        before = total[:, row.columns]
        total[:, row.columns] = plus(before, np.ones(1), row.values, paired=paired)
    return total
