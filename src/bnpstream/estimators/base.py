"""Shared by all estimators: model parameters, and scikit-learn's conventions."""

from typing import Any, Literal

from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin
from sklearn.utils.validation import validate_data

from bnpstream.likelihoods import Likelihood
from bnpstream.likelihoods.cells import WrongWidthError
from bnpstream.priors import Prior


class MixtureEstimator(ClusterMixin, DensityMixin, BaseEstimator):
    """A mixture model given by the parameters `prior`, `likelihood` and `engine`."""

    prior: Prior | str
    engine: Literal["auto", "compiled", "reference"]
    n_jobs: int | None

    def _take(self, given: dict[str, Any]) -> None:
        """Set the arguments of a constructor, its `locals`, as attributes."""
        for name, value in given.items():
            if name != "self":
                setattr(self, name, value)

    @property
    def _n_jobs(self) -> int:
        """Return the number of threads; joblib's contexts are respected."""
        return int(effective_n_jobs(self.n_jobs))

    def _open_likelihood(self) -> Likelihood:
        """Return the likelihood as given; parameters may be unset."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        rows = self._open_likelihood().input
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = rows.positive_only
        tags.input_tags.allow_nan = rows.allow_nan
        tags.input_tags.categorical, tags.input_tags.string = rows.categorical, rows.string
        return tags


class matching_columns:  # noqa: N801  (a context manager)
    """Turn an error about the width of rows into scikit-learn's own error."""

    def __init__(self, estimator: Any, X: Any) -> None:
        self.estimator, self.X = estimator, X

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        """Raise scikit-learn's error; if scikit-learn has none, raise ours."""
        if isinstance(error, WrongWidthError) and hasattr(self.estimator, "n_features_in_"):
            validate_data(self.estimator, self.X, reset=False, skip_check_array=True)
