"""What a row looks like in a cluster: conjugate exponential families."""

from bnpstream.likelihoods.base import Batch, Likelihood, Row
from bnpstream.likelihoods.multinomial import DirichletMultinomial

NAMED_LIKELIHOODS = {"multinomial": DirichletMultinomial()}
"""What a string stands for where a likelihood is expected."""

__all__ = ["NAMED_LIKELIHOODS", "Batch", "DirichletMultinomial", "Likelihood", "Row"]
