"""The step that all algorithms share: from a posterior and a row to responsibilities."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from bnpstream.inference.budget import NO_BUDGET, Budget
from bnpstream.kernels.arrays import NO_LIMIT, NO_MASS, Floats, Options
from bnpstream.likelihoods import Row
from bnpstream.mixture import MixtureState, Model, log_joint_row


@dataclass(frozen=True)
class Settings:
    """How responsibilities are used.

    Parameters
    ----------
    new_cluster_threshold : float
        epsilon: a new cluster opens if its responsibility is larger.
    min_responsibility : float
        The cut: a candidate is kept iff its log score is at least the best one plus the logarithm
        of this; 0 keeps all.
    prune_threshold : float
        A cluster left with less mass by a revisit is dropped; one left with none always is.
    budget : Budget
        Limits on clusters and memory of the posterior.
    max_responsibilities : int or None
        Most existing clusters that share a row: those with the best scores; of equal scores the
        first slots win. None sets no limit.
    """

    new_cluster_threshold: float
    min_responsibility: float
    prune_threshold: float = 0.0
    budget: Budget = NO_BUDGET
    max_responsibilities: int | None = None

    @cached_property
    def log_min_responsibility(self) -> float:
        """Return the cut on the scale of log scores."""
        return float(np.log(self.min_responsibility)) if self.min_responsibility > 0 else -np.inf

    @cached_property
    def least_mass(self) -> float:
        """Return the mass below which a cluster is dropped."""
        return max(self.prune_threshold, NO_MASS)

    def dead_mass(self, model: Model) -> float:
        """Return the mass up to which a cluster is dead without the row being visited."""
        return max(model.prior.smallest_mass, self.least_mass)

    def options(self, model: Model, state: MixtureState) -> Options:
        """Return the options of compiled loops."""
        return Options(
            self.new_cluster_threshold,
            self.log_min_responsibility,
            NO_LIMIT if self.max_responsibilities is None else self.max_responsibilities,
            self.least_mass,
            self.dead_mass(model),
            self.budget.most_clusters(state),
            self.budget.most_entries(state),
        )


class Response(NamedTuple):
    """What a row would do to the posterior."""

    responsibilities: Floats
    """(K,), or (K + 1,) if a cluster opens."""
    opens: bool
    novelty: float
    """Responsibility of a new cluster, whether or not it opens, and however small."""
    log_evidence: float
    """Log predictive of the row given the others, including log h(x)."""
    auxiliary: float


def respond(model: Model, state: MixtureState, row: Row, settings: Settings) -> Response:
    """Return the responsibilities of one row, Eq. (15), and whether it opens a cluster."""
    log_scores, auxiliary = log_joint_row(model, state, row)
    kept = log_scores >= log_scores.max() + settings.log_min_responsibility
    if settings.max_responsibilities is not None:
        ranked = np.argsort(-log_scores[:-1], kind="stable")
        kept[ranked[settings.max_responsibilities :]] = False
    log_evidence = float(logsumexp(log_scores[kept]))
    responsibilities = np.where(kept, np.exp(log_scores - log_evidence), 0.0)
    opens = bool(responsibilities[-1] > settings.new_cluster_threshold)
    unseen = np.exp(log_scores[-1] - log_evidence)  # even if the cut removes it
    novelty = float(unseen / (responsibilities[:-1].sum() + unseen))
    if not opens:
        responsibilities = responsibilities[:-1] / responsibilities[:-1].sum()
    return Response(responsibilities, opens, novelty, log_evidence + row.log_base, auxiliary)
