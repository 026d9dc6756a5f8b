"""Sends answers to a broker."""

from collections.abc import Callable, Sequence

from bnpstream.sources.brokers.address import address_of
from bnpstream.sources.brokers.broker import Answer, Outlet, driver
from bnpstream.sources.brokers.patience import Patience


class Sender:
    """Sends answers, and tries again if the broker does not answer.

    Parameters
    ----------
    outlet : Outlet
        Destination of the answers.
    wait : bool
        Wait for a broker that does not answer, as long as it takes.
    pause : callable
        Waits for some seconds; returns True if the wait is to be given up.
    """

    def __init__(self, outlet: Outlet, *, wait: bool, pause: Callable[[float], bool]) -> None:
        self._outlet = outlet
        self._patiently = Patience(outlet.address, for_ever=wait, pause=pause)
        try:
            self._do(outlet.connect)
        except BaseException:
            outlet.close()
            raise

    def send(self, answers: Sequence[Answer]) -> None:
        """Send answers; the broker has them when this returns."""
        self._do(lambda: self._outlet.send(answers))

    def _do(self, what: Callable[[], object]) -> None:
        def attempt() -> bool:
            what()
            return True

        if not self._patiently(attempt, self._outlet.connect):
            raise KeyboardInterrupt

    def close(self) -> None:
        """Disconnect."""
        self._outlet.close()


def open_sender(text: str, *, wait: bool, pause: Callable[[float], bool]) -> Sender:
    """Return a sender for an address, such as ``kafka://localhost:9092/answers``."""
    address = address_of(text)
    return Sender(driver(address).Answers(address), wait=wait, pause=pause)
