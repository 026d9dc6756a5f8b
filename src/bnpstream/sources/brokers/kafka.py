"""Kafka: all partitions of a topic, from offsets that the run stores; idempotent answers."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from bnpstream.sources.brokers.address import Address
from bnpstream.sources.brokers.broker import Answer, Bounds, Broker, DownError, Message, Outlet
from bnpstream.sources.protocol import JSON, LostError

CONFIG = "BNPSTREAM_KAFKA_CONFIG"
"""Environment variable that names a file of librdkafka settings, such as credentials."""
ANSWER_SECONDS = 5.0
"""Seconds allowed for a request."""
QUIET_SECONDS = 5.0
"""Seconds without a message after which the broker is asked whether it has any."""
BUFFER_KILOBYTES = 1 << 14
"""Most data that may wait to be read."""


def _client(kind: Any, address: Address, ours: dict[str, Any]) -> Any:
    """Return a client with our settings and those of the user's file."""
    settings = {"bootstrap.servers": address.hosts, "log_level": 0, **ours}
    path = os.environ.get(CONFIG)
    for line in Path(path).read_text().splitlines() if path else ():
        name, equals, value = line.partition("=")
        if equals and not name.lstrip().startswith("#"):
            settings[name.strip()] = value.strip()
    try:
        return kind(settings)
    except KafkaException as error:
        raise ValueError(
            f"{address}: {_reason(error)}: correct the file {path!r}, which {CONFIG} names"
        ) from error


