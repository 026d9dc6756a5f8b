"""`exemplars`: of rows that a cluster is the likeliest for, those closest to its centroid."""

import numpy as np
import pytest

from bnpstream import StreamingMixture


def test_they_are_the_closest_of_their_cluster():
    rng = np.random.default_rng(431)
    rows = rng.normal(size=(4, 20))[rng.integers(4, size=150)] + 0.3 * rng.normal(size=(150, 20))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    model = StreamingMixture(likelihood="directional").fit(rows)
    found, labels = model.exemplars(rows, n=2), model.predict(rows)
    positions = {id: at for at, id in enumerate(model.cluster_ids_.tolist())}
    assert set(found) == {int(model.cluster_ids_[k]) for k in np.unique(labels)}
    for id, chosen in found.items():
        own = np.flatnonzero(labels == positions[id])
        cosines = {int(i): float(rows[i] @ model.means_[positions[id]]) for i in own}
        best = sorted(cosines, key=lambda i: -cosines[i])[:2]
        assert chosen.tolist() == best
    with pytest.raises(ValueError, match="n must be"):
        model.exemplars(rows, n=0)
