"""Answers of ``stream``: a line for every record, the likeliest clusters first."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from bnpstream.cli.answers import ALTERNATIVES
from bnpstream.cli.fit import write_answers
from bnpstream.inference.visits import Absorbed, Responsibilities
from bnpstream.kernels.arrays import Trace
from bnpstream.sources import Records


@pytest.mark.parametrize("waited", [0, 4])
@pytest.mark.parametrize("provisional", [False, True])
@pytest.mark.parametrize("knows_topics", [False, True])
def test_answers_rank_the_clusters_of_every_record(capfdbinary, waited, provisional, knows_topics):
    rng = np.random.default_rng((96, waited))
    n = 30 + waited
    sizes = rng.integers(1, 9, size=n)
    indptr = np.append(0, np.cumsum(sizes))
    ids = np.concatenate([rng.permutation(50)[:size] for size in sizes])
    shares = rng.integers(1, 5, size=indptr[-1]) / 8.0  # many are equal
    trace = Trace.empty(n)
    trace.novelty[:] = rng.random(n)
    absorbed = Absorbed(trace, Responsibilities(indptr, ids, shares))
    names = ["d0", 17, "é", 'a",\n  "b', "c\x7f\x9b", *range(n - waited - 5)]
    records = Records([{}] * len(names), list(range(100, 100 + len(names))), names)
    given = rng.integers(9, size=len(names)).tolist() if knows_topics else [None] * len(names)
    quantiles = rng.random(n) if knows_topics and not provisional else None
    model = SimpleNamespace(
        absorbed=absorbed,
        provisional=provisional,
        topics_of_arrivals=lambda rows, ranked: given,
        quantiles_of_arrivals=lambda: quantiles,
    )
    write_answers(records, model)
    written = capfdbinary.readouterr().out
    assert not any(mark in written for mark in (b"\x7f", b"\x9b"))
    lines = written.splitlines()
    assert len(lines) == len(names)
    for i, line in enumerate(lines):
        inside = slice(indptr[waited + i], indptr[waited + i + 1])
        # The sort is stable: of equal shares, the one that was listed first comes first.
        pairs = sorted(zip(ids[inside], shares[inside], strict=True), key=lambda pair: -pair[1])
        ranked = [{"cluster": int(k), "probability": float(p)} for k, p in pairs]
        expected = {
            "record": 100 + i,
            "id": names[i],
            "cluster": ranked[0]["cluster"],
            "topic": given[i],
            "probability": ranked[0]["probability"],
            "novelty": float(trace.novelty[waited + i]),
        }
        if quantiles is not None:
            expected["novelty_quantile"] = float(quantiles[waited + i])
        expected["alternatives"] = ranked[1 : ALTERNATIVES + 1]
        found = json.loads(line)
        assert found == expected | ({"provisional": True} if provisional else {})
        assert list(found)[: len(expected)] == list(expected)
