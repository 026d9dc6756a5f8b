"""Blocks of a stream absorbed in parallel, by threads that share memory.

A round is s + 1 blocks of rows, where s is the staleness. They all start from the posterior before
the round. The first is absorbed in place, each of the others by a copy of that posterior; what it
added is then resolved, in the order of blocks. So the result depends on s and on the rows per
block, not on the threads. Rows that do not fill a round wait.

Before the first round, as many rows as a block has are absorbed one after the other, because most
clusters are born there.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from bnpstream.engine.encoder import Encoder, FixedColumns
from bnpstream.engine.learner import REHEARSED
from bnpstream.engine.loops import Loops
from bnpstream.engine.parallel.changes import Added
from bnpstream.engine.parallel.resolution import resolve
from bnpstream.engine.parallel.staleness import without_budget
from bnpstream.engine.settings import Settings
from bnpstream.inference import adf
from bnpstream.inference.visits import Record
from bnpstream.inference.window import Outcome
from bnpstream.kernels.arrays import Integers
from bnpstream.likelihoods import Batch
from bnpstream.mixture import Event, MixtureState, Model
from bnpstream.mixture.interrupts import heed
from bnpstream.mixture.threads import in_threads

if TYPE_CHECKING:
    from bnpstream.engine.stream import Stream

T = TypeVar("T")
LEAST_ENCODED = 1024
"""Fewest rows that are worth a thread for encoding them."""
MOST_RUNNERS = 64
"""Most rounds of different streams that run at the same time."""


class Rounds:
    """The rows that wait for a full round, and memory that rounds reuse.

    Attributes
    ----------
    parts : list of Batch
        The rows, encoded.
    """

    def __init__(self, parts: list[Batch] | None = None) -> None:
        self.parts = parts or []
        self._copies: list[MixtureState] = []

    def __reduce__(self) -> tuple[type["Rounds"], tuple[list[Batch]]]:
        return type(self), (self.parts,)  # copies can be made again

    @property
    def n_rows(self) -> int:
        """Return the number of rows that wait."""
        return sum(map(len, self.parts))

    def rows(self) -> Batch:
        """Return the rows that wait; there must be some."""
        return type(self.parts[0]).joined(self.parts)

    def absorb(self, stream: "Stream", rows: Any, n: int) -> Iterator[Outcome]:
        """Absorb prepared rows; yield the records of those that are in the posterior.

        Parameters
        ----------
        stream : Stream
            Their stream, which owns these rounds.
        rows
            As the encoder prepared them.
        n : int
            Number of rows.
        """
        settings, start = stream.settings, 0
        if not self.parts:
            head = max(settings.block_rows, settings.prefix_rows) - stream.state.n_observations
            start = min(max(head, 0), n)
            yield from stream.steps(rows, start)
        while start < n:
            stop = min(start + settings.round_rows - self.n_rows, n)
            self.parts.append(stream.encoder.part(rows, start, stop))
            if self.n_rows == settings.round_rows:
                yield from self.settle(stream)
                heed()
            start = stop
        if self.parts:  # the caller may change the rows
            self.parts[-1] = self.parts[-1].chosen(np.arange(len(self.parts[-1])))

    def settle(self, stream: "Stream") -> list[Outcome]:
        """Absorb all rows that wait, at most a round.

        An interrupt is raised afterwards, so that all rows of the round are absorbed.
        """
        if not self.parts:
            return []
        blocks = list(_cut(self.parts, stream.settings.block_rows))
        records, interrupt = to_the_end(partial(self._absorb_blocks, stream, blocks))
        self.parts = []
        if interrupt is not None:
            stream.keep(records)
            raise interrupt
        return records

    def _absorb_blocks(self, stream: "Stream", blocks: list[list[Batch]]) -> list[Outcome]:
        """Absorb a round; return the records of all rows, in order."""
        first, *others = blocks
        if not others:
            return [record for batch in first for record in stream.absorb_batch(batch)]
        before, *copies = self._copies_of(stream, len(blocks))
        model, settings = stream.model, without_budget(stream.settings)
        learns = stream.learner is not None and stream.learner.scale is not None
        records: list[Outcome] = []
        changed: list[Any] = [None] * len(others)

        def absorb(start: int, stop: int) -> None:
            for number in range(start, stop):
                if number == 0:
                    for batch in first:
                        records.extend(stream.absorb_batch(batch))
                else:
                    block = Block(model, settings, others[number - 1])
                    changed[number - 1] = block.absorb(before, copies[number - 1], learns=learns)

        in_threads(absorb, len(blocks), settings.learn_threads)
        recent = [event for record in records for event in record.events]
        for change, own in changed:
            resolution, events = resolve(stream, change, recent)
            recent += resolution.removed
            told = [*events, *resolution.removed]
            records += _renamed(stream.state, own, change, resolution.targets, told)
        return records

    def _copies_of(self, stream: "Stream", n: int) -> list[MixtureState]:
        """Return copies of the posterior, in memory of earlier ones."""
        state, copies = stream.state, self._copies
        while len(copies) < n:
            copies.append(MixtureState(2, paired=state.paired))

        def fill(start: int, stop: int) -> None:
            for number in range(start, stop):
                copies[number].become(state, cached=number > 0)  # the first is only for comparison

        in_threads(fill, n, stream.settings.learn_threads)
        return copies[:n]


def prepared(encoder: Encoder, rows: Any, n_threads: int) -> Any:
    """Return prepared rows; if there are many, and columns are fixed, prepare them in threads.

    If one is bad, ValueError names it as the encoder does.
    """
    fixed = isinstance(encoder, FixedColumns) and hasattr(rows, "shape") and len(rows.shape) == 2
    n_parts = min(n_threads, rows.shape[0] // LEAST_ENCODED) if fixed else 1
    if n_parts < 2:
        return encoder.prepared(rows)
    found: list[Any] = [None] * n_parts
    ends = [rows.shape[0] * part // n_parts for part in range(n_parts + 1)]

    def prepare(start: int, stop: int) -> None:
        for part in range(start, stop):
            found[part] = encoder.prepared(rows[ends[part] : ends[part + 1]])

    try:
        in_threads(prepare, n_parts, n_parts)
    except ValueError:  # rows are numbered from the first one
        return encoder.prepared(rows)
    return type(found[0]).joined(found)


class Block(NamedTuple):
    """Rows that are absorbed by a copy of the posterior while rows before them are absorbed too."""

    model: Model
    settings: Settings
    batches: list[Batch]

    def absorb(
        self, before: MixtureState, copy: MixtureState, *, learns: bool
    ) -> tuple[Added, list[Record]]:
        """Return what the rows added, and records with the ids of clusters in the copy.

        Parameters
        ----------
        before, copy : MixtureState
            The same posterior twice; rows are added to the copy.
        learns : bool
            Whether the first rows may have to decide on a scale.
        """
        loops = Loops(self.settings)
        records: list[Record] = []
        for batch in self.batches:
            visits, kernel = loops.visits(self.model.prior), loops.kernel(self.model, batch)
            records += adf.run(self.model, copy, batch, visits, kernel)
        events = [event for record in records for event in record.events]
        probe = next(iter(_cut(self.batches, REHEARSED))) if learns else None
        rows = None if probe is None else type(probe[0]).joined(probe)
        return Added.between(before, copy, events, rows), records


def _renamed(
    state: MixtureState,
    records: list[Record],
    change: Added,
    targets: Integers,
    events: list[Event],
) -> Iterator[Record]:
    """Yield the records of a block as if its rows had come after all rows before them.

    Parameters
    ----------
    state : MixtureState
        The posterior after the block.
    records : list of Record
        As the block has them.
    change, targets : Added, ndarray
        What the block added, and to which clusters.
    events : list of Event
        Events of clusters when it was added; yielded with the last record.
    """
    last = records[-1]
    more_rows = state.n_observations - last.n_observations
    # The block did not see the clusters of others; their number is known after it.
    more_clusters = state.n_clusters - int(last.rows.n_clusters[-1])
    for record in records:
        rows, shares = record.rows, record.responsibilities
        yield Record(
            record.n_observations + more_rows,
            rows._replace(
                ids=change.renamed(rows.ids, targets), n_clusters=rows.n_clusters + more_clusters
            ),
            events if record is last else [],
            shares._replace(ids=change.renamed(shares.ids, targets)),
        )


def _cut(parts: list[Batch], size: int) -> Iterator[list[Batch]]:
    """Yield parts with this many rows together, the last with fewer; parts may be split."""
    ends = np.cumsum([0, *map(len, parts)]).tolist()
    for start in range(0, ends[-1], size):
        stop = start + size
        inside = [max(start, a) < min(stop, b) for a, b in pairwise(ends)]
        yield [
            part if start <= a and b <= stop else part.part(max(start - a, 0), min(stop, b) - a)
            for part, (a, b), some in zip(parts, pairwise(ends), inside, strict=True)
            if some
        ]


@cache
def _runners() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST_RUNNERS, thread_name_prefix="bnpstream-round")


os.register_at_fork(after_in_child=_runners.cache_clear)  # a fork has none of the threads


def to_the_end(work: Callable[[], T]) -> tuple[T, BaseException | None]:
    """Return the result of work, and the exception that a signal raised in this thread, if any.

    Signals are handled in the main thread, so another thread does the work.
    """
    running, interrupt = _runners().submit(work), None
    while not running.done():
        try:
            wait([running])
        except BaseException as error:
            interrupt = error
    return running.result(), interrupt
