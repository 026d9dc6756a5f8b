"""Feeds a source to a model through the workers of a cluster, into a run directory.

The files of a source are its partitions, and workers read them; a Parquet file is divided into its
row groups. If a source is one file of another format, the driver reads it and hands out blocks of
its records. A run is saved when no partition is in progress: from there it continues to the same
bits, with whatever workers there are then.
"""

from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

from bnpstream.distributed.book import Costs
from bnpstream.distributed.partitions import renumbered
from bnpstream.distributed.results import Applied, Reached, StreamError
from bnpstream.distributed.stream import stream_partitions
from bnpstream.engine import GrowingVocabulary, Phase, Stream
from bnpstream.engine.parallel.staleness import is_plain
from bnpstream.runs.feed import Feed
from bnpstream.runs.mixture import Mixture
from bnpstream.runs.options import OptionError, Pace
from bnpstream.runs.read_ahead import read_ahead
from bnpstream.runs.sharing import Partitions
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions
from bnpstream.runs.status import Status
from bnpstream.sources.protocol import JSON
from bnpstream.storage import RunError


def check_source(options: RunOptions) -> None:
    """Raise OptionError if a source does not have the same partitions every time."""
    way_out = "leave out --dask, or name complete files"
    if "-" in options.paths:
        raise OptionError(f"--dask needs files, and - is standard input: {way_out}")
    if options.follow:
        raise OptionError(f"--dask needs files, and --follow waits for them to grow: {way_out}")


def check_model(model: Mixture, staleness: int) -> None:
    """Raise OptionError if a model cannot start from older posteriors."""
    stream = model.stream
    if staleness == 0 or is_plain(stream):
        return
    if isinstance(stream.encoder, GrowingVocabulary):
        raise OptionError(
            f"--staleness {staleness}: workers in parallel need a fixed vocabulary, but that of "
            "texts grows: give --hash-bits 18 or --vocab FILE, or --staleness 0, with which one "
            "works at a time"
        )
    raise OptionError(
        f"--staleness {staleness}: workers in parallel pass over rows only once: leave out "
        "--passes, --revisit, --merge-threshold and --half-life, or give --staleness 0, with "
        "which one works at a time"
    )


@dataclass
class SharedFeed:
    """A feed whose rows are absorbed by the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    feed : Feed
        The feed, with its `sharing`.

    Attributes
    ----------
    unread : list of str
        Partitions of this process that could not be read, or not to their end.
    costs : Costs
        Costs of the run.
    """

    client: Any
    feed: Feed
    unread: list[str] = field(default_factory=list)
    costs: Costs = field(default_factory=Costs)

    def __post_init__(self) -> None:
        source, sharing, partitions = self.feed.source, self.feed.sharing, self.feed.partitions
        assert sharing is not None, "start it with RunOptions(sharing=...)"
        assert partitions is not None
        self._sharing, self._done = sharing, partitions.done
        # What has no partitions is read here.
        self._parts = source.partitions()
        self._total = total = None if self._parts is None else len(self._parts)
        if partitions.done > 0 and partitions.total != total:
            raise RunError(
                f"the source has {total or 'other'} partitions, but had {partitions.total} when "
                "the run was saved: restore its files, or start a new run with another --out"
            )
        self.feed.partitions = replace(partitions, total=total)
        self._positions: deque[JSON] = deque()
        """Positions after each block in progress, if the driver reads them."""
        self._absorbed = _so_far(self.feed.model.stream)

    def run(self, pace: Pace, interrupts: Interrupts, on_batch: Callable[[Status], None]) -> bool:
        """Read the source to its end, as `Feed.run` does; return False if a signal stopped it.

        A signal stops it at the next place where it can be saved.
        """
        try:
            return self.feed.go_through(self._steps(pace), pace, interrupts, on_batch)
        except StreamError as error:
            reason = " ".join(error.reason.split())  # Dask's have many lines
            raise RunError(
                f"{reason}: the last checkpoint is intact: when the cluster is back, "
                "or with another one, continue with --resume"
            ) from error

    def _steps(self, pace: Pace) -> Generator[bool]:
        """Apply partition after partition; the run can be saved when none is in progress."""
        feed, sharing, done = self.feed, self._sharing, self._done
        partitions = self._partitions()
        stream = stream_partitions(
            self.client,
            partitions,
            feed.model,
            staleness=sharing.staleness,
            settle_every=sharing.settle_every,
            start=Reached(done, feed.records, feed.source.schema),
            source_options=feed.source.options,
            journal=feed.journal,
        )
        n_logged = 0
        with closing(partitions), closing(stream):
            for applied in stream:
                feed.finished = False
                feed.model, events = applied.model, applied.stream.lineage
                feed.log_events(events[n_logged:])
                n_logged = len(events)
                self._take(applied, pace)
                reached = applied.reached
                settled = reached.inside is None and reached.partitions % sharing.settle_every == 0
                if settled:  # until then, partitions in progress may have to look things up in it
                    events.clear()
                    n_logged = 0
                yield settled
        feed.model.stream.lineage.clear()

    def _take(self, applied: Applied, pace: Pace) -> None:
        """Record the result of a partition."""
        feed, rejects = self.feed, list(applied.rejects)
        n_records = applied.reached.records - feed.records
        position = feed.position  # unused inside a block, and if workers read by themselves
        if self._positions and applied.reached.inside is None:
            position = self._positions.popleft()
        feed.check_budget(rejects, pace, untouched=False)
        feed.check_any(applied.n_rows, n_records, rejects)
        if applied.unread:
            self.unread.append(applied.name)
        self.costs = applied.costs
        feed.seconds_in_pass = applied.costs.working
        feed.partitions = Partitions(applied.reached.partitions, self._total)
        feed.move_on(rejects, applied.reached.records, position)
        (evidence, rows), self._absorbed = self._absorbed, _so_far(applied.stream)
        if self._absorbed[1] > rows:
            feed.note_evidence((self._absorbed[0] - evidence) / (self._absorbed[1] - rows))

    def _partitions(self) -> Generator[Any]:
        """Yield the partitions of the source; those that are done are not read."""
        if self._parts is not None:
            yield from self._parts
            return
        source = self.feed.source
        yield from repeat(None, self._done)
        # One at a time, because the length of joined ones would depend on timing.
        batches = source.batches(self._sharing.part_rows, self.feed.position)
        items = read_ahead(batches, 1, source.stop)
        first = self.feed.records
        with closing(items):
            for item in items:
                assert item is not None  # it is waited for
                records, position = item
                self._positions.append(position)
                yield renumbered(records, first)
                first = records.end(first)


def _so_far(stream: Stream) -> tuple[float, int]:
    """Return the evidence of all rows absorbed, and their number."""
    if stream.phase is not Phase.RUNNING:
        return 0.0, 0
    return stream.state.log_evidence, stream.state.n_observations
