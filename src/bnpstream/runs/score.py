"""Scores other records by a fitted run: how well it predicts them, and their clusters."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bnpstream.kernels.arrays import Floats
from bnpstream.runs.absorption import sound_parts
from bnpstream.runs.mixture import Mixture
from bnpstream.runs.overview import Run
from bnpstream.sources import Records, Source, open_source

ALTERNATIVES = 3
WITH_FIELDS = ("jsonl", "csv", "tsv", "parquet", "arrow")
"""Formats whose records have named fields or columns."""


class Prediction(NamedTuple):
    """Cluster and topic of a record."""

    record: int
    id: str | int
    cluster: int
    """Stable id of the likeliest cluster."""
    position: int
    """Its position in the order of ids."""
    topic: int
    """Stable id of the topic."""
    probability: float
    novelty: float
    novelty_quantile: float | None
    """Share of the stream's last rows that were more probable; None for documents."""
    alternatives: list[tuple[int, float]]
    """The next likeliest clusters, with their probabilities."""


@dataclass(frozen=True)
class Evaluation:
    """How well a run predicts records."""

    documents: int
    rejects: int
    tokens: int | None
    log_likelihood: float
    per_document: float
    per_token: float | None
    perplexity: float | None
    """exp(-log likelihood a token) of the words in order: log h(x), the logarithm of how many
    orders a document's words have, is in the figures above and not in this one."""
    n_clusters: int
    used_clusters: int
    """Number of clusters that are the likeliest for some record."""
    nmi: float | None = None
    ari: float | None = None
    v_measure: float | None = None
    homogeneity: float | None = None
    completeness: float | None = None
    purity: float | None = None
    n_topics: int = 0
    used_topics: int = 0
    """Number of topics that contain some record."""
    topic_nmi: float | None = None
    topic_ari: float | None = None
    topic_v_measure: float | None = None
    topic_homogeneity: float | None = None
    topic_completeness: float | None = None
    topic_purity: float | None = None


def source_for(
    run: Run, paths: list[str], label_field: str | None = None, **changes: Any
) -> Source:
    """Open a source with the same kind of records as those the run was fitted to.

    With a `label_field`, its value takes the place of the record's id.
    """
    options = replace(run.source_options, time_field=None, **changes)  # nothing is forgotten here
    if label_field is not None:
        options = replace(options, id_field=label_field)
    wanted = options.format if options.format is not None else run.schema.format
    schema = None
    if wanted == run.schema.format:
        fields = {role: name for role, name in run.schema.fields.items() if role != "time"}
        if label_field is not None:
            fields["id"] = label_field
        schema = replace(run.schema, fields=fields)
    elif run.schema.kind == "table" and "vector" not in run.schema.fields:
        options = replace(options, columns=run.schema.names)  # columns left out stay out
    source = open_source(paths, options, schema)
    if label_field is not None and source.schema.format not in WITH_FIELDS:
        raise ValueError(
            f"--label-field {label_field}: records of the format {source.schema.format} have no "
            "fields; give a file of labels with --labels"
        )
    return source


