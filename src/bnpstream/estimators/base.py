"""What both estimators share: parameters that name a model, and the choice of engine."""

from numbers import Integral, Real
from typing import Any, Literal, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin
from sklearn.utils.validation import validate_data

from bnpstream.likelihoods import (
    NAMED_LIKELIHOODS,
    Automatic,
    Batch,
    Categorical,
    ColumnLikelihood,
    DirichletMultinomial,
    Likelihood,
    Poisson,
    Product,
)
from bnpstream.likelihoods.cells import WrongWidthError
from bnpstream.likelihoods.frames import as_rows
from bnpstream.mixture import KernelArguments, Model
from bnpstream.priors import NAMED_PRIORS, Prior

T = TypeVar("T")
Floats = NDArray[np.float64]


class MixtureEstimator(ClusterMixin, DensityMixin, BaseEstimator):
    """A mixture model given by the parameters `prior`, `likelihood` and `engine`.

    Fitted, it has `prior_` and `likelihood_`, with nothing left open.
    """

    prior: Prior | str
    likelihood: Likelihood | str
    engine: Literal["auto", "compiled", "reference"]
    n_jobs: int | None
    likelihood_: Likelihood
    prior_: Prior

    def _prior(self) -> Prior:
        """Return the prior as it was given, or what was learnt of it since."""
        given = resolve_prior(self.prior)
        return self.prior_ if vars(self).get("_prior_given") == given else given

    def _take_prior(self, prior: Prior) -> None:
        """Use a prior from now on, learnt from what was given."""
        self.prior_, self._prior_given = prior, resolve_prior(self.prior)

    def _open_likelihood(self) -> Likelihood:
        """Return the likelihood as it was given: it may leave something open."""
        return _resolve("likelihood", self.likelihood, Likelihood, NAMED_LIKELIHOODS)  # type: ignore[type-abstract]

    def _model(self) -> Model:
        """Return prior and likelihood; a likelihood given since the last call takes over."""
        given, wanted = vars(self).get("_given", self.likelihood), self.likelihood
        if given is not wanted and not (isinstance(given, str) and given == wanted):
            self._take(self._successor())
        likelihood = getattr(self, "likelihood_", None)
        return Model(self._prior(), self._open_likelihood() if likelihood is None else likelihood)

    def _successor(self) -> Likelihood:
        """Return the likelihood given since the last call, if the posterior can go on with it."""
        names = list(getattr(self, "feature_names_in_", []))
        likelihood = self._open_likelihood().bound(names)
        if not likelihood.is_informed:
            raise ValueError(
                f"likelihood {self.likelihood!r} is to be learnt from the first rows, but these "
                "are absorbed: give all its parameters, or call fit"
            )
        if not likelihood.continues(self.likelihood_):
            raise ValueError(
                f"likelihood {likelihood!r} needs other statistics than {self.likelihood_!r}, "
                "which the rows so far were absorbed with: call fit"
            )
        return likelihood

    def _take(self, likelihood: Likelihood) -> None:
        """Use a likelihood, with nothing left open, from now on."""
        self.likelihood_, self._given = likelihood, self.likelihood

    def _encode(self, model: Model, X: Any) -> Batch:
        """Return rows to look at: they must have the columns of the rows fitted."""
        return self._checked(X, as_rows(X), model.likelihood, reset=False)

    def _checked(self, X: Any, rows: Any, likelihood: Likelihood, *, reset: bool) -> Batch:
        """Return rows encoded; bad cells are complained of first, then a wrong width."""
        try:
            batch = likelihood.encode(rows)
        except WrongWidthError:
            if not reset:
                validate_data(self, X, reset=False, skip_check_array=True)
            raise
        validate_data(self, X, reset=reset, skip_check_array=True)
        return batch

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        likelihood = self._open_likelihood()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = isinstance(likelihood, DirichletMultinomial | Poisson)
        tags.input_tags.allow_nan = (
            isinstance(likelihood, ColumnLikelihood) and likelihood.takes_missing
        ) or isinstance(likelihood, Automatic)
        tags.input_tags.categorical = isinstance(likelihood, Automatic | Categorical | Product)
        tags.input_tags.string = tags.input_tags.categorical
        return tags

    def _check_engine(self) -> None:
        if self.engine not in ("auto", "compiled", "reference"):
            raise ValueError(
                f'engine must be "auto", "compiled" or "reference", got {self.engine!r}'
            )

    def _kernel(self, model: Model, batch: Batch) -> KernelArguments | None:
        self._check_engine()
        n_jobs = effective_n_jobs(self.n_jobs)
        kernel = None if self.engine == "reference" else model.kernel_arguments(batch, n_jobs)
        if self.engine == "compiled" and kernel is None:
            raise ValueError(
                f"{model.prior!r} with {model.likelihood!r} has no compiled engine; "
                'use engine="auto" or engine="reference"'
            )
        return kernel


def require_whole(name: str, value: Any, least: int) -> int:
    """Return a whole number >= least, or say what is allowed."""
    if not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
    return int(value)


def require_number(name: str, value: Any, low: float, high: float) -> float:
    """Return a number in [low, high), or say what is allowed."""
    if not isinstance(value, Real) or not low <= float(value) < high:
        raise ValueError(f"{name} must be in [{low:g}, {high:g}), got {value!r}")
    return float(value)


def require_weights(sample_weight: Any, rows: Any) -> Floats | None:
    """Return one weight >= 0 a row, or None if all are one."""
    if sample_weight is None:
        return None
    n_rows = int(rows.shape[0])
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must be one number a row, {n_rows}, got an array of shape "
            f"{weights.shape}"
        )
    bad = ~((weights >= 0) & np.isfinite(weights))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"sample_weight[{row}] must be finite and >= 0, got {weights[row]}")
    if not weights.any():
        raise ValueError("sample_weight is zero for all rows: at least one must count")
    return None if (weights == 1.0).all() else weights


def resolve_prior(prior: Any) -> Prior:
    """Return a prior, or what its name stands for."""
    return _resolve("prior", prior, Prior, NAMED_PRIORS)  # type: ignore[type-abstract]


def _resolve(name: str, value: Any, kind: type[T], named: dict[str, Any]) -> T:
    """Return `value` if it is one of its kind, or what its string stands for."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str) and value in named:
        found: T = named[value]
        return found
    names = ", ".join(repr(known) for known in named)
    raise ValueError(f"{name} must be a {kind.__name__} or one of {names}, got {value!r}")
