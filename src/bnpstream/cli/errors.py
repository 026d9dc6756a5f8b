"""Exit codes, and errors as one line that says what to do."""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from bnpstream.cli.output import say

FAILED, USAGE, INTERRUPTED = 1, 2, 130
MOMENT = 0.05
"""Seconds after which an interrupt that was ignored comes again."""


@contextmanager
def reported() -> Iterator[None]:
    """Turn warnings and errors into messages on standard error, and errors into exit codes.

    SIGTERM is treated like Ctrl-C; jobs that can save themselves handle both while they run.
    """
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            yield
    except BrokenPipeError:
        close_pipe()
        raise typer.Exit(INTERRUPTED) from None
    except KeyboardInterrupt:
        say("stopped; the last checkpoint is intact", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except typer.Exit:
        raise
    except Exception as error:
        from bnpstream.runs.feed import TooManyRejectsError  # here, as it is slow to import
        from bnpstream.runs.options import OptionError
        from bnpstream.storage import RunError

        if isinstance(error, OptionError):
            fail(str(error), USAGE)
        if isinstance(error, MemoryError):
            fail("not enough memory; the last checkpoint is intact")
        expected = (RunError, TooManyRejectsError, ValueError, OSError, ImportError)
        if not isinstance(error, expected):
            raise
        fail(_told(error))
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def heard() -> Iterator[None]:
    """Send Ctrl-C again, a moment later, if it came where a library could only ignore it."""
    usual, main = sys.unraisablehook, threading.get_ident()

    def again(ignored: "sys.UnraisableHookArgs") -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            threading.Timer(MOMENT, signal.pthread_kill, (main, signal.SIGINT)).start()
        else:
            usual(ignored)

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = usual


def _told(error: Exception) -> str:
    """Return the message of an error; for a system error, the file first and no error number."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    what = error.strerror[0].lower() + error.strerror[1:]
    return what if error.filename is None else f"{error.filename}: {what}"


def _warn(message: Warning | str, *where: object, **more: object) -> None:
    """Print a warning without its place in the package."""
    say(f"warning: {message}", err=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def fail(message: str, code: int = FAILED) -> None:
    """Print an error and exit."""
    say(f"error: {message}", err=True)
    raise typer.Exit(code)


def close_pipe() -> None:
    """Let Python close a standard output without a reader silently."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
