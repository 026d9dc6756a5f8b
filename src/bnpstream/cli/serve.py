"""``bnpstream serve``."""

import os
from contextlib import suppress
from pathlib import Path

import typer

from bnpstream.storage import read_config


def run_serve(
    run: Path, host: str, port: int, api: bool, token: str | None, log_json: bool
) -> None:
    """Serve a run until a signal comes."""
    from bnpstream.serve.app import ServeOptions, Server, Service  # needs starlette and uvicorn

    token = token or os.environ.get("BNPSTREAM_TOKEN") or None
    options = ServeOptions(host, port, api, token, log_json)
    read_config(run)
    server = Server(Service(run, options), lambda address: _tell(run, address))
    with suppress(KeyboardInterrupt):  # the usual end
        server.run()
    if not server.started:
        raise OSError(f"--port {port}: cannot listen on {host}: give another, or 0 for a free one")


def _tell(run: Path, address: str) -> None:
    typer.echo(f"{run} at {address} (Ctrl-C ends it)")
