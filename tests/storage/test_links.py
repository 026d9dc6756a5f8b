"""Links in a run directory are not followed: what they lead to is somebody else's."""

import os
import stat

import pytest

from bnpstream.storage import RunError
from bnpstream.storage.directory import LOGS, RunWriter
from bnpstream.storage.files import write_atomically, write_json
from bnpstream.storage.logs import JsonLines, Mark

NAMES = ["lock", *(f"{name}.jsonl" for name in LOGS)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("there", [True, False])
def test_what_a_link_leads_to_stays_as_it_is(tmp_path, name, there):
    folder, target = tmp_path / "run", tmp_path / "target"
    folder.mkdir()
    if there:
        target.write_text("precious\n")
    (folder / name).symlink_to(target)
    with pytest.raises(RunError, match=f"{name}: is a link, .*remove it"):
        RunWriter(folder, {})
    assert target.exists() == there
    if there:
        assert target.read_text() == "precious\n"


def test_a_log_is_cut_through_no_link(tmp_path):
    target = tmp_path / "target"
    target.write_text("precious\n" * 100)
    (tmp_path / "trace.jsonl").symlink_to(target)
    with pytest.raises(RunError, match="is a link"):
        JsonLines(tmp_path / "trace.jsonl", Mark(0, 3))
    assert target.read_text() == "precious\n" * 100


def test_names_of_files_that_are_being_written_cannot_be_guessed(tmp_path):
    seen = []
    for _ in range(2):
        write_atomically(tmp_path / "a", lambda path: (seen.append(path.name), path.touch()))
    assert seen[0] != seen[1]
    assert str(os.getpid()) not in seen[0].split(".")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_permissions_follow_the_mask_and_folders_keep_theirs(tmp_path):
    tmp_path.chmod(0o2770)
    before, mask = stat.S_IMODE(tmp_path.stat().st_mode), os.umask(0o027)
    try:
        write_json(tmp_path / "a.json", {})
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o640
    assert stat.S_IMODE(tmp_path.stat().st_mode) == before
