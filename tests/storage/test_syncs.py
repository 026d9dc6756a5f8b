"""Names that a run vouches for are on the disk before it says so."""

import os
from pathlib import Path

import pytest

from bnpstream.storage import RunWriter
from bnpstream.storage.order import Ordered, OrderLog


@pytest.fixture
def synced(monkeypatch):
    """Return the names of what was synced so far."""
    found, fsync = [], os.fsync

    def note(handle):
        found.append(Path(f"/proc/self/fd/{handle}").readlink())
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    return found


def test_a_new_run_has_its_folders_on_the_disk(tmp_path, synced):
    folder = tmp_path / "runs" / "today" / "run"
    RunWriter.create(folder, {}).close()
    assert {folder, folder.parent, folder.parent.parent, tmp_path} <= set(synced)


def test_a_rotated_order_has_its_name_on_the_disk(tmp_path, synced):
    log = OrderLog(tmp_path / "order.jsonl")
    log.append(Ordered(0, [1], 5))
    log.rotate(0)
    log.close()
    assert synced[-1] == tmp_path
