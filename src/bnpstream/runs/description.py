"""What a run found, as plain numbers and words: for tables, JSON and the report."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

from bnpstream.inference.tree import MergeTree
from bnpstream.likelihoods.features import Feature, label_of
from bnpstream.mixture import Event


class Exemplar(NamedTuple):
    """A record that is typical of a cluster."""

    record: int
    """Number of the record in its source, from 0."""
    id: str | int
    score: float
    excerpt: str
    """Its beginning, or its commonest words."""


@dataclass(frozen=True)
class ClusterDescription:
    """One cluster."""

    id: int
    weight: float
    """Share of the stream."""
    size: float
    """Mass: expected number of rows."""
    born: int | None
    """Rows seen when it was opened; None if that is not known any more."""
    likely: list[Feature]
    """Features with the largest value, largest first."""
    lifted: list[Feature]
    """Words that tell it apart, the most telling first; columns with the largest lift."""
    exemplars: list[Exemplar]
    trend: list[int]
    """Rows whose likeliest cluster it was, a number a bin of the stream."""
    mean: list[float] | None = None
    """All values, where features are the pixels of an image."""
    n_merged: int = 1
    """Clusters that it is made of, where they were merged to show fewer."""
    topic: int | None = None
    """The topic that it is in."""


@dataclass(frozen=True)
class TopicDescription:
    """One topic: what a person wants to read, clusters being the detail below it."""

    id: int
    weight: float
    """Share of the stream."""
    size: float
    """Expected number of rows."""
    born: int | None
    """Rows seen when it was found first; None if that is not known."""
    label: str
    """A few words, or columns with their means."""
    likely: list[Feature]
    lifted: list[Feature]
    """As of a cluster."""
    exemplars: list[Exemplar]
    """The best of its clusters."""
    trend: list[int]
    """Rows of its clusters, a number a bin of the stream."""
    clusters: list[int]
    """Ids, the heaviest first."""
    mean: list[float] | None = None
    """All values, where features are the pixels of an image."""


class TopicsFound(NamedTuple):
    """When topics were found, in rows seen: topics are found again only now and then."""

    row: int
    next: int

    def __str__(self) -> str:
        return (
            f"Topics as of row {self.row:,}. They are updated at row {self.next:,} and at the end "
            "of the source; until then new clusters join the closest topic."
        )


@dataclass(frozen=True)
class GroupDescription:
    """A group of clusters: one node of the tree of merges."""

    id: int
    """Of its heaviest cluster."""
    weight: float
    n_clusters: int
    parent: int
    """The group that it is in where there are fewer."""
    likely: list[Feature]
    lifted: list[Feature]
    mean: list[float] | None = None


@dataclass(frozen=True)
class TreeDescription:
    """Clusters from coarse to fine."""

    tree: MergeTree
    levels: list[list[GroupDescription]]
    """Groups of the tree cut at a few levels, the coarsest first; heaviest first in each."""


@dataclass(frozen=True)
class RunDescription:
    """A run."""

    name: str
    """Of the run directory."""
    kind: Literal["words", "columns", "pixels"]
    finished: bool
    """Whether the source was read to its end."""
    rows: int
    records: int
    rejects: int
    tokens: int | None
    """Words of all documents; None where rows are no documents."""
    seconds: float
    """Time spent so far."""
    log_evidence: float
    """Sum of one-step-ahead log predictives."""
    n_clusters: int
    clusters: list[ClusterDescription]
    """Heaviest first."""
    bin_ends: list[int]
    """Rows seen at the end of every bin of the stream."""
    bin_evidence: list[float]
    """Mean one-step-ahead log predictive a row of every bin."""
    bin_clusters: list[int]
    """Clusters at the end of every bin."""
    events: list[Event]
    """Births, merges, splits, deaths and retirements of clusters and topics, in order."""
    reject_reasons: list[tuple[str, int]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    """What the model and the source were told, by group."""
    versions: dict[str, str] = field(default_factory=dict)
    image_shape: tuple[int, int] | None = None
    tree: TreeDescription | None = None
    topics: list[TopicDescription] = field(default_factory=list)
    """Heaviest first."""
    topics_found: TopicsFound | None = None
    """When the topics were found; None if after the last row."""

    @property
    def has_titles(self) -> bool:
        """Return whether typical records, and not columns, tell what clusters are."""
        return self.kind == "columns" and not any(cluster.lifted for cluster in self.clusters)

    @property
    def cluster_events(self) -> list[Event]:
        """Return what happened to clusters; `events` has what happened to topics too."""
        return [event for event in self.events if event.level == "cluster"]


def name_of(one: ClusterDescription | TopicDescription, kind: str) -> str:
    """Return what a person may call a cluster or a topic: a typical record if nothing tells it."""
    if isinstance(one, TopicDescription):
        return one.label
    typical = one.exemplars[0].excerpt if one.exemplars else ""
    return label_of(one.lifted, kind) or typical


def document_of(one: ClusterDescription | TopicDescription, kind: str) -> dict[str, Any]:
    """Return a cluster or a topic as JSON, with a label."""
    document = asdict(one) | {"label": name_of(one, kind)}
    for name in ("likely", "lifted", "exemplars"):
        document[name] = [part._asdict() for part in getattr(one, name)]
    return document
