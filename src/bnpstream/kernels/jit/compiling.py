"""How long compilation took, so that it is not taken for work on rows."""

from numba.core.event import TimingListener, register

_TIMER = TimingListener()
register("numba:compile", _TIMER)


def compile_seconds() -> float:
    """Return how many seconds this process has spent compiling; reading from disk is not in it."""
    return float(_TIMER.duration) if _TIMER.done else 0.0
