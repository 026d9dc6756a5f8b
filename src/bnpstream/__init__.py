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
        BurstyMultinomial,
        Categorical,
        DiagonalGaussian,
        Directional,
        DirichletMultinomial,
        Gaussian,
        OpenVocabulary,
        Poisson,
        Product,
        ScaledGaussian,
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

# The room of every public name; imported on first use, so that `import bnpstream` is instant.
_ROOMS = {
    "estimators": ("DocumentMixture", "GibbsMixture", "StreamingMixture"),
    "priors": (
        "GeneralizedGamma",
        "NumericalMeasure",
        "PitmanYor",
        "dirichlet_process",
        "normalized_inverse_gaussian",
        "normalized_stable",
    ),
}

__all__ = [
    "Bernoulli",
    "BurstyMultinomial",
    "Categorical",
    "DiagonalGaussian",
    "Directional",
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
    "ScaledGaussian",
    "SphericalGaussian",
    "StreamingMixture",
    "__version__",
    "dirichlet_process",
    "normalized_inverse_gaussian",
    "normalized_stable",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'bnpstream' has no attribute {name!r}")
    rooms = [room for room, names in _ROOMS.items() if name in names]
    return getattr(import_module(f"bnpstream.{(rooms or ['likelihoods'])[0]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
