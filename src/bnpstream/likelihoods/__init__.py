"""What a row looks like in a cluster: conjugate exponential families."""

from bnpstream.likelihoods.base import Batch, Likelihood, Row, plus
from bnpstream.likelihoods.gaussian import DiagonalGaussian, Gaussian, SphericalGaussian
from bnpstream.likelihoods.multinomial import DirichletMultinomial

NAMED_LIKELIHOODS = {
    "multinomial": DirichletMultinomial(),
    "gaussian": Gaussian(),
    "diagonal": DiagonalGaussian(),
    "spherical": SphericalGaussian(),
}
"""What a string stands for where a likelihood is expected."""

__all__ = [
    "NAMED_LIKELIHOODS",
    "Batch",
    "DiagonalGaussian",
    "DirichletMultinomial",
    "Gaussian",
    "Likelihood",
    "Row",
    "SphericalGaussian",
    "plus",
]
