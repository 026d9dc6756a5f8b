"""The scikit-learn face of the package."""

from bnpstream.estimators.documents import DocumentMixture
from bnpstream.estimators.gibbs import GibbsMixture
from bnpstream.estimators.notice import announce_compilation
from bnpstream.estimators.streaming import StreamingMixture

announce_compilation()

__all__ = ["DocumentMixture", "GibbsMixture", "StreamingMixture"]
