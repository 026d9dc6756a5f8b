"""What is found out from the stream itself: base measures learnt, and parameters searched for."""

from bnpstream.tuning.grids import distinct, paper_grid
from bnpstream.tuning.learner import BaseLearner
from bnpstream.tuning.searching import GridResult, Point, grid_search

__all__ = ["BaseLearner", "GridResult", "Point", "distinct", "grid_search", "paper_grid"]
