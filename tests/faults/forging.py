"""Loads models with one number, type or shape of one saved array replaced, each in its own process.

``python forging.py NAME`` ends with code 0 if every forged state is refused as such, or works.
``python forging.py NAME SHARE CASES SEED`` tries one in SHARE of these, and so many states with
several changes that go together: arrays exchanged, shuffled, scaled, all cut alike, or put in from
another model.
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
LATE = 4
"""How a process ends in which a ValueError was raised."""
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


def random_forgery(arrays, others, rng):
    """Return arrays of which some were changed, in ways that leave shapes and types sound."""
    found = dict(arrays)
    names = sorted(found)
    for _ in range(rng.choice([1, 1, 2, 3])):
        name = names[rng.integers(len(names))]
        array, what = found[name].copy(), rng.integers(9)
        flat = array.reshape(-1)
        alike = [key for key in names if found[key].shape == array.shape and key != name]
        if what == 0 and alike:
            other = alike[rng.integers(len(alike))]
            found[name] = found[other].astype(array.dtype)
            found[other] = array.astype(found[other].dtype)
            continue
        if what == 1:
            rng.shuffle(flat)
        elif what == 2:
            array = array[::-1].copy() if array.ndim else array
        elif what == 3 and flat.size:
            flat[:] = flat[rng.integers(flat.size)]
        elif what == 4 and array.dtype.kind == "f":
            array *= rng.choice([-1.0, 0.0, 1e-300, 1e12, 0.5])
        elif what == 4 and array.dtype.kind in "iu":
            array += rng.choice([1, 7, 100]).astype(array.dtype)
        elif what == 5 and array.ndim:  # every array of this length is cut, or made longer
            for key in names:
                if found[key].ndim and len(found[key]) == len(array):
                    n = len(array) - 1
                    more = np.concatenate([found[key], found[key][-1:]])
                    found[key] = found[key][:n] if n % 2 else more
            continue
        elif what == 6 and name in others:
            array = others[name]
        elif what == 7 and flat.size > 1:
            i, j = rng.integers(flat.size, size=2)
            flat[i], flat[j] = flat[j], flat[i]
        elif flat.size:
            bits = flat.view(np.uint8)
            bits[rng.integers(bits.size)] ^= 1 << rng.integers(8)
        found[name] = array
    return found


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
        except ValueError:
            code = LATE
            traceback.print_exc()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def forged_states(name, arrays, share, n_random, seed):
    """Yield what was forged, and the arrays of the state."""
    for number, (array, forged) in enumerate(forgeries(arrays)):
        if share and number % share != len(name) % share:
            continue
        others = {key: x for key, x in arrays.items() if key != array}
        first = None if forged is None else (forged.dtype, forged.shape, forged.reshape(-1)[:3])
        yield f"{array}: {first}", others if forged is None else {**others, array: forged}
    strangers = [one for one in MODELS if one != name]
    for number in range(n_random):
        rng = np.random.default_rng((seed, number))
        if number % 50 == 0:
            others = MODELS[strangers[rng.integers(len(strangers))]]().to_tensors()[0]
        yield f"random {seed}, {number}", random_forgery(arrays, others, rng)


def main(name, share, n_random=0, seed=0):
    model, rows = MODELS[name](), ROWS.get(name, COUNTS)
    arrays, document = model.to_tensors()
    use(MODELS[name](), rows)  # loops are compiled once
    n = n_refused = n_late = n_bad = 0
    for what, found in forged_states(name, arrays, share, n_random, seed):
        n += 1
        try:
            again = type(model)._of(SavedModel.of(Tensors(found, document)))
        except WRONG:
            n_refused += 1
            continue
        code = in_a_process(lambda again=again: use(again, rows))
        # Numbers that could be a posterior's may turn out to be none later, by a message.
        is_late = code == LATE and what.startswith("random")
        n_late += is_late
        if code != 0 and not is_late:
            n_bad += 1
            print(f"{name}: {what}: ended with {code}", flush=True)
    print(f"{name}: {n} forged, {n_refused} refused, {n_late} later, {n_bad} bad", flush=True)
    return n_bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:] or ["0"])) > 0)
