"""Feeds a source to a model: batches in, answers out, checkpoints on the way."""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bnpstream.engine import Absorption, Phase
from bnpstream.kernels.jit.compiling import compile_seconds
from bnpstream.mixture import Event
from bnpstream.runs.absorption import sound_parts
from bnpstream.runs.journal import Journal
from bnpstream.runs.mixture import Mixture
from bnpstream.runs.options import Pace
from bnpstream.runs.read_ahead import read_ahead
from bnpstream.runs.sharing import Partitions, Sharing
from bnpstream.runs.signals import InterruptedJobError, Interrupts
from bnpstream.runs.status import Status
from bnpstream.sources import Records, Reject, Source
from bnpstream.sources.protocol import JSON, LostError
from bnpstream.storage import Ordered, RunError, RunWriter, Tensors

TRACE_ROWS, TRACE_SECONDS = 1000, 1.0
"""Least rows or seconds between two records of the trace."""
QUIET_SECONDS = 1.0
"""Seconds without a batch after which a due checkpoint is made anyway."""
SHARE_OF_CHECKPOINTS = 0.05
"""Largest share of the running time spent on checkpoints."""
MOVING = 0.9
"""Weight of earlier batches in the moving mean of log evidence per row."""


Answer = Callable[[Records, Mixture], None]
"""Called with rows that the model has just absorbed, or keeps until more arrive."""


class TooManyRejectsError(Exception):
    """More records are invalid than allowed."""


