"""``bnpstream fit --dask``: runs that worker processes share."""

import gzip
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bnpstream.distributed import clients
from bnpstream.distributed.feed import SharedFeed
from bnpstream.runs.feed import TooManyRejectsError
from bnpstream.runs.options import ModelOptions, Pace
from bnpstream.runs.overview import Run
from bnpstream.runs.sharing import SharingOptions
from bnpstream.runs.signals import Interrupts
from bnpstream.runs.start import RunOptions, start
from bnpstream.sources import Options
from bnpstream.storage import has_checkpoint, read_checkpoint, read_tensors
from commands import run, run_json

N_FILES, N_RECORDS, N_FIRST = 40, 60, 100
MODEL = ("--hash-bits", 8, "--prefix-rows", N_FIRST)
PLACES = ("seconds", "marks", "position", "partitions")
"""What a run that is shared out says otherwise: time, and how far it is."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return files of texts about ten topics, in which some records are broken."""
    folder, rng = tmp_path_factory.mktemp("files"), random.Random(9)
    for number in range(N_FILES):
        lines = []
        for _ in range(N_RECORDS):
            topic, length = 12 * rng.randrange(10), rng.randrange(6, 25)
            text = " ".join(f"w{topic + rng.randrange(12)}" for _ in range(length))
            record = json.dumps({"text": text})
            lines.append(record if rng.random() > 0.02 else record[:-2])
        (folder / f"part-{number:02}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def address(client):
    return client.scheduler.address


@pytest.fixture(scope="module")
def shared(files, address, tmp_path_factory):
    """Return a run that nothing disturbed."""
    out = tmp_path_factory.mktemp("shared") / "run"
    run("fit", pattern(files), "--out", out, *MODEL, "--dask", address, "-q")
    return out


def pattern(files):
    return files / "*.jsonl"


def state(folder):
    """Return what a run has learnt and noted, without when and where.

    Topics are left out: workers keep no sample of rows, so these are found from clusters alone. So
    are the log predictives of the last rows, which only the worker that absorbed them knows.
    """
    tensors = read_tensors(folder / "state.safetensors")
    document = {name: x for name, x in tensors.document.items() if name not in PLACES}
    left_out = ("topics", "arrivals", "n_arrivals")
    stream = {name: x for name, x in document["stream"].items() if not name.startswith(left_out)}
    arrays = {name: array.tobytes() for name, array in tensors.arrays.items()}
    arrays = {name: x for name, x in arrays.items() if not name.startswith(left_out)}
    lineage = (folder / "lineage.jsonl").read_bytes().splitlines()
    clusters = [line for line in lineage if b'"level":"topic"' not in line.replace(b": ", b":")]
    return document | {"stream": stream}, arrays, clusters, (folder / "rejects.jsonl").read_bytes()


def rejects_of(folder):
    return [json.loads(line) for line in (folder / "rejects.jsonl").read_text().splitlines()]


def partitions(folder):
    return read_checkpoint(folder).document["partitions"]


def started(*arguments, **environment):
    """Return a process of the command line, in a group of its own as a terminal makes it."""
    return subprocess.Popen(
        [sys.executable, "-m", "bnpstream", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        start_new_session=True,
        text=True,
    )


def wait_for_checkpoint(folder, process):
    """Wait for one after the head of the stream, which is absorbed partition by partition."""
    deadline = time.monotonic() + 300
    while not has_checkpoint(folder) or partitions(folder)["done"] < 5:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_without_staleness_it_is_the_run_of_one_process(files, address, tmp_path):
    many, one, budget = tmp_path / "many", tmp_path / "one", ("--max-clusters", 8)
    run("fit", pattern(files), "--out", one, *MODEL, *budget)
    given = ("--out", many, *MODEL, *budget, "--dask", address, "--staleness", 0)
    summary = run_json("fit", pattern(files), *given)
    assert state(many) == state(one)
    assert b"merge" in (one / "lineage.jsonl").read_bytes()
    assert summary["rejects"] > 0
    assert summary["dask"]["partitions"] == N_FILES
    assert summary["dask"]["scheduler"] == address
    assert summary["dask"]["dashboard"].startswith("http://")


def test_texts_whose_vocabulary_grows(files, address, tmp_path):
    given = ("fit", files / "part-0[0-4].jsonl", "--prefix-rows", N_FIRST)
    run(*given, "--out", tmp_path / "one")
    run(*given, "--out", tmp_path / "many", "--dask", address, "--staleness", 0, "-q")
    assert state(tmp_path / "many") == state(tmp_path / "one")


def run_in_blocks(client, folder, options):
    """Run a feed of one file in blocks as long as one of the files."""
    feed = start(folder, options)
    feed.sharing = replace(feed.sharing, part_rows=N_RECORDS)
    with feed.writer:
        assert SharedFeed(client, feed).run(Pace(), Interrupts(), lambda status: None)
    return feed


def test_one_file_is_cut_by_the_driver(files, shared, client, tmp_path):
    whole = tmp_path / "all.jsonl"
    whole.write_bytes(b"".join(path.read_bytes() for path in sorted(files.glob("*.jsonl"))))
    options = RunOptions(
        (str(whole),),
        Options(hash_bits=8),
        ModelOptions(prefix_rows=N_FIRST),
        sharing=SharingOptions(),
    )
    feed = run_in_blocks(client, tmp_path / "run", options)
    assert feed.partitions.done == N_FILES
    assert feed.position["offset"] == whole.stat().st_size
    found, expected = state(tmp_path / "run"), state(shared)
    assert found[:2] == expected[:2]
    assert found[2][0] == expected[2][0]
    rejects = rejects_of(tmp_path / "run")
    assert rejects
    assert all(reject["line"] == reject["record"] + 1 for reject in rejects)


@pytest.mark.parametrize("n_files", [1, 2])
def test_records_that_the_model_refuses_have_their_place(client, tmp_path, n_files):
    rng = np.random.default_rng((9, n_files))
    counts = rng.poisson(5.0, size=200).astype(float)
    counts[[10, 150]] += 0.5
    for number, part in enumerate(np.split(counts, n_files)):
        cells = "".join(f"{x:g}\n" for x in part)
        (tmp_path / f"{number}.csv").write_text(f"x\n{cells}")
    model = ModelOptions(likelihood="poisson", prefix_rows=N_FIRST, engine="reference")
    options = RunOptions((str(tmp_path / "*.csv"),), model=model)
    feed = start(tmp_path / "one", options)
    with feed.writer:
        feed.run(Pace(), Interrupts(), lambda status: None)
    run_in_blocks(client, tmp_path / "many", replace(options, sharing=SharingOptions(0)))
    for name in ("one", "many"):
        places = [(Path(one["source"]).name, one["line"]) for one in rejects_of(tmp_path / name)]
        assert places == [("0.csv", 12), ("0.csv", 152) if n_files == 1 else ("1.csv", 52)]
    assert state(tmp_path / "many")[:2] == state(tmp_path / "one")[:2]


def test_the_journal_is_that_of_the_stream(files, shared):
    found = Run(shared)
    journal, model = found.journal, found.model
    text = "".join(path.read_text() for path in sorted(files.glob("*.jsonl")))
    lines = text.splitlines()
    sound = [line for line in lines if line.endswith("}")]
    assert journal.trend.n_rows == model.stream.n_rows == len(sound)
    np.testing.assert_allclose(journal.trend.evidence.sum(), model.log_evidence)
    assert journal.trend.clusters[journal.trend.n_bins - 1] == model.n_clusters
    ids = set(model.posterior.ids.tolist())
    assert sum(sum(journal.trend.counts(id)) for id in ids) == len(sound)
    assert journal.n_tokens == sum(len(json.loads(line)["text"].split()) for line in sound)
    events = [event for event in found.events() if event.level == "cluster"]
    births = [event.id for event in events if event.kind == "birth"]
    assert sorted(births) == list(range(model.posterior.state.next_id))
    assert set(journal.exemplars.ids()) <= ids
    for id in journal.exemplars.ids():
        for one in journal.exemplars.of(id):
            text = json.loads(lines[one.record])["text"]
            assert one.id == one.record
            assert text.startswith(one.excerpt[:60])


def test_the_journal_follows_clusters_that_make_room(files, address, tmp_path):
    given = ("--out", tmp_path / "run", *MODEL, "--max-clusters", 6, "--dask", address)
    run("fit", pattern(files), *given, "-q")
    found = Run(tmp_path / "run")
    ids = found.model.posterior.ids.tolist()
    assert len(ids) <= 6
    assert {event.kind for event in found.events()} >= {"birth", "merge"}
    assert set(found.journal.exemplars.ids()) <= set(ids)
    counted = sum(sum(found.journal.trend.counts(id)) for id in ids)
    retired = sum(event.kind == "retire" for event in found.events())
    assert counted == found.model.stream.n_rows if retired == 0 else counted > 0


def test_killed_and_resumed(files, shared, address, tmp_path):
    given = ("fit", pattern(files), "--out", tmp_path, *MODEL, "--checkpoint-seconds", 0, "-q")
    process = started(*given, "--dask", address)
    wait_for_checkpoint(tmp_path, process)
    process.kill()
    process.communicate()
    done = partitions(tmp_path)["done"]
    assert 0 < done < N_FILES
    summary = run_json(*given, "--dask", address, "--resume")
    assert summary["dask"]["partitions"] == N_FILES
    assert state(tmp_path) == state(shared)
    assert partitions(tmp_path) == {"done": N_FILES, "total": N_FILES}


def test_interrupted_and_resumed_by_other_workers(files, shared, address, tmp_path):
    given = ("fit", pattern(files), "--out", tmp_path, *MODEL)
    patient = ("--log-json", "--checkpoint-seconds", 1000)
    process = started(*given, "--dask", "local:1", *patient)
    assert "schema" in json.loads(process.stderr.readline())
    assert process.stderr.readline().startswith("dashboard: http://")
    first = json.loads(process.stderr.readline())
    assert first["partitions"]["total"] == N_FILES
    assert first["fraction"] == first["partitions"]["done"] / N_FILES
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: workers too
    try:
        printed, complaints = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 130, complaints
    assert f"continue with --out {tmp_path} --dask local:1 --resume" in printed
    assert 0 < partitions(tmp_path)["done"] < N_FILES
    run(*given, "--dask", address, "--resume")
    assert state(tmp_path) == state(shared)


CLUSTER = """
import time
from distributed import LocalCluster
if __name__ == "__main__":
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=1, **options) as cluster:
        print(cluster.scheduler_address, flush=True)
        time.sleep(600)
"""


def test_the_scheduler_is_killed(files, shared, address, tmp_path):
    program, out = tmp_path / "cluster.py", tmp_path / "run"
    program.write_text(CLUSTER)
    cluster = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True)
    given = ("fit", pattern(files), "--out", out, *MODEL, "--checkpoint-seconds", 0, "-q")
    process = started(
        *given,
        "--dask",
        cluster.stdout.readline().strip(),
        DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="1s",
    )
    try:
        wait_for_checkpoint(out, process)
    finally:
        cluster.kill()
        cluster.communicate()
    complaints = process.communicate()[1]
    assert process.returncode == 1
    assert complaints.startswith("error: the scheduler can no longer be reached")
    assert "continue with --resume" in complaints
    assert complaints.count("\n") == 1
    assert partitions(out)["done"] < N_FILES
    run(*given, "--dask", address, "--resume")
    assert state(out) == state(shared)


@pytest.fixture
def damaged(files, tmp_path):
    """Return a pattern of six files, of which the third is cut off."""
    folder = tmp_path / "files"
    folder.mkdir()
    for path in sorted(files.glob("*.jsonl"))[:6]:
        (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    broken = folder / "part-02.jsonl.gz"
    broken.write_bytes(broken.read_bytes()[:-100])
    return folder / "*.gz", broken


def test_a_file_that_is_cut_off_is_rejected(damaged, address, tmp_path):
    source, broken = damaged
    given = ("fit", source, *MODEL, "--dask", address)
    summary = run_json(*given, "--out", tmp_path / "run")
    rejects = rejects_of(tmp_path / "run")
    (whole,) = [one for one in rejects if one["source"] == str(broken) and one["line"] == 1]
    assert "the partition cannot be read" in whole["reason"]
    assert summary["dask"]["unread"] == [str(broken)]
    assert summary["rejects"] == len(rejects)
    assert summary["rows"] == 5 * N_RECORDS - (len(rejects) - 1)
    assert "1 partitions could not be read" in run(*given, "--out", tmp_path / "again")
    message = run(*given, "--out", tmp_path / "strict", "--strict", code=1)
    assert "none may be invalid" in message


def test_a_file_that_has_vanished_is_rejected(damaged, client, tmp_path):
    source, broken = damaged
    options = RunOptions((str(source),), Options(hash_bits=8), sharing=SharingOptions())
    feed = start(tmp_path / "run", options)
    broken.unlink()
    work = SharedFeed(client, feed)
    with feed.writer:
        assert work.run(Pace(), Interrupts(), lambda status: None)
    assert work.unread == [str(broken)]
    assert any("no such file" in reason for reason in feed.journal.reasons)
    assert feed.n_rows == feed.model.stream.n_rows == 5 * N_RECORDS - feed.journal.n_rejects + 1


def test_rejects_that_are_too_many(damaged, client):
    options = RunOptions((str(damaged[0]),), Options(hash_bits=8), sharing=SharingOptions())
    work = SharedFeed(client, start(None, options))
    with pytest.raises(TooManyRejectsError, match="at most 1 may be invalid: correct the source"):
        work.run(Pace(max_rejects=1), Interrupts(), lambda status: None)


def test_a_parquet_file_is_cut_at_its_row_groups(address, tmp_path):
    rng = random.Random(4)
    texts = [f"w{rng.randrange(9)} " * 5 for _ in range(400)]
    table = pa.table({"text": texts})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=50)
    given = ("fit", tmp_path / "rows.parquet", "--text-field", "text", *MODEL)
    run(*given, "--out", tmp_path / "one")
    more = ("--out", tmp_path / "many", "--dask", address, "--staleness", 0)
    assert run_json(*given, *more)["dask"]["partitions"] == 8
    assert state(tmp_path / "many") == state(tmp_path / "one")
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=40)
    message = run(*given, *more, "--resume", code=1)
    assert "has 10 partitions, but had 8 when the run was saved" in message


