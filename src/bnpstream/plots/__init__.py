"""Pictures of a posterior, as matplotlib axes (needs the extra ``bnpstream[plots]``)."""

from bnpstream.plots.means import plot_means
from bnpstream.plots.stream import plot_stream

__all__ = ["plot_means", "plot_stream"]
