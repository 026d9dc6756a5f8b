"""Searches for base measures and priors on the first rows of a stream."""

from bnpstream.engine.learner import Learner, Trial
from bnpstream.engine.partition import learnt_prior
from bnpstream.search.grid_search import GridResult, Point, grid_search, replicate
from bnpstream.search.grids import distinct, paper_grid

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
