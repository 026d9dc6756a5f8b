"""``bnpstream fit --dask``: a run on the workers of a Dask cluster."""

import logging
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from bnpstream.cli.fit import pace_of, tell
from bnpstream.cli.output import say
from bnpstream.cli.progress import ProgressDisplay
from bnpstream.distributed import connect
from bnpstream.distributed.feed import SharedFeed, check_model, check_source
from bnpstream.runs.feed import Feed
from bnpstream.runs.mixture import Mixture
from bnpstream.runs.sharing import SharingOptions
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start

LOGGERS = ("distributed", "distributed.client", "tornado.application")
"""Loggers that describe a failing cluster at length; our error does so in one line."""


def run_on_cluster(options: RunOptions, given: dict[str, Any]) -> tuple[Feed, bool, dict[str, Any]]:
    """Run a feed to its end; return it, whether it ended without a signal, and facts about it."""
    pace = pace_of(given)
    check_source(options)
    sharing = SharingOptions(given["staleness"])

    def check(model: Mixture) -> None:
        check_model(model, sharing.completed().staleness)

    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with connect(given["dask"]) as client:
        shared = replace(options, sharing=sharing)
        feed = start(given["out"], shared, resume=given["resume"], check=check)
        try:
            work = SharedFeed(client, feed)
            about = {"cluster": given["dask"], **_about(client, feed)}
            tell(feed, given)
            if not given["quiet"]:
                _announce(about)
            with (
                Interrupts() as interrupts,
                ProgressDisplay(quiet=given["quiet"], log_json=given["log_json"]) as progress,
            ):
                done = work.run(pace, interrupts, progress)
        finally:
            feed.close()
    assert feed.partitions is not None
    about |= {
        "partitions": feed.partitions.done,
        "unread": work.unread,
        "costs": asdict(work.costs),
    }
    return feed, done, about


def _about(client: Any, feed: Feed) -> dict[str, Any]:
    """Return what is known about a cluster before anything runs."""
    assert feed.sharing is not None
    link = None
    with suppress(KeyError):  # a scheduler may have no dashboard
        link = client.dashboard_link
    return {
        "scheduler": client.scheduler.address,
        "dashboard": link,
        "workers": len(client.nthreads()),
        "staleness": feed.sharing.staleness,
    }


def _announce(about: dict[str, Any]) -> None:
    """Print where the dashboard is, and whether some workers will be idle."""
    if about["dashboard"] is not None:
        say(f"dashboard: {about['dashboard']}", err=True)
    busy = about["staleness"] + 1
    if about["workers"] > busy:
        say(
            f"{about['workers']} workers, but staleness {about['staleness']} keeps only {busy} "
            f"busy: start a run with --staleness {about['workers'] - 1} to use all of them",
            err=True,
        )
