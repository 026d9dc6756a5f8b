"""What a stream on a cluster is the inside of: an estimator, or the model of a run."""

from typing import Any, Protocol

from bnpstream.engine import Stream
from bnpstream.estimators.stream_estimator import StreamEstimator
from bnpstream.likelihoods import Likelihood


class Opened(Protocol):
    """A stream that knows how it takes rows; ``runs`` have such models, estimators open theirs."""

    stream: Stream

    @property
    def likelihood(self) -> Likelihood:
        """Return the likelihood as it was given: it may leave something open."""

    def absorb(self, rows: Any, times: Any = None, /) -> Any:
        """Absorb rows; ValueError names a bad one, and nothing is absorbed."""


Model = StreamEstimator | Opened


def opened(model: Model) -> Opened:
    """Return the stream of a model."""
    return model.open_stream() if isinstance(model, StreamEstimator) else model