class Messages(Broker):
    """Messages of a topic; a lane is a partition, an offset is Kafka's."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._topic = address.name
        self._consumer: Any = None
        self._until: dict[int, int] | None = None
        self._open: set[int] = set()
        """Partitions that have not ended."""
        self._next: dict[int, int] = {}
        """Offsets from which nothing has been delivered yet."""
        self._heard = 0.0
        self._vouched: list[TopicPartition] = []
        """Offsets to commit."""

    def connect(self) -> None:
        """Create a consumer, which connects by itself, and check that a broker is there."""
        if self._consumer is None:
            # The consumer joins no group; the name only serves to publish offsets.
            self._consumer = _client(
                Consumer,
                self.address,
                {
                    "group.id": self.address.settings["group"],
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "error",
                    "queued.max.messages.kbytes": BUFFER_KILOBYTES,
                },
            )
        self._metadata()

    def _metadata(self) -> Any:
        try:
            found = self._consumer.list_topics(self._topic, timeout=ANSWER_SECONDS)
        except KafkaException as error:
            raise DownError(_reason(error)) from error
        return found.topics[self._topic]

    def bounds(self) -> list[Bounds]:
        """Return the watermarks of all partitions."""
        topic = self._metadata()
        if topic.error is not None:
            if topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise LostError(f"{self.address}: there is no topic {self._topic!r}: create it")
            raise DownError(topic.error.str())
        return [self._watermarks(lane) for lane in range(len(topic.partitions))]

    def _watermarks(self, lane: int) -> Bounds:
        partition = TopicPartition(self._topic, lane)
        try:
            low, high = self._consumer.get_watermark_offsets(partition, timeout=ANSWER_SECONDS)
        except (KafkaException, TypeError) as error:  # it returns None on timeout
            raise DownError(_reason(error)) from error
        return Bounds(low - 1, high - 1)

    def seek(self, last: dict[int, JSON], until: dict[int, JSON] | None = None) -> None:
        """Assign partitions from these offsets on."""
        self._until = until
        self._next = {lane: at + 1 for lane, at in last.items()}
        self._open = {lane for lane, at in last.items() if until is None or at < until[lane]}
        self._consumer.assign(
            [TopicPartition(self._topic, lane, last[lane] + 1) for lane in sorted(self._open)]
        )
        self._heard = time.monotonic()

    def read(self, n: int, seconds: float) -> list[Message] | None:
        """Return messages that librdkafka has fetched."""
        if not self._open:
            return None
        self._commit()
        fetched = self._consumer.consume(1, seconds)
        if fetched and n > 1:
            fetched += self._consumer.consume(n - 1, 0)
        if fetched:
            self._heard = time.monotonic()
        elif time.monotonic() - self._heard > QUIET_SECONDS:
            if any(self._watermarks(lane).last >= self._next[lane] for lane in self._open):
                self.close()  # librdkafka may miss an assignment; another consumer fetches again
                raise DownError("it has messages, but does not deliver them")
            self._heard = time.monotonic()
        found = []
        for one in fetched:
            lane, offset, error = one.partition(), one.offset(), one.error()
            self._next[lane] = offset + (error is None)
            if error is not None:
                self._heed(error, lane, offset)
            elif lane in self._open:
                if self._until is not None and offset >= self._until[lane]:
                    self._open.discard(lane)
                if self._until is None or offset <= self._until[lane]:
                    found.append(self._message(one, lane, offset))
        return found

    def _heed(self, error: KafkaError, lane: int, offset: int) -> None:
        """Handle an event that came instead of a message."""
        if error.name() == "_PARTITION_EOF":
            if self._until is not None:  # the last offset need not be that of a message
                self._open.discard(lane)
            return
        if error.name() in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"):
            raise LostError(
                f"{self.address}: partition {lane} lost offset {offset} before it was read: "
                "increase the retention; to skip what is lost, give --resume and --from "
                "earliest"
            )
        if error.name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
            raise LostError(f"{self.address}: the topic is gone: {error.str()}")
        raise DownError(error.str())

    def _message(self, one: Any, lane: int, offset: int) -> Message:
        if not self.has_details:
            return Message(lane, offset, one.value())
        key, (kind, milliseconds) = one.key(), one.timestamp()
        headers = {name: _text(value) for name, value in one.headers() or () if value is not None}
        time_ = milliseconds / 1000.0 if kind else None
        return Message(
            lane, offset, one.value(), None if key is None else _text(key), time_, headers
        )

    def spot(self, lane: int, offset: Any) -> dict[str, JSON]:
        """Return topic, partition and offset."""
        return {"topic": self._topic, "partition": lane, "offset": offset}

    def commit(self, last: Sequence[JSON]) -> None:
        """Commit offsets for tools that show the lag; they are never read here."""
        # Left to the reading thread: a client used by two threads at once makes one of them wait.
        self._vouched = [TopicPartition(self._topic, lane, at + 1) for lane, at in enumerate(last)]

    def _commit(self) -> None:
        offsets, self._vouched = self._vouched, []
        if offsets:
            with suppress(KafkaException):
                self._consumer.commit(offsets=offsets, asynchronous=True)

    def close(self) -> None:
        """Release the partitions."""
        if self._consumer is not None:
            self._commit()
            # Closing waits for answers, for minutes if the broker is silent.
            closing = Thread(target=self._consumer.close, name="bnpstream-kafka", daemon=True)
            closing.start()
            closing.join(ANSWER_SECONDS)
            self._consumer = None


class Answers(Outlet):
    """Answers as keyed messages of a topic."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._producer: Any = None
        self._sending: Sequence[Answer] | None = None
        self._failed: list[KafkaError] = []

    def connect(self) -> None:
        """Create a producer, which connects by itself, and check that a broker is there."""
        if self._producer is None:
            self._producer = _client(
                Producer,
                self.address,
                {
                    "enable.idempotence": True,
                    "delivery.report.only.error": True,
                    "message.timeout.ms": 0,
                },
            )
        try:
            self._producer.list_topics(self.address.name, timeout=ANSWER_SECONDS)
        except KafkaException as error:
            raise DownError(_reason(error)) from error

    def send(self, answers: Sequence[Answer]) -> None:
        """Produce answers and wait for their delivery; answers under way are not sent again."""
        if answers is not self._sending:
            batch = [{"key": one.key, "value": one.line} for one in answers]
            self._producer.produce_batch(self.address.name, batch, on_delivery=self._note)
            self._sending = answers
        left = self._producer.flush(ANSWER_SECONDS)
        if self._failed:
            raise LostError(
                f"{self.address}: an answer was not delivered: {self._failed[0].str()}: correct "
                "that, then continue with --resume"
            )
        if left:
            raise DownError(f"{left} answers are not delivered yet")
        self._sending = None

    def _note(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self._failed.append(error)

    def close(self) -> None:
        """Close the producer; answers that could not be sent are dropped."""
        if self._producer is not None:
            self._producer.purge()
            self._producer = None


def _reason(error: BaseException) -> str:
    cause = error.args[0] if error.args else error
    return cause.str() if isinstance(cause, KafkaError) else str(cause)


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode(errors="backslashreplace")
