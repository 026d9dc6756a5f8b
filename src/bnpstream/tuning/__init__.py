"""What is found out from the stream itself: base measures and priors, learnt or searched for."""

from bnpstream.tuning.grids import distinct, paper_grid
from bnpstream.tuning.learner import Learner, Trial
from bnpstream.tuning.partition import learnt_prior
from bnpstream.tuning.searching import GridResult, Point, grid_search, replicate

__all__ = [
    "GridResult",
    "Learner",
    "Point",
    "Trial",
    "distinct",
    "grid_search",
    "learnt_prior",
    "paper_grid",
    "replicate",
]
