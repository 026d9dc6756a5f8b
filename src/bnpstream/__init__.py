"""Streaming Bayesian nonparametric clustering.

Implements ADF-NRM and EP-NRM of Tank, Foti & Fox, *Streaming Variational Inference for Bayesian
Nonparametric Mixture Models* (AISTATS 2015).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bnpstream._version import __version__

if TYPE_CHECKING:
    from bnpstream.estimators import DocumentMixture, GibbsMixture, StreamingMixture
    from bnpstream.likelihoods import (
        Bernoulli,
        Categorical,
        DiagonalGaussian,
        DirichletMultinomial,
        Gaussian,
        OpenVocabulary,
        Poisson,
        Product,
        SphericalGaussian,
    )
    from bnpstream.priors import (
        GeneralizedGamma,
        NumericalMeasure,
        PitmanYor,
        dirichlet_process,
        normalized_inverse_gaussian,
        normalized_stable,
    )

# Where every public name lives; imported on first use, so that `import bnpstream` is instant.
_HOMES = {
    "Bernoulli": "bnpstream.likelihoods",
    "Categorical": "bnpstream.likelihoods",
    "DiagonalGaussian": "bnpstream.likelihoods",
    "DirichletMultinomial": "bnpstream.likelihoods",
    "DocumentMixture": "bnpstream.estimators",
    "Gaussian": "bnpstream.likelihoods",
    "GeneralizedGamma": "bnpstream.priors",
    "GibbsMixture": "bnpstream.estimators",
    "NumericalMeasure": "bnpstream.priors",
    "OpenVocabulary": "bnpstream.likelihoods",
    "PitmanYor": "bnpstream.priors",
    "Poisson": "bnpstream.likelihoods",
    "Product": "bnpstream.likelihoods",
    "SphericalGaussian": "bnpstream.likelihoods",
    "StreamingMixture": "bnpstream.estimators",
    "dirichlet_process": "bnpstream.priors",
    "normalized_inverse_gaussian": "bnpstream.priors",
    "normalized_stable": "bnpstream.priors",
}

__all__ = [
    "Bernoulli",
    "Categorical",
    "DiagonalGaussian",
    "DirichletMultinomial",
    "DocumentMixture",
    "Gaussian",
    "GeneralizedGamma",
    "GibbsMixture",
    "NumericalMeasure",
    "OpenVocabulary",
    "PitmanYor",
    "Poisson",
    "Product",
    "SphericalGaussian",
    "StreamingMixture",
    "__version__",
    "dirichlet_process",
    "normalized_inverse_gaussian",
    "normalized_stable",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bnpstream' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
