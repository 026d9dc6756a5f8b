"""What both estimators share: parameters that name a model, and the choice of engine."""

from numbers import Integral, Real
from typing import Any, Literal, TypeVar

from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin
from sklearn.utils.validation import validate_data

from bnpstream.likelihoods import NAMED_LIKELIHOODS, Batch, Likelihood
from bnpstream.mixture import KernelArguments, Model
from bnpstream.priors import NAMED_PRIORS, Prior

T = TypeVar("T")


class MixtureEstimator(ClusterMixin, DensityMixin, BaseEstimator):
    """A mixture model given by the parameters `prior`, `likelihood` and `engine`."""

    prior: Prior | str
    likelihood: Likelihood | str
    engine: Literal["auto", "compiled", "reference"]
    n_jobs: int | None

    def _model(self) -> Model:
        return Model(
            _resolve("prior", self.prior, Prior, NAMED_PRIORS),  # type: ignore[type-abstract]
            _resolve("likelihood", self.likelihood, Likelihood, NAMED_LIKELIHOODS),  # type: ignore[type-abstract]
        )

    def _encode(self, model: Model, X: Any) -> Batch:
        """Return rows to look at: they must have the columns of the rows fitted."""
        batch = model.likelihood.encode(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return batch

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
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


def _resolve(name: str, value: Any, kind: type[T], named: dict[str, Any]) -> T:
    """Return `value` if it is one of its kind, or what its string stands for."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str) and value in named:
        found: T = named[value]
        return found
    names = ", ".join(repr(known) for known in named)
    raise ValueError(f"{name} must be a {kind.__name__} or one of {names}, got {value!r}")
