"""`DocumentMixture`: documents whose words are not known in advance."""

from collections.abc import Iterator
from copy import copy
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from bnpstream.estimator.base import require_whole, resolve_prior
from bnpstream.estimator.codec import decode, encode
from bnpstream.estimator.fading import ForgettingEstimator
from bnpstream.estimator.reading import PosteriorReader, likeliest
from bnpstream.estimator.saving import Savable, posterior_arrays, posterior_from
from bnpstream.estimator.settings import budget_of, settings_of
from bnpstream.inference import adf
from bnpstream.inference.forgetting import Ticks
from bnpstream.inference.visits import Absorbed, Record
from bnpstream.likelihoods import Batch, Likelihood, OpenVocabulary, Vocabulary
from bnpstream.likelihoods.documents import LENGTH, Document, DocumentBatch, as_documents
from bnpstream.likelihoods.vocabulary import require_words
from bnpstream.mixture import Model
from bnpstream.priors import Prior
from bnpstream.tuning import Learner, Trial

Floats = NDArray[np.float64]


class DocumentMixture(Savable, PosteriorReader, ForgettingEstimator):
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

    vocabulary_: Vocabulary
    prefix_: list[Document]
    prefix_stamps_: list[float]
    labels_: NDArray[np.intp]
    label_ids_: NDArray[np.int64]
    probabilities_: Floats
    log_evidence_: Floats
    novelty_: Floats
    absorbed_: Absorbed

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
        fresh = copy(self)  # the model stays what it was until the new one is ready
        fresh.__dict__ = {
            name: x
            for name, x in vars(self).items()
            if not name.endswith("_") and name not in ("_learner", "_prior_given")
        }
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
        by_time = self.clock_.by_time if "clock_" in vars(self) else None
        self._absorb(new, self._stamps(timestamps, len(new), by_time))
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

    def _absorb(self, new: list[Document], stamps: Floats | None) -> None:
        """Absorb documents after those kept so far."""
        self._settings()
        self._check_engine()
        size = require_whole("prefix_rows", self.prefix_rows, 1)
        found = [*getattr(self, "prefix_", []), *new]
        times = [*getattr(self, "prefix_stamps_", []), *(() if stamps is None else stamps.tolist())]
        begins = not hasattr(self, "state_") or bool(self.prefix_)
        if begins:
            self._begin(found[:size])
        ticks = self._ticks(self.n_samples_seen_, len(found), np.array(times) if times else None)
        records = []
        try:
            for record in self._learning(found, ticks):
                self.lineage_ += record.events
                records.append(record)
        finally:  # interrupted, what was absorbed is what is kept
            if begins and self.spread is None and self.n_samples_seen_ < size:
                self.prefix_ = found[: self.n_samples_seen_]
                self.prefix_stamps_ = times[: self.n_samples_seen_]
        self.absorbed_ = Absorbed.of(records)

    def _begin(self, first: list[Document]) -> None:
        """Make the posterior of no documents, with what is left open taken from the first ones."""
        self.__dict__.pop("clock_", None)
        self._learner = Learner(max(len(first), 1))
        self._take_prior(resolve_prior(self.prior))
        if self.spread is not None:
            self.vocabulary_ = Vocabulary(OpenVocabulary(self.spread, self.total))
        else:
            spread = max(len(set().union(*first)), 1)
            self.vocabulary_ = Vocabulary(OpenVocabulary(spread, self.total))
            if self.total is None:
                self._learn(first)
        self.state_ = adf.init(self._model(), LENGTH + 1)
        self._settings().budget.check(self.state_)
        self.lineage_ = []
        self.prefix_, self.prefix_stamps_ = [], []

    def _learn(self, first: list[Document]) -> None:
        """Learn base measure and prior from the first documents, whose words are known then."""
        self.vocabulary_.add(first)
        batch = DocumentBatch.of(first, self.vocabulary_.numbers)
        guess = self.vocabulary_.likelihood.guessed(batch)
        self._take_model(self._learner.first(self._trial(), Model(self._prior(), guess), batch))

    def _learning(self, documents: list[Document], ticks: Ticks | None) -> Iterator[Record]:
        """Absorb documents, stopping at those at which something is learnt.

        Words are learnt just before the documents that bring them, so that splits into calls do
        not matter for what they get when the base measure is given out anew.
        """
        start, trial = 0, self._trial()
        while start < len(documents):
            some = documents[start : start + self._learner.room(self.n_samples_seen_)]
            fading = None if ticks is None else ticks.part(start, start + len(some))
            self.vocabulary_.add(some)
            model, batch = self._model(), DocumentBatch.of(some, self.vocabulary_.numbers)
            self._learner.watch(trial, model, batch, self.state_)
            kernel = self._kernel(model, batch)
            yield from adf.run(model, self.state_, batch, self._settings(), kernel, fading)
            start += len(some)
            better = self._learner.again(trial, self._model(), self.state_)
            if better is not None:
                self._take_model(better)

    def _take_model(self, model: Model) -> None:
        """Use a prior and a base measure from now on."""
        self._take_prior(model.prior)
        likelihood: Any = model.likelihood
        self.vocabulary_.likelihood = likelihood

    def _trial(self) -> Trial:
        given = self.new_cluster_threshold
        return Trial(self._settings_for, self._kernel, 1.0 if given is None else float(given))

    @property
    def provisional_(self) -> bool:
        """Return whether the documents that decide on `spread` are still coming."""
        self._fitted()
        return bool(self.prefix_)

    def _settings(self) -> adf.Settings:
        return self._settings_for(self._prior())

    def _settings_for(self, prior: Prior) -> adf.Settings:
        return settings_of(
            prior,
            self.new_cluster_threshold,
            self.min_responsibility,
            budget=budget_of(self.max_clusters, self.max_memory),
        )

    def _open_likelihood(self) -> Likelihood:
        """Return documents over no vocabulary so far."""
        return Vocabulary(OpenVocabulary(self.spread or 1.0, self.total)).likelihood

    def _model(self) -> Model:
        return Model(self._prior(), self.vocabulary_.likelihood)

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

    def _save_into(self, document: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        if "state_" not in vars(self):
            return
        require_words(word for words in self.prefix_ for word in words)
        document["prefix"] = self.prefix_
        if self.prefix_stamps_:
            arrays["prefix.stamps"] = np.array(self.prefix_stamps_)
        self._save_clock(document)
        document["base"] = encode(self.vocabulary_.base)
        document["prior"] = encode(self.prior_)
        self._learner.save_into(document, arrays)
        arrays |= posterior_arrays(self.state_, self.lineage_)
        arrays |= self.vocabulary_.arrays()

    def _load_from(
        self, document: dict[str, Any], arrays: dict[str, NDArray[Any]], classes: list[type]
    ) -> None:
        if "base" not in document:
            return
        self.prefix_ = document["prefix"]
        self.prefix_stamps_ = arrays.get("prefix.stamps", np.empty(0)).tolist()
        self._load_clock(document)
        self.vocabulary_ = Vocabulary.of(decode(document["base"]), arrays)
        self._take_prior(decode(document["prior"], classes))
        self._learner = Learner.load_from(document, arrays, self.vocabulary_.likelihood)
        self.state_, self.lineage_ = posterior_from(arrays, paired=False)

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
