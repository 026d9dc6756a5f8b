"""The scikit-learn face of the package."""

from bnpstream.estimator.documents import DocumentMixture
from bnpstream.estimator.gibbs import GibbsMixture
from bnpstream.estimator.notice import announce_compilation
from bnpstream.estimator.streaming import StreamingMixture

announce_compilation()

__all__ = ["DocumentMixture", "GibbsMixture", "StreamingMixture"]
