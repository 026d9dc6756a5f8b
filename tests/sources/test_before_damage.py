"""Packed files that break off: whole lines before the damage come first, whatever the batches."""

import gzip

import pytest
import zstandard
from feeding import records_of

from bnpstream.sources import open_source

CONTENT = {
    "a.csv": "note,size\n" + "".join(f"w{i},{i}\n" for i in range(4000)),
    "a.jsonl": "".join(f'{{"text": "word{i} rain"}}\n' for i in range(4000)),
    "a.txt": "".join(f"word{i} rain\n" for i in range(4000)),
}


@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_what_stands_before_the_damage_comes_first(tmp_path, name, pack):
    data = CONTENT[name].encode()
    path = tmp_path / name
    parts = [pack(data[at : at + 1000]) for at in range(0, len(data), 1000)]
    path.write_bytes(b"".join(parts)[: -len(parts[-1]) // 2])
    found = {}
    for batch_rows in (1, 7, 500, 100_000):
        batches, found[batch_rows] = open_source(str(path)).batches(batch_rows), []
        with pytest.raises(ValueError, match=f"{path}: .*truncated"):
            found[batch_rows].extend(records_of(batch) for batch, _ in batches)
        found[batch_rows] = [record for batch in found[batch_rows] for record in batch]
    assert len(found[1]) > 3800
    assert all(records == found[1] for records in found.values())
