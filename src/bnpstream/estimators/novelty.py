"""How unlike what is expected of the stream a row is: surprise."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bnpstream.estimators.reading import PosteriorReader
from bnpstream.likelihoods import Batch, DirichletMultinomial
from bnpstream.likelihoods.cells import CellBatch
from bnpstream.mixture import log_prior_weights

Floats = NDArray[np.float64]

DRAWS = 256
"""Rows drawn to find out what is expected: a mean is then known to a sixteenth of the spread."""
LENGTHS = 16
"""Lengths at which documents are drawn; between them expectations are interpolated."""


class NoveltyReader(PosteriorReader):
    """Says how unlike the stream so far rows are."""

    def surprise(self, X: Any) -> Floats:
        """Return how far the log predictive of every row is below what is expected of its like.

        A long document is less probable than a short one, and a row with missing cells more
        probable than a complete one. So rows are drawn from the posterior predictive (always the
        same ones), of the same length or with the same cells missing, and

            surprise = (mean of their log predictives - the row's) / their standard deviation.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_rows, n_features_in_)
            Rows; not absorbed.

        Returns
        -------
        surprise : ndarray of shape (n_rows,)
            About 0 with a spread of 1 for rows like those of the stream; 5 is an outlier.
        """
        batch = self._encode(self._model(), X)
        found = self._log_predictives(batch)
        mean: Floats | float
        spread: Floats | float
        if isinstance(self._model().likelihood, DirichletMultinomial):
            ends = batch.kernel_rows.indptr[1:] - 1
            mean, spread = self._expected_by_length(batch.kernel_rows.values[ends])
        elif isinstance(batch, CellBatch):
            mean, spread = self._expected_by_gaps(np.isnan(batch.cells))
        else:
            mean, spread = self._expected(self._drawn())
        surprise: Floats = (mean - found) / spread
        return surprise

    def _log_predictives(self, batch: Batch) -> Floats:
        return np.concatenate([logsumexp(b, axis=1) for b in self._log_joint_of(batch)])

    def _drawn(self, **options: Any) -> Any:
        """Return rows drawn from the posterior predictive, the same ones every time."""
        state, model = self._fitted(), self._model()
        rng = np.random.default_rng(0)
        weights = np.exp(log_prior_weights(model.prior, state)[0])
        slots = rng.choice(weights.size, size=DRAWS, p=weights / weights.sum())
        return model.likelihood.sample(state.rows(slots), rng, **options)

    def _expected(self, rows: Any) -> tuple[float, float]:
        """Return mean and standard deviation of the log predictives of drawn rows."""
        found = self._log_predictives(self._model().likelihood.encode(rows))
        return float(found.mean()), max(float(found.std()), np.finfo(float).tiny)

    def _expected_by_length(self, lengths: Floats) -> tuple[Floats, Floats]:
        """Return what is expected of documents of these lengths."""
        grid = np.unique(lengths)
        if grid.size > LENGTHS:
            grid = np.unique(np.rint(np.geomspace(max(grid[0], 1.0), grid[-1], LENGTHS)))
        expected = [
            self._expected(self._drawn(length=int(length))) if length > 0 else (0.0, 1.0)
            for length in grid
        ]
        means, spreads = np.array(expected).T
        return np.interp(lengths, grid, means), np.interp(lengths, grid, spreads)

    def _expected_by_gaps(self, missing: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Return what is expected of rows with these cells missing."""
        rows = np.asarray(self._drawn())
        patterns, which = np.unique(missing, axis=0, return_inverse=True)
        gap: Any = None if rows.dtype == object else np.nan
        expected = [
            self._expected(np.where(pattern, gap, rows)) if not pattern.all() else (0.0, 1.0)
            for pattern in patterns
        ]
        means, spreads = np.array(expected)[which.ravel()].T
        return means, spreads
