"""A topic, stream or table of a broker as a source, read from any position on."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from threading import Event
from typing import Any, ClassVar, Literal

from bnpstream.sources.brokers.address import address_of
from bnpstream.sources.brokers.broker import Bounds, Broker, Message, driver
from bnpstream.sources.brokers.lag import Lag
from bnpstream.sources.brokers.patience import Patience
from bnpstream.sources.brokers.values import Values, schema_of_messages
from bnpstream.sources.formats.record_reader import PEEKED_RECORDS
from bnpstream.sources.protocol import JSON, LostError, Source
from bnpstream.sources.records import Options, Records, Schema

Start = Literal["earliest", "latest"]
POLL_SECONDS = 0.2
"""Seconds per request for more messages."""


class BrokerSource(Source):
    """Messages of a broker, as one sequence of records.

    A position holds the offset of the last message read in each lane, the number of records before
    it, and the broker's `lineage` with the record number at which it was taken.

    Parameters
    ----------
    broker : Broker
        Provides the messages.
    options : Options
        The user's options.
    schema : Schema, optional
        Schema of the records, if known from an earlier run.
    follow : bool
        Wait for more at the end; otherwise read what is there now.
    wait : bool
        Wait for a broker that does not answer, as long as it takes.
    start : str, optional
        Where to begin, and to continue if messages after a position are gone. Without it,
        everything is read, and missing messages are an error.
    """

    begins_anew: ClassVar[bool] = True

    def __init__(
        self,
        broker: Broker,
        options: Options,
        schema: Schema | None = None,
        *,
        follow: bool = False,
        wait: bool = False,
        start: Start | None = None,
    ) -> None:
        self._broker, self.options, self.follow, self.start = broker, options, follow, start
        self._stopped = Event()
        self._patiently = Patience(self, for_ever=wait, pause=lambda s: self._stopped.wait(s))
        self._repeats: list[tuple[JSON, JSON]] = []
        self._lag = Lag(driver(broker.address).Messages(broker.address))
        try:
            self._patiently(broker.connect, broker.connect)
            self._beginning = self._start_at(self._bounds(), start or "earliest", 0)
            self.schema = self._find_schema() if schema is None else schema
            self._broker.has_details = Values(broker, self.schema, options).has_details
        except BaseException:
            broker.close()
            raise

    def __str__(self) -> str:
        return str(self._broker.address)

    def identity(self) -> dict[str, JSON]:
        """Return the address and the format, which identify the source."""
        return {"paths": [str(self)], "format": self.schema.format}

    def beginning(self) -> JSON:
        """Return the position before the first record."""
        return self._beginning

    def _bounds(self) -> list[Bounds]:
        return self._patiently(self._broker.bounds, self._broker.connect) or []

    def _start_at(self, bounds: list[Bounds], start: Start, records: int) -> JSON:
        """Return the position where messages start, or end, with this many records before it."""
        last = [lane.before if start == "earliest" else lane.last for lane in bounds]
        return {"records": records, "last": last, "since": [self._lineage(start), records]}

    def _lineage(self, start: Start) -> JSON:
        return self._patiently(lambda: self._broker.lineage(start), self._broker.connect)

    def check(self, position: JSON) -> None:
        """Raise ValueError if reading cannot continue from a position."""
        self._entered(position)

    def _entered(self, position: JSON) -> JSON:
        """Return a position, or where to continue if messages after it are gone."""
        try:
            records, last = int(position["records"]), list(position["last"])
            lineage, n_before = position["since"]
            n_read = records - int(n_before)
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(
                f"{position!r} is not a position in {self}: restore it from a copy, or start again"
            ) from error
        bounds = self._bounds()
        if len(bounds) < len(last):
            raise ValueError(
                f"{self}: has {len(bounds)} partitions, but had {len(last)}: it is a different "
                "topic; start a new run with another --out"
            )
        # Partitions added since then are read from their beginnings.
        last += [lane.before for lane in bounds[len(last) :]]
        found = {**position, "last": last}
        missing = [
            self._broker.missing(lane, offset, now, lineage, n_read)
            for lane, (offset, now) in enumerate(zip(last, bounds, strict=True))
        ]
        if not any(missing):
            return found
        if self.start is None:
            raise ValueError(
                f"{self}: {next(filter(None, missing))}: to skip what is lost, give "
                "--from earliest (the oldest message left) or --from latest (the next new one)"
            )
        self._repeats = []
        there = self._start_at(bounds, self.start, records)
        kept = [
            now if gone else was
            for now, was, gone in zip(there["last"], last, missing, strict=True)
        ]
        return {**there, "last": kept}

    def _find_schema(self) -> Schema:
        """Determine the schema from the first messages; wait if there are none."""
        sample: list[Message] = []
        last = dict(enumerate(self._beginning["last"]))
        until = {lane: bounds.last for lane, bounds in enumerate(self._bounds())}
        while len(sample) < PEEKED_RECORDS:
            for messages in self._read(last, until, PEEKED_RECORDS):
                sample += messages
                if len(sample) >= PEEKED_RECORDS:
                    break
            try:
                if sample or not self.follow:
                    return self._schema_of(sample)
            except ValueError:
                if not self.follow:
                    raise
            # A few more messages tell more.
            more = next(self._read(last, None, PEEKED_RECORDS), [])
            if not more:
                break
            sample += more
        return self._schema_of(sample)

    def _schema_of(self, sample: list[Message]) -> Schema:
        if not sample:
            raise ValueError(f"{self}: it is empty; give --follow to wait for messages")
        return schema_of_messages(sample, self.options, str(self), is_live=self.follow)

    def batches(self, batch_rows: int = 1024, start: JSON = None) -> Iterator[tuple[Records, JSON]]:
        """Yield batches of records, each with the position after it."""
        if batch_rows < 1:
            raise ValueError(f"batch_rows is {batch_rows}: a batch needs at least 1 row")
        self._stopped.clear()
        position = self._entered(self._beginning if start is None else start)
        return self._batches(batch_rows, position)

    def _batches(self, batch_rows: int, position: JSON) -> Iterator[tuple[Records, JSON]]:
        until = None
        if not self.follow:
            until = {lane: bounds.last for lane, bounds in enumerate(self._bounds())}
        values = Values(self._broker, self.schema, self.options, position["records"])
        repeats, self._repeats = self._repeats, []
        last = dict(enumerate(position["last"]))
        for order, after in repeats:
            messages = self._repeated(order, last, after["last"])
            if messages is None:
                return
            position = self._moved(position, last, len(messages))
            yield replace(values.records(messages), is_whole=True), position
        for messages in self._read(last, until, batch_rows):
            position = self._moved(position, last, len(messages))
            yield values.records(messages), position

    def _moved(self, position: JSON, last: dict[int, JSON], n: int) -> JSON:
        return {
            **position,
            "records": position["records"] + n,
            "last": [last[lane] for lane in range(len(last))],
        }

    def _read(
        self, last: dict[int, JSON], until: dict[int, JSON] | None, n: int
    ) -> Iterator[list[Message]]:
        """Yield messages as they come, and advance; each message is read once."""
        broker = self._broker

        def again() -> None:
            broker.connect()
            broker.seek(last, until)

        self._patiently(lambda: broker.seek(last, until), again)
        while not self._stopped.is_set():
            messages = self._patiently(lambda: broker.read(n, POLL_SECONDS), again)
            if messages is None:
                return
            new = []
            for message in messages:
                if broker.is_after(message.offset, last[message.lane]):
                    last[message.lane] = message.offset
                    new.append(message)
            if new:
                yield new

    def _repeated(
        self, order: Sequence[Sequence[int]], last: dict[int, JSON], after: Sequence[JSON]
    ) -> list[Message] | None:
        """Read a batch again in its order; None if reading was stopped."""
        needed: Counter[int] = Counter()
        for lane, n in order:
            needed[lane] += n
        found: dict[int, list[Message]] = {}
        for lane, n in needed.items():
            here, until = {lane: last[lane]}, {lane: after[lane]}
            found[lane] = [one for part in self._read(here, until, n) for one in part]
            if self._stopped.is_set():
                return None
            if len(found[lane]) != n or here != until:
                raise LostError(
                    f"{self}: {n} messages were answered after the last checkpoint, and "
                    f"{len(found[lane])} of them are left: to continue, give --from earliest"
                )
            last[lane] = after[lane]
        runs = {lane: iter(messages) for lane, messages in found.items()}
        return [next(runs[lane]) for lane, n in order for _ in range(n)]

    def order(self, records: Records) -> JSON:
        """Return the lanes that the records of a batch came from, as runs."""
        where = self._broker.where
        places = zip(records.numbers, records.places, strict=True)
        rejects = [(reject.record, reject.place) for reject in records.rejects]
        marks = sorted([*places, *rejects], key=itemgetter(0))
        lanes = [where(place.spot)[0] for _, place in marks]
        return [[lane, len(list(run))] for lane, run in groupby(lanes)]

    def repeat(self, batches: list[tuple[JSON, JSON]]) -> None:
        """Start the next reading with these batches, as `order` described them."""
        self._repeats = list(batches)

    def after(self, start: JSON, records: Records) -> JSON:
        """Return the position after records that came from `start` on."""
        last: dict[int, Any] = dict(enumerate(start["last"]))
        for place in [*records.places, *(reject.place for reject in records.rejects)]:
            lane, offset = self._broker.where(place.spot)
            if self._broker.is_after(offset, last[lane]):
                last[lane] = offset
        return {
            **start,
            "records": records.end(start["records"]),
            "last": [last[lane] for lane in range(len(last))],
        }

    def lag(self, position: JSON) -> dict[str, int]:
        """Return the number of messages after a position, per partition; empty without `follow`."""
        return self._lag.after(position) if self.follow else {}

    def committed(self, position: JSON) -> None:
        """Publish the position that is safely stored."""
        self._broker.commit(position["last"])

    def stop(self) -> None:
        """End `batches` soon."""
        self._stopped.set()

    def close(self) -> None:
        """Disconnect."""
        self._lag.close()
        self._broker.close()


def open_broker(
    names: Sequence[str], options: Options, schema: Schema | None = None, **how: Any
) -> BrokerSource:
    """Open a broker as a source; see ``sources.open_source``."""
    if len(names) > 1:
        raise ValueError(f"{', '.join(names)}: only one topic of a broker can be read: name one")
    address = address_of(names[0])
    return BrokerSource(driver(address).Messages(address), options, schema, **how)
