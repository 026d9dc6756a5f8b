"""How documents are absorbed while their vocabulary grows: prefix, learning, and what is saved."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream.estimators.base import require_whole, resolve_prior
from bnpstream.estimators.codec import decode, encode
from bnpstream.estimators.fading import ForgettingEstimator
from bnpstream.estimators.reading import PosteriorReader
from bnpstream.estimators.saving import Savable, posterior_arrays, posterior_from
from bnpstream.estimators.visiting import VisitingEstimator
from bnpstream.inference import adf
from bnpstream.inference.forgetting import Ticks
from bnpstream.inference.visits import Absorbed, Record
from bnpstream.likelihoods import Likelihood, OpenVocabulary, Vocabulary
from bnpstream.likelihoods.documents import LENGTH, Document, DocumentBatch
from bnpstream.likelihoods.vocabulary import require_words
from bnpstream.mixture import Model
from bnpstream.search import Learner

Floats = NDArray[np.float64]


class DocumentAbsorber(Savable, PosteriorReader, ForgettingEstimator, VisitingEstimator):
    """Absorbs documents in order; any split into calls gives the same bits."""

    spread: float | None
    total: float | None
    vocabulary_: Vocabulary
    prefix_: list[Document]
    prefix_stamps_: list[float]
    absorbed_: Absorbed

    def _absorb(self, new: list[Document], stamps: Floats | None) -> None:
        """Absorb documents after those kept so far."""
        self._settings()
        self._check_engine()
        size = require_whole("prefix_rows", self.prefix_rows, 1)
        found = [*getattr(self, "prefix_", []), *new]
        times = [*getattr(self, "prefix_stamps_", []), *(() if stamps is None else stamps.tolist())]
        begins = not hasattr(self, "state_") or bool(self.prefix_)
        if begins:
            self._begin(found[:size], size)
        self._follow_prior()
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

    def _is_by_time(self) -> bool | None:
        """Return whether the documents so far had time stamps; None if that is not decided."""
        if vars(self).get("prefix_"):
            return bool(self.prefix_stamps_)
        return self.clock_.by_time if "clock_" in vars(self) else None

    def _begin(self, first: list[Document], size: int) -> None:
        """Make the posterior of no documents, with what is left open taken from the first ones.

        With nothing left open the first ones are no more than those of the first call.
        """
        self.__dict__.pop("clock_", None)
        self._learner = Learner(size if self.spread is not None else max(len(first), 1))
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

    def _open_likelihood(self) -> Likelihood:
        """Return documents over no vocabulary so far."""
        return Vocabulary(OpenVocabulary(self.spread or 1.0, self.total)).likelihood

    def _model(self) -> Model:
        return Model(self._prior(), self.vocabulary_.likelihood)

    def _save_into(self, document: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        if "state_" not in vars(self):
            return
        require_words(word for words in self.prefix_ for word in words)
        document["prefix"] = self.prefix_
        if self.prefix_stamps_:
            arrays["prefix.stamps"] = np.array(self.prefix_stamps_)
        self._save_clock(document)
        document["base"] = encode(self.vocabulary_.base)
        document["prior"] = encode(self._prior())
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
