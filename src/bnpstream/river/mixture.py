"""`StreamingMixture` for river."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from river.base import Clusterer

from bnpstream.engine import Phase, Settings, Stream, require_whole, resolve_prior
from bnpstream.priors import Prior
from bnpstream.river.records import RECORD_ENCODERS, Kind, Record, encoder_for
from bnpstream.storage.models import loading, read_model, save_model

KINDS = get_args(Kind)
SETTINGS = tuple(field.name for field in fields(Settings))
FACE = " for river"


class StreamingMixture(Clusterer):
    """Cluster records one by one, with as many clusters as the data call for.

    ADF-NRM over dicts of features, which may appear and vanish. Counts, such as word counts, are
    documents over a growing vocabulary; other numbers are Gaussian columns, and a feature that is
    absent from a record is a missing cell, which is integrated out. The first `prefix_rows` records
    are kept to learn the kind of records and the base measure; until there are enough, a
    provisional model of them answers.

    Parameters
    ----------
    prior : Prior or {"dp", "nig", "ngg", "stable", "py"}
        Prior over partitions. Parameters of a prior given by name are learnt after P, 2P, 4P...
        records, where P is `prefix_rows`.
    likelihood : {"auto", "counts", "gaussian"}
        Kind of features. "auto": counts if all values of the first records are non-negative whole
        numbers and none is missing, as from `BagOfWords`; otherwise Gaussian. Whole numbers that
        are not counts, such as ages, need "gaussian".
    new_cluster_threshold : float, optional
        A record opens a new cluster if the responsibility of the new cluster exceeds this. Default
        .1, or the discount of the prior if that is larger.
    min_responsibility : float
        A cluster takes a share of a record only if its score is at least this fraction of the best
        score.
    prefix_rows : int
        Initial records used to learn unset parameters. A number that appears later is first used
        when a tenth as many of its values have been seen.
    max_responsibilities, prune_threshold, revisit, n_revisits, tol, keep_sites, \
