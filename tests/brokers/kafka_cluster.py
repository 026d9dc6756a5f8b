"""Kafka over TCP: librdkafka's own cluster for tests, in a process that can be stopped or killed.

A topic has four partitions, and comes into being by its first message. About 5 MB of a partition
are kept. What it has is gone with its process.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager


def hold():
    """Be the cluster: say where it is, and live until nobody reads any more."""
    from confluent_kafka import Producer

    holder = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 0})
    (broker,) = holder.list_topics(timeout=60).brokers.values()
    print(f"{broker.host}:{broker.port}", flush=True)
    sys.stdin.read()


class Cluster:
    """A cluster that runs; `address` is where."""

    scheme = "kafka"
    columns = ()

    def __init__(self, process, address):
        self.process, self.address = process, address

    def url(self, topic):
        return f"kafka://{self.address}/{topic}"

    source_url = url

    def create(self, topic):
        """Leave it to the first message."""

    def stop(self):
        """Let it answer nobody."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def write(self, topic, values, *, partition=0, keys=None, headers=None, times=None):
        """Append messages; `partition` is one, or a function of the number of a message."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.address, "log_level": 0})
        for i, value in enumerate(values):
            producer.produce(
                topic,
                value,
                partition=partition(i) if callable(partition) else partition,
                key=None if keys is None else keys[i],
                headers=None if headers is None else headers[i],
                timestamp=0 if times is None else times[i],
            )
            producer.poll(0)
        assert producer.flush(300) == 0

    @contextmanager
    def consumer(self, group="readers"):
        from confluent_kafka import Consumer

        found = Consumer({"bootstrap.servers": self.address, "group.id": group, "log_level": 0})
        try:
            yield found
        finally:
            found.close()

    def watermarks(self, topic):
        """Return the first and the next offset of every partition."""
        from confluent_kafka import TopicPartition

        with self.consumer() as consumer:
            n = len(consumer.list_topics(topic, timeout=300).topics[topic].partitions)
            return [
                consumer.get_watermark_offsets(TopicPartition(topic, i), timeout=300)
                for i in range(n)
            ]

    def read(self, topic):
        """Return the key and the answer of all messages, partition by partition."""
        from confluent_kafka import TopicPartition

        found = []
        marks = self.watermarks(topic)
        with self.consumer() as consumer:
            for partition, (low, high) in enumerate(marks):
                consumer.assign([TopicPartition(topic, partition, low)])
                while low < high:
                    for message in consumer.consume(high - low, 0.2):
                        assert message.error() is None
                        found.append((message.key().decode(), json.loads(message.value())))
                        low = message.offset() + 1
        return found

    def committed(self, topic, group="bnpstream"):
        from confluent_kafka import TopicPartition

        with self.consumer(group) as consumer:
            parts = [TopicPartition(topic, i) for i in range(4)]
            return [part.offset for part in consumer.committed(parts, timeout=300)]


@contextmanager
def cluster():
    """Run a cluster."""
    process = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Cluster(process, process.stdout.readline().strip())
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def wait_for(condition, seconds=300, pause=0.05):
    """Wait until something is so."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "waited in vain"
        time.sleep(pause)
    return found


if __name__ == "__main__":
    os.setsid()
    hold()
