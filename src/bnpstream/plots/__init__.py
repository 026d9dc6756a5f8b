"""Pictures of a posterior, as matplotlib axes (needs the extra ``bnpstream[plots]``)."""

try:
    import matplotlib  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "bnpstream.plots draws with matplotlib, which is missing: pip install 'bnpstream[plots]'",
        name="matplotlib",
    ) from error

from bnpstream.plots.events import plot_events
from bnpstream.plots.grid import plot_grid
from bnpstream.plots.means import plot_means
from bnpstream.plots.stream import plot_clusters, plot_evidence, plot_trend
from bnpstream.plots.tree import plot_tree
from bnpstream.plots.weights import plot_weights

__all__ = [
    "plot_clusters",
    "plot_events",
    "plot_evidence",
    "plot_grid",
    "plot_means",
    "plot_tree",
    "plot_trend",
    "plot_weights",
]