merge_threshold, merge_every, split_threshold, max_clusters, max_memory, engine, half_life
        As in `bnpstream.StreamingMixture`.

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
        likelihood: Kind = "auto",
        new_cluster_threshold: float | None = None,
        min_responsibility: float = 1e-4,
        prefix_rows: int = 100,
        *,
        max_responsibilities: int | None = 4,
        prune_threshold: float | None = None,
        revisit: int | Literal["all"] = 0,
        n_revisits: int = 1,
        tol: float = 1e-4,
        keep_sites: bool = False,
        merge_threshold: float | Literal["auto"] | None = "auto",
        merge_every: int = 1000,
        split_threshold: float | None = None,
        max_clusters: int | None = None,
        max_memory: int | str | None = None,
        engine: Literal["auto", "compiled", "reference"] = "auto",
        half_life: float | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name != "self"}
        if likelihood not in KINDS:
            names = ", ".join(repr(kind) for kind in KINDS)
            raise ValueError(f"likelihood must be one of {names}, got {likelihood!r}")
        for name, value in given.items():
            setattr(self, name, value)
        asked = resolve_prior(prior)
        settings = Settings(**{name: given[name] for name in SETTINGS if name in given})
        # The threshold stays at its initial value, and a learnt discount stays below it.
        threshold = settings.visit(asked).new_cluster_threshold
        settings = replace(settings, new_cluster_threshold=threshold)
        require_whole("prefix_rows", prefix_rows, 1)
        self._stream = Stream(asked, encoder_for(likelihood, prefix_rows), settings)

    @property
    def stream(self) -> Stream:
        """Return the stream behind it: posterior, lineage, learnt parameters."""
        return self._stream

    @property
    def n_clusters(self) -> int:
        """Return the number of clusters so far."""
        empty = self._stream.phase is Phase.EMPTY
        return 0 if empty else self._stream.answering.state.n_clusters

    def learn_one(self, x: Record, w: float = 1.0, t: Any = None) -> None:
        """Absorb a record.

        Parameters
        ----------
        x : dict
            Features. If one is invalid, ValueError names it and nothing is absorbed.
        w : float
            Number of records that it counts for.
        t : float or datetime64, optional
            Time of the record, with `half_life`.
        """
        weights = None if w == 1.0 else [w]
        self._stream.absorb([x], weights, None if t is None else [t])

    def learn_many(self, X: Any, w: Any = None, t: Any = None) -> None:
        """Absorb the rows of a data frame in order; the same bits as one by one.

        Parameters
        ----------
        X : pandas.DataFrame
            Features; NaN if missing.
        w, t : array-like of shape (n_rows,), optional
            Number of records that each counts for, and their times.
        """
        records = list(records_of(X))
        if records:
            self._stream.absorb(records, w, t)

    def finish(self) -> None:
        """Revisit the rows left in the window and freeze them: the stream has ended, or pauses."""
        self._stream.finish()

    def predict_one(self, x: Record) -> int:
        """Return the id of the most likely cluster; 0 before the first record.

        Ids are stable once there are `prefix_rows` records.
        """
        if self._stream.phase is Phase.EMPTY:
            return 0
        posterior = self._stream.posterior
        return int(posterior.ids[posterior.best(self._stream.view([x]))[0]])

    def predict_proba_one(self, x: Record) -> dict[int, float]:
        """Return the responsibility of each cluster by id, without a new cluster."""
        if self._stream.phase is Phase.EMPTY:
            return {}
        posterior = self._stream.posterior
        shares = posterior.responsibilities(self._stream.view([x]))[0]
        return dict(zip(posterior.ids.tolist(), shares.tolist(), strict=True))

    def score_one(self, x: Record) -> float:
        """Return the log predictive of a record, including a new cluster; NaN before any record."""
        if self._stream.phase is Phase.EMPTY:
            return math.nan
        return float(self._stream.posterior.log_predictives(self._stream.view([x]))[0])

    def novelty_one(self, x: Record) -> float:
        """Return the responsibility of a new cluster; 1 before any record."""
        if self._stream.phase is Phase.EMPTY:
            return 1.0
        return float(self._stream.posterior.novelty(self._stream.view([x]))[0])

    def novelty_quantile_one(self, x: Record) -> float:
        """Return the share of the last 1024 records that were more probable; 0 before any record.

        Each was scored just before it was learnt. Among records like earlier ones, about 1 % are
        above .99. Texts are refused, because their probabilities depend on their lengths.
        """
        if self._stream.phase is Phase.EMPTY:
            return 0.0
        return float(self._stream.novelty_quantiles(self._stream.view([x]))[0])

    def save(self, path: str | Path) -> None:
        """Save everything to a directory: settings as JSON, arrays as safetensors, no pickle."""
        settings = {name: getattr(self, name) for name in self._get_params()}
        save_model(Path(path), type(self).__name__ + FACE, settings, self._stream)

    @classmethod
    def load(cls, path: str | Path, *, classes: Iterable[type] = ()) -> "StreamingMixture":
        """Load a model from a directory.

        Parameters
        ----------
        path : str or Path
            The path given to `save`.
        classes : iterable of type
            Your own classes of priors (dataclasses) that the model uses.
        """
        saved = read_model(Path(path), cls.__name__ + FACE, classes)
        with loading(Path(path)):
            model = cls(**saved.settings)
            model._stream = saved.stream(model._stream, RECORD_ENCODERS)
        return model


def records_of(X: Any) -> Iterator[Record]:
    """Yield the rows of a data frame as dicts, without missing values."""
    kinds = {(hasattr(dtype, "fill_value"), dtype.kind) for dtype in X.dtypes}
    if kinds and kinds <= {(True, "i"), (True, "u")}:  # sparse counts, as from BagOfWords
        names, counts = list(X.columns), X.sparse.to_coo().tocsr()
        for i in range(counts.shape[0]):
            inside = slice(counts.indptr[i], counts.indptr[i + 1])
            columns, values = counts.indices[inside].tolist(), counts.data[inside].tolist()
            yield {names[j]: value for j, value in zip(columns, values, strict=True)}
        return
    for record in X.to_dict("records"):
        yield {name: value for name, value in record.items() if value == value}
