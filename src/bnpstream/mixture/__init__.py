"""The posterior of a mixture: a few arrays, and what can be read off them."""

from bnpstream.mixture.lineage import Event, survivor, survivors
from bnpstream.mixture.model import KernelArguments, Model
from bnpstream.mixture.predict import (
    log_joint,
    log_joint_row,
    log_joint_where,
    log_marginals,
    log_prior_weights,
)
from bnpstream.mixture.sites import SiteBuffer
from bnpstream.mixture.state import MixtureState

__all__ = [
    "Event",
    "KernelArguments",
    "MixtureState",
    "Model",
    "SiteBuffer",
    "log_joint",
    "log_joint_row",
    "log_joint_where",
    "log_marginals",
    "log_prior_weights",
    "survivor",
    "survivors",
]
