"""The paper's synthetic power-law clusters: documents of a Pitman-Yor mixture."""

import numpy as np
from scipy import sparse

from bnpstream.datasets.base import Dataset, require_positive
from bnpstream.priors import PitmanYor


def powerlaw_documents(
    n_documents: int = 10_000,
    n_words: int = 100,
    document_length: int = 50,
    alpha: float = 0.75,
    concentration: float = 1.0,
    discount: float = 0.75,
    seed: int = 0,
) -> Dataset:
    """Draw documents from a Pitman-Yor mixture of multinomials.

    Clusters are those of a Pitman-Yor partition, whose sizes follow a power law; the words of a
    cluster have Dirichlet(`alpha`, ..., `alpha`) probabilities. The paper gives 10,000 documents,
    Pitman-Yor(.75, 1) and, in its supplement, `alpha` = 0.75. It gives neither the size of the
    vocabulary nor the length of a document: the defaults of `n_words` and `document_length` are
    this package's choice.

    Parameters
    ----------
    n_documents : int, default 10000
        Number of rows.
    n_words : int, default 100
        Size of the vocabulary.
    document_length : int, default 50
        Sum of each row.
    alpha : float, default 0.75
        Parameter of the Dirichlet, above 0; the smaller, the less the clusters overlap.
    concentration : float, default 1.0
        Concentration of the Pitman-Yor process.
    discount : float, default 0.75
        Discount of the Pitman-Yor process; the number of clusters grows as n ** discount.
    seed : int, default 0
        The same seed gives the same documents.

    Returns
    -------
    Dataset
        Counts of shape (n_documents, n_words); labels number the clusters as they appear.

    Examples
    --------
    >>> documents = powerlaw_documents(n_documents=4, n_words=6, document_length=10, seed=1)
    >>> documents.counts.shape, documents.counts.sum(axis=1).tolist(), int(documents.labels[0])
    ((4, 6), [10, 10, 10, 10], 0)
    """
    require_positive(
        n_documents=n_documents, n_words=n_words, document_length=document_length, alpha=alpha
    )
    rng = np.random.default_rng(seed)
    prior = PitmanYor(concentration=concentration, discount=discount)
    labels = prior.sample_partition(n_documents, rng).astype(np.intp)
    probabilities = rng.dirichlet(np.full(n_words, alpha), size=labels.max() + 1)
    counts = rng.multinomial(document_length, probabilities[labels])
    return Dataset(sparse.csr_array(counts), labels, feature_names=None)
