"""The scikit-learn face of the package."""

from bnpstream.estimator.gibbs import GibbsMixture
from bnpstream.estimator.streaming import StreamingMixture

__all__ = ["GibbsMixture", "StreamingMixture"]
