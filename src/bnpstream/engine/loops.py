"""What loops over rows need of settings and a model, cached while both stay the same."""

from typing import Any, NamedTuple

from bnpstream.engine.learner import Trial
from bnpstream.engine.settings import Settings
from bnpstream.inference import adf
from bnpstream.likelihoods import Batch
from bnpstream.mixture import KernelArguments, Model
from bnpstream.priors import Prior


class Parameters(NamedTuple):
    """What compiled loops need of a model."""

    model: Model
    n_statistics: int
    parts: tuple[Any, Any]
    """Parameters of the prior, and of the likelihood."""


class Loops:
    """How the settings say that rows are visited.

    Parameters
    ----------
    settings : Settings
        Settings of a stream.

    Attributes
    ----------
    trial : Trial
        How a learner visits rows.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.trial = Trial(self.visits, self.kernel, settings.most_discount)
        self._visits: tuple[Prior, adf.Settings] | None = None
        self._parameters: Parameters | None = None

    def visits(self, prior: Prior) -> adf.Settings:
        """Return how a row is visited under a prior."""
        known = self._visits
        if known is None or known[0] is not prior:
            known = self._visits = prior, self._settings.visit(prior)
        return known[1]

    def kernel(self, model: Model, batch: Batch) -> KernelArguments | None:
        """Return what compiled loops need for some rows, or None for the reference engine."""
        known, D, settings = self._parameters, batch.n_statistics, self._settings
        if (
            known is None
            or known.model.prior is not model.prior
            or known.model.likelihood is not model.likelihood
            or known.n_statistics != D
        ):
            known = self._parameters = Parameters(model, D, model.kernel_parameters(D))
        return model.kernel_for(batch, settings.engine, settings.n_jobs, known.parts)
