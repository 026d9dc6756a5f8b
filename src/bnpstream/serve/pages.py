"""The pages that people see, built from the parts of the report."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from bnpstream.mixture.lineage import survivors
from bnpstream.report.clusters import Row, rows_of
from bnpstream.report.page import NOUNS, TEMPLATES, environment, reject_bars
from bnpstream.report.pictures import HEIGHT
from bnpstream.report.topics import topic_rows
from bnpstream.runs.description import (
    ClusterDescription,
    RunDescription,
    TopicDescription,
    name_of,
)
from bnpstream.serve.river import Series, river_of
from bnpstream.serve.watch import Snapshot, Watch

OWN = Path(__file__).parent / "templates"
HEAVIEST, YOUNGEST, IN_TOPIC, FOUND, EVENTS = 25, 8, 100, 100, 200
"""Clusters on the first page, new, in a topic, found by a search; events of a cluster."""
KEPT = 32
"""Pages kept until the next checkpoint."""


class Pages:
    """Makes pages about a watched run; each page is made once per checkpoint.

    Parameters
    ----------
    watch : Watch
        The watched run.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch, self._environment = watch, environment(OWN)
        self._kept: OrderedDict[str, tuple[str, str]] = OrderedDict()
        self._parts: tuple[str, dict[str, Any]] = "", {}
        both = {"style.css": "live.css", "script.js": "live.js"}
        self.assets = {
            name: "\n".join(path.read_text("utf-8") for path in (TEMPLATES / name, OWN / own))
            for name, own in both.items()
        }

    def home(self) -> str:
        """Return the first page, with the current numbers."""
        watch, snapshot = self._watch, self._watch.snapshot
        live: dict[str, Any] = {
            "now": watch.now,
            "now_json": orjson.dumps(now_document(watch)).decode(),
            "points_json": orjson.dumps([point._asdict() for point in watch.points]).decode(),
        }
        if snapshot is None:
            found: dict[str, Any] = {
                "about": None,
                "problem": watch.problem,
                "noun": "rows",
                "reject_bars": [],
            }
            return self._rendered("home.html", None, home=True, **live, **found)
        if self._parts[0] != snapshot.version:
            self._parts = snapshot.version, _parts(snapshot.about)
        return self._rendered("home.html", snapshot, home=True, **live, **self._parts[1])

    def topic(self, snapshot: Snapshot, id: int) -> str | None:
        """Return the page of a topic, or None if there is no such topic."""
        about = snapshot.about
        topic = next((one for one in about.topics if one.id == id), None)
        if topic is None:
            return None

        def make() -> str:
            members = set(topic.clusters)
            clusters = [cluster for cluster in about.clusters if cluster.id in members]
            return self._rendered(
                "one_topic.html",
                snapshot,
                topic=topic,
                river=river_of(
                    about, [_of_cluster(about, one) for one in clusters], "clusters", members
                ),
                rows=_rows(about, clusters[:IN_TOPIC]),
            )

        return self._page(f"topic-{id}", snapshot, make)

    def cluster(self, snapshot: Snapshot, id: int) -> str | None:
        """Return the page of a cluster, alive or gone; None if it never existed."""
        about = snapshot.about
        own = [cluster for cluster in about.clusters if cluster.id == id]
        events = [e for e in about.cluster_events if id in (e.id, e.into, *e.others)]
        if not own and not events:
            return None

        def make() -> str:
            topics = [one for one in about.topics if own and one.id == own[0].topic]
            return self._rendered(
                "one_cluster.html",
                snapshot,
                id=id,
                label=name_of(own[0], about.kind) if own else "",
                rows=_rows(about, own),
                topic=topics[0] if topics else None,
                heirs=[] if own else survivors(id, about.events),
                history=_history(id, events),
            )

        return self._page(f"cluster-{id}", snapshot, make)

    def search(self, snapshot: Snapshot, query: str) -> str:
        """Return the results page of a search."""
        about = snapshot.about
        found = search(about, query)
        rows = _rows(about, found[:FOUND])
        return self._rendered("found.html", snapshot, query=query, rows=rows, n_found=len(found))

    def _page(self, name: str, snapshot: Snapshot, make: Callable[[], str]) -> str:
        """Return a page from the cache, or make it."""
        version, page = self._kept.get(name, ("", ""))
        if version != snapshot.version:
            page = make()
        self._kept[name] = snapshot.version, page
        self._kept.move_to_end(name)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return page

    def _rendered(self, template: str, snapshot: Snapshot | None, **parts: Any) -> str:
        usual: dict[str, Any] = {"home": False, "query": "", "height": HEIGHT, "version": ""}
        usual["name"] = self._watch.folder.resolve().name
        if snapshot is not None:
            noun = NOUNS[snapshot.about.kind]
            usual |= {"about": snapshot.about, "noun": noun, "version": snapshot.version}
        return self._environment.get_template(template).render(usual | parts)


