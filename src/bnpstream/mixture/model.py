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
        """Return what compiled loops need for these rows, or None if a part has no twin.

        They add t(x) to every cluster, so there are none for a `latent` likelihood.
        """
        if self.likelihood.latent:
            return None
        prior = self.prior.kernel_parameters()
        likelihood = self.likelihood.kernel_parameters(batch.n_statistics)
        if prior is None or likelihood is None or batch.kernel_rows is None:
            return None
        return KernelArguments(prior, likelihood, batch.kernel_rows, n_jobs)


def require_plain(model: Model, what: str) -> None:
    """Raise ValueError if what a row adds depends on the cluster."""
    if model.likelihood.latent:
        raise ValueError(
            f"{what} needs rows that add the same to every cluster, and those of "
            f"{type(model.likelihood).__name__} do not: use StreamingMixture"
        )
