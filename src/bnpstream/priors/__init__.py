"""How likely a cluster is before seeing x: priors over partitions."""

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

NAMED_PRIORS = {
    "dp": dirichlet_process().learning(),
    "nig": normalized_inverse_gaussian().learning(),
    "ngg": GeneralizedGamma(1.0, 0.5).learning("concentration", "discount"),
    "stable": normalized_stable(0.5).learning("discount"),
    "py": PitmanYor(1.0, 0.5).learning("concentration", "discount"),
}
"""What a string stands for where a prior is expected: what it does not say is learnt."""

__all__ = [
    "NAMED_PRIORS",
    "GeneralizedGamma",
    "NormalizedRandomMeasure",
    "NumericalMeasure",
    "PitmanYor",
    "Prior",
    "dirichlet_process",
    "normalized_inverse_gaussian",
    "normalized_stable",
]
