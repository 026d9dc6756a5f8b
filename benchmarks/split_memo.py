"""What a memo of earlier rows would gain: splits in one pass, without a window.

A simulation, for documents, of what the package does not have. After every so many rows of an
ordinary pass, every cluster may be split, judged by the odds of `inference.split`. What is known of
the rows that a cluster has absorbed:

- `rows`: all rows, as in a revisit of everything, but without sweeps: a perfect memo.
- `summaries`: SUMMARIES sums of statistics per cluster. A row with more than half of its mass in a
  cluster enters as one; if there are too many, the two are added up whose union loses the least log
  marginal likelihood. Anchors are the two farthest apart; the others join them whole in three
  sweeps; what has no memo stays with the heavier child.

Beside them are a plain pass, and a window of 1 000 rows with and without splits.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, combinations
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from bnpstream import (
    DirichletMultinomial,
    StreamingMixture,
    dirichlet_process,
    normalized_inverse_gaussian,
)
from bnpstream.datasets import load_kos, load_nyt8447
from bnpstream.evaluation import agreement
from bnpstream.inference.split import split_all
from bnpstream.likelihoods import Row
from bnpstream.mixture import log_prior_weights
from bnpstream.mixture.state import log_vacancy_of
from measure import arguments, save

ALPHA, SUMMARIES, SWEEPS, ORDERS = 0.1, 8, 3, 3
PRIORS = {
    "DP(100)": dirichlet_process(100.0),
    "NIG(10, 100)": normalized_inverse_gaussian(10, 100),
    "nothing given": None,
}
CORPORA = {"kos": (load_kos, 3430), "nyt8447": (load_nyt8447, 3125)}
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "window": {"revisit": 1000},
    "window, splits": {"revisit": 1000, "split_threshold": 0.0},
    "rows": {"keep_sites": True},
    "summaries": {},
}


LogMarginal = Callable[[Any], Any]


@dataclass
class Memo:
    """Sums of rows of a cluster."""

    sums: list[Any] = field(default_factory=list)
    masses: list[float] = field(default_factory=list)
    log_vacancy: list[float] = field(default_factory=list)
    losses: dict[tuple[int, int], float] = field(default_factory=dict)
    """By how much two sums are likelier apart than together, while the base measure stays."""

    def add(self, row: Any, mass: float, log_vacancy: float, log_marginal: LogMarginal) -> None:
        """Add a row; add up the two nearest sums if there are too many."""
        self.sums.append(row)
        self.masses.append(mass)
        self.log_vacancy.append(log_vacancy)
        if len(self.sums) <= SUMMARIES:
            return
        kept, gone = min(self.pairs(log_marginal), key=lambda pair: self.losses[pair])
        for values in (self.sums, self.masses, self.log_vacancy):
            values[kept] = values[kept] + values[gone]
            del values[gone]
        self.losses = {
            (i - (i > gone), j - (j > gone)): loss
            for (i, j), loss in self.losses.items()
            if not {kept, gone} & {i, j}
        }

    def pairs(self, log_marginal: LogMarginal) -> list[tuple[int, int]]:
        """Return all pairs of sums, whose losses are then known."""
        pairs = list(combinations(range(len(self.sums)), 2))
        new = [pair for pair in pairs if pair not in self.losses]
        if new:
            alone = log_marginal(np.array(self.sums))
            together = log_marginal(np.array([self.sums[i] + self.sums[j] for i, j in new]))
            for (i, j), both in zip(new, together, strict=True):
                self.losses[i, j] = float(alone[i] + alone[j] - both)
        return pairs

    def chosen(self, places: Any) -> "Memo":
        """Return some of the sums."""
        lists = (self.sums, self.masses, self.log_vacancy)
        return Memo(*([values[i] for i in np.flatnonzero(places)] for values in lists))

    def halves(self, log_marginal: LogMarginal) -> Any:
        """Return which sums go to the cluster of the second anchor."""
        first, second = max(self.pairs(log_marginal), key=lambda pair: self.losses[pair])
        rows, side = np.array(self.sums), np.full(len(self.sums), -1)
        side[[first, second]] = 0, 1
        for _ in range(SWEEPS):
            for i, row in enumerate(rows):
                side[i] = -1
                one, other = (rows[side == half].sum(axis=0) for half in (0, 1))
                levels = log_marginal(np.array([one, one + row, other, other + row]))
                side[i] = int(levels[3] - levels[2] > levels[1] - levels[0])
        return side == 1


def split_by_memos(model: Any, memos: dict[int, Memo]) -> int:
    """Split every cluster at most once, as its memo suggests."""
    state, prior = model._stream.state, model.prior_
    log_marginal = model.likelihood_.log_marginal
    log_u = log_prior_weights(prior, state)[1]
    n_splits = 0
    for slot in range(state.n_clusters):
        memo = memos.get(int(state.ids[slot]), Memo())
        if len(memo.sums) < 2:
            continue
        leaves = memo.halves(log_marginal)
        if 2.0 * np.array(memo.masses)[leaves].sum() > state.masses[slot]:
            leaves = ~leaves
        part, rest = memo.chosen(leaves), memo.chosen(~leaves)
        mass, log_vacancy = sum(part.masses), sum(part.log_vacancy)
        masses = np.array([state.masses[slot] - mass, mass])
        if not part.sums or not rest.sums or not masses.min() > prior.smallest_mass:
            continue
        moved, whole = sum(part.sums), np.asarray(state.statistics[slot])
        vacancies = np.array([min(state.log_vacancy[slot] - log_vacancy, 0.0), log_vacancy])
        occupancy = prior.occupancy(vacancies)
        joint = prior.occupancy(state.log_vacancy[[slot]])
        count = float(prior.occupancy(state.log_vacancy).sum() - joint[0] + occupancy.sum())
        of_one = prior.log_merge_odds(masses[:, None], occupancy[:, None], joint, count, log_u)
        levels = log_marginal(np.array([np.maximum(whole - moved, 0.0), moved, whole]))
        if levels[0] + levels[1] - levels[2] - float(of_one[0]) > 0.0:
            new = state.split(slot, Row(slice(None), moved, 0.0), masses, vacancies)
            memos[int(state.ids[slot])], memos[int(state.ids[new])] = rest, part
            n_splits += 1
    return n_splits


def absorb(model: Any, part: csr_array, memos: dict[int, Memo]) -> None:
    """Let the rows that a model has just absorbed enter the memos of their clusters."""
    living = set(model.cluster_ids_.tolist())
    for id in set(memos) - living:
        del memos[id]
    for memo in memos.values():
        memo.losses = {}
    for i in np.flatnonzero(model.probabilities_ > 0.5):
        id, q = int(model.label_ids_[i]), float(model.probabilities_[i])
        if id in living:
            counts = part[[i]].toarray()[0] * q
            row, log_vacancy = np.append(counts, counts.sum()), log_vacancy_of(np.array([q]))
            memo = memos.setdefault(id, Memo())
            memo.add(row, q, float(log_vacancy[0]), model.likelihood_.log_marginal)


def fit(rows: csr_array, prior: Any, way: str, every: int) -> Iterator[Any]:
    """Learn rows in parts; yield the model and the splits so far after every part."""
    given = {} if prior is None else {"prior": prior, "likelihood": DirichletMultinomial(ALPHA)}
    given |= {} if prior is None else {"new_cluster_threshold": 0.5}
    model = StreamingMixture(**given, **WAYS[way])
    memos: dict[int, Memo] = {}
    n_splits = 0
    for start in range(0, rows.shape[0], every):
        part = rows[start : start + every]
        model.partial_fit(part)
        if way == "rows":
            stream = model._stream
            batch = stream.encoder.view(stream.encoder.prepared(rows[: start + part.shape[0]]))
            kept = (batch, stream.window.sites, 0.0, stream.visits)
            kernel_for = partial(stream.kernel, stream.model)
            n_splits += len(split_all(stream.model, stream.state, *kept, kernel_for))
        if way == "summaries":
            absorb(model, part, memos)
            n_splits += split_by_memos(model, memos)
        n_events = sum(event.kind == "split" for event in model.lineage_)
        yield model, n_splits + n_events


def corpora(names: list[str]) -> Iterator[dict[str, Any]]:
    """Compare held-out log predictives on a share of every corpus."""
    for name in names:
        load, n = CORPORA[name]
        counts = load().counts
        chosen = counts[np.random.default_rng(0).permutation(counts.shape[0])[:n]]
        held_out, rows = chosen[: n // 5], chosen[n // 5 :]
        for named, prior in PRIORS.items():
            scores: dict[str, list[float]] = {}
            for way in WAYS:
                ends = []
                for order in range(ORDERS):
                    ordered = rows[np.random.default_rng(order).permutation(rows.shape[0])]
                    began = time.process_time()
                    *_, (model, n_splits) = fit(ordered, prior, way, 500)
                    seconds = time.process_time() - began
                    scores.setdefault(way, []).append(float(model.score_samples(held_out).sum()))
                    ends.append((model.n_clusters_, n_splits, seconds))
                gain = np.array(scores[way]) - scores["plain"]
                yield {
                    "data": name,
                    "prior": named,
                    "way": way,
                    "gain": float(gain.mean()),
                    "error": float(gain.std(ddof=1) / ORDERS**0.5),
                    **dict(zip(("clusters", "splits", "seconds"), np.mean(ends, 0), strict=True)),
                }


def parting(seed: int, nearness: float, n: int = 4000) -> tuple[Any, Any]:
    """Return documents of eight topics that become two each in the middle, and their labels."""
    rng = np.random.default_rng(seed)
    topics, words = 8, 200
    whole = rng.dirichlet(np.full(words, 0.1), size=topics)
    own = rng.dirichlet(np.full(words, 0.1), size=(topics, 2))
    halves = nearness * whole[:, None] + (1.0 - nearness) * own
    topic, half, late = rng.integers(0, topics, n), rng.integers(0, 2, n), np.arange(n) >= n // 2
    theta = np.where(late[:, None], halves[topic, half], halves.mean(axis=1)[topic])
    return csr_array(rng.multinomial(40, theta)), np.where(late, 2 * topic + half, -topic - 1)


def partings() -> Iterator[dict[str, Any]]:
    """Compare the evidence and the clusters of rows that come after topics have parted."""
    for nearness in (0.3, 0.5, 0.7):
        base: list[float] = []
        for way in WAYS:
            ends, evidence = [], []
            for seed in range(ORDERS):
                rows, labels = parting(seed, nearness)
                middle, last = rows.shape[0] // 2, 3 * rows.shape[0] // 4
                seen = 0.0
                began = time.process_time()
                for model, done in fit(rows, dirichlet_process(1.0), way, 250):
                    n_splits = done
                    if model.n_samples_seen_ == middle:
                        seen = model.total_log_evidence_
                seconds = time.process_time() - began
                evidence.append((model.total_log_evidence_ - seen) / (rows.shape[0] - middle))
                ari = agreement(labels[last:], model.predict(rows[last:])).ari
                ends.append((ari, model.n_clusters_, n_splits, seconds))
            base = base or evidence
            gain = np.array(evidence) - base
            yield {
                "data": f"topics that part, {nearness:g} in common",
                "prior": "DP(1)",
                "way": way,
                "gain": float(gain.mean()),
                "error": float(gain.std(ddof=1) / ORDERS**0.5),
                **dict(
                    zip(("ari", "clusters", "splits", "seconds"), np.mean(ends, 0), strict=True)
                ),
            }


def main() -> None:
    """Print and save what every way gains over a plain pass."""
    args = arguments(__doc__ or "").parse_args()
    found = []
    for one in chain(partings(), corpora(list(CORPORA))):
        found.append(one)
        print(
            f"{one['data']}, {one['prior']}, {one['way']}: {one['gain']:+,.3f} "
            f"+- {one['error']:,.3f} nats, {one['clusters']:.1f} clusters, "
            f"{one['splits']:.1f} splits, {one['seconds']:.2f} s"
            + (f", ARI {one['ari']:.3f}" if "ari" in one else ""),
            flush=True,
        )
    save({"found": found}, args.json)


if __name__ == "__main__":
    main()
