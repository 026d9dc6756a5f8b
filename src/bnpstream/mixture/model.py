"""A model is a prior times a likelihood."""

from typing import Any, NamedTuple

from bnpstream.likelihoods import Batch, Likelihood
from bnpstream.priors import Prior


class KernelArguments(NamedTuple):
    """The parameters of prior and likelihood that select compiled loops, and the rows."""

    prior: Any
    likelihood: Any
    rows: Any
    n_jobs: int = 1
    """Threads to use; results do not depend on it."""


class Model(NamedTuple):
    """What is believed before the first row: how clusters arise, and what rows look like."""

    prior: Prior
    likelihood: Likelihood

    def kernel_arguments(self, batch: Batch, n_jobs: int = 1) -> KernelArguments | None:
        """Return what compiled loops need for these rows, or None if a part has no twin."""
        prior = self.prior.kernel_parameters()
        likelihood = self.likelihood.kernel_parameters(batch.n_statistics)
        if prior is None or likelihood is None or batch.kernel_rows is None:
            return None
        return KernelArguments(prior, likelihood, batch.kernel_rows, n_jobs)
