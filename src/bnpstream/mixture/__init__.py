"""The posterior of a mixture: a few arrays, and what can be read off them."""

from bnpstream.mixture.model import KernelArguments, Model
from bnpstream.mixture.predict import log_joint, log_joint_row
from bnpstream.mixture.state import MixtureState

__all__ = ["KernelArguments", "MixtureState", "Model", "log_joint", "log_joint_row"]