@dataclass
class Feed:
    """A model, its source, and everything kept between two batches.

    Parameters
    ----------
    model : Mixture
        Changed in place.
    source : Source
        Source of the rows.
    journal : Journal
        Notes about the stream.
    position : JSON
        Position in the source, in the source's own terms.
    writer : RunWriter or None
        Writes checkpoints.
    records : int
        Records read so far, including rejects.
    seconds : float
        Time spent by earlier processes, without compilation.
    finished : bool
        Whether the source has ended.
    sharing : Sharing or None
        How the run is divided between workers, if it is.
    partitions : Partitions or None
        Number of partitions done, if the run is divided: always the first ones.
    """

    model: Mixture
    source: Source
    journal: Journal
    position: JSON
    writer: RunWriter | None = None
    records: int = 0
    seconds: float = 0.0
    seconds_in_pass: float = 0.0
    finished: bool = False
    sharing: Sharing | None = None
    partitions: Partitions | None = None

    def __post_init__(self) -> None:
        self._started, self._compiled = time.perf_counter(), compile_seconds()
        self._rows_before = self.n_rows
        self._evidence = self._novelty = np.nan
        self._saved_at, self._saved_rows, self._cost = self._started, self.n_rows, 0.0
        self._saved_records = self.records
        self._traced_rows, self._traced_at = self.n_rows, self._started
        self._traced_lag: dict[str, int] = {}

    @property
    def n_rows(self) -> int:
        """Return the number of rows absorbed or kept so far."""
        return self.records - self.journal.n_rejects

    def run(
        self,
        pace: Pace,
        interrupts: Interrupts,
        on_batch: Callable[[Status], None],
        answer: Answer | None = None,
    ) -> bool:
        """Read the source to its end; return False if a signal stopped it earlier.

        Parameters
        ----------
        pace : Pace
            Batch size, checkpoints and allowed rejects.
        interrupts : Interrupts
            Signals that ask to stop.
        on_batch : callable
            Called after each batch.
        answer : callable, optional
            Called with the rows of each batch before they are saved.
        """
        return self.go_through(self._steps(pace, interrupts, answer), pace, interrupts, on_batch)

    def _steps(self, pace: Pace, interrupts: Interrupts, answer: Answer | None) -> Generator[bool]:
        """Process one batch after another."""
        source, rows = self.source, pace.batch_rows
        batches = read_ahead(source.batches(rows, self.position), rows, source.stop, QUIET_SECONDS)
        with closing(batches):
            while True:
                try:
                    with interrupts.waiting():
                        item = next(batches)
                except LostError:
                    self.checkpoint()
                    raise
                except StopIteration:
                    return
                if item is not None:
                    self.finished = False
                    self._take(*item, pace, answer)
                else:
                    self._trace_lag()
                    if self.records == self._saved_records:
                        continue
                yield True

    def go_through(
        self,
        steps: Generator[bool],
        pace: Pace,
        interrupts: Interrupts,
        on_batch: Callable[[Status], None],
    ) -> bool:
        """Run the steps of a source to its end; return False if a signal stopped them earlier.

        Parameters
        ----------
        steps : generator of bool
            Each yields whether the run can stop and be saved there: what follows must then depend
            only on what is saved.
        pace, interrupts, on_batch
            As for `run`.
        """
        try:
            with closing(steps):
                for may_end in steps:
                    stage = "stopping" if interrupts.requested and not may_end else None
                    on_batch(self.status(stage))
                    if may_end and interrupts.requested:
                        raise InterruptedJobError
                    if may_end and self._is_time(pace):
                        self.checkpoint()
            if not self.finished:
                self._finish(pace, interrupts, on_batch)
        except InterruptedJobError:
            self.checkpoint()
            return False
        if not self.finished:
            self.finished = True
            self.checkpoint()
        return True

    def _take(
        self,
        records: Records,
        position: JSON,
        pace: Pace,
        answer: Answer | None,
    ) -> None:
        """Absorb a batch; reject what the model refuses."""
        rejects = list(records.rejects)
        self.check_budget(rejects, pace, untouched=True)
        if answer is not None and self.writer is not None:
            order = self.source.order(records)
            if order is not None:  # a repetition must give the same answers
                self.writer.note_order(Ordered(self.records, order, position))
        n_absorbed = 0
        for part, refused in self._absorb(records):
            if refused is not None:
                rejects.append(refused)
                self.check_budget(rejects, pace, untouched=False)
                continue
            n_absorbed += len(part)
            if answer is not None:
                answer(part, self.model)
        self.check_any(n_absorbed, len(records), rejects)
        self.move_on(rejects, records.end(self.records), position)

    def check_any(self, n_absorbed: int, n_tried: int, rejects: list[Reject]) -> None:
        """Raise ValueError if all of the first rows are refused: the format must be wrong."""
        if self.n_rows == 0 and n_tried > 1 and n_absorbed == 0:
            raise ValueError(
                f"none of the first {n_tried} records could be used: {rejects[-1].reason}"
            )

    def move_on(self, rejects: list[Reject], records: int, position: JSON) -> None:
        """Log the rejects of a step, and move on to its position and number of records."""
        rejects.sort(key=_number)  # the same for any batches
        if self.writer is not None:
            self.writer.logs["rejects"].append([reject.document() for reject in rejects])
        self.journal.reject(rejects)
        self.records, self.position = records, position
        self._trace()

    def check_budget(self, rejects: list[Reject], pace: Pace, *, untouched: bool) -> None:
        """Raise TooManyRejectsError if a batch has more rejects than are still allowed."""
        if pace.max_rejects is None:
            return
        left = max(0, pace.max_rejects - self.journal.n_rejects - self.journal.n_parts)
        if len(rejects) <= left:
            return
        if untouched:  # the posterior belongs to the position: save the work
            self.checkpoint()
        bad = sorted(rejects, key=_number)[left]
        most = "none" if pace.max_rejects == 0 else f"at most {pace.max_rejects}"
        raise TooManyRejectsError(
            f"{bad.place}: {bad.reason}: {bad.beginning!r}; {most} may be invalid: "
            "correct the source, or allow more with --max-rejects, then continue with --resume"
        )

    def _absorb(self, records: Records) -> Iterator[tuple[Records, Reject | None]]:
        """Absorb rows and note them in the journal; reject what the model refuses."""
        start = 0
        while start < len(records):  # all rows of a part see the same topics
            stop = min(start + max(self.model.rows_to_topics, 1), len(records))
            yield from self._absorb_part(records.part(slice(start, stop)))
            start = stop

    def _absorb_part(self, records: Records) -> Iterator[tuple[Records, Reject | None]]:
        """Absorb rows before topics are found again."""
        began = self._clock()
        # Any split of the rows gives the same bits, so halving does not affect valid rows.
        for part, found, refused in sound_parts(
            records, lambda part: self.model.absorb(part.rows, part.times or None)
        ):
            self.seconds_in_pass += self._clock() - began
            if refused is None:
                self._note(part, found)
                self.model.stream.epochs = []  # per call: a checkpoint must not depend on calls
            yield part, refused
            began = self._clock()

    def _clock(self) -> float:
        """Return the time, without searches for topics and compilation."""
        return time.perf_counter() - self.model.stream.finder.seconds - compile_seconds()

    def _note(self, records: Records | None, found: Absorption | None) -> None:
        """Note absorbed rows in the journal, and move the lineage to the run directory."""
        if found is None:
            assert records is not None
            self.journal.wait(records, self.model.likelihood)
            return
        absorbed, events = found.absorbed, self._take_events()
        self.journal.note(records, absorbed, events, self.model.likelihood)
        self.note_evidence(float(absorbed.rows.log_evidence.mean()))
        self._novelty = _moved(self._novelty, float(absorbed.rows.novelty.mean()))

    def note_evidence(self, mean: float) -> None:
        """Update the moving mean by the mean of a step."""
        self._evidence = _moved(self._evidence, mean)

    def _take_events(self) -> list[Event]:
        """Move the lineage from the model to the run directory."""
        events, self.model.stream.lineage = self.model.stream.lineage, []
        self.log_events(events)
        return events

    def log_events(self, events: list[Event]) -> None:
        """Write events of clusters and topics to the run directory."""
        if self.writer is not None:
            self.writer.logs["lineage"].append([event.record() for event in events])

    def _finish(
        self, pace: Pace, interrupts: Interrupts, on_batch: Callable[[Status], None]
    ) -> None:
        """End the stream step by step: absorb waiting rows, revisit the window."""
        if self.n_rows == 0:
            return
        for began in self.model.stream.finishing():
            if began is not None:
                self._note(None, began)
            else:
                self.journal.follow(self._take_events())
            on_batch(self.status("finishing"))
            if interrupts.requested:
                raise InterruptedJobError
            if self._is_time(pace):
                self.checkpoint()
        self.model.stream.topics  # noqa: B018  found now, they are kept with the last checkpoint
        self.journal.follow(self._take_events())

    @property
    def seconds_compiling(self) -> float:
        """Return the time this process spent compiling loops; all other times exclude it."""
        return compile_seconds() - self._compiled

    def _elapsed(self) -> float:
        return max(0.0, time.perf_counter() - self._started - self.seconds_compiling)

    def status(self, stage: str | None = None) -> Status:
        """Return the current status."""
        seconds = self._elapsed()
        filling = self.model.stream.phase is Phase.PREFIX
        return Status(
            self.n_rows,
            self.records,
            self.journal.n_rejects,
            0 if self.n_rows == 0 or filling else self.model.stream.state.n_clusters,
            self._evidence,
            seconds,
            (self.n_rows - self._rows_before) / max(seconds, 1e-9),
            self._fraction(),
            stage or ("prefix" if filling else "reading"),
            self.partitions,
        )

    def _fraction(self) -> float | None:
        """Return the fraction of the source that has been read, if known."""
        if self.partitions is not None and self.partitions.total is not None:
            return self.partitions.done / self.partitions.total
        return self.source.progress()

    def _trace(self) -> None:
        """Write the status to the trace now and then, for processes that watch the run."""
        if self.writer is None:
            return
        now = time.perf_counter()
        if self.n_rows - self._traced_rows >= TRACE_ROWS or now - self._traced_at >= TRACE_SECONDS:
            self._write_trace(self.writer, self.source.lag(self.position))

    def _trace_lag(self) -> None:
        """Write the status if only the lag has changed, as when a source is down."""
        if self.writer is None:
            return
        lag = self.source.lag(self.position)
        if lag != self._traced_lag:
            self._write_trace(self.writer, lag)

    def _write_trace(self, writer: RunWriter, lag: dict[str, int]) -> None:
        self._traced_rows, self._traced_at = self.n_rows, time.perf_counter()
        self._traced_lag = lag
        writer.logs["trace"].append([self._trace_record(lag)])
        for log in writer.logs.values():
            log.flush()

    def _trace_record(self, lag: dict[str, int]) -> dict[str, Any]:
        status = self.status()
        return {
            "rows": status.rows,
            "records": status.records,
            "rejects": status.rejects,
            "clusters": status.clusters,
            "evidence_per_row": _known(status.evidence_per_row),
            "novelty": _known(self._novelty),
            "fraction": status.fraction,
            "lag": lag,
            "seconds": round(self.seconds + status.seconds, 3),
            "time": round(time.time(), 3),
        }

    def _is_time(self, pace: Pace) -> bool:
        """Return whether a checkpoint is due."""
        if self.writer is None:
            return False
        rows = pace.checkpoint_rows
        if rows is not None and self.n_rows - self._saved_rows >= rows:
            return True
        waited = time.perf_counter() - self._saved_at
        return waited >= max(pace.checkpoint_seconds, self._cost / SHARE_OF_CHECKPOINTS)

    def checkpoint(self) -> None:
        """Save model, journal and position together."""
        if self.writer is None:
            return
        if self.partitions is None and self.model.stream.n_rows != self.n_rows:
            raise RunError(
                f"{self.writer.folder}: {self.records} records were read and "
                f"{self.journal.n_rejects} rejected, but the model has "
                f"{self.model.stream.n_rows} rows: nothing was saved; please report this bug"
            )
        began = time.perf_counter()
        tensors, notes = self.model.tensors(), self.journal.tensors()
        document = {
            **tensors.document,
            "journal": notes.document,
            "position": self.position,
            "rows": self.n_rows,
            "rejects": self.journal.n_rejects,
            "seconds": self.seconds + self._elapsed(),
            "finished": self.finished,
            "partitions": None if self.partitions is None else asdict(self.partitions),
        }
        self.writer.checkpoint(Tensors(tensors.arrays | notes.arrays, document))
        self.source.committed(self.position)
        self._saved_at, self._saved_rows = time.perf_counter(), self.n_rows
        self._saved_records = self.records
        self._cost = self._saved_at - began

    def close(self) -> None:
        """Close the source, and the run directory if there is one."""
        self.source.close()
        if self.writer is not None:
            self.writer.close()


def _number(reject: Reject) -> int:
    return reject.record


def _moved(past: float, mean: float) -> float:
    """Return a moving mean after one more batch."""
    return MOVING * (mean if np.isnan(past) else past) + (1.0 - MOVING) * mean


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
