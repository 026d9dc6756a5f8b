"""Loads models with one number, type or shape of one saved array replaced, each in its own process.

``python forging.py NAME`` ends with code 0 if every forged state is refused as such, or works.
"""

import os
import signal
import sys
import traceback

import numpy as np

from bnpstream import DirichletMultinomial, DocumentMixture, StreamingMixture
from bnpstream.storage import Tensors
from bnpstream.storage.files import WRONG
from bnpstream.storage.models import SavedModel

RNG = np.random.default_rng((92, 1))
GROUPS = RNG.dirichlet(np.full(12, 0.2), 3)
COUNTS = np.array([RNG.multinomial(8, GROUPS[i % 3]) for i in range(130)])
TEXTS = [{f"w{j}": int(n) for j, n in enumerate(row) if n} for row in COUNTS]
POINTS = RNG.normal(size=(130, 3)) + 6.0 * (np.arange(130) % 3)[:, None]
UNITS = RNG.normal(size=(130, 8)) + 3.0 * np.eye(3, 8)[np.arange(130) % 3]
UNITS /= np.linalg.norm(UNITS, axis=1, keepdims=True)
WORDS = DirichletMultinomial(0.1)
SECONDS = 20
"""Longer than this is never."""


def sparse(rows):
    from scipy.sparse import csr_array

    return csr_array(rows)


MODELS = {
    "window": lambda: StreamingMixture("nig", WORDS, revisit=40).partial_fit(COUNTS[:100]),
    "fading": lambda: StreamingMixture("dp", WORDS, half_life=30.0, revisit=40).partial_fit(
        COUNTS[:100]
    ),
    "prefix": lambda: StreamingMixture(prefix_rows=500).partial_fit(sparse(COUNTS[:20])),
    "table": lambda: StreamingMixture(prefix_rows=500).partial_fit(POINTS[:20]),
    "learner": lambda: StreamingMixture(prefix_rows=30).partial_fit(POINTS[:58]),
    "rounds": lambda: StreamingMixture("dp", WORDS, staleness=1, block_rows=16).partial_fit(
        sparse(COUNTS[:90])
    ),
    "words": lambda: DocumentMixture(prefix_rows=30, revisit=20).partial_fit(TEXTS[:58]),
    "rare": lambda: DocumentMixture(prefix_rows=30, min_count=2).partial_fit(TEXTS[:58]),
    "topics": lambda: DocumentMixture(prefix_rows=30).partial_fit(TEXTS[:100]).finish(),
    "directions": lambda: StreamingMixture(prefix_rows=30).partial_fit(UNITS[:100]).finish(),
}
ROWS = {
    "table": POINTS,
    "learner": POINTS,
    "words": TEXTS,
    "rare": TEXTS,
    "topics": TEXTS,
    "directions": UNITS,
}


def forgeries(arrays):
    """Yield the name of every array and what it is replaced by, None if it is left out."""
    for name, array in arrays.items():
        yield name, None
        yield name, array.reshape(-1)[:0]
        yield name, np.append(array.reshape(-1), array.reshape(-1)[:1])
        yield name, array.reshape(1, *array.shape)
        yield name, array.astype(np.float32 if array.dtype.kind == "f" else np.float64)
        values = [np.nan, np.inf, -1.0, 1e300] if array.dtype.kind == "f" else []
        if array.dtype.kind in "iu":
            values = [-1, 2, 2**31 - 5, 2**62] if array.dtype.itemsize == 8 else [0, 99, 2**31 - 5]
        for value in values:
            if array.dtype.kind != "f" and value > np.iinfo(array.dtype).max:
                continue
            for place in sorted({0, array.size // 2, array.size - 1} if array.size else ()):
                forged = array.copy()
                forged.reshape(-1)[place] = value
                yield name, forged


def use(model, rows):
    """Do with a model what its owner might."""
    model.partial_fit(rows[100:])
    model.predict(rows)
    model.finish()
    model.to_tensors()
    model.topics_frame() if hasattr(model, "topics_frame") else None


def in_a_process(work):
    """Return whether work, in a process of its own, comes to an end of the kind that is allowed."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            signal.alarm(SECONDS)
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(name, share):
    model, rows = MODELS[name](), ROWS.get(name, COUNTS)
    arrays, document = model.to_tensors()
    use(MODELS[name](), rows)  # loops are compiled once
    n = n_refused = n_bad = 0
    for number, (array, forged) in enumerate(forgeries(arrays)):
        if share and number % share != len(name) % share:
            continue
        n += 1
        others = {key: x for key, x in arrays.items() if key != array}
        found = others if forged is None else {**others, array: forged}
        try:
            again = type(model)._of(SavedModel.of(Tensors(found, document)))
        except WRONG:
            n_refused += 1
            continue
        code = in_a_process(lambda again=again: use(again, rows))
        if code != 0:
            n_bad += 1
            first = None if forged is None else (forged.dtype, forged.shape, forged.reshape(-1)[:3])
            print(f"{name}: {array}: {first}: ended with {code}", flush=True)
    print(f"{name}: {n} forged, {n_refused} refused, {n_bad} bad")
    return n_bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0) > 0)
