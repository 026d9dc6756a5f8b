"""A posterior on its way to the workers."""

from typing import Any, NamedTuple, Self

from numpy.typing import NDArray

from bnpstream.engine import Encoder, Settings, Stream
from bnpstream.mixture.snapshot import state_arrays, state_from
from bnpstream.mixture.window import Window
from bnpstream.priors import Prior


class Posterior(NamedTuple):
    """A stream to sweep from and to predict with: its rows and its history stay behind."""

    prior: Prior
    encoder: Encoder
    settings: Settings
    arrays: dict[str, NDArray[Any]]
    """The posterior; of the statistics what is not zero, a fifth of them on KOS."""

    @classmethod
    def of(cls, stream: Stream) -> Self:
        """Return the posterior of a stream that has absorbed rows."""
        return cls(stream.prior, stream.encoder, stream.settings, state_arrays(stream.state))

    def stream(self) -> Stream:
        """Return the stream; its posterior is its own."""
        stream = Stream(self.prior, self.encoder, self.settings)
        paired = self.encoder.likelihood.paired
        stream.resume(state_from(self.arrays, paired=paired), Window(), [])
        return stream
