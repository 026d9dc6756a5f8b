"""Priors over partitions: how likely a cluster is before x is seen."""

from bnpstream.priors.base import Prior
from bnpstream.priors.generalized_gamma import (
    GeneralizedGamma,
    dirichlet_process,
    normalized_inverse_gaussian,
    normalized_stable,
)
from bnpstream.priors.normalized import NormalizedRandomMeasure
from bnpstream.priors.numerical import NumericalMeasure
from bnpstream.priors.pitman_yor import PitmanYor
from bnpstream.priors.registry import KNOWN_CLASSES, NAMED_PRIORS, PARAMETERS, lead

# The order in which messages list them; others follow.
lead("dp", "nig", "ngg", "stable", "py")

__all__ = [
    "KNOWN_CLASSES",
    "NAMED_PRIORS",
    "PARAMETERS",
    "GeneralizedGamma",
    "NormalizedRandomMeasure",
    "NumericalMeasure",
    "PitmanYor",
    "Prior",
    "dirichlet_process",
    "normalized_inverse_gaussian",
    "normalized_stable",
]
