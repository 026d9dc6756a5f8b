"""Equal rows that several clusters share, by the million: masses must still add up to the rows.

``python drifting.py ROWS CALLS`` ends with an error if masses are off by a billionth of the rows.
The error of a plain sum of n equal numbers is at most n 2^-53 of it, and half of that as it grows.
"""

import sys

import numpy as np

from bnpstream import DirichletMultinomial, StreamingMixture, dirichlet_process

GROUPS = np.array([[5, 1, 0, 0], [0, 0, 1, 5]])
SHARED = np.array([1, 1, 1, 1])
MOST_DRIFT = 1e-9


def drift(n_rows: int, n_calls: int, engine: str = "compiled") -> tuple[float, int]:
    """Return how far masses are from the rows, relatively, and how many clusters share them."""
    model = StreamingMixture(dirichlet_process(1.0), DirichletMultinomial(1.0), engine=engine)
    model.partial_fit(np.repeat(GROUPS, 500, axis=0))
    rows = np.repeat(SHARED[None], n_rows // n_calls, axis=0)
    for _ in range(n_calls):
        model.partial_fit(rows)
    n = 1000 + len(rows) * n_calls
    assert model.n_samples_seen_ == model.state_.total_mass == n
    return abs(float(model.state_.masses.sum()) - n) / n, model.n_clusters_


if __name__ == "__main__":
    n_rows, n_calls = map(int, sys.argv[1:])
    found, n_clusters = drift(n_rows, n_calls)
    print(f"{n_rows} rows in {n_calls} calls, {n_clusters} clusters: masses are off by {found:.1e}")
    sys.exit(found > MOST_DRIFT)