def test_what_reads_a_run_reads_this_one(files, shared, tmp_path):
    held_out = files / "part-00.jsonl"
    assert "clusters" in run("clusters", shared)
    largest = run_json("clusters", shared)["clusters"][0]
    assert largest["exemplars"]
    assert sum(largest["trend"]) > 0
    assert run_json("evaluate", shared, held_out)["documents"] > 0
    assert len(run("predict", shared, held_out).splitlines()) > N_RECORDS // 2
    assert "birth" in run("lineage", shared)
    run("report", shared, "--out", tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_nobody_listens(files, tmp_path, monkeypatch):
    monkeypatch.setattr(clients, "PATIENCE", 0.5)
    with socket.socket() as taken:  # bound, but it listens to nobody
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        given = ("fit", pattern(files), "--out", tmp_path / "run", "--dask", address)
        assert f"no Dask scheduler answers at {address}" in run(*given, code=1)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-", "--dask", "local:2"), "--dask needs files, and - is standard input"),
        (("FILES", "--dask", "local:2", "--follow"), "--follow waits for them to grow"),
        (("FILES", "--block-rows", 9), "--block-rows needs --jobs 2 or more: give both"),
        (("FILES", "--dask", "local:2", "--jobs", 2), "give one or the other"),
        (("FILES", "--dask", "ADDRESS"), "give --hash-bits 18 or"),
        (("FILES", "--dask", "ADDRESS", *MODEL, "--revisit", 10), "or give --staleness 0"),
        (("FILES", "--dask", "ADDRESS", *MODEL, "--passes", 2), "leave out --passes"),
    ],
)
def test_refused_before_anything_is_written(files, address, tmp_path, arguments, message):
    stands_for = {"FILES": pattern(files), "ADDRESS": address}
    arguments = [stands_for.get(one, one) for one in arguments]
    said = run("fit", *arguments, "--out", tmp_path / "run", code=2)
    assert message in " ".join(said.replace("│", " ").split())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "was started with --dask: give it again"),
        (("--dask", "ADDRESS", "--staleness", 3), "--staleness 3: this run was started with 1"),
    ],
)
def test_other_settings_are_refused(files, shared, address, more, message):
    more = [address if one == "ADDRESS" else one for one in more]
    assert message in run("fit", "--out", shared, "--resume", *more, code=1)


def test_a_run_of_one_process_stays_one(files, address, tmp_path):
    given = ("fit", files / "part-00.jsonl", "--out", tmp_path / "run", *MODEL)
    run(*given)
    assert "was started without --dask" in run(*given, "--dask", address, "--resume", code=1)


def test_dask_is_imported_when_it_is_asked_for(files):
    program = (
        "import sys; sys.modules['distributed'] = None\n"
        "import bnpstream.cli.fit\n"
        "assert 'dask' not in sys.modules\n"
        "from bnpstream.cli import app; app()"
    )
    arguments = ["fit", str(files / "part-00.jsonl"), "--dask", "local:2"]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert "pip install 'bnpstream[dask]'" in done.stderr
