"""Streaming Variational Inference for Bayesian Nonparametric Mixture Models, reproduced.

Every experiment is a module with ``FULL`` and ``SMALL`` settings, ``steps(settings)``, which is
what has to be computed, and ``report(found, show)``, which makes figures, tables and claims of it.
"""

from tank2015.running import EXPERIMENTS, LONG, reproduce

__all__ = ["EXPERIMENTS", "LONG", "reproduce"]
