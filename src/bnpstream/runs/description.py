"""What a run found, as plain numbers and words: for tables, JSON and the report."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

from bnpstream.inference.tree import MergeTree
from bnpstream.likelihoods.features import Feature, label_of
from bnpstream.mixture import Event


class Exemplar(NamedTuple):
    """A typical record of a cluster."""

    record: int
    """Number of the record in its source, from 0."""
    id: str | int
    score: float
    excerpt: str
    """Its beginning, or its most frequent words."""


@dataclass(frozen=True)
class ClusterDescription:
    """One cluster."""

    id: int
    weight: float
    """Share of the stream."""
    size: float
    """Mass: expected number of rows."""
    born: int | None
    """Rows seen when it was opened; None if no longer known."""
    likely: list[Feature]
    """Features with the largest values, largest first."""
    lifted: list[Feature]
    """Distinctive words, most distinctive first; columns with the largest lift."""
    exemplars: list[Exemplar]
    trend: list[int]
    """Rows whose likeliest cluster it was, per bin of the stream."""
    mean: list[float] | None = None
    """All values, if features are the pixels of an image."""
    n_merged: int = 1
    """Number of clusters merged into it, if clusters were merged for display."""
    topic: int | None = None
    """Id of its topic."""


@dataclass(frozen=True)
class TopicDescription:
    """One topic: what a person reads first; clusters are the detail below it."""

    id: int
    weight: float
    """Share of the stream."""
    size: float
    """Expected number of rows."""
    born: int | None
    """Rows seen when it was first found; None if unknown."""
    label: str
    """A few words, or columns with their means."""
    likely: list[Feature]
    lifted: list[Feature]
    """As for a cluster."""
    exemplars: list[Exemplar]
    """The best of its clusters' exemplars."""
    trend: list[int]
    """Rows of its clusters, per bin of the stream."""
    clusters: list[int]
    """Ids, largest first."""
    mean: list[float] | None = None
    """All values, if features are the pixels of an image."""


class TopicsFound(NamedTuple):
    """When topics were last found, and when they will be found again, in rows seen."""

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
    """Id of its largest cluster."""
    weight: float
    n_clusters: int
    parent: int
    """The group that contains it at the next coarser level."""
    likely: list[Feature]
    lifted: list[Feature]
    mean: list[float] | None = None


@dataclass(frozen=True)
class TreeDescription:
    """Groups of clusters, from coarse to fine."""

    tree: MergeTree
    levels: list[list[GroupDescription]]
    """Groups of the tree cut at a few levels, coarsest level first, largest group first."""


@dataclass(frozen=True)
class RunDescription:
    """What a run found."""

    name: str
    """Name of the run directory."""
    kind: Literal["words", "columns", "pixels"]
    finished: bool
    """Whether the source was read to its end."""
    rows: int
    records: int
    rejects: int
    tokens: int | None
    """Words of all documents; None if rows are not documents."""
    seconds: float
    """Time spent so far."""
    log_evidence: float
    """Sum of one-step-ahead log predictives."""
    n_clusters: int
    clusters: list[ClusterDescription]
    """Largest first."""
    bin_ends: list[int]
    """Rows seen at the end of each bin of the stream."""
    bin_evidence: list[float]
    """Mean one-step-ahead log predictive per row in each bin."""
    bin_clusters: list[int]
    """Clusters at the end of each bin."""
    events: list[Event]
    """Births, merges, splits, deaths and retirements of clusters and topics, in order."""
    reject_reasons: list[tuple[str, int]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of the model and the source, by group."""
    versions: dict[str, str] = field(default_factory=dict)
    image_shape: tuple[int, int] | None = None
    tree: TreeDescription | None = None
    topics: list[TopicDescription] = field(default_factory=list)
    """Largest first."""
    topics_found: TopicsFound | None = None
    """When topics were last found; None if after the last row."""

    @property
    def has_titles(self) -> bool:
        """Return whether clusters are best described by typical records, not by columns."""
        return self.kind == "columns" and not any(cluster.lifted for cluster in self.clusters)

    @property
    def cluster_events(self) -> list[Event]:
        """Return the events of clusters; `events` also has those of topics."""
        return [event for event in self.events if event.level == "cluster"]


def name_of(one: ClusterDescription | TopicDescription, kind: str) -> str:
    """Return a name for a cluster or topic: its label, or else a typical record."""
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
