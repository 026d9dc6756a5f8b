"""The building blocks of your own priors and likelihoods: one stable place to import from.

`docs/extending.md` shows how; ``bnpstream.testing`` checks the laws.
"""

from bnpstream.kernels.jit.dispatch import specialize
from bnpstream.kernels.measures.rules import discounting, occupied_clusters
from bnpstream.kernels.passes.contributions import contribution_of
from bnpstream.kernels.special import log_rising
from bnpstream.kernels.statistics.table import locate
from bnpstream.kernels.words.dirichlet import log_predictive_of, log_predictive_of_new
from bnpstream.likelihoods import Batch, Likelihood, PairedBatch, Row, plus
from bnpstream.priors import NormalizedRandomMeasure, Prior

__all__ = [
    "Batch",
    "Likelihood",
    "NormalizedRandomMeasure",
    "PairedBatch",
    "Prior",
    "Row",
    "contribution_of",
    "discounting",
    "locate",
    "log_predictive_of",
    "log_predictive_of_new",
    "log_rising",
    "occupied_clusters",
    "plus",
    "specialize",
]
