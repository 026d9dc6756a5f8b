"""The density of U as the paper prints it, with a K where sigma K belongs (docs/errata.md, 1)."""

from typing import Any

import numpy as np
from scipy.optimize import brentq

from bnpstream import GeneralizedGamma
from bnpstream.priors.base import Floats
from bnpstream.priors.partitions import set_partitions

FAR = 60.0
"""The mode of log U is nearer to log tau than this."""


class PrintedGeneralizedGamma(GeneralizedGamma):
    """Normalized generalized gamma process, q(U) with (U + tau)^(n - a K) as in Eqs. (6), (21).

    All else is the corrected prior. The slope of the printed log density of v = log U is
    n - (n - a K) u/(u+tau) - a u (u+tau)^(sigma-1). Times (u+tau)/u that is

        n tau/u + a K - a (u+tau)^sigma,

    which falls from infinity to minus infinity: there is one mode, though for a K > n the density
    is not log-concave. There the weight of a new cluster is a (U+tau)^sigma = a K + n tau/U,
    where the corrected one has sigma K + n tau/U.
    """

    def _mode(self, masses: Floats, occupancy: Floats, n: float, start: float) -> float:
        a, sigma, tau = self.concentration, self.discount, self.tilt
        count = float(occupancy.sum())

        def falling(v: float) -> float:
            u = np.exp(v)
            return float(n * tau / u + a * count - a * (u + tau) ** sigma)

        middle = np.log(tau)
        return float(brentq(falling, middle - FAR, middle + FAR, xtol=1e-12))

    def log_auxiliary_joint(self, v: Floats, masses: Floats, occupancy: Floats, n: float) -> Floats:
        """Return the corrected log density, and (a - sigma) K log(u+tau) more."""
        corrected = super().log_auxiliary_joint(v, masses, occupancy, n)
        excess = (self.concentration - self.discount) * float(occupancy.sum())
        return corrected + excess * np.logaddexp(v, np.log(self.tilt))

    def kernel_parameters(self) -> Any:
        """Return None: compiled loops have the corrected rule only."""
        return None


def total_probability(prior: GeneralizedGamma, n: int) -> float:
    """Return the summed probability of all partitions of n rows: one, for a prior.

    Examples
    --------
    >>> round(total_probability(GeneralizedGamma(1.0, 0.5), 3), 6)
    1.0
    >>> round(total_probability(PrintedGeneralizedGamma(1.0, 0.5), 3), 2)
    11.67
    """
    sizes = [np.bincount(labels).astype(np.float64) for labels in set_partitions(n)]
    return float(sum(np.exp(prior.log_eppf(counts)) for counts in sizes))
