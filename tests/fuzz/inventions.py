"""Tables and arrays that were never in the corpus: columns of any type, parts that disagree."""

import io
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet


def random_values(rng: random.Random, n_rows: int) -> pa.Array:
    """Return a column of some type, with empty cells, strange numbers and doubled keys."""
    type_ = rng.choice(_TYPES)
    cells = [_cell(type_, rng) for _ in range(n_rows)]
    try:
        return pa.array(cells, type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError, TypeError, ValueError):
        return pa.nulls(n_rows, type_)


_NUMBERS = [0, 1, -1, 2, 3.5, float("nan"), float("inf"), 2**53 + 1, 2**31, 255, 1e308]
_STRINGS = ["", "a", "b c", "\0", "\ud7ff", "é", "\x1b[0m", "a" * 99, "1", "nan"]
_PLAIN = [pa.int8(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_()]
_PLAIN += [pa.string(), pa.large_string(), pa.binary(), pa.null(), pa.date32(), pa.timestamp("ns")]
_PLAIN += [pa.decimal128(20, 3), pa.time64("us"), pa.duration("s"), pa.binary(3), pa.string_view()]
_TYPES = [*_PLAIN, pa.dictionary(pa.int8(), pa.string()), pa.struct([("a", pa.int64())])]
_TYPES += [pa.list_(type_) for type_ in _PLAIN[:9]] + [
    pa.list_(pa.float32(), 2),
    pa.list_(pa.int64(), 0),
]
_TYPES += [pa.map_(pa.string(), type_) for type_ in _PLAIN[:9]]
_TYPES += [pa.map_(pa.int64(), pa.int64())]
_TYPES += [pa.list_(pa.list_(pa.float64())), pa.large_list(pa.float64()), pa.list_view(pa.int64())]


def _cell(type_: Any, rng: random.Random) -> Any:
    if rng.random() < 0.15:
        return None
    if pa.types.is_map(type_):
        return [
            (_cell(type_.key_type, rng), _cell(type_.item_type, rng))
            for _ in range(rng.randrange(4))
        ]
    if pa.types.is_fixed_size_list(type_):
        return [_cell(type_.value_type, rng) for _ in range(type_.list_size)]
    if pa.types.is_nested(type_) and not pa.types.is_struct(type_):
        return [_cell(type_.value_type, rng) for _ in range(rng.randrange(4))]
    if pa.types.is_struct(type_):
        return {"a": rng.choice([None, 1])}
    if pa.types.is_boolean(type_):
        return rng.random() < 0.5
    if pa.types.is_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return rng.choice([b"abc", b"\xff\xfe\0"])
    if pa.types.is_floating(type_):
        return np.float16(1.5) if pa.types.is_float16(type_) else float(rng.choice(_NUMBERS))
    if (
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_dictionary(type_)
    ):
        return rng.choice(_STRINGS)
    if pa.types.is_integer(type_):
        return rng.choice([0, 1, 2, 3, 100, -1])
    return rng.choice([0, 1, 1000])


def random_table(rng: random.Random) -> tuple[str, bytes]:
    """Return a Parquet or Arrow file of columns of any types, in pieces of any size."""
    n_rows = rng.choice([0, 1, 2, 3, 7])
    names = rng.sample(["id", "text", "counts", "v", "x", "y", "", "\n"], rng.randrange(1, 4))
    table = pa.table([random_values(rng, n_rows) for _ in names], names=names)
    sink, at_a_time = io.BytesIO(), rng.choice([1, 2, 5])
    if rng.random() < 0.4:
        try:
            codec = rng.choice(["none", "snappy", "gzip", "zstd"])
            pa.parquet.write_table(table, sink, row_group_size=at_a_time, compression=codec)
            return "made.parquet", sink.getvalue()
        except (pa.ArrowException, OSError):  # it has no such type
            sink = io.BytesIO()
    suffix, opener = rng.choice([("arrow", pa.ipc.new_file), ("arrows", pa.ipc.new_stream)])
    codec = rng.choice([None, None, "lz4", "zstd"])
    with opener(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table, max_chunksize=at_a_time)
    return f"made.{suffix}", sink.getvalue()


def random_arrays(rng: random.Random) -> tuple[str, bytes]:
    """Return a NumPy file: an array of some type, or a sparse matrix with parts that disagree."""
    sink = io.BytesIO()
    types = ["<i1", "<i8", ">i4", "<u8", "<f2", "<f4", "<f8", "?", "<c8", "<U3", "S3", "<M8[s]"]
    if rng.random() < 0.5:
        shape = tuple(rng.choice([0, 1, 2, 3]) for _ in range(rng.choice([0, 1, 2, 2, 2, 3])))
        n = int(np.prod(shape))
        values = np.array([rng.choice([0, 1, 2, 200, 2**62]) for _ in range(n)]).reshape(shape)
        with np.errstate(over="ignore"):
            array = values.astype("<i8" if rng.random() < 0.4 else rng.choice(types[:-1]))
        np.save(sink, np.asfortranarray(array) if rng.random() < 0.3 else array)
        return "made.npy", sink.getvalue()
    parts = {
        "format": np.array(rng.choice([b"csr", b"csr", b"csr", b"csc", b"coo"])),
        "shape": np.array([2, 3]),
        "data": np.array([1, 2, 3]),
        "indices": np.array([0, 2, 1], dtype=rng.choice(["<i4", "<i8"])),
        "indptr": np.array([0, 2, 3], dtype=rng.choice(["<i4", "<i8"])),
    }
    for _ in range(rng.randrange(3)):
        name = rng.choice(list(parts))
        part = parts[name]
        what = rng.randrange(4)
        if what == 0:
            del parts[name]
            break
        if what == 1 and part.dtype.kind in "iu" and part.size:
            part = part.copy()
            least, most = np.iinfo(part.dtype).min, np.iinfo(part.dtype).max
            part.flat[rng.randrange(part.size)] = rng.choice([least, max(-1, least), 0, 5, 7, most])
        elif what == 2:
            part = np.append(part, part.reshape(-1)[:1])
        else:
            names = types[:-1] if part.dtype.kind in "iu" else ["<U3", "S9"]
            with np.errstate(over="ignore"):
                part = part.astype(rng.choice(names))
        parts[name] = part
    (np.savez if rng.random() < 0.5 else np.savez_compressed)(sink, **parts)
    return "made.npz", sink.getvalue()
