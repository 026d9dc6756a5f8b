"""What a row looks like in a cluster: conjugate exponential families."""

from bnpstream.likelihoods.automatic import Automatic
from bnpstream.likelihoods.base import InputTraits, Likelihood
from bnpstream.likelihoods.batch import Batch, PairedBatch, Row, plus
from bnpstream.likelihoods.bernoulli import Bernoulli
from bnpstream.likelihoods.bursty import BurstyMultinomial
from bnpstream.likelihoods.categorical import Categorical
from bnpstream.likelihoods.cells import ColumnLikelihood
from bnpstream.likelihoods.diagonal import DiagonalGaussian
from bnpstream.likelihoods.directional import Directional
from bnpstream.likelihoods.gaussian import Gaussian
from bnpstream.likelihoods.multinomial import DirichletMultinomial
from bnpstream.likelihoods.open_vocabulary import OpenVocabulary
from bnpstream.likelihoods.poisson import Poisson
from bnpstream.likelihoods.product import Product
from bnpstream.likelihoods.registry import KNOWN_CLASSES, NAMED_LIKELIHOODS, lead, register
from bnpstream.likelihoods.scaled import ScaledGaussian
from bnpstream.likelihoods.spherical import SphericalGaussian
from bnpstream.likelihoods.vocabulary import Vocabulary
from bnpstream.likelihoods.vocabulary_likelihood import VocabularyLikelihood

# The order in which messages list them; others follow.
lead(
    "auto",
    "multinomial",
    "bursty",
    "gaussian",
    "diagonal",
    "spherical",
    "directional",
    "scaled",
    "poisson",
    "bernoulli",
)

__all__ = [
    "KNOWN_CLASSES",
    "NAMED_LIKELIHOODS",
    "Automatic",
    "Batch",
    "Bernoulli",
    "BurstyMultinomial",
    "Categorical",
    "ColumnLikelihood",
    "DiagonalGaussian",
    "Directional",
    "DirichletMultinomial",
    "Gaussian",
    "InputTraits",
    "Likelihood",
    "OpenVocabulary",
    "PairedBatch",
    "Poisson",
    "Product",
    "Row",
    "ScaledGaussian",
    "SphericalGaussian",
    "Vocabulary",
    "VocabularyLikelihood",
    "plus",
    "register",
]
