"""A model is a prior times a likelihood."""

from typing import Any, NamedTuple

from bnpstream.kernels.jit.dispatch import is_registered
from bnpstream.kernels.passes.contributions import contribution_of
from bnpstream.likelihoods import Batch, Likelihood
from bnpstream.priors import Prior

ENGINES = ("auto", "compiled", "reference")


class KernelArguments(NamedTuple):
    """The parameters of prior and likelihood that select compiled loops, and the rows."""

    prior: Any
    likelihood: Any
    rows: Any
    n_jobs: int = 1
    """Threads to use; results do not depend on it."""


class Model(NamedTuple):
    """A prior and a likelihood."""

    prior: Prior
    likelihood: Likelihood

    def kernel_parameters(self, n_statistics: int) -> tuple[Any, Any]:
        """Return the parameters of prior and likelihood for compiled loops; None without loops."""
        parameters = self.likelihood.kernel_parameters(n_statistics)
        if self.likelihood.latent and not is_registered(contribution_of, type(parameters)):
            parameters = None
        return self.prior.kernel_parameters(), parameters

    def kernel_arguments(self, batch: Batch, n_jobs: int = 1) -> KernelArguments | None:
        """Return what compiled loops need for these rows, or None if a part has no loops."""
        return kernel_arguments(self.kernel_parameters(batch.n_statistics), batch, n_jobs)

    def kernel_for(
        self,
        batch: Batch,
        engine: str,
        n_jobs: int = 1,
        parameters: tuple[Any, Any] | None = None,
    ) -> KernelArguments | None:
        """Return what the compiled engine needs for these rows, or None for the reference.

        Parameters
        ----------
        batch : Batch
            Encoded rows.
        engine : {"auto", "compiled", "reference"}
            Engine wanted; ValueError if the name is unknown, or there is no compiled one.
        n_jobs : int
            Threads to use.
        parameters : tuple, optional
            Result of `kernel_parameters`, if known.
        """
        if engine not in ENGINES:
            raise ValueError(f'engine must be "auto", "compiled" or "reference", got {engine!r}')
        if engine == "reference":
            return None
        known = self.kernel_parameters(batch.n_statistics) if parameters is None else parameters
        kernel = kernel_arguments(known, batch, n_jobs)
        if engine == "compiled" and kernel is None:
            raise ValueError(
                f"{self.prior!r} with {self.likelihood!r} has no compiled engine; "
                'use engine="auto" or engine="reference"'
            )
        return kernel


def kernel_arguments(
    parameters: tuple[Any, Any], batch: Batch, n_jobs: int
) -> KernelArguments | None:
    """Return what compiled loops need for some rows, or None if a part has no loops."""
    prior, likelihood = parameters
    if prior is None or likelihood is None or batch.kernel_rows is None:
        return None
    return KernelArguments(prior, likelihood, batch.kernel_rows, n_jobs)


def require_plain(model: Model, what: str) -> None:
    """Raise ValueError if what a row adds depends on the cluster."""
    if model.likelihood.latent:
        raise ValueError(
            f"{what} needs rows that add the same to every cluster, but those of "
            f"{type(model.likelihood).__name__} do not: use StreamingMixture"
        )
