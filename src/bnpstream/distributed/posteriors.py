"""A posterior on its way to the workers."""

from copy import copy
from typing import Any, NamedTuple, Self

from numpy.typing import NDArray

from bnpstream.estimators import StreamingMixture
from bnpstream.mixture.snapshot import state_arrays, state_from


class Posterior(NamedTuple):
    """A model to sweep from and to predict with: its rows and its history stay behind."""

    shell: StreamingMixture
    """Parameters, prior and likelihood."""
    arrays: dict[str, NDArray[Any]]
    """The posterior; of the statistics what is not zero, a fifth of them on KOS."""

    @classmethod
    def of(cls, model: StreamingMixture) -> Self:
        """Return the posterior of a fitted model."""
        shell = model._unfitted()
        shell._take(model.likelihood_)
        shell._take_prior(model._prior())
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(shell, name, getattr(model, name))
        return cls(shell, state_arrays(model.state_))

    def fitted(self) -> StreamingMixture:
        """Return the model; its posterior is its own."""
        model = copy(self.shell)
        model.state_ = state_from(self.arrays, paired=model.likelihood_.paired)
        return model
