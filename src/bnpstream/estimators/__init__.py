"""Estimators for scikit-learn."""

from bnpstream.estimators.documents import DocumentMixture
from bnpstream.estimators.gibbs import GibbsMixture
from bnpstream.estimators.streaming import StreamingMixture

__all__ = ["DocumentMixture", "GibbsMixture", "StreamingMixture"]
