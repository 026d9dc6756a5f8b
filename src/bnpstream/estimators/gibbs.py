"""`GibbsMixture`: collapsed Gibbs sampling, for data small enough to revisit hundreds of times."""

import warnings
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from bnpstream.engine import require_whole, resolve_likelihood, resolve_prior
from bnpstream.estimators.base import MixtureEstimator, matching_columns
from bnpstream.inference import gibbs
from bnpstream.inference.convergence import effective_size, rhat
from bnpstream.inference.tree import MergeTree, merge_tree
from bnpstream.kernels.arrays import Floats
from bnpstream.kernels.passes.steps import NEGLIGIBLE
from bnpstream.likelihoods import Automatic, Batch, Likelihood
from bnpstream.likelihoods.frames import as_rows, names_of
from bnpstream.mixture import KernelArguments, Model, log_joint
from bnpstream.priors import Prior
from bnpstream.search.parallel import Mapper, threads

LARGEST_RHAT = 1.1
FEW_DRAWS = 50
"""With fewer draws, R-hat itself is too noisy for a warning."""


class GibbsMixture(MixtureEstimator):
    """Sample the exact posterior of a mixture model by collapsed Gibbs sweeps.

    The sampler of Favaro & Teh (2013) for normalized random measures and Pitman-Yor: rows are
    reassigned one by one given all others and the auxiliary variable U, which is drawn once per
    sweep. It needs all rows at once, and is the gold standard that streaming is compared with.

    Parameters
    ----------
    prior, likelihood, engine
        As for `StreamingMixture`; unset parameters are estimated from all rows.
    n_sweeps : int
        Sweeps per chain; a chain starts with all rows in one cluster.
    n_kept : int
        Number of final sweeps to keep.
    n_chains : int
        Number of independent chains.
    n_split_merges : int
        Splits and merges of clusters proposed before each sweep (Jain & Neal 2004), for chains that
        get stuck when rows move one at a time.
    random_state : int
        Seed; each chain has its own random stream.
    n_jobs : int, optional
        Threads, one per chain: -1 for all cores, one by default. Results do not depend on it.

    Attributes
    ----------
    log_likelihood_ : ndarray of shape (n_chains, n_sweeps)
        log p(x | assignments) after every sweep.
    n_clusters_ : ndarray of shape (n_chains, n_sweeps)
        Number of clusters after every sweep.
    assignments_ : ndarray of shape (n_chains, n_kept, n_rows)
        Kept assignments, numbered 0..K-1 within a draw.
    auxiliaries_ : ndarray of shape (n_chains, n_kept)
        Kept log U.
    labels_ : ndarray of shape (n_rows,)
        The kept assignment with the largest log likelihood.
    rhat_, ess_ : dict
        Split R-hat and effective sample size of "log_likelihood" and "n_clusters" over the kept
        draws, as in Vehtari et al. (2021); nan if a trace is constant or too short. If R-hat of
        several chains is above 1.1 over 50 or more kept draws, they have not mixed: `fit` warns.

    Examples
    --------
    >>> from bnpstream import GibbsMixture
    >>> from bnpstream.datasets import bars
    >>> images = bars(n_images=60, seed=0).counts
    >>> model = GibbsMixture("nig", n_sweeps=30, n_kept=10, n_chains=2).fit(images[:50])
    >>> model.assignments_.shape
    (2, 10, 50)
    >>> bool(model.mean_log_likelihood(images[50:]) <= model.score_samples(images[50:]).sum())
    True
    """

    def __init__(
        self,
        prior: Prior | str = "dp",
        likelihood: Likelihood | str = "auto",
        *,
        n_sweeps: int = 200,
        n_kept: int = 50,
        n_chains: int = 1,
        n_split_merges: int = 0,
        random_state: int = 0,
        engine: Literal["auto", "compiled", "reference"] = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.prior = prior
        self.likelihood = likelihood
        self.n_sweeps = n_sweeps
        self.n_kept = n_kept
        self.n_chains = n_chains
        self.n_split_merges = n_split_merges
        self.random_state = random_state
        self.engine = engine
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Run the chains on the rows of X.

        Parameters
        ----------
        X : array-like or sparse of shape (n_rows, n_columns)
            Rows.
        y : ignored
        """
        return self.fit_by(X, threads(self.n_jobs))

    def fit_by(self, X: Any, mapper: Mapper) -> Self:
        """Run the chains wherever a mapper does; see ``bnpstream.search.parallel``."""
        n_sweeps = require_whole("n_sweeps", self.n_sweeps, 1)
        n_kept = require_whole("n_kept", self.n_kept, 1)
        n_chains = require_whole("n_chains", self.n_chains, 1)
        n_moves = require_whole("n_split_merges", self.n_split_merges, 0)
        if n_kept > n_sweeps:
            raise ValueError(f"n_kept must be at most n_sweeps={n_sweeps}, got {n_kept}")
        seed = require_whole("random_state", self.random_state, 0)
        rows = as_rows(X)
        likelihood = self._open_likelihood().bound(names_of(X) or []).informed(rows)
        model = Model(resolve_prior(self.prior), likelihood)
        batch = likelihood.encode(rows)
        validate_data(self, X, reset=True, skip_check_array=True)
        kernel = self._kernel(model, batch)
        seeds = np.random.SeedSequence(seed).spawn(n_chains)
        traces = list(mapper(_run_chain, seeds, model, batch, kernel, n_sweeps, n_moves, n_kept))
        self.prior_, self.likelihood_, self._batch = model.prior, likelihood, batch
        columns = zip(*traces, strict=True)
        self.log_likelihood_, self.n_clusters_, self.assignments_, self.auxiliaries_ = map(
            np.array, columns
        )
        best = np.argmax(self.log_likelihood_[:, -n_kept:])
        self.labels_ = self.assignments_.reshape(-1, len(batch))[best]
        described = {"log_likelihood": self.log_likelihood_, "n_clusters": self.n_clusters_}
        last = {name: trace[:, -n_kept:].astype(float) for name, trace in described.items()}
        self.rhat_ = {name: rhat(trace) for name, trace in last.items()}
        self.ess_ = {name: effective_size(trace) for name, trace in last.items()}
        if n_chains > 1 and n_kept >= FEW_DRAWS:
            self._warn_of_chains_apart()
        return self

    def _warn_of_chains_apart(self) -> None:
        """Warn if the chains have not mixed."""
        bad = {name: found for name, found in self.rhat_.items() if found > LARGEST_RHAT}
        if bad:
            said = " and ".join(
                f"R-hat of {name} is {found:.3g} (effective sample size {self.ess_[name]:.3g})"
                for name, found in bad.items()
            )
            warnings.warn(
                f"the chains have not mixed: {said}, above {LARGEST_RHAT}; give more n_sweeps or "
                "n_split_merges, and do not use averages over the draws",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _open_likelihood(self) -> Likelihood:
        """Return the likelihood as given; parameters may be unset."""
        given: Any = self.likelihood
        return Automatic() if given == "auto" else resolve_likelihood(given)  # no latent ones

    def _kernel(self, model: Model, batch: Batch) -> KernelArguments | None:
        """Return what compiled loops need, or None for the reference engine."""
        return model.kernel_for(batch, self.engine, self._n_jobs)

    def draw_log_predictives(self, X: Any) -> Floats:
        """Return the log predictive of each row under each kept draw, by the exact rule.

        U is integrated out; given the assignments it is not needed for prediction.

        Returns
        -------
        log_predictives : ndarray of shape (n_chains * n_kept, n_rows)
        """
        check_is_fitted(self, "assignments_")
        model = Model(self.prior_, self.likelihood_)
        with matching_columns(self, X):
            batch = model.likelihood.encode(as_rows(X))
        validate_data(self, X, reset=False, skip_check_array=True)
        kernel = self._kernel(model, batch)
        scores = np.empty((self.assignments_[..., 0].size, len(batch)))
        for draw, assignments in enumerate(self.assignments_.reshape(len(scores), -1)):
            state = gibbs.chain_at(model, self._batch, assignments, np.nan).state
            log_weights = np.log(model.prior.predictive_rule(state.masses))
            joint = log_joint(model, state, batch, kernel, log_weights, log_cut=NEGLIGIBLE)
            scores[draw] = logsumexp(joint, axis=1)
        return scores

    def score_samples(self, X: Any) -> Floats:
        """Return the posterior log predictive of each row: the log of the mean over draws."""
        log_predictives = self.draw_log_predictives(X)
        mean: Floats = logsumexp(log_predictives, axis=0) - np.log(len(log_predictives))
        return mean

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean posterior log predictive of the rows."""
        return float(self.score_samples(X).mean())

    def merge_tree(self, n_groups: int = 20) -> MergeTree:
        """Return the tree of merges over the clusters of `labels_`, by the model's own log odds.

        Parameters
        ----------
        n_groups : int
            Number of groups to optimise the tree for.

        Returns
        -------
        tree : MergeTree
            Its ids are the values of `labels_`.
        """
        check_is_fitted(self, "labels_")
        require_whole("n_groups", n_groups, 1)
        model = Model(self.prior_, self.likelihood_)
        state = gibbs.chain_at(model, self._batch, self.labels_, np.nan).state
        return merge_tree(model, state, n_groups)

    def mean_log_likelihood(self, X: Any) -> float:
        """Return the mean over draws of the summed log predictive, as reported in the paper."""
        return float(self.draw_log_predictives(X).sum(axis=1).mean())


class _Trace(NamedTuple):
    """The record of a chain."""

    log_likelihood: list[float]
    n_clusters: list[int]
    assignments: list[NDArray[np.int64]]
    """Of the last sweeps."""
    auxiliaries: list[float]


def _run_chain(
    seed: np.random.SeedSequence,
    model: Model,
    batch: Batch,
    kernel: KernelArguments | None,
    n_sweeps: int,
    n_moves: int,
    n_kept: int,
) -> _Trace:
    """Run one chain."""
    rng, lengths = np.random.default_rng(seed), {"n_sweeps": n_sweeps, "n_moves": n_moves}
    draws = list(gibbs.run(model, batch, rng, kernel, **lengths))
    kept = draws[-n_kept:]
    return _Trace(
        [draw.log_likelihood for draw in draws],
        [draw.n_clusters for draw in draws],
        [draw.assignments for draw in kept],
        [draw.auxiliary for draw in kept],
    )
