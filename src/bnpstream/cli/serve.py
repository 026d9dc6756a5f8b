"""``bnpstream serve``."""

import os
from contextlib import suppress
from pathlib import Path

import typer

from bnpstream.storage import RunError, read_config


def run_serve(
    run: Path, host: str, port: int, api: bool, learn: bool, token: str | None, log_json: bool,
    alert_size: float | None, alert_within: str, alert_novelty: float | None, webhook: str | None,
) -> None:  # fmt: skip
    """Serve a run until a signal arrives."""
    from bnpstream.serve.alerts import AlertOptions  # here, as these need starlette and uvicorn
    from bnpstream.serve.app import ServeOptions, Server, Service

    token = token or os.environ.get("BNPSTREAM_TOKEN") or None
    alerts = AlertOptions(alert_size, alert_within, alert_novelty, webhook)
    options = ServeOptions(host, port, api, learn, token, log_json, alerts)
    if not learn:
        read_config(run)  # reports errors
    service = Service(run, options)
    server = Server(service, lambda address: _tell(run, address))
    with suppress(KeyboardInterrupt, SystemExit):  # the usual end; no free port
        server.run()
    if not server.started:
        raise OSError(f"--port {port}: cannot listen on {host}: try another, or 0 for a free one")
    if service.failure:
        raise RunError(f"{run}: {service.failure}: see the messages above")


def _tell(run: Path, address: str) -> None:
    typer.echo(f"{run} at {address} (Ctrl-C to stop)")
