"""`DocumentMixture`: documents whose words are not known in advance."""

from collections.abc import Iterator
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from bnpstream.estimators.base import require_whole
from bnpstream.estimators.document_absorbing import DocumentAbsorber
from bnpstream.estimators.reading import likeliest
from bnpstream.likelihoods import Batch
from bnpstream.likelihoods.documents import LENGTH, as_documents
from bnpstream.mixture import Model
from bnpstream.priors import Prior

Floats = NDArray[np.float64]


class DocumentMixture(DocumentAbsorber):
    """Cluster a stream of documents in one pass; words are learnt as they come.

    As `StreamingMixture` with a `DirichletMultinomial`, but rows are lists of words or dicts of
    counts, and the vocabulary grows. The base measure has a fixed total, part of which is kept for
    words not seen so far (`OpenVocabulary`). Words are known from the first document that has
    them, so the order of documents decides, and how they are split into calls does not.

    Parameters
    ----------
    prior : Prior or {"dp", "nig", "ngg", "stable", "py"}
        How clusters arise; see `StreamingMixture`.
    spread : float, optional
        g: after so many words a quarter of the base measure is left. Default the number of words
        in the first `prefix_rows` documents; until there are as many, every call starts afresh
        with all documents so far, so that splits into calls cannot matter.
    total : float, optional
        A: how many words the base measure is worth in a cluster. Default .15 `spread` if that is
        given; else it is learnt from the stream, and given out anew by the frequencies of words
        when twice, four times... as many documents have been seen.
    prefix_rows : int
        Documents that decide on what is not given.
    new_cluster_threshold, min_responsibility, max_clusters, max_memory, engine, n_jobs, half_life
        As in `StreamingMixture`. A cluster left with less than the opening threshold is retired.
        Words stay known.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        The words so far; `len` counts them.
    prefix_ : list of dict
        The documents so far while `spread` is not decided on.
    prefix_stamps_ : list of float
        Their times, if they have any.
    n_clusters_, cluster_ids_, weights_, labels_, label_ids_, probabilities_, log_evidence_, \
novelty_, absorbed_, provisional_, total_log_evidence_, n_samples_seen_, lineage_, state_, clock_
        As in `StreamingMixture`.
    means_ : ndarray of shape (n_clusters_, len(vocabulary_))
        Word probabilities; what is missing from one is left for words not seen so far.

    Examples
    --------
    >>> from bnpstream import DocumentMixture
    >>> model = DocumentMixture(spread=20)
    >>> model = model.partial_fit([["cat", "dog", "cat"], ["dog", "cat"]])
    >>> model = model.partial_fit([{"bond": 2, "stock": 3}, {"stock": 2, "yield": 1}])
    >>> model.vocabulary_.words
    ['cat', 'dog', 'bond', 'stock', 'yield']
    >>> model.predict([["dog"], ["stock", "option"]])     # nobody has seen an option
    array([0, 1])
    >>> [word for word, _ in model.top_words(2)[1]]
    ['stock', 'bond']
    """

    labels_: NDArray[np.intp]
    label_ids_: NDArray[np.int64]
    probabilities_: Floats
    log_evidence_: Floats
    novelty_: Floats

    def __init__(
        self,
        prior: Prior | str = "dp",
        *,
        spread: float | None = None,
        total: float | None = None,
        prefix_rows: int = 100,
        new_cluster_threshold: float | None = None,
        min_responsibility: float = 1e-4,
        max_clusters: int | None = None,
        max_memory: int | str | None = None,
        engine: Literal["auto", "compiled", "reference"] = "auto",
        n_jobs: int | None = None,
        half_life: float | None = None,
    ) -> None:
        self.prior = prior
        self.spread = spread
        self.total = total
        self.prefix_rows = prefix_rows
        self.new_cluster_threshold = new_cluster_threshold
        self.min_responsibility = min_responsibility
        self.max_clusters = max_clusters
        self.max_memory = max_memory
        self.engine = engine
        self.n_jobs = n_jobs
        self.half_life = half_life

    def fit(self, documents: Any, y: Any = None, timestamps: Any = None) -> Self:
        """Forget everything, and absorb documents in order.

        Parameters
        ----------
        documents : iterable of (list of words, or dict from words to counts)
            Documents.
        y : ignored
        timestamps : array-like of shape (n,), optional
            When they came, see `StreamingMixture.partial_fit`.
        """
        fresh = self._unfitted()  # the model stays what it was until the new one is ready
        self.__dict__ = fresh.partial_fit(documents, timestamps=timestamps).__dict__
        return self

    def partial_fit(self, documents: Any, y: Any = None, timestamps: Any = None) -> Self:
        """Absorb documents in order; any split of the same documents gives the same bits.

        Parameters
        ----------
        documents : iterable of (list of words, or dict from words to counts)
            Documents. If any is bad, ValueError names it and nothing is absorbed.
        y : ignored
        timestamps : array-like of shape (n,), optional
            When they came, see `StreamingMixture.partial_fit`.
        """
        new = as_documents(documents)
        self._absorb(new, self._stamps(timestamps, len(new), self._is_by_time()))
        rows = self.absorbed_.rows
        rows = rows.part(len(rows.ids) - len(new), len(rows.ids))
        self.log_evidence_, self.novelty_ = rows.log_evidence, rows.novelty
        self.label_ids_, self.probabilities_ = rows.ids, rows.shares
        gone = np.flatnonzero(~np.isin(rows.ids, self.cluster_ids_))
        if gone.size > 0:  # retired since: those that are there now
            joint = self._log_joint([new[i] for i in gone])
            places, shares = likeliest(np.concatenate(joint)[:, :-1])
            self.label_ids_, self.probabilities_ = rows.ids.copy(), rows.shares.copy()
            self.label_ids_[gone], self.probabilities_[gone] = self.cluster_ids_[places], shares
        self.labels_ = np.searchsorted(self.cluster_ids_, self.label_ids_)
        return self

    def finish(self) -> Self:
        """End the stream: if `spread` is not decided on so far, the documents so far decide."""
        for _ in self.finishing():
            pass
        return self

    def finishing(self) -> Iterator[Self]:
        """Do what `finish` does, yielding this estimator after every step: here after one."""
        if self.provisional_:
            self._absorb([], None)
            self.prefix_, self.prefix_stamps_ = [], []
            yield self

    @property
    def provisional_(self) -> bool:
        """Return whether the documents that decide on `spread` are still coming."""
        self._fitted()
        return bool(self.prefix_)

    def _encode(self, model: Model, X: Any) -> Batch:
        """Return documents to look at: words that are not known count as unknown."""
        return model.likelihood.encode(X)

    def _statistics(self, slots: NDArray[np.integer]) -> Floats:
        """Return the statistics of some clusters: unknown words, known ones, length."""
        columns = np.append(np.arange(len(self.vocabulary_) + 1), LENGTH)
        known: Floats = self._fitted().candidates[slots, columns]
        return known

    def mean_of(self, slot: int) -> Floats:
        """Return the word probabilities of the cluster in one slot of `state_`."""
        return super().mean_of(slot)[1:]

    @property
    def means_(self) -> Floats:
        """Return the posterior mean word probabilities in the order of `cluster_ids_`."""
        return self._model().likelihood.posterior_mean(self._statistics(self._order()))[:, 1:]

    def top_words(self, n: int = 10) -> list[list[tuple[Any, float]]]:
        """Return the n likeliest words of every cluster and their probabilities.

        Parameters
        ----------
        n : int
            Words a cluster.

        Returns
        -------
        top : list of lists of (word, probability)
            A list a cluster, in the order of `cluster_ids_`.
        """
        return self.top_features(n)

    def top_features(self, n: int = 10, feature_names: Any = None) -> list[list[tuple[Any, float]]]:
        """Return `top_words`, by default under their own names."""
        require_whole("n", n, 1)
        names = self.vocabulary_.words if feature_names is None else feature_names
        return super().top_features(n, names)

    def sample(
        self, n_samples: int = 1, *, random_state: int | np.random.Generator = 0, **options: Any
    ) -> tuple[list[dict[Any, int]], NDArray[np.int64]]:
        """Draw documents from the posterior predictive.

        Parameters
        ----------
        n_samples : int
            Documents to draw.
        random_state : int or numpy.random.Generator
            Seed, or a source of randomness.
        **options
            ``length=100``: words a document.

        Returns
        -------
        documents : list of dict
            Counts of words; under None those of words not seen so far.
        ids : ndarray of shape (n_samples,)
            Stable ids of the clusters they were drawn from; -1 for a cluster not seen so far.
        """
        counts, ids = super().sample(n_samples, random_state=random_state, **options)
        names = [None, *self.vocabulary_.words]
        return [{names[j]: int(row[j]) for j in np.flatnonzero(row)} for row in counts], ids

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.dict, tags.input_tags.two_d_array = True, False
        return tags
