"""A posterior that learns from records and is asked about them."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream.inference import adf
from bnpstream.likelihoods import Batch, Likelihood
from bnpstream.mixture import MixtureState, Model, log_joint, log_prior_weights
from bnpstream.priors import Prior
from bnpstream.search import Learner as PriorLearner
from bnpstream.search import Trial

Record = dict[Hashable, Any]
Floats = NDArray[np.float64]


class Learner(ABC):
    """A posterior over clusters of records of one kind.

    Parameters
    ----------
    prior : Prior
        How clusters arise.
    settings : Settings
        Opening threshold and cut.
    likelihood : Likelihood
        What a record looks like in a cluster.
    n_statistics : int
        Columns of its statistics.
    n_first : int
        Records after which a prior is learnt first, then at every doubling.
    """

    def __init__(
        self,
        prior: Prior,
        settings: adf.Settings,
        likelihood: Likelihood,
        n_statistics: int,
        n_first: int,
    ) -> None:
        self.settings = settings
        self.model = Model(prior, likelihood)
        self.prior_learner = PriorLearner(n_first)
        self.state: MixtureState = adf.init(self.model, n_statistics)

    @abstractmethod
    def learn(self, records: Sequence[Record]) -> None:
        """Absorb records in order; if any is bad, ValueError names it and none is absorbed."""

    @abstractmethod
    def encode(self, record: Record) -> Batch:
        """Return a record to look at; what is not known in it is not learnt."""

    def absorb(self, batch: Batch) -> None:
        """Absorb encoded records; learn from them what the prior leaves open."""
        most_discount, start = self.settings.new_cluster_threshold, 0
        trial = Trial(lambda _: self.settings, Model.kernel_arguments, most_discount)
        while start < len(batch):
            room = self.prior_learner.room(self.state.n_observations)
            part = batch.part(start, start + room)
            trial.absorb(self.model, self.state, part)
            start += len(part)
            self.model = self.prior_learner.again(trial, self.model, self.state) or self.model

    def log_joint(self, record: Record, *, log_cut: float, new: bool) -> Floats:
        """Return log(prior weight x predictive) in every cluster and a new one.

        Without `new`, a new cluster has no weight. What is farther than `log_cut` below the best
        may be -inf.
        """
        batch = self.encode(record)
        log_weights = log_prior_weights(self.model.prior, self.state)[0]
        if not new:
            log_weights[-1] = -np.inf
        kernel = self.model.kernel_arguments(batch)
        scores = log_joint(self.model, self.state, batch, kernel, log_weights, log_cut=log_cut)
        one: Floats = scores[0]
        return one
