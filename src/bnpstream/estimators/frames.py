"""What a fitted mixture has found, as data frames: methods of estimators that have a stream."""

from typing import Any, Literal

from bnpstream.engine import Stream, require_whole
from bnpstream.engine.listing import cluster_columns, lineage_columns, topic_columns
from bnpstream.engine.portraits import TopicPortraits
from bnpstream.likelihoods.frames import frame_of

Library = Literal["pandas", "polars", "arrow"]


def clusters_frame(
    self: Any, *, n_words: int = 10, feature_names: Any = None, to: Library = "pandas"
) -> Any:
    """Return a data frame with one row per cluster, the largest first.

    Its columns: `id` (stable), `label` (a few words), `words` (the most distinctive words, or the
    columns of a table), `size` (expected number of rows), `share` of the stream, `born` (number of
    rows seen at its birth; missing if no longer known), `topic` (its id).

    Parameters
    ----------
    n_words : int
        Words, or columns, per cluster.
    feature_names : sequence of length n_features_in_, optional
        Names of columns; by default those of the data frame, or of the run, that it was fitted
        on, else positions. In a pipeline: ``pipeline[:-1].get_feature_names_out()``.
    to : {"pandas", "polars", "arrow"}
        Library of the data frame.

    Examples
    --------
    >>> from bnpstream import DocumentMixture
    >>> texts = ["rain wind snow", "wind rain hail", "bond stock rate", "stock loan bond"] * 9
    >>> frame = DocumentMixture(spread=10, total=1.0).fit(texts).clusters_frame()
    >>> frame["label"].tolist()[:2]
    ['bond, stock, loan', 'rain, wind, snow']
    """
    return frame_of(_listed(self, cluster_columns, n_words, feature_names), to)


def topics_frame(
    self: Any, *, n_words: int = 10, feature_names: Any = None, to: Library = "pandas"
) -> Any:
    """Return a data frame with one row per topic, the largest first.

    Its columns are those of `clusters_frame`, with `clusters` (the ids of its clusters) instead of
    `topic`. `born` is missing if the topics were found for this call only: they are kept from row
    1000 on, and after `finish`.

    Parameters
    ----------
    n_words, feature_names, to
        As in `clusters_frame`.
    """
    return frame_of(_listed(self, topic_columns, n_words, feature_names), to)


def lineage_frame(self: Any, *, to: Library = "pandas") -> Any:
    """Return a data frame with a line for every event of clusters and topics, in order.

    Its columns: `row` (rows seen), `level` ("cluster" or "topic"), `kind` ("birth", "merge",
    "death", "retire" or "split"), `id`, `into` (the survivor of a merge, the main heir of a
    split), `others` (further heirs), `mass`.

    Parameters
    ----------
    to : {"pandas", "polars", "arrow"}
        Library of the data frame.
    """
    stream = self.read_stream()
    stream.topics  # noqa: B018  topics of an ended stream are found when somebody asks
    return frame_of(lineage_columns(stream.lineage), to)


def _listed(model: Any, listing: Any, n_words: int, feature_names: Any) -> dict[str, list[Any]]:
    """Return the columns of clusters or topics."""
    require_whole("n_words", n_words, 1)
    stream = model.read_stream()
    portraits = TopicPortraits(stream.topics, stream.posterior)
    names = _column_names(model, stream, feature_names)
    found: dict[str, list[Any]] = listing(
        stream.posterior, portraits, stream.lineage, names, n_words
    )
    return found


def _column_names(estimator: Any, stream: Stream, given: Any) -> list[str]:
    """Return what the columns of rows are called."""
    words = stream.encoder.words()
    if words is not None:  # these are their own names
        if given is not None:
            raise ValueError("feature_names are for rows with columns, and these are texts")
        return [str(word) for word in words]
    n = estimator.n_features_in_
    if given is None:
        given = estimator.column_names()
    if given is None:
        given = range(n)
    if len(given) != n:
        raise ValueError(f"feature_names has {len(given)} names for {n} columns")
    return [str(name) for name in given]
