"""Exit codes, and errors as one line that says what to do."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

FAILED, USAGE, INTERRUPTED = 1, 2, 130


@contextmanager
def reported() -> Iterator[None]:
    """Turn errors of a job into a message on standard error and an exit code."""
    from bnpstream.jobs.feeding import TooManyRejectsError
    from bnpstream.jobs.models import OptionError
    from bnpstream.runs import RunError

    try:
        yield
    except BrokenPipeError:
        close_pipe()
        raise typer.Exit(INTERRUPTED) from None
    except OptionError as error:
        fail(str(error), USAGE)
    except (RunError, TooManyRejectsError, ValueError, OSError, ImportError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        typer.echo("stopped at once; the last checkpoint is unharmed", err=True)
        raise typer.Exit(INTERRUPTED) from None


def fail(message: str, code: int = FAILED) -> None:
    """Say what is wrong and exit."""
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(code)


def close_pipe() -> None:
    """Let Python close a standard output that nobody reads any more without complaint."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
