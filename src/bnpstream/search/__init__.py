"""What is found out from the stream itself: base measures and priors, learnt or searched for."""

from bnpstream.search.grid_search import GridResult, Point, grid_search, replicate
from bnpstream.search.grids import distinct, paper_grid
from bnpstream.search.learner import Learner, Trial
from bnpstream.search.partition import learnt_prior

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
