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
    """

    def __init__(
        self, prior: Prior, settings: adf.Settings, likelihood: Likelihood, n_statistics: int
    ) -> None:
        self.settings = settings
        self.model = Model(prior, likelihood)
        self.state: MixtureState = adf.init(self.model, n_statistics)

    @abstractmethod
    def learn(self, records: Sequence[Record]) -> None:
        """Absorb records in order; if any is bad, ValueError names it and none is absorbed."""

    @abstractmethod
    def encode(self, record: Record) -> Batch:
        """Return a record to look at; what is not known in it is not learnt."""

    def absorb(self, batch: Batch) -> None:
        """Absorb encoded records."""
        kernel = self.model.kernel_arguments(batch)
        for _ in adf.run(self.model, self.state, batch, self.settings, kernel):
            pass

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
