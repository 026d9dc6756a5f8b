"""A process between two topics is killed at any moment: the same state, one answer for a key."""

import json
import random
import signal
import subprocess
import sys

import pytest
from feeds import OFTEN, QUICK, bits, check_answers, rows

pytest.importorskip("confluent_kafka", reason="no Kafka client: pip install 'bnpstream[kafka]'")
from kafka_cluster import cluster, wait_for

ROWS = 600


def kill_often(arguments, n_kills, seed, order):
    """Run a command, kill it at random moments once it answers, and let it end at last."""
    rng = random.Random(seed)
    for kill in range(n_kills + 1):
        before = written(order)
        process = subprocess.Popen(arguments, stderr=subprocess.PIPE)
        if kill < n_kills:
            wait_for(lambda p=process, b=before: written(order) != b or p.poll() is not None)
            try:
                process.wait(rng.uniform(0.0, 0.5))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                continue
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
        return kill
    return n_kills


def written(path):
    """Return when a file was written to."""
    return path.stat().st_mtime_ns if path.exists() else None


def check_kills(own, folder, topic, n_kills, seed):
    """Kill a stream from a topic to another; return how often."""
    out, to = folder / f"run-{topic}", f"told-{topic}"
    arguments = [sys.executable, "-m", "bnpstream", "stream", own.url(topic)]
    arguments += ["--to", own.url(to), "--out", str(out), "--resume", *QUICK, *OFTEN]
    found = kill_often(arguments, n_kills, seed, out / "order.jsonl")
    pairs = [(key.decode(), json.loads(value)) for key, value in own.read(to)]
    answers = check_answers(pairs, ROWS)
    assert {answer["id"] for answer in answers.values()} == {f"d{i}" for i in range(ROWS)}
    return found, len(pairs)


def test_four_partitions_give_one_answer_for_a_key(tmp_path):
    with cluster() as own:
        own.write("four", rows(ROWS), partition=lambda i: i % 4)
        killed, sent = check_kills(own, tmp_path, "four", n_kills=3, seed=1)
        assert killed > 0
        assert sent > ROWS  # some were repeated


@pytest.mark.slow
def test_a_hundred_kills(tmp_path):
    """With one partition, the bits are those of a file too."""
    feed = tmp_path / "feed.jsonl"
    feed.write_bytes(b"\n".join(rows(ROWS)) + b"\n")
    whole = [sys.executable, "-m", "bnpstream", "fit", str(feed), "--out", str(tmp_path / "file")]
    subprocess.run([*whole, *QUICK], check=True, stdout=subprocess.DEVNULL)
    kills = seed = 0
    with cluster() as own:
        while kills < 100:
            seed += 1
            own.write(f"one{seed}", rows(ROWS))
            own.write(f"four{seed}", rows(ROWS), partition=lambda i: i % 4)
            for topic in (f"one{seed}", f"four{seed}"):
                killed, sent = check_kills(own, tmp_path, topic, n_kills=5, seed=seed)
                kills += killed
                print(f"{topic}: {killed} kills, {sent} answers sent for {ROWS} records")
            assert bits(tmp_path / f"run-one{seed}") == bits(tmp_path / "file")
    print(f"{kills} kills")
