"""What a row looks like in a cluster: conjugate exponential families."""

from bnpstream.likelihoods.auto import Automatic
from bnpstream.likelihoods.base import Batch, Likelihood, PairedBatch, Row, plus
from bnpstream.likelihoods.cells import ColumnLikelihood
from bnpstream.likelihoods.discrete import Bernoulli, Categorical, Poisson
from bnpstream.likelihoods.gaussian import DiagonalGaussian, Gaussian, SphericalGaussian
from bnpstream.likelihoods.multinomial import DirichletMultinomial
from bnpstream.likelihoods.product import Product
from bnpstream.likelihoods.vocabulary import OpenVocabulary, Vocabulary, VocabularyLikelihood

NAMED_LIKELIHOODS: dict[str, Likelihood] = {
    "auto": Automatic(),
    "multinomial": DirichletMultinomial(),
    "gaussian": Gaussian(),
    "diagonal": DiagonalGaussian(),
    "spherical": SphericalGaussian(),
    "poisson": Poisson(),
    "bernoulli": Bernoulli(),
    "categorical": Categorical(),
}
"""What a string stands for where a likelihood is expected."""

__all__ = [
    "NAMED_LIKELIHOODS",
    "Automatic",
    "Batch",
    "Bernoulli",
    "Categorical",
    "ColumnLikelihood",
    "DiagonalGaussian",
    "DirichletMultinomial",
    "Gaussian",
    "Likelihood",
    "OpenVocabulary",
    "PairedBatch",
    "Poisson",
    "Product",
    "Row",
    "SphericalGaussian",
    "Vocabulary",
    "VocabularyLikelihood",
    "plus",
]
