"""Fail if the compiled loops have become slower, or clusters larger (`floor.py`).

Only ratios are compared, of times in one process or of bytes, with those in `ratios.json`: a ratio
that is more than 20 % larger fails. Machines are noisy, so a ratio of times is that of the least,
which other work disturbs less than medians; there are up to three attempts, and one that is good
enough ends it.

After a change that is meant to cost time: `python benchmarks/gate.py --update`, on a quiet machine.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bnpstream.kernels.passes.steps import NEGLIGIBLE
from bnpstream.mixture import log_joint
from floor import Case, floor_of, ready, short_case, synthetic_case, visit
from measure import arguments, cpu_seconds, machine, save
from memory_floor import kos_case

STORED = Path(__file__).with_name("ratios.json")
WORSE = 1.2
ATTEMPTS, REPETITIONS = 3, 15
UPDATE = "python benchmarks/gate.py --update"

Prepare = Callable[[Case], Callable[[], object]]


def passing(case: Case) -> Callable[[], object]:
    """Return the pass, ready to be timed once."""
    state = ready(case)
    return lambda: visit(case, state)


def scoring(case: Case) -> Callable[[], object]:
    """Return what `score_samples` does, ready to be timed."""
    kernel = case.model.kernel_arguments(case.batch)
    case.state.cache(case.model.likelihood)
    return lambda: log_joint(case.model, case.state, case.batch, kernel, log_cut=NEGLIGIBLE)


def cluster_bytes(case: Case) -> float:
    """Return the memory of a cluster, screen included, over that of its dense statistics."""
    state = case.state
    screen = state.cache(case.model.likelihood)
    arrays = (part for part in screen if isinstance(part, np.ndarray))
    held = state.nbytes + sum(part.nbytes for part in arrays)
    return held / state.n_clusters / (8 * state.n_statistics)


GATES: dict[str, tuple[Callable[[], Case], Prepare | None]] = {
    "KOS NIG(10, 100): pass / floor": (lambda: kos_case("NIG(10, 100)"), passing),
    "synthetic K=1000: pass / floor": (lambda: synthetic_case(1000), passing),
    "8 words K=1000: pass / floor": (lambda: short_case(1000), passing),
    "synthetic K=1000: score / floor": (lambda: synthetic_case(1000), scoring),
    "8 words K=1000: cluster / dense row": (lambda: short_case(1000), None),
}


def ratio(case: Case, prepare: Prepare | None, limit: float) -> float:
    """Return the ratio of the least times, after one attempt if that is within the limit.

    Where nothing is to be timed, that of bytes.
    """
    if prepare is None:
        return cluster_bytes(case)
    floor = floor_of(case)
    prepare(case)()  # compile
    least = np.full(2, np.inf)
    for _ in range(ATTEMPTS):
        times = [(cpu_seconds(prepare(case)), cpu_seconds(floor.run)) for _ in range(REPETITIONS)]
        least = np.minimum(least, np.min(times, axis=0))
        if least[0] <= limit * least[1]:
            break
    return float(least[0] / least[1])


def main() -> int:
    """Print a line a ratio; return 1 if one is too large."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--update", action="store_true", help=f"write {STORED.name} anew")
    options = parser.parse_args()
    stored: dict[str, float] = json.loads(STORED.read_text()) if STORED.exists() else {}
    found, worse = dict(stored) if options.update else {}, []
    print(f"regression gate: ratios at most {WORSE:g} times those stored; {machine()}")
    for name, (make, prepare) in GATES.items():
        if name not in stored and not options.update:
            print(f"{name:36s} skipped: not in {STORED.name}; to store it, {UPDATE}")
            continue
        try:
            case = make()
        except FileNotFoundError as missing:
            print(f"{name:36s} skipped: {missing}")
            continue
        limit = 0.0 if options.update else WORSE * stored[name]
        found[name] = round(ratio(case, prepare, limit), 3)
        verdict = "stored"
        if not options.update:
            change = found[name] / stored[name] - 1.0
            verdict = f"stored {stored[name]:.2f}, {change:+.0%}"
            if found[name] > limit:
                worse.append(name)
                verdict += "  TOO MUCH"
        print(f"{name:36s} {found[name]:5.2f}  {verdict}", flush=True)
    save({"ratios": found}, options.json)
    if options.update:
        STORED.write_text(json.dumps(found, indent=2) + "\n")
    if worse:
        print(f"{len(worse)} too large. If that is meant, on a quiet machine: {UPDATE}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
