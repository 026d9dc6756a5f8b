"""Exit codes, and errors as one line that says what to do."""

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from bnpstream.cli.output import say

FAILED, USAGE, INTERRUPTED = 1, 2, 130


@contextmanager
def reported() -> Iterator[None]:
    """Turn errors and warnings of a job into messages on standard error, errors into an exit code.

    SIGTERM is what Ctrl-C is: a job that can be interrupted well takes both over while it runs.
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
        from bnpstream.runs.feed import TooManyRejectsError  # here, as it takes long to import
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


def _told(error: Exception) -> str:
    """Return what an error says; of one by the system, the file first and no number."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    what = error.strerror[0].lower() + error.strerror[1:]
    return what if error.filename is None else f"{error.filename}: {what}"


def _warn(message: Warning | str, *where: object, **more: object) -> None:
    """Say what a warning says, and not where in the package it is from."""
    say(f"warning: {message}", err=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def fail(message: str, code: int = FAILED) -> None:
    """Say what is wrong and exit."""
    say(f"error: {message}", err=True)
    raise typer.Exit(code)


def close_pipe() -> None:
    """Let Python close a standard output that nobody reads any more without complaint."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
