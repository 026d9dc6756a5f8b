"""Bounded staleness: which posterior a part of a stream starts from, and which streams allow it.

Part t starts from the posterior after part t - 1 - s, where s is the staleness, and parts are
applied in order. So the result depends on the parts and on s, not on who absorbs them.

The head of a stream is absorbed without staleness, until its first rows have decided what is
learnt from them.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bnpstream.engine.encoder import FixedColumns
from bnpstream.engine.phase import Phase
from bnpstream.engine.settings import Settings

if TYPE_CHECKING:
    from bnpstream.engine.stream import Stream


@dataclass
class Order:
    """Determines the version of a posterior that a part starts from.

    Parameters
    ----------
    staleness : int
        Number of preceding parts that this version may lack.
    settle_every : int or None
        Every part whose number is a multiple of this starts from a version that lacks none.
    settled : int
        Parts before this one are the head of the stream, which no version may lack.
    """

    staleness: int
    settle_every: int | None = None
    settled: int = 0

    def base(
        self, stream: "Stream", version: int, part: int, number: int | None = None
    ) -> int | None:
        """Return the version that a part starts from, or None if it does not exist yet.

        Parameters
        ----------
        stream : Stream
            The newest posterior.
        version : int
            Its version.
        part : int
            The next part, counted like versions.
        number : int, optional
            Its number for `settle_every`, if different.
        """
        if is_head(stream):
            self.settled = part
            return part if part == version else None
        base = max(part - self.staleness, self.settled)
        if self.settle_every is not None:
            base = max(base, part - (part if number is None else number) % self.settle_every)
        return base if base <= version else None


def is_head(stream: "Stream") -> bool:
    """Return whether the first rows still have to decide something."""
    if stream.phase is not Phase.RUNNING:
        return True
    learner = stream.learner
    return learner is not None and stream.state.n_observations < learner.n_first


def is_plain(stream: "Stream") -> bool:
    """Return whether a budget is the only reason for removing clusters."""
    fixed = isinstance(stream.encoder, FixedColumns)
    return fixed and not stream.revisits and stream.settings.half_life is None


def only_adds(stream: "Stream") -> bool:
    """Return whether clusters always stay in their slots."""
    settings = stream.settings
    return is_plain(stream) and settings.max_clusters is None and settings.max_memory is None


def hold_still(stream: "Stream") -> None:
    """Turn off learning and the budget of a stream, which `resolve` takes care of."""
    learnt: Any = stream.prior
    stream.adopt(replace(learnt, learn=()), None, None)
    stream.configure(without_budget(stream.settings))


def without_budget(settings: Settings) -> Settings:
    """Return settings for a part on an older posterior; `resolve` keeps the budget."""
    return replace(settings, max_clusters=None, max_memory=None)


def check_staleness(stream: "Stream", staleness: int, model: str) -> None:
    """Raise ValueError, naming the kind of model, if it cannot start from older posteriors."""
    if stream.settings.staleness > 0:
        raise ValueError(
            f"this {model} has staleness={stream.settings.staleness}, for threads that share "
            "memory, but workers have their own staleness: leave that of the model at 0"
        )
    if staleness == 0 or is_plain(stream):
        return
    settings = {
        name: value
        for name in ("revisit", "keep_sites", "merge_threshold", "split_threshold", "half_life")
        if (value := getattr(stream.settings, name)) not in (None, 0, "auto")
    }
    what = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    raise ValueError(
        f"staleness={staleness} needs a StreamingMixture with a single pass over its rows, but "
        f"this is a {model} with {what or 'a growing vocabulary'}: give staleness=0, which "
        "works with every model"
    )
