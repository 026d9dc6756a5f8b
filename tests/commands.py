"""Running commands in this process, as a person would."""

import json

from typer.testing import CliRunner

from bnpstream.cli import app


def run(*arguments, code=0, stdin=None):
    """Run a command; return its standard output, or its complaint."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    assert result.exit_code == code, result.output + repr(result.exception)
    assert code == 0 or result.stderr, repr(result.exception)
    return result.stdout if code == 0 else result.stderr


def run_json(*arguments, **more):
    """Run a command; return what it prints as JSON."""
    return json.loads(run(*arguments, "--json", **more))
