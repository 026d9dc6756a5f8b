"""What is learnt from the stream itself: base measures and priors."""

from bnpstream.tuning.learner import Learner, Trial
from bnpstream.tuning.partition import learnt_prior

__all__ = ["Learner", "Trial", "learnt_prior"]
