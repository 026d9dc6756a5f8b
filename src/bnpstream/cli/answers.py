"""Answers of ``stream``: one line of JSON per record.

Lines are assembled from columns of JSON values, each column written in one go. A dict and a call
per record would take as long as absorbing a short text.
"""

from typing import Any

import numpy as np

from bnpstream.cli.output import escaped_controls
from bnpstream.runs.mixture import Mixture
from bnpstream.sources import Records

ALTERNATIVES = 3


def answer_lines(records: Records, model: Mixture) -> bytes:
    """Return the answers for the rows of a batch: one line with a JSON object per row.

    Parameters
    ----------
    records : Records
        Rows that the model has just absorbed, or keeps until more arrive.
    model : Mixture
        The model.
    """
    import orjson  # here, as --help does not need it

    n = len(records)
    if n == 0:
        return b""
    absorbed = model.absorbed.part(len(model.absorbed.rows.ids) - n)
    ranked, quantiles = absorbed.responsibilities.ranked(), model.quantiles_of_arrivals()
    firsts = ranked.indptr[:-1]
    stops = np.minimum(ranked.indptr[1:], firsts + ALTERNATIVES + 1)
    clusters, shares = _values(ranked.ids), _values(ranked.shares)
    ranking = zip(clusters, shares, strict=True)
    pairs = [b'{"cluster":%b,"probability":%b}' % one for one in ranking]
    starts = firsts.tolist()
    columns = {
        "record": _values(records.numbers),
        "id": _values(records.ids),
        "cluster": [clusters[first] for first in starts],
        "topic": _values(model.topics_of_arrivals(records.rows, ranked)),
        "probability": [shares[first] for first in starts],
        "novelty": _values(absorbed.rows.novelty),
    }
    if quantiles is not None:
        columns["novelty_quantile"] = _values(quantiles[quantiles.size - n :])
    columns["alternatives"] = [
        b"[%b]" % b",".join(pairs[first + 1 : stop])
        for first, stop in zip(starts, stops.tolist(), strict=True)
    ]
    if records.places and records.places[0].spot is not None:
        # Lines of a file have the numbers of its records.
        columns["place"] = [orjson.dumps(place.spot) for place in records.places]
    if model.provisional:
        columns["provisional"] = [b"true"] * n
    line = b"{%b}\n" % b",".join(b'"%b":%%b' % name.encode() for name in columns)
    return escaped_controls(b"".join([line % row for row in zip(*columns.values(), strict=True)]))


def _values(column: Any) -> list[bytes]:
    """Return the JSON of each value in a column of numbers, strings and null."""
    import orjson

    text = orjson.dumps(column, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY)
    return text[4:-2].split(b",\n  ")  # strings contain no raw line ends
