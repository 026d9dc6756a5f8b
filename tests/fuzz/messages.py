"""Messages of brokers and bodies of requests, spoilt: each is a record or a reject, never an error.

``python messages.py CASES [SEED]`` checks so many.
"""

import json
import random
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
from mutations import CONTENTS, random_edits, spoil, spoil_lines
from readings import compared

from bnpstream.runs.options import ModelOptions, Pace
from bnpstream.runs.overview import Run
from bnpstream.runs.score import predict_records
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start
from bnpstream.serve.records import JsonRecords
from bnpstream.sources import Options
from bnpstream.sources.brokers.address import address_of
from bnpstream.sources.brokers.broker import Message
from bnpstream.sources.brokers.values import Values, schema_of_messages

BROKER: Any = SimpleNamespace(
    address=address_of("kafka://localhost/words"),
    spot=lambda lane, offset: {"partition": lane, "offset": offset},
)
FILES = [data for path, data in CONTENTS.items() if path.suffix in (".jsonl", ".txt", ".csv")]
STRINGS = ["", "a", "b c", "\0", "é", "\x1b[0m", "a" * 99, "1", "nan", "2026-11-18", "\u2028", "-1"]
NUMBERS = [0, 1, -1, 2, 3.5, 1e308, -1e308, 5e-324, 2**53 + 1, 2**63, 2**64 - 1, 1e999]


def random_value(rng: random.Random, depth: int = 0) -> Any:
    """Return any JSON value."""
    kind = rng.randrange(5 if depth > 3 else 7)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return rng.choice(NUMBERS)
    if kind < 5:
        return rng.choice(STRINGS)
    if kind == 5:
        return [random_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    names = ["id", "text", "counts", "v", "x", "y", "vector", *STRINGS[:4]]
    return {rng.choice(names): random_value(rng, depth + 1) for _ in range(rng.randrange(5))}


def random_message(rng: random.Random, offset: int) -> Message:
    """Return a message with any value, key, time and headers."""
    kind = rng.random()
    value: bytes | None = rng.choice([None, b"", b" \n", b"\xff", b"{", b"[" * 2000, b"nan"])
    if kind < 0.4:
        value = rng.choice(rng.choice(FILES).split(b"\n"))
        value = spoil(value, random_edits(rng)) if kind < 0.2 else spoil_lines(value, rng, b"a")
    elif kind < 0.8:
        value = json.dumps(random_value(rng)).encode()
    key, time = rng.choice([None, *STRINGS]), rng.choice([None, 0.0, -1.0, 1e300, float("nan")])
    headers = rng.choice([None, {}, {"t": rng.choice(STRINGS)}, {"t": "1e999"}])
    return Message(rng.randrange(2), offset, value, key, time, headers)


def check_messages(number: int) -> None:
    """Raise unless all messages are records or rejects, the same whatever the batches."""
    rng = random.Random(number)
    messages = [random_message(rng, i) for i in range(rng.randrange(1, 12))]
    said = {
        "format": rng.choice([None, None, "jsonl", "text", "raw"]),
        "id_field": rng.choice([None, None, "id", "@key", "@header.t", "@timestamp"]),
        "time_field": rng.choice([None, None, "@timestamp", "@header.t", "t"]),
        "vector_field": rng.choice([None, None, None, "v"]),
        "hash_bits": rng.choice([None, 8]),
    }
    options = Options(max_line_bytes=80, **said)
    try:
        schema = schema_of_messages(messages, options, "words", is_live=rng.random() < 0.5)
    except ValueError:
        return
    found = []
    for size in (len(messages), rng.randrange(1, 4)):
        values, batches = Values(BROKER, schema, options), []
        for at in range(0, len(messages), size):
            batches += compared(values.records(messages[at : at + size]))
        found.append(batches)
    assert [one[0] for one in found[0]] == list(range(len(messages)))
    assert found[0] == found[1]


def small_runs(folder: Path) -> list[Run]:
    """Return runs of texts, counts, vectors and tables."""
    rng = np.random.default_rng((96, 1))
    words = [f"w{j}" for j in range(12)]
    counts = rng.poisson(1, size=(60, 12)).tolist()
    rows: dict[str, list[dict[str, Any]]] = {
        "texts": [{"text": " ".join(rng.choice(words, 6))} for _ in range(60)],
        "counts": [{"counts": dict(zip(words, x, strict=True))} for x in counts],
        "vectors": [{"v": rng.normal(size=3).tolist()} for _ in range(60)],
        "table": [{"x": float(rng.normal()), "y": str(rng.choice(words[:2]))} for _ in range(60)],
    }
    runs = []
    for name, records in rows.items():
        source = folder / f"{name}.jsonl"
        source.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
        about = Options(vector_field="v" if name == "vectors" else None)
        feed = start(folder / name, RunOptions((str(source),), about, ModelOptions(prefix_rows=20)))
        try:
            assert feed.run(Pace(), Interrupts(), lambda status: None)
        finally:
            feed.close()
        runs.append(Run(folder / name))
    return runs


def check_request(number: int, runs: list[Run]) -> None:
    """Raise unless every record of a request is answered, and answers are sound JSON."""
    rng = random.Random(number)
    run = rng.choice(runs)
    reader = JsonRecords(run.schema)
    values = [random_value(rng) for _ in range(rng.randrange(1, 5))]
    if rng.random() < 0.7:
        values += [
            reader.example() | {rng.choice(["x", "y", "v", "text", "id"]): random_value(rng)}
        ]
    values = orjson.loads(orjson.dumps(values))
    answered = set()
    for part, predictions in predict_records(run, reader.records(values)):
        answered |= {one.record for one in part.rejects} | {one.record for one in predictions}
        for one in predictions:
            assert one.novelty == one.novelty, one
            assert 0.0 <= one.novelty <= 1.0 + 1e-9, one
    assert answered == set(range(len(values)))


def main(n_cases: int, seed: int) -> None:
    """Check cases; the first that goes wrong is an error that tells its number."""
    warnings.simplefilter("error")
    with TemporaryDirectory() as folder:
        runs = small_runs(Path(folder))
        for number in range(10**9 * seed, 10**9 * seed + n_cases):
            try:
                check_messages(number)
                if number % 10 == 0:
                    check_request(number, runs)
            except BaseException:
                print(f"case {number}", flush=True)
                raise
    print(f"{n_cases} messages and {-(-n_cases // 10)} requests, 0 bad")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