def _parts(about: RunDescription) -> dict[str, Any]:
    """Return the parts of the first page that depend on the checkpoint."""
    # A row shared between clusters can open one that never reaches the mass of a single row.
    held = [cluster for cluster in about.clusters if cluster.size >= 1.0] or about.clusters
    young = sorted(held, key=lambda cluster: (-(cluster.born or 0), -cluster.id))
    return {
        "river": river_of(about, _series(about), "topics" if about.topics else "clusters"),
        "topics": topic_rows(about),
        "rows": _rows(about, about.clusters[:HEAVIEST]),
        "youngest": _rows(about, young[:YOUNGEST]),
        "reject_bars": reject_bars(about),
        "problem": "",
    }


def now_document(watch: Watch) -> dict[str, Any]:
    """Return the current numbers for the page, with the last point of the trace."""
    snapshot = watch.snapshot
    files = snapshot is None or "://" not in str(snapshot.run.config["source"]["paths"][0])
    return {
        **watch.now.document(),
        "time": time.time(),
        "moved": watch.points[-1]._asdict() if watch.points else None,
        "lag_unit": "bytes" if files else "records",
    }


def search(about: RunDescription, query: str) -> list[ClusterDescription]:
    """Return the clusters whose words, typical records or ids contain all words of a query."""
    wanted = query.lower().split()
    if not wanted:
        return []
    return [one for one in about.clusters if all(word in _text_of(one) for word in wanted)]


def _text_of(cluster: ClusterDescription) -> str:
    parts = [str(cluster.id)]
    parts += [feature.name for feature in (*cluster.lifted, *cluster.likely)]
    for exemplar in cluster.exemplars:
        parts += [str(exemplar.id), exemplar.excerpt]
    return " ".join(parts).lower()


def _rows(about: RunDescription, clusters: list[ClusterDescription]) -> list[Row]:
    return rows_of(replace(about, clusters=clusters))


def _series(about: RunDescription) -> list[Series]:
    """Return the bands of the first page's river: topics, or clusters if there are none."""
    if not about.topics:
        return [_of_cluster(about, cluster) for cluster in about.clusters]
    return [_of_topic(topic) for topic in about.topics]


def _of_topic(topic: TopicDescription) -> Series:
    return Series(f"topic-{topic.id}", topic.label or f"topic {topic.id}", topic.trend)


def _of_cluster(about: RunDescription, cluster: ClusterDescription) -> Series:
    label = name_of(cluster, about.kind) or f"cluster {cluster.id}"
    return Series(f"cluster-{cluster.id}", label, cluster.trend)


def _history(id: int, events: list[Any]) -> list[tuple[int, str, int | None]]:
    """Return the history of a cluster: row, words, and the other cluster involved."""
    told: list[tuple[int, str, int | None]] = []
    for event in events[-EVENTS:]:
        row, mass = event.n_observations, f"{event.mass:,.1f} rows"
        if event.kind == "birth":
            told.append((row, "was born", None))
        elif event.kind == "merge" and event.id == id:
            told.append((row, f"merged, with {mass}, into", event.into))
        elif event.kind == "merge":
            told.append((row, f"absorbed {mass} from", event.id))
        elif event.kind == "split" and event.id == id:
            told.append((row, f"split, with {mass}; its main heir is", event.into))
        elif event.kind == "split":
            told.append((row, "born in a split of", event.id))
        else:
            verb = "dropped" if event.kind == "death" else "retired"
            told.append((row, f"{verb}, with {mass}", None))
    return told
