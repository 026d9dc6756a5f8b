"""Small streams of every kind, the same on every machine: whole numbers and short decimals."""

import json
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, save_npz

N_HELD = 12
"""Rows after the stream, which are predicted and never learnt."""
LEVELS = ("red", "green", "blue", "grey", "black")


def _clusters(rng, n, n_clusters):
    """Return the cluster of every row; later ones appear later in the stream."""
    newest = 1 + np.minimum(np.arange(n) // 12, n_clusters - 1)
    return (rng.random(n) * newest).astype(int)


def _words(rng, z):
    peaks = np.random.default_rng(11).integers(0, 40, (64, 5))
    rows = np.zeros((z.size, 40), np.int64)
    for row, k in zip(rows, z.tolist(), strict=True):
        drawn = np.where(rng.random(14) < 0.85, peaks[k][rng.integers(0, 5, 14)], 0)
        noise = rng.integers(0, 40, 14)
        np.add.at(row, np.where(drawn > 0, drawn, noise), 1)
    return rows


def _wide(rng, z):
    """Return as many words, spread over so many columns that clusters keep theirs only."""
    narrow = csr_array(_words(rng, z))
    indices = 7 + 211 * narrow.indices
    return csr_array((narrow.data, indices, narrow.indptr), shape=(z.size, 9000))


def _real(rng, z):
    centres = np.random.default_rng(12).integers(-60, 60, (64, 3)) / 10.0
    noise = rng.integers(-900, 901, (3, z.size, 3)).sum(axis=0) / 1000.0
    return np.round(centres[z] + noise, 3)


def _counts(rng, z):
    rates = np.random.default_rng(13).integers(1, 25, (64, 3))
    return rng.binomial(30, rates[z] / 30.0).astype(float)


def _truths(rng, z):
    shares = np.random.default_rng(14).choice([0.04, 0.5, 0.96], (64, 4))
    return (rng.random((z.size, 4)) < shares[z]).astype(float)


def _labels(rng, z):
    likely = np.random.default_rng(15).integers(0, 4, (64, 3))
    # The last label appears in a few rows only, perhaps after the first rows.
    odd = rng.integers(0, 5, (z.size, 3))
    chosen = np.where(rng.random((z.size, 3)) < 0.8, likely[z], odd)
    return np.array(LEVELS, dtype=object)[chosen]


def _mixed(rng, z):
    parts = [_real(rng, z)[:, :2], _counts(rng, z)[:, :1], _truths(rng, z)[:, :1]]
    rows = np.hstack([np.asarray(part, dtype=object) for part in (*parts, _labels(rng, z)[:, :1])])
    rows[rng.random(z.size) < 0.1, 0] = None
    return rows


def _holes(rng, z):
    rows = _real(rng, z)
    rows[rng.random(rows.shape) < 0.15] = np.nan
    return rows


def _documents(rng, z):
    """Return counts of words; every cluster brings new words as long as the stream lasts."""
    found = []
    for i, k in enumerate(z.tolist()):
        known = 6 + i // 25
        words = rng.integers(0, known, 9)
        common = rng.integers(0, 8, 3)
        names = [f"k{k}w{j}" for j in words.tolist()] + [f"all{j}" for j in common.tolist()]
        found.append({name: names.count(name) for name in names})
    return found


DRAWN = {
    "words": _words,
    "wide": _wide,
    "real": _real,
    "holes": _holes,
    "counts": _counts,
    "truths": _truths,
    "labels": _labels,
    "mixed": _mixed,
    "documents": _documents,
}


def stream(kind, n_rows, seed, n_clusters=9):
    """Return the rows of a stream and the rows held out after it."""
    rng = np.random.default_rng((seed, n_rows))
    rows = DRAWN[kind](rng, _clusters(rng, n_rows + N_HELD, n_clusters))
    if kind == "words":
        rows = csr_array(rows)
    return rows[:n_rows], rows[n_rows:]


def weights(n_rows, seed):
    """Return weights, some of them zero."""
    return np.random.default_rng((seed, 1)).choice([0.0, 0.5, 1.0, 1.0, 2.0, 3.25], n_rows)


def times(n_rows, seed):
    """Return times, some of them late."""
    rng = np.random.default_rng((seed, 2))
    return np.cumsum(rng.integers(0, 5, n_rows)) - 3.0 * (rng.random(n_rows) < 0.1)


def records(rows):
    """Return rows of cells as dicts without what is missing."""
    return [
        {f"x{j}": cell for j, cell in enumerate(row) if cell is not None and cell == cell}
        for row in (rows if isinstance(rows, list) else rows.tolist())
    ]


# --- files ----------------------------------------------------------------------------------------


def _cell(cell):
    return "" if cell is None or cell != cell else str(cell)


def _csv(rows, stamps):
    names = [f"x{j}" for j in range(rows.shape[1])] + ([] if stamps is None else ["t"])
    lines = [",".join(names)]
    for i, row in enumerate(rows.tolist()):
        cells = [*map(_cell, row), *([] if stamps is None else [str(stamps[i])])]
        lines.append(",".join(cells))
    return lines


def _jsonl(rows, stamps):
    made = [{"words": row} for row in rows] if isinstance(rows, list) else records(rows)
    if stamps is not None:
        made = [record | {"t": float(t)} for record, t in zip(made, stamps, strict=True)]
    return [json.dumps(record) for record in made]


def _text(rows, stamps):
    return [" ".join(word for word, n in row.items() for _ in range(n)) for row in rows]


def _pairs(row, first):
    return [f"{j + first}:{row[j]}" for j in row.nonzero()[0]]


def _svmlight(rows, stamps):
    return [" ".join(["0", *_pairs(row, 1)]) for row in rows.toarray()]


def _lda_c(rows, stamps):
    return [" ".join([str((row > 0).sum()), *_pairs(row, 0)]) for row in rows.toarray()]


def _uci(rows, stamps):
    dense = rows.toarray()
    entries = [f"{i + 1} {j + 1} {dense[i, j]}" for i, j in zip(*dense.nonzero(), strict=True)]
    return [*map(str, dense.shape), str(len(entries)), *entries]


LINES = {
    "csv": _csv,
    "jsonl": _jsonl,
    "text": _text,
    "svmlight": _svmlight,
    "lda-c": _lda_c,
    "uci": _uci,
}
BAD = {
    "csv": "1,2,3,4,5,6,7,8,9",
    "jsonl": "no record",
    "svmlight": "0 no:pair",
    "lda-c": "1 no:pair",
}
"""A line that is no record."""


def write(path: Path, form, rows, stamps=None, bad_row=None):
    """Write rows to a file; a bad row is no record."""
    if form == "npz":
        save_npz(path, rows)
        return
    lines = LINES[form](rows, stamps)
    if bad_row is not None:
        lines[bad_row + (form == "csv")] = BAD[form]
    path.write_text("\n".join([*lines, ""]))
