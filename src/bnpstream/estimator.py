"""The scikit-learn face of the package."""

from typing import Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from bnpstream.inference import adf
from bnpstream.likelihoods import NAMED_LIKELIHOODS, Batch, Likelihood
from bnpstream.mixture import KernelArguments, MixtureState, Model, log_joint
from bnpstream.priors import NAMED_PRIORS, Prior

Floats = NDArray[np.float64]
T = TypeVar("T")

LOWEST_DEFAULT_THRESHOLD = 0.1
SCORED_CELLS = 4_000_000
"""(row, cluster) scores held at a time: 32 MB."""


class StreamingMixture(ClusterMixin, DensityMixin, BaseEstimator):
    """Cluster a stream in one pass, with as many clusters as the data ask for.

    ADF-NRM, Algorithm 1 of Tank, Foti & Fox (2015): a variational posterior of a mixture model
    whose prior is a normalized random measure, updated row by row.

    Parameters
    ----------
    prior : Prior or {"dp", "nig", "py"}
        How clusters arise. The strings stand for a Dirichlet process, a normalized inverse
        Gaussian process and a Pitman-Yor process with concentration 1.
    likelihood : Likelihood or {"multinomial"}
        What a row looks like in a cluster.
    new_cluster_threshold : float, optional
        epsilon in [sigma, 1): a row opens a cluster if the new cluster's responsibility is
        larger. Below sigma, the prior's discount, an opened cluster would have zero weight ever
        after. Default .1, or sigma where that is larger: low enough that the posterior is
        truncated little, high enough that a doubtful row does not cost every later row a
        cluster to look at.
    min_responsibility : float
        The cut: a cluster takes part in a row only if its score is at least this fraction of
        the best one's. Cells that would get a negligible share stay empty.
    engine : {"auto", "compiled", "reference"}
        Compiled loops where prior and likelihood have them, or NumPy. Both make the same
        decisions from the same posterior; identical bits are promised within one engine.

    Attributes
    ----------
    n_clusters_ : int
        Clusters so far.
    cluster_ids_ : ndarray of shape (n_clusters_,)
        Stable ids, ascending; everything below is in this order.
    weights_ : ndarray of shape (n_clusters_,)
        S_k / sum S: the share of the stream in each cluster.
    means_ : ndarray of shape (n_clusters_, n_features_in_)
        Posterior mean parameters; word probabilities for documents.
    labels_ : ndarray of shape (n_rows,)
        For the rows of the last `fit` or `partial_fit`: position in `cluster_ids_` of the
        likeliest cluster at the moment the row arrived.
    log_evidence_ : ndarray of shape (n_rows,)
        For the same rows: the log predictive one step ahead, before the row was absorbed.
    total_log_evidence_ : float
        Sum of all one-step-ahead log predictives since the start of the stream.
    n_samples_seen_ : int
        Rows absorbed.
    n_features_in_ : int
        Columns of the rows.
    state_ : MixtureState
        The posterior's arrays.

    Examples
    --------
    >>> from bnpstream import StreamingMixture, normalized_inverse_gaussian
    >>> from bnpstream.datasets import bars
    >>> images = bars(n_images=200, seed=0)
    >>> model = StreamingMixture(prior=normalized_inverse_gaussian(concentration=10, tilt=100))
    >>> model.partial_fit(images.counts[:100]).partial_fit(images.counts[100:]).n_samples_seen_
    200
    >>> model.predict_proba(images.counts).sum(axis=1).round(12).min()
    np.float64(1.0)
    """

    def __init__(
        self,
        prior: Prior | str = "dp",
        likelihood: Likelihood | str = "multinomial",
        *,
        new_cluster_threshold: float | None = None,
        min_responsibility: float = 1e-4,
        engine: Literal["auto", "compiled", "reference"] = "auto",
    ) -> None:
        self.prior = prior
        self.likelihood = likelihood
        self.new_cluster_threshold = new_cluster_threshold
        self.min_responsibility = min_responsibility
        self.engine = engine

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, then absorb the rows of X in order.

        Parameters
        ----------
        X : array-like or sparse of shape (n_rows, n_columns)
            Rows.
        y : ignored
        """
        return self._absorb(X, fresh=True)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Absorb the rows of X in order; any split of the same rows gives the same bits.

        Parameters
        ----------
        X : array-like or sparse of shape (n_rows, n_columns)
            Rows. If any is bad, ValueError names it and nothing is absorbed.
        y : ignored
        """
        return self._absorb(X, fresh=not hasattr(self, "state_"))

    def _absorb(self, X: Any, *, fresh: bool) -> Self:
        model, settings = self._model(), self._settings()
        batch = model.likelihood.encode(X)
        kernel = self._kernel(model, batch)
        validate_data(self, X, reset=fresh, skip_check_array=True)
        if fresh:
            self.state_: MixtureState = adf.init(model, batch.n_statistics)
        records = list(adf.run(model, self.state_, batch, settings, kernel))
        self.log_evidence_: Floats = np.concatenate(
            [record.rows.log_evidence for record in records]
        )
        ids = np.concatenate([record.rows.ids for record in records])
        self.labels_: NDArray[np.intp] = np.searchsorted(self.cluster_ids_, ids)
        return self

    def _model(self) -> Model:
        return Model(
            _resolve("prior", self.prior, Prior, NAMED_PRIORS),  # type: ignore[type-abstract]
            _resolve("likelihood", self.likelihood, Likelihood, NAMED_LIKELIHOODS),  # type: ignore[type-abstract]
        )

    def _settings(self) -> adf.Settings:
        sigma = self._model().prior.smallest_mass
        threshold = self.new_cluster_threshold
        if threshold is None:
            threshold = max(sigma, LOWEST_DEFAULT_THRESHOLD)
        if not sigma <= threshold < 1.0:
            raise ValueError(
                f"new_cluster_threshold (epsilon) must be in [{sigma:g}, 1), not below the prior's "
                f"discount {sigma:g} (a cluster opened with less mass has no weight), "
                f"got {threshold!r}"
            )
        if not 0.0 <= self.min_responsibility < 1.0:
            raise ValueError(
                f"min_responsibility must be in [0, 1), got {self.min_responsibility!r}"
            )
        return adf.Settings(float(threshold), float(self.min_responsibility))

    def _kernel(self, model: Model, batch: Batch) -> KernelArguments | None:
        if self.engine not in ("auto", "compiled", "reference"):
            raise ValueError(
                f'engine must be "auto", "compiled" or "reference", got {self.engine!r}'
            )
        kernel = None if self.engine == "reference" else model.kernel_arguments(batch)
        if self.engine == "compiled" and kernel is None:
            raise ValueError(
                f"{model.prior!r} with {model.likelihood!r} has no compiled engine; "
                'use engine="auto" or engine="reference"'
            )
        return kernel

    @property
    def n_clusters_(self) -> int:
        """Return the number of clusters."""
        return self._fitted().n_clusters

    @property
    def cluster_ids_(self) -> NDArray[np.int64]:
        """Return the stable ids in ascending order."""
        return np.sort(self._fitted().ids)

    @property
    def weights_(self) -> Floats:
        """Return S_k / sum S in the order of `cluster_ids_`."""
        masses = self._fitted().masses[self._order()]
        weights: Floats = masses / masses.sum()
        return weights

    @property
    def means_(self) -> Floats:
        """Return the posterior mean parameters in the order of `cluster_ids_`."""
        return self._model().likelihood.posterior_mean(self._fitted().statistics[self._order()])

    @property
    def total_log_evidence_(self) -> float:
        """Return the summed one-step-ahead log predictive of the stream."""
        return self._fitted().log_evidence

    @property
    def n_samples_seen_(self) -> int:
        """Return the number of rows absorbed."""
        return self._fitted().n_observations

    def _fitted(self) -> MixtureState:
        check_is_fitted(self, "state_")
        return self.state_

    def _order(self) -> NDArray[np.intp]:
        return np.argsort(self._fitted().ids)

    def _log_joint(self, X: Any) -> list[Floats]:
        """Return log joints in blocks of rows: clusters in order of id, the new one last."""
        state, model = self._fitted(), self._model()
        batch = model.likelihood.encode(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        columns = np.append(self._order(), state.n_clusters)
        rows = max(1, SCORED_CELLS // columns.size)
        parts = [batch.part(start, start + rows) for start in range(0, len(batch), rows)]
        return [
            log_joint(model, state, part, self._kernel(model, part))[:, columns] for part in parts
        ]

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return the position in `cluster_ids_` of every row's likeliest cluster."""
        return np.concatenate([np.argmax(block[:, :-1], axis=1) for block in self._log_joint(X)])

    def predict_ids(self, X: Any) -> NDArray[np.int64]:
        """Return the stable id of every row's likeliest cluster."""
        return self.cluster_ids_[self.predict(X)]

    def predict_proba(self, X: Any) -> Floats:
        """Return every row's responsibilities over `cluster_ids_`; they sum to one.

        The possibility of a new cluster is left out.
        """
        blocks = []
        for block in self._log_joint(X):
            known = block[:, :-1]
            blocks.append(np.exp(known - logsumexp(known, axis=1, keepdims=True)))
        return np.concatenate(blocks)

    def score_samples(self, X: Any) -> Floats:
        """Return the log predictive of every row, log h(x) and a new cluster included."""
        return np.concatenate([logsumexp(block, axis=1) for block in self._log_joint(X)])

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log predictive of the rows."""
        return float(self.score_samples(X).mean())

    def top_features(self, n: int = 10, feature_names: Any = None) -> list[list[tuple[Any, float]]]:
        """Return the n features with the largest mean of every cluster, largest first.

        Parameters
        ----------
        n : int
            Features a cluster.
        feature_names : sequence of length n_features_in_, optional
            Names to show; by default those of the data frame it was fitted on, else positions.

        Returns
        -------
        top : list of lists of (name, value)
            A list a cluster, in the order of `cluster_ids_`.
        """
        means = self.means_
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", range(means.shape[1]))
        if len(feature_names) != means.shape[1]:
            raise ValueError(
                f"feature_names has {len(feature_names)} names for {means.shape[1]} features"
            )
        columns = np.argsort(-means, axis=1, kind="stable")[:, :n]
        return [
            [(feature_names[column], float(mean[column])) for column in chosen]
            for mean, chosen in zip(means, columns, strict=True)
        ]

    def sample(
        self, n_samples: int = 1, *, random_state: int | np.random.Generator = 0, **options: Any
    ) -> tuple[Any, NDArray[np.int64]]:
        """Draw rows from the posterior predictive.

        Parameters
        ----------
        n_samples : int
            Rows to draw.
        random_state : int or numpy.random.Generator
            Seed, or a source of randomness.
        **options
            For the likelihood; ``length=100`` words a document for `DirichletMultinomial`.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features_in_)
            Rows.
        ids : ndarray of shape (n_samples,)
            Stable ids of the clusters they were drawn from; -1 for a cluster not seen so far.
        """
        state, model = self._fitted(), self._model()
        rng = np.random.default_rng(random_state)
        posterior = (state.masses, state.log_vacancy, state.total_mass)
        auxiliary = model.prior.solve_auxiliary(*posterior, state.auxiliary)
        weights = np.exp(model.prior.log_weights(*posterior, auxiliary))
        slots = rng.choice(weights.size, size=n_samples, p=weights / weights.sum())
        rows = model.likelihood.sample(state.candidates[slots], rng, **options)
        return rows, np.append(state.ids, -1)[slots]


def _resolve(name: str, value: Any, kind: type[T], named: dict[str, Any]) -> T:
    """Return `value` if it is one of its kind, or what its string stands for."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str) and value in named:
        found: T = named[value]
        return found
    names = ", ".join(repr(known) for known in named)
    raise ValueError(f"{name} must be a {kind.__name__} or one of {names}, got {value!r}")
