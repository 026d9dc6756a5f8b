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
    "dp": dirichlet_process(1.0),
    "nig": normalized_inverse_gaussian(1.0, 1.0),
    "py": PitmanYor(1.0, 0.5),
}
"""What a string stands for where a prior is expected."""

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
