"""Damage after the first rows does not keep a table from being understood."""

import pyarrow as pa
import pytest

from bnpstream.sources import open_source


def test_rows_before_damage_are_delivered_from_a_table_of_labels(tmp_path):
    table = pa.table({"size": [1.0, 2.0, 3.0, 4.0], "kind": ["x", "y", "x", "y"]})
    path = tmp_path / "a.arrows"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 60])
    source, found = open_source(str(path)), []
    assert source.schema.names == ("size", "kind")
    with pytest.raises(ValueError, match=r"a\.arrows: damaged"):
        found.extend(len(batch) for batch, _ in source.batches())
    assert found == [2]
