"""What a row looks like in a cluster: conjugate exponential families."""

from bnpstream.likelihoods.automatic import Automatic
from bnpstream.likelihoods.base import Batch, Likelihood, PairedBatch, Row, plus
from bnpstream.likelihoods.categorical import Categorical
from bnpstream.likelihoods.cells import ColumnLikelihood
from bnpstream.likelihoods.diagonal import DiagonalGaussian, SphericalGaussian
from bnpstream.likelihoods.discrete import Bernoulli, Poisson
from bnpstream.likelihoods.gaussian import Gaussian
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
