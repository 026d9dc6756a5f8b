"""What is learnt from the stream itself: base measures."""

from bnpstream.tuning.learner import BaseLearner

__all__ = ["BaseLearner"]
