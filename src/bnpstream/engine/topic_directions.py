"""Topics of directions: what they say of clusters and rows, and how they are kept."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bnpstream.inference.margins import Directions, directions_of
from bnpstream.kernels.arrays import Floats, Integers

if TYPE_CHECKING:
    from bnpstream.engine.posterior import Posterior

Arrays = dict[str, NDArray[Any]]

BLOCK = 2**20
"""Numbers of rows that are looked at at a time: 8 MB."""


def row_means(posterior: "Posterior") -> Floats | None:
    """Return the mean of the rows of every cluster, by ascending id; None if there is no such."""
    found: Floats | None = posterior.model.likelihood.row_means(
        posterior.statistics(posterior.order)
    )
    return found


def found_directions(
    posterior: "Posterior",
    means: Floats,
    n_topics: int | None,
    granularity: float,
    rows: Floats | None,
) -> tuple[Directions, Integers]:
    """Return the topics of clusters with these means, and the topic of every cluster."""
    masses = posterior.state.masses[posterior.order]
    found = directions_of(masses, means, n_topics, granularity, rows)
    return found, found.best(means)


def best_of_rows(found: Directions, batch: Any) -> Integers:
    """Return the topic of every row of a `VectorBatch`, by position."""
    size = max(1, BLOCK // batch.values.shape[1])
    parts = [batch.chosen(slice(at, at + size)) for at in range(0, len(batch), size)]
    vectors = (part.factors[:, None] * part.values.astype(np.float64) for part in parts)
    return np.concatenate([found.best(rows) for rows in vectors])


def save_directions(found: Directions, arrays: Arrays) -> None:
    """Add them to a snapshot."""
    arrays["topics.centre"], arrays["topics.units"] = found


def load_directions(arrays: Arrays, n_topics: int) -> Directions:
    """Return the topics that `save_directions` added; ValueError if they cannot be."""
    centre, units = arrays["topics.centre"], arrays["topics.units"]
    for name, array, shape in (
        ("centre", centre, (centre.size,)),
        ("units", units, (n_topics, centre.size)),
    ):
        if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
            raise ValueError(f"topics.{name} is {array.dtype} of shape {array.shape}")
    return Directions(centre, units)
