"""Settles the first rows of a table before its stream continues.

An early row is judged by next to nothing: clusters open side by side, and later rows cannot undo
this. They stay, and they favour a larger concentration, which opens more. Or a wide cluster comes
first, and absorbs a narrow one inside it. The rows from which a base measure is learnt are
available, so they are revisited: sweeps as with several passes, then
merges and splits by the model's own log odds, from which the prior is learnt again. From there on
every row is seen once.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from bnpstream.inference import window
from bnpstream.inference.merge import EVEN_ODDS
from bnpstream.mixture import Event

if TYPE_CHECKING:
    from bnpstream.engine.stream import Stream

SWEEPS = 9
"""Most sweeps over the first rows, before merges and splits, and after each round of them."""
ROUNDS = 2
"""Rounds of merges and splits, each after learning the prior, and followed by sweeps."""


def opening(stream: "Stream") -> window.Schedule | None:
    """Return how the next rows are absorbed if they are among the first, else None.

    There are first rows if the base measure is learnt from them, clusters are merged by default,
    and rows are not revisited anyway.
    """
    learner, settings = stream.learner, stream.settings
    if (
        stream.revisits
        or settings.merge_threshold != "auto"
        or not stream.likelihood.settles_first
        or learner is None
        or learner.scale is None
        or stream.state.n_observations >= learner.n_first
    ):
        return None
    return window.Schedule(None, SWEEPS, settings.tol)


def settle_first(stream: "Stream") -> window.Settled:
    """Sweep the first rows, merge and split their clusters; return the results."""
    events = list(_settled(stream))
    stream.window.freeze(stream.window.n_rows)
    return window.Settled(events)


def _settled(stream: "Stream") -> Iterator[Event]:
    plain = window.Schedule(None, SWEEPS, stream.settings.tol)
    moving = window.Schedule(None, SWEEPS, stream.settings.tol, EVEN_ODDS, EVEN_ODDS)
    for number, plan in enumerate([plain, *[moving] * ROUNDS]):
        if number > 0:
            stream.learn_prior()
        model = stream.model
        held = (model, stream.state, stream.window, stream.visits, plan)
        for outcome in window.finish(*held, partial(stream.kernel, model)):
            yield from outcome.events
