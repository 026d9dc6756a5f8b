"""Results of a fitted mixture as data frames: methods of estimators with a stream."""

from collections.abc import Sequence
from typing import Any, Literal

from bnpstream.engine import Stream, require_whole
from bnpstream.engine.listing import cluster_columns, lineage_columns, topic_columns
from bnpstream.engine.portraits import TopicPortraits
from bnpstream.likelihoods.frames import frame_of

Library = Literal["pandas", "polars", "arrow"]
N_EXAMPLES = 3
"""Examples per topic."""


def clusters_frame(
    self: Any,
    *,
    n_words: int = 10,
    feature_names: Any = None,
    rows: Any = None,
    texts: Sequence[Any] | None = None,
    to: Library = "pandas",
) -> Any:
    """Return a data frame with one row per cluster, the largest first.

    Its columns: `id` (stable), `label` (a few words), `words` (the most distinctive words, or the
    columns of a table), `size` (expected number of rows), `share` of the stream, `born` (number of
    rows seen at its birth; missing if no longer known), `topic` (its id). With `rows` also
    `examples`: the three of these rows that are closest to its centroid.

    Parameters
    ----------
    n_words : int
        Words, or columns, per cluster.
    feature_names : sequence of length n_features_in_, optional
        Names of columns; by default those of the data frame or run that the model was fitted on, or
        else positions. In a pipeline: ``pipeline[:-1].get_feature_names_out()``.
    rows : array-like of shape (n, n_features_in_), optional
        Vectors from which to take examples, by cosine; for directions only.
    texts : sequence of length n, optional
        What to show as examples, such as the texts of `rows`. Default row numbers.
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
    columns = _listed(self, cluster_columns, n_words, feature_names)
    if rows is not None:
        columns["examples"] = _examples(columns["id"], self.exemplars(rows), texts)
    return frame_of(columns, to)


def topics_frame(
    self: Any,
    *,
    n_words: int = 10,
    feature_names: Any = None,
    rows: Any = None,
    texts: Sequence[Any] | None = None,
    to: Library = "pandas",
) -> Any:
    """Return a data frame with one row per topic, the largest first.

    Its columns are those of `clusters_frame`, with `clusters` (the ids of its clusters) instead of
    `topic`. `born` is missing if a topic was found only for this answer (see `topics_`).

    Parameters
    ----------
    n_words, feature_names, rows, texts, to
        As in `clusters_frame`. Examples of a topic are the rows closest to the centroids of its
        clusters, starting with the largest cluster.
    """
    columns = _listed(self, topic_columns, n_words, feature_names)
    if rows is not None:
        found, sizes = (
            self.exemplars(rows),
            dict(zip(self.cluster_ids_, self.weights_, strict=True)),
        )
        own = {
            topic: [
                row
                for id in sorted(clusters, key=lambda id: -sizes[id])
                for row in found.get(id, [])
            ][:N_EXAMPLES]
            for topic, clusters in zip(columns["id"], columns["clusters"], strict=True)
        }
        columns["examples"] = _examples(columns["id"], own, texts)
    return frame_of(columns, to)


def lineage_frame(self: Any, *, to: Library = "pandas") -> Any:
    """Return a data frame with one row per event of clusters and topics, in order.

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


def _examples(ids: list[int], rows: Any, texts: Sequence[Any] | None) -> list[list[Any]]:
    """Return the examples of clusters or topics, as texts or as row numbers."""
    numbers = [[int(row) for row in rows.get(id, [])] for id in ids]
    if texts is None:
        return numbers
    last = max((row for some in numbers for row in some), default=-1)
    if last >= len(texts):
        raise ValueError(f"texts has {len(texts)} entries, but an example is row {last}")
    return [[texts[row] for row in some] for some in numbers]


def _listed(model: Any, listing: Any, n_words: int, feature_names: Any) -> dict[str, list[Any]]:
    """Return the columns of clusters or topics."""
    require_whole("n_words", n_words, 1)
    stream = model.read_stream()
    portraits = TopicPortraits(stream.topics_now, stream.posterior)
    names = _column_names(model, stream, feature_names)
    found: dict[str, list[Any]] = listing(
        stream.posterior, portraits, stream.lineage, names, n_words
    )
    return found


def _column_names(estimator: Any, stream: Stream, given: Any) -> list[str]:
    """Return the names of the columns of rows."""
    words = stream.encoder.words()
    if words is not None:  # these are their own names
        if given is not None:
            raise ValueError("feature_names are for rows with columns, but these are texts")
        return [str(word) for word in words]
    n = estimator.n_features_in_
    if given is None:
        given = estimator.column_names()
    if given is None:
        given = range(n)
    if len(given) != n:
        raise ValueError(f"feature_names has {len(given)} names for {n} columns")
    return [str(name) for name in given]
