"""Disks that are full or cannot be written to: a message, exit code 1, and nothing is lost."""

import os
import subprocess

import pytest
from killing import forked, write_feed

from bnpstream.datasets import find
from bnpstream.storage import read_checkpoint
from file_server import serving

MODEL = ("--hash-bits", "12", "--batch-rows", "64", "--checkpoint-rows", "100")


def mount(folder, *options):
    """Mount a small disk of its own, or skip where that is not allowed."""
    done = subprocess.run(["mount", "-t", "tmpfs", *options, "none", folder], capture_output=True)
    if done.returncode != 0:
        pytest.skip(f"no disk can be mounted here: {done.stderr.decode().strip()}")


@pytest.fixture
def disk(tmp_path):
    """Return a disk of 88 kB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk that is then filled")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount(folder, "-o", "size=88k")
    yield folder
    subprocess.run(["umount", folder], check=True)


def run(*arguments):
    process = forked(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def test_a_full_disk_leaves_the_last_checkpoint(disk, tmp_path):
    feed, out = tmp_path / "feed.jsonl", disk / "run"
    write_feed(feed, 2000, seed=2)
    failed = run("fit", feed, "--out", out, *MODEL)
    assert failed.returncode == 1
    message = failed.stderr.decode()
    assert "the disk is full: free some space, then continue with --resume" in message
    assert "Traceback" not in message
    rows = read_checkpoint(out).document["rows"]
    assert 0 < rows < 2000
    assert run("clusters", out).returncode == 0
    subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
    done = run("fit", feed, "--out", out, *MODEL, "--resume")
    assert done.returncode == 0, done.stderr
    assert read_checkpoint(out).document["position"]["records"] == 2000


def test_a_disk_that_cannot_be_written_to(disk, tmp_path):
    feed, out = tmp_path / "feed.jsonl", disk / "run"
    write_feed(feed, 150, seed=3)
    subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
    assert run("fit", feed, "--out", out, *MODEL).returncode == 0
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    for arguments in (("fit", feed, "--out", disk / "new"), ("fit", "--out", out, "--resume")):
        failed = run(*arguments)
        assert failed.returncode == 1
        assert "cannot be written to: change its permissions" in failed.stderr.decode()
    assert run("clusters", out, "--json").returncode == 0
    assert run("report", out, "--out", tmp_path / "page.html").returncode == 0


def test_a_download_goes_on_when_a_full_disk_has_room_again(disk, kos):
    files = {path.name: path.read_bytes() for path in find("kos").glob("*kos.txt*")}
    with serving(files=files) as served:
        fetch = ("datasets", "fetch", "kos", "--to", disk, "--from", served.url)
        failed = run(*fetch)
        assert failed.returncode == 1
        complaint = failed.stderr.decode()
        assert complaint.startswith(
            f"error: {disk / 'kos'}: the disk is full: free some space, then"
        )
        have = (disk / "kos" / "docword.kos.txt.gz.part").stat().st_size
        assert 0 < have < 88 * 1024
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        done = run(*fetch)
        assert done.returncode == 0, done.stderr
        assert served.requests[1][1] == f"bytes={have}-"
    assert {path.name: path.read_bytes() for path in (disk / "kos").iterdir()} == files
