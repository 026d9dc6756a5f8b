"""The paper's method for hyperparameters: a grid, tried on the first rows of the stream.

The first rows are split into rows to learn from and rows to predict. Each point of the grid
learns the former in one pass; the point that predicts the latter best is used for the whole stream.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone

from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods.frames import as_frame
from bnpstream.search.grids import paper_grid
from bnpstream.search.parallel import Mapper, threads


class Run(NamedTuple):
    """One fit, by what distinguishes it from others of the same estimator to the same rows."""

    parameters: dict[str, Any]
    """Parameters of the estimator."""
    order: int | None = None
    """Seed of the order in which rows are learnt; None for the given order."""


class Point(NamedTuple):
    """Result of a run: a point of a grid, or a replicate."""

    parameters: dict[str, Any]
    """Parameters of the estimator."""
    scores: Floats
    """Log predictive of each held-out row."""
    n_clusters: int | None
    """After the pass; None if the estimator does not have it."""
    seconds: float

    @property
    def score(self) -> float:
        """Return the log predictive of all held-out rows."""
        return float(self.scores.sum())

    @property
    def standard_error(self) -> float:
        """Return the standard error of the score, over rows."""
        return _error_of_sum(self.scores)


class Lag(NamedTuple):
    """How much worse a point predicts than the best one."""

    nats: float
    """Over all held-out rows, <= 0."""
    standard_error: float
    """Over rows, from differences row by row, so that rows hard for all points do not matter."""


@dataclass(frozen=True, repr=False)
class GridResult:
    """Result of a grid search.

    Parameters
    ----------
    estimator : estimator
        The estimator as given.
    points : list of Point
        In the order of the grid.
    n_train : int
        Rows that each point learnt from.
    n_tokens : int or None
        Words in the held-out rows; None if rows are not documents.
    """

    estimator: Any
    points: list[Point]
    n_train: int
    n_tokens: int | None

    @property
    def n_held_out(self) -> int:
        """Return the number of rows on which points were scored."""
        return int(self.points[0].scores.size)

    @cached_property
    def best_index(self) -> int:
        """Return the position of the best point in `points`; the first in a tie."""
        return int(np.argmax([point.score for point in self.points]))

    @property
    def best(self) -> Point:
        """Return the point that predicts best."""
        return self.points[self.best_index]

    @property
    def best_estimator(self) -> Any:
        """Return a new estimator with the best parameters."""
        return _with(self.estimator, self.best.parameters)

    def order(self) -> list[int]:
        """Return the positions of all points, best first."""
        return sorted(range(len(self.points)), key=lambda i: -self.points[i].score)

    def lag(self, point: Point) -> Lag:
        """Return how far a point is behind the best."""
        behind = point.scores - self.best.scores
        return Lag(float(behind.sum()), _error_of_sum(behind))

    def table(self) -> list[dict[str, Any]]:
        """Return one record per point, best first: ``pandas.DataFrame(result.table())``."""
        records = []
        for point in (self.points[i] for i in self.order()):
            lag = self.lag(point)
            records.append(
                {f"param_{name}": value for name, value in point.parameters.items()}
                | {
                    "log_likelihood": point.score,
                    "standard_error": point.standard_error,
                    "per_row": point.score / self.n_held_out,
                    "per_token": point.score / self.n_tokens if self.n_tokens else None,
                    "behind": lag.nats,
                    "behind_error": lag.standard_error,
                    "clusters": point.n_clusters,
                    "seconds": point.seconds,
                }
            )
        return records

    def __repr__(self) -> str:
        named = ", ".join(f"{name}={value!r}" for name, value in self.best.parameters.items())
        return f"<GridResult: best of {len(self.points)} points is {named}>"


def grid_search(
    estimator: Any,
    X: Any,
    param_grid: Any = None,
    *,
    n_prefix: int = 1000,
    held_out: float = 0.2,
    seed: int | None = None,
    n_jobs: int | None = None,
    on_point: Callable[[Point, int, int], None] | None = None,
    mapper: Mapper | None = None,
) -> GridResult:
    """Try parameters on the first rows of a stream; score them on rows they did not learn from.

    Each point is one `fit` to the rows to learn from, and one `score_samples` of the held-out ones.

    Parameters
    ----------
    estimator : estimator
        The estimator to tune: a `StreamingMixture`, or any of scikit-learn's with `score_samples`.
    X : array-like, sparse, data frame or list of documents
        The stream; only its first `n_prefix` rows are used.
    param_grid : dict, or list of dicts, from names of parameters to lists of values
        In the form of scikit-learn's ``ParameterGrid``. Default `paper_grid`, for word counts.
    n_prefix : int
        Rows to use.
    held_out : float
        Share of these rows to hold out and predict.
    seed : int, optional
        By default the last rows are held out, because a stream is predicted from its past. With a
        seed, rows are held out at random, as in the paper: for a stream without drift, or a sorted
        one. The rows to learn from stay in order.
    n_jobs : int, optional
        Points to try in parallel, in threads (`parallel.threads`). Results do not depend on it, to
        the last bit.
    on_point : callable, optional
        Called with each point in order, the number done, and the number of all.
    mapper : callable, optional
        Tries the points elsewhere than in `n_jobs` threads; ``bnpstream.distributed.grid_search``
        does so on a cluster.

    Returns
    -------
    result : GridResult
        All points, and the best one as an estimator ready for the stream.

    Examples
    --------
    >>> from bnpstream import StreamingMixture
    >>> from bnpstream.datasets import bars
    >>> from bnpstream.search import grid_search, paper_grid
    >>> stream = bars(n_images=400, seed=0).counts
    >>> result = grid_search(
    ...     StreamingMixture(), stream, paper_grid(alphas=(0.1, 0.5)), n_prefix=200
    ... )
    >>> len(result.points), result.n_train, result.n_held_out
    (34, 160, 40)
    >>> result.best.parameters["likelihood"]
    DirichletMultinomial(alpha=0.5)
    >>> result.best_estimator.fit(stream).n_samples_seen_
    400
    """
    from sklearn.model_selection import ParameterGrid  # here, as it is slow to import

    _require_scores(estimator)
    grid = list(ParameterGrid(paper_grid() if param_grid is None else param_grid))
    train, rest = split(X, n_prefix, held_out, seed)
    points: list[Point] = []
    runs = [Run(parameters) for parameters in grid]
    outcomes = (mapper or threads(n_jobs))(_try, runs, estimator, train, rest)
    tokens: list[int | None] = []
    with closing(outcomes):
        for point, n_tokens in outcomes:
            points.append(point)
            tokens.append(n_tokens)
            if on_point is not None:
                on_point(point, len(points), len(grid))
    counted = None if None in tokens else tokens[0]
    return GridResult(estimator, points, _n_rows(train), counted)


def replicate(
    estimator: Any,
    X: Any,
    held_out: Any,
    seeds: Iterable[int],
    *,
    n_jobs: int | None = None,
    mapper: Mapper | None = None,
) -> list[Point]:
    """Fit the same model several times, to see how much is chance.

    Every replicate learns the rows in a different random order; an estimator with a `random_state`
    also gets a different one.

    Parameters
    ----------
    estimator : estimator
        The estimator to fit; it needs `score_samples`.
    X : array-like, sparse, data frame or list of documents
        Rows to learn from.
    held_out : like X
        Rows to predict.
    seeds : iterable of int
        One seed per replicate.
    n_jobs, mapper
        As in `grid_search`.

    Returns
    -------
    points : list of Point
        In the order of the seeds.

    Examples
    --------
    >>> from bnpstream import StreamingMixture
    >>> from bnpstream.datasets import bars
    >>> rows = bars(n_images=300, seed=0).counts
    >>> points = replicate(StreamingMixture("nig"), rows[:200], rows[200:], seeds=range(3))
    >>> len({point.score for point in points})
    3
    """
    _require_scores(estimator)
    random = "random_state" in estimator.get_params(deep=False)
    runs = [Run({"random_state": seed} if random else {}, seed) for seed in seeds]
    with closing((mapper or threads(n_jobs))(_try, runs, estimator, X, held_out)) as outcomes:
        return [point for point, _ in outcomes]


def _require_scores(estimator: Any) -> None:
    if not hasattr(estimator, "score_samples"):
        raise ValueError(
            f"{estimator!r} cannot be tuned by prediction: it has no score_samples; "
            "give a StreamingMixture"
        )


def split(X: Any, n_prefix: int, held_out: float, seed: int | None = None) -> tuple[Any, Any]:
    """Return the first rows in two parts, to learn from and to predict, both in order."""
    n = min(n_prefix, _n_rows(X))
    if n < 2:
        raise ValueError(
            f"{n} rows are too few for tuning: one is needed to learn from and one to predict; "
            "give more, or a larger n_prefix"
        )
    if not 0.0 < held_out < 1.0:
        raise ValueError(f"held_out must be a share in (0, 1), got {held_out!r}")
    n_held_out = min(max(1, round(held_out * n)), n - 1)
    chosen = np.arange(n - n_held_out, n)
    if seed is not None:
        chosen = np.sort(np.random.default_rng(seed).choice(n, n_held_out, replace=False))
    return _take(X, np.setdiff1d(np.arange(n), chosen)), _take(X, chosen)


def _try(run: Run, estimator: Any, train: Any, rest: Any) -> tuple[Point, int | None]:
    """Return the result of a run, and the number of words predicted if it models words."""
    parameters = run.parameters
    if run.order is not None:
        train = _take(train, np.random.default_rng(run.order).permutation(_n_rows(train)))
    began = time.perf_counter()
    try:
        model = _with(estimator, parameters).fit(train)
        scores = np.asarray(model.score_samples(rest), np.float64)
    except ValueError as error:
        named = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
        raise ValueError(f"{error} (with {named})") from error
    seconds = time.perf_counter() - began
    if np.isnan(scores).any():
        row = int(np.argmax(np.isnan(scores)))
        raise ValueError(f"{model!r} scores held-out row {row} as nan: it cannot be compared")
    n_clusters = getattr(model, "n_clusters_", None)
    return Point(parameters, scores, n_clusters, seconds), _n_tokens(model, rest)


def _with(estimator: Any, parameters: dict[str, Any]) -> Any:
    """Return an unfitted copy that shares nothing with others."""
    own = {name: clone(value, safe=False) for name, value in parameters.items()}
    return clone(estimator).set_params(**own)


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _take(X: Any, chosen: NDArray[np.intp]) -> Any:
    """Return some rows of a matrix, a data frame or a list."""
    if issparse(X):
        matrix: Any = X
        return matrix.tocsr()[chosen]
    frame = as_frame(X)
    if frame is not None:
        return frame[chosen.tolist(), :].to_native()
    return X[chosen] if isinstance(X, np.ndarray) else [X[i] for i in chosen]


def _n_tokens(model: Any, rows: Any) -> int | None:
    """Return the number of words in documents; None if rows are modelled as something else."""
    likelihood = getattr(model, "likelihood_", None)
    return None if likelihood is None else likelihood.n_tokens(rows)


def _error_of_sum(values: Floats) -> float:
    """Return the standard error of a sum of independent values; nan for one value."""
    if values.size < 2:
        return float("nan")
    return float(np.sqrt(values.size) * values.std(ddof=1))