def evaluate(
    run: Run,
    source: Source,
    labels: NDArray[Any] | None = None,
    batch_rows: int = 1024,
    *,
    is_labelled: bool = False,
) -> Evaluation:
    """Score the records of a source.

    Parameters
    ----------
    run : Run
        A fitted run.
    source : Source
        Records to score.
    labels : ndarray of shape (n,), optional
        True labels of all records, including rejects.
    is_labelled : bool
        Whether the ids of records are their true labels, see `source_for`.
    """
    likelihood = run.model.likelihood
    total, orders, documents, rejects, tokens = 0.0, 0.0, 0, 0, 0
    ids, found, grouped, numbers = run.model.posterior.ids, [], [], []
    truth, reasons = list[str](), list[str]()
    for records, joint in _scored(run.model, source, batch_rows):
        rejects += sum(not reject.is_part for reject in records.rejects)
        reasons += (f"; {reject.place}: {reject.reason}" for reject in records.rejects[:1])
        if len(records) == 0:
            continue
        total += float(sum(logsumexp(block, axis=1).sum() for block in joint))
        found.append(np.concatenate([block[:, :-1].argmax(axis=1) for block in joint]))
        grouped += run.model.topics_of(run.found_topics, records.rows, ids[found[-1]])
        numbers += records.numbers
        truth += map(str, records.ids)
        documents += len(records)
        tokens += likelihood.n_tokens(records.rows) or 0
        orders += float(likelihood.log_orders(records.rows).sum())
    if documents == 0:
        raise ValueError(f"{source}: no valid records{''.join(reasons[:1])}")
    positions, topics = np.concatenate(found), np.array(grouped)
    scores: dict[str, float] = {}
    if labels is not None and len(labels) != documents + rejects:
        raise ValueError(f"got {len(labels)} labels for {documents + rejects} records")
    if labels is not None or is_labelled:
        from bnpstream.evaluation import agreement  # here, as scikit-learn is slow to import

        known = np.array(truth) if labels is None else labels[numbers]
        scores = agreement(known, positions)._asdict()
        above = agreement(known, topics)._asdict()
        scores |= {f"topic_{name}": score for name, score in above.items()}
    counted = tokens if tokens > 0 else None
    return Evaluation(
        documents,
        rejects,
        counted,
        total,
        total / documents,
        None if counted is None else total / counted,
        None if counted is None else float(np.exp((orders - total) / counted)),
        run.model.n_clusters,
        int(np.unique(positions).size),
        n_topics=run.found_topics.ids.size,
        used_topics=int(np.unique(topics).size),
        **scores,
    )


def predict(
    run: Run, source: Source, batch_rows: int = 1024
) -> Iterator[tuple[Records, list[Prediction]]]:
    """Yield batches of records and their predictions; nothing is absorbed."""
    for records, _ in source.batches(batch_rows):
        yield from predict_records(run, records)


def predict_records(run: Run, records: Records) -> Iterator[tuple[Records, list[Prediction]]]:
    """Yield parts of a batch with their predictions; parts contain rejects too."""
    for part, blocks in _scored_records(run.model, records):
        yield part, _predictions(run, part, blocks)


def _predictions(run: Run, records: Records, blocks: list[Floats]) -> list[Prediction]:
    """Return predictions of records from their log joints."""
    ids, found = run.model.posterior.ids, list[Prediction]()
    topics: list[int] = []
    if blocks:
        best = np.concatenate([joint[:, :-1].argmax(axis=1) for joint in blocks])
        topics = run.model.topics_of(run.found_topics, records.rows, ids[best])
    for joint in blocks:
        log_predictives = logsumexp(joint, axis=1)
        novelty = np.exp(joint[:, -1] - log_predictives)
        quantiles = run.model.novelty_quantiles(log_predictives)
        known = joint[:, :-1]
        shares = np.exp(known - logsumexp(known, axis=1, keepdims=True))
        count = min(ALTERNATIVES + 1, shares.shape[1])
        top = np.argpartition(-shares, count - 1, axis=1)[:, :count]
        for i, best in enumerate(top):
            best = best[np.argsort(-shares[i, best], kind="stable")]
            at = len(found)
            others = [(int(ids[k]), float(shares[i, k])) for k in best[1:] if shares[i, k] > 0]
            found.append(
                Prediction(
                    records.numbers[at],
                    records.ids[at],
                    int(ids[best[0]]),
                    int(best[0]),
                    topics[at],
                    float(shares[i, best[0]]),
                    float(novelty[i]),
                    None if quantiles is None else float(quantiles[i]),
                    others,
                )
            )
    return found


def _scored(
    model: Mixture, source: Source, batch_rows: int
) -> Iterator[tuple[Records, list[Floats]]]:
    """Yield batches and the log joints of their rows; reject what the model refuses."""
    for records, _ in source.batches(batch_rows):
        yield from _scored_records(model, records)


def _scored_records(model: Mixture, records: Records) -> Iterator[tuple[Records, list[Floats]]]:
    """Yield parts of a batch and the log joints of their rows."""
    yield Records([], [], [], rejects=records.rejects), []
    sound = records.part(slice(None))
    for part, joint, refused in sound_parts(sound, lambda part: model.log_joint(part.rows)):
        if joint is not None:
            yield part, joint
        else:
            assert refused is not None
            yield Records([], [], [], rejects=[refused]), []
