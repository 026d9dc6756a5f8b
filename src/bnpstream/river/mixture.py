"""`StreamingMixture` for river."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from river.base import Clusterer
from scipy.special import logsumexp

from bnpstream.estimators.base import require_whole, resolve_prior
from bnpstream.estimators.visiting import settings_of
from bnpstream.kernels.passes.steps import NEGLIGIBLE
from bnpstream.priors import Prior
from bnpstream.river.counts import CountLearner, as_counted
from bnpstream.river.learner import Floats, Learner, Record
from bnpstream.river.numbers import NumberLearner, as_numbers

KINDS = ("auto", "counts", "gaussian")


class StreamingMixture(Clusterer):
    """Cluster records one by one, with as many clusters as the data ask for.

    ADF-NRM over dicts of features, which may appear and vanish. Counts, as of words, are documents
    over a vocabulary that grows; other numbers are Gaussian columns, and one that is not in a
    record is a missing cell, which is integrated out. The first `prefix_rows` records are kept;
    they decide what kind of records these are, and what is expected of a feature before clusters
    are known. Until there are so many, answers come from a throw-away model of those there are.

    Parameters
    ----------
    prior : Prior or {"dp", "nig", "ngg", "stable", "py"}
        How clusters arise. What a name leaves open is learnt after P, 2P, 4P... records, P being
        `prefix_rows`.
    likelihood : {"auto", "counts", "gaussian"}
        What features are. "auto": counts if all values of the first records are whole numbers and
        none is negative or missing, as those of `BagOfWords`; else Gaussian. Whole numbers that
        count nothing, as ages, need "gaussian".
    new_cluster_threshold : float, optional
        A record opens a cluster if the new cluster's responsibility is larger. Default .1, or the
        prior's discount where that is larger.
    min_responsibility : float
        The cut: a cluster takes part in a record only if its score is at least this fraction of the
        best one's.
    prefix_rows : int
        Records that base measures are taken from. A number that appears later is first used when
        a tenth as many values of it have been seen.

    Examples
    --------
    >>> from bnpstream.river import StreamingMixture
    >>> from river import feature_extraction
    >>> model = feature_extraction.BagOfWords() | StreamingMixture(prefix_rows=4)
    >>> for text in ["a cat and a dog", "stock and bond", "the dog, the cat", "bond yield"] * 5:
    ...     model.learn_one(text)
    >>> model.predict_one("my dog") == model.predict_one("a cat")
    True
    >>> model.predict_one("my dog") == model.predict_one("a bond")
    False
    """

    def __init__(
        self,
        prior: Prior | str = "dp",
        likelihood: str = "auto",
        new_cluster_threshold: float | None = None,
        min_responsibility: float = 1e-4,
        prefix_rows: int = 100,
    ) -> None:
        self._settings = settings_of(
            resolve_prior(prior), new_cluster_threshold, min_responsibility
        )
        if likelihood not in KINDS:
            names = ", ".join(repr(kind) for kind in KINDS)
            raise ValueError(f"likelihood must be one of {names}, got {likelihood!r}")
        require_whole("prefix_rows", prefix_rows, 1)
        self.prior = prior
        self.likelihood = likelihood
        self.new_cluster_threshold = new_cluster_threshold
        self.min_responsibility = min_responsibility
        self.prefix_rows = prefix_rows
        self._prefix: list[Record] = []
        self._learner: Learner | None = None
        self._provisional: Learner | None = None

    @property
    def n_clusters(self) -> int:
        """Return the number of clusters so far."""
        learner = self._current()
        return 0 if learner is None else learner.state.n_clusters

    def learn_one(self, x: Record) -> None:
        """Absorb a record.

        Parameters
        ----------
        x : dict
            Features. If one is bad, ValueError names it and nothing is absorbed.
        """
        if self._learner is not None:
            self._learner.learn([x])
        else:
            self._keep([x])

    def learn_many(self, X: Any) -> None:
        """Absorb the rows of a data frame in order; the same bits as one by one.

        Parameters
        ----------
        X : pandas.DataFrame
            Features; NaN where a record has none.
        """
        records = list(records_of(X))
        if self._learner is not None:
            self._learner.learn(records)
        else:
            self._keep(records)

    def predict_one(self, x: Record) -> int:
        """Return the id of the likeliest cluster; 0, the first one's, before there is any.

        Ids are stable once there are `prefix_rows` records.
        """
        learner = self._current()
        if learner is None:
            return 0
        scores = learner.log_joint(x, log_cut=0.0, new=False)[:-1]
        return int(learner.state.ids[np.argmax(scores)])

    def predict_proba_one(self, x: Record) -> dict[int, float]:
        """Return the responsibility of every cluster by id; a new one is left out."""
        learner = self._current()
        if learner is None:
            return {}
        scores: Floats = learner.log_joint(x, log_cut=NEGLIGIBLE, new=False)[:-1]
        shares = np.exp(scores - logsumexp(scores))
        return dict(zip(learner.state.ids.tolist(), shares.tolist(), strict=True))

    def score_one(self, x: Record) -> float:
        """Return the log predictive of a record, a new cluster included; NaN before any record."""
        learner = self._current()
        if learner is None:
            return math.nan
        return float(logsumexp(learner.log_joint(x, log_cut=NEGLIGIBLE, new=True)))

    def _keep(self, records: list[Record]) -> None:
        """Keep records until there are enough to begin with, then learn them in order."""
        check = as_counted if self.likelihood == "counts" else as_numbers
        for record in records:
            check(record)
        kept = [*self._prefix, *(dict(record) for record in records)]
        enough = len(kept) >= self.prefix_rows
        self._learner = self._learned(kept) if enough else None
        self._prefix = [] if enough else kept
        self._provisional = None

    def _learned(self, records: list[Record]) -> Learner:
        """Return a posterior of some records, base measures taken from the first."""
        first, kind = records[: self.prefix_rows], self.likelihood
        if kind == "auto":
            kind = "counts" if all(map(_is_counted, first)) else "gaussian"
        model = (resolve_prior(self.prior), self._settings)
        needed = max(self.prefix_rows // 10, min(2, self.prefix_rows))
        learner = (
            CountLearner(*model, first)
            if kind == "counts"
            else NumberLearner(*model, first, needed)
        )
        learner.learn(records)
        return learner

    def _current(self) -> Learner | None:
        """Return the posterior, a throw-away one while records are kept, None without records."""
        if self._learner is None and self._provisional is None and self._prefix:
            self._provisional = self._learned(self._prefix)
        return self._learner or self._provisional


def records_of(X: Any) -> Iterator[Record]:
    """Yield the rows of a data frame as dicts of what is there."""
    kinds = {(hasattr(dtype, "fill_value"), dtype.kind) for dtype in X.dtypes}
    if kinds and kinds <= {(True, "i"), (True, "u")}:  # sparse counts, as those of BagOfWords
        names, counts = list(X.columns), X.sparse.to_coo().tocsr()
        for i in range(counts.shape[0]):
            inside = slice(counts.indptr[i], counts.indptr[i + 1])
            columns, values = counts.indices[inside].tolist(), counts.data[inside].tolist()
            yield {names[j]: value for j, value in zip(columns, values, strict=True)}
        return
    for record in X.to_dict("records"):
        yield {name: value for name, value in record.items() if value == value}


def _is_counted(record: Record) -> bool:
    numbers = as_numbers(record).values()
    return all(number >= 0.0 and number.is_integer() for number in numbers)
