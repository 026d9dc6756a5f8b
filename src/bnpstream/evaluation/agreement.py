"""Agreement of clusters with true labels."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import (
    adjusted_rand_score,
    homogeneity_completeness_v_measure,
    normalized_mutual_info_score,
)
from sklearn.metrics.cluster import contingency_matrix


class Agreement(NamedTuple):
    """Scores that are 1 for a perfect match."""

    nmi: float
    """Normalised mutual information."""
    ari: float
    """Adjusted Rand index: 0 on average for a random clustering."""
    purity: float
    """Share of rows with the most frequent label of their cluster."""
    homogeneity: float
    """1 if every cluster has rows of one label only."""
    completeness: float
    """1 if all rows of each label are in one cluster."""
    v_measure: float
    """Harmonic mean of homogeneity and completeness."""


def agreement(labels: ArrayLike, clusters: ArrayLike) -> Agreement:
    """Return how well clusters agree with true labels.

    Parameters
    ----------
    labels : array-like of shape (n,)
        True labels.
    clusters : array-like of shape (n,)
        Cluster of each row.

    Examples
    --------
    >>> from bnpstream.evaluation import agreement
    >>> agreement([0, 0, 1, 1], [5, 5, 7, 7])
    Agreement(nmi=1.0, ari=1.0, purity=1.0, homogeneity=1.0, completeness=1.0, v_measure=1.0)
    """
    table = contingency_matrix(labels, clusters)
    return Agreement(
        float(normalized_mutual_info_score(labels, clusters)),
        float(adjusted_rand_score(labels, clusters)),
        float(table.max(axis=0).sum() / table.sum()),
        *map(float, homogeneity_completeness_v_measure(labels, clusters)),
    )


def majority_labels(
    labels: NDArray[np.intp], clusters: NDArray[np.intp], n_clusters: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the most frequent label of each cluster and its share; -1 and nan if empty.

    Parameters
    ----------
    labels, clusters : ndarray of shape (n,)
        Whole numbers from 0.
    n_clusters : int
        Number of clusters, including empty ones.

    Examples
    --------
    >>> from bnpstream.evaluation import majority_labels
    >>> majority_labels(np.array([3, 3, 1]), np.array([0, 0, 0]), n_clusters=2)
    (array([ 3, -1]), array([0.66...,        nan]))
    """
    table = np.zeros((n_clusters, int(labels.max()) + 1))
    np.add.at(table, (clusters, labels), 1.0)
    sizes = table.sum(axis=1)
    shares = np.full(n_clusters, np.nan)
    np.divide(table.max(axis=1), sizes, out=shares, where=sizes > 0)
    return np.where(sizes > 0, table.argmax(axis=1), -1), shares
