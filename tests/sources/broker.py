"""A message broker in memory: two partitions that forget, and a source that waits for more."""

from collections import defaultdict
from threading import Condition

import numpy as np

from bnpstream.sources import Place, Records, Reject, Schema, Source

SCHEMA = Schema("messages", "table", 1, ("size",), ("number",))


class Topic:
    """Messages in partitions, and what readers say of them.

    Attributes
    ----------
    messages : list of list of (float or None)
        By partition; None is a message that cannot be used.
    low : list of int
        Offset of the first message of every partition that is still there.
    committed : list
        What was told so, in order.
    on_commit : callable
        Called with a position when it is committed.
    """

    def __init__(self, n_partitions=2):
        self.messages = [[] for _ in range(n_partitions)]
        self.low = [0] * n_partitions
        self.ended = False
        self.committed, self.on_commit = [], lambda position: None
        self.n_readers = 0
        self.changed = Condition()

    def write(self, values):
        """Append messages, in turns."""
        with self.changed:
            for value in values:
                partition = min(self.messages, key=len)
                partition.append(value)
            self.changed.notify_all()

    def end(self):
        self.ended = True
        return self


TOPICS = defaultdict(Topic)


def open_broker(names, options, schema, *, follow):
    [name] = names
    return BrokerSource(name, options, follow)


class BrokerSource(Source):
    """Messages of a topic, partitions in turns."""

    def __init__(self, name, options, follow=False):
        self.name, self.options, self.schema, self.follow = name, options, SCHEMA, follow
        self.topic = TOPICS[name]
        self.stopped = self.closed = False

    def __str__(self):
        return self.name

    def identity(self):
        return {"paths": [self.name], "format": "messages", "cluster": "in memory"}

    def beginning(self):
        return {"records": sum(self.topic.low), "offsets": list(self.topic.low)}

    def check(self, position):
        offsets, low = position["offsets"], self.topic.low
        if len(offsets) != len(low):
            raise ValueError(
                f"the topic has {len(low)} partitions, and had {len(offsets)}: begin another run"
            )
        for partition, (offset, first) in enumerate(zip(offsets, low, strict=True)):
            if offset < first:
                raise ValueError(
                    f"partition {partition} begins at offset {first}, and the next to be read is "
                    f"{offset}: its head is lost: begin another run, and keep messages longer"
                )

    def batches(self, batch_rows=1024, start=None):
        position = self.beginning() if start is None else start
        self.check(position)
        self.stopped = False
        return self._batches(batch_rows, position)

    def _batches(self, batch_rows, position):
        self.topic.n_readers += 1
        try:
            while True:
                offsets = list(position["offsets"])
                with self.topic.changed:
                    self.topic.changed.wait_for(
                        lambda offsets=offsets: self.stopped or self.has(offsets) or self.is_over()
                    )
                    if self.stopped or not self.has(offsets):
                        return
                records = self.take(position["records"], offsets, batch_rows)
                position = self.after(position, records)
                yield records, position
        finally:
            self.topic.n_readers -= 1

    def has(self, offsets):
        partition = int(np.argmin(offsets))
        return offsets[partition] < len(self.topic.messages[partition])

    def is_over(self):
        return self.topic.ended and not self.follow

    def take(self, first, offsets, batch_rows):
        rows, numbers, ids, rejects, places = [], [], [], [], []
        for number in range(first, first + batch_rows):
            if not self.has(offsets):
                break
            partition = int(np.argmin(offsets))
            offset = offsets[partition]
            value = self.topic.messages[partition][offset]
            place = Place(self.name, spot={"partition": partition, "offset": offset})
            offsets[partition] += 1
            if value is None:
                rejects.append(Reject.at(place, number, "no number", "None"))
                continue
            rows.append([value])
            numbers.append(number)
            ids.append(f"{partition}-{offset}")
            places.append(place)
        table = np.array(rows, float).reshape(-1, 1)
        return Records(table, numbers, ids, rejects=rejects, places=places)

    def after(self, start, records):
        offsets = list(start["offsets"])
        for place in [*records.places, *(reject.place for reject in records.rejects)]:
            partition, offset = place.spot["partition"], place.spot["offset"]
            offsets[partition] = max(offsets[partition], offset + 1)
        return {"records": records.end(start["records"]), "offsets": offsets}

    def committed(self, position):
        self.topic.committed.append(position)
        self.topic.on_commit(position)

    def stop(self):
        with self.topic.changed:
            self.stopped = True
            self.topic.changed.notify_all()

    def close(self):
        self.closed = True
