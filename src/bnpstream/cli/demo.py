"""``bnpstream demo``: the handwritten digits, streamed once."""

import importlib.util
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from scipy.sparse import csr_array

from bnpstream.datasets import digits
from bnpstream.estimator import StreamingMixture
from bnpstream.evaluation import agreement, majority_labels
from bnpstream.likelihoods import DirichletMultinomial
from bnpstream.priors import normalized_inverse_gaussian

BATCH_ROWS = 32
IMAGE = (8, 8)


@dataclass(frozen=True)
class ClusterSummary:
    """One line of the table."""

    id: int
    weight: float
    images: int
    digit: int | None
    share: float | None


@dataclass(frozen=True)
class DemoResult:
    """Everything the demo found; printed as a table or as JSON."""

    rows: int
    rows_per_second: float
    compile_seconds: float
    n_clusters: int
    log_evidence: float
    log_evidence_per_row: float
    nmi: float
    ari: float
    purity: float
    clusters: list[ClusterSummary]
    pictures: list[str]


def run_demo(out: Path, *, as_json: bool) -> None:
    """Stream the digits, print what was found, write two pictures to `out`."""
    console = Console(stderr=as_json)
    data = digits()
    # The file comes writer by writer: shuffled, the stream is stationary.
    order = np.random.default_rng(0).permutation(data.counts.shape[0])
    images, labels = data.counts[order], np.asarray(data.labels)[order]
    console.print(
        f"Streaming {len(order)} images of handwritten digits, each a document of ink over "
        "64 pixels, once.\nNeither the digits nor their number are given to the model.\n"
    )
    started = time.perf_counter()
    with console.status("compiling (first run only) ..."):
        _model().partial_fit(images[:1]).predict(images[:1])
    compile_seconds = time.perf_counter() - started

    model = _model()
    rows_seen, n_clusters, evidence, seconds = _stream(model, images, console)
    positions = model.predict(images)
    majority, shares = majority_labels(labels, positions, model.n_clusters_)
    sizes = np.bincount(positions, minlength=model.n_clusters_)
    summaries = [
        ClusterSummary(
            int(model.cluster_ids_[k]),
            float(model.weights_[k]),
            int(sizes[k]),
            int(majority[k]) if sizes[k] else None,
            float(shares[k]) if sizes[k] else None,
        )
        for k in np.argsort(-model.weights_, kind="stable")
    ]
    scores = agreement(labels, positions)
    result = DemoResult(
        len(order),
        len(order) / seconds,
        compile_seconds,
        model.n_clusters_,
        model.total_log_evidence_,
        model.total_log_evidence_ / len(order),
        scores.nmi,
        scores.ari,
        scores.purity,
        summaries,
        _draw(out, model, majority, rows_seen, n_clusters, evidence, console),
    )
    if as_json:
        json.dump(asdict(result), sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        _print(result, console)


def _model() -> StreamingMixture:
    return StreamingMixture(
        prior=normalized_inverse_gaussian(concentration=1, tilt=1),
        likelihood=DirichletMultinomial(alpha=2.0),
    )


def _stream(
    model: StreamingMixture, images: csr_array, console: Console
) -> tuple[list[int], list[int], list[float], float]:
    """Feed the rows in batches; return rows and clusters after each, evidence, and seconds."""
    rows_seen, n_clusters, evidence, seconds = [], [], [], 0.0
    n = images.shape[0]
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("images  {task.fields[clusters]} clusters"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=n, clusters=0)
        for start in range(0, n, BATCH_ROWS):
            batch = images[start : start + BATCH_ROWS]
            tick = time.perf_counter()
            model.partial_fit(batch)
            seconds += time.perf_counter() - tick
            rows_seen.append(model.n_samples_seen_)
            n_clusters.append(model.n_clusters_)
            evidence.extend(model.log_evidence_.tolist())
            progress.update(task, completed=model.n_samples_seen_, clusters=model.n_clusters_)
    return rows_seen, n_clusters, evidence, seconds


def _draw(
    out: Path,
    model: StreamingMixture,
    majority: np.ndarray,
    rows_seen: list[int],
    n_clusters: list[int],
    evidence: list[float],
    console: Console,
) -> list[str]:
    if importlib.util.find_spec("matplotlib") is None:
        console.print(
            "No pictures: matplotlib is missing; pip install 'bnpstream[plots]'", markup=False
        )
        return []
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from bnpstream.plots import plot_clusters, plot_evidence, plot_means

    out.mkdir(parents=True, exist_ok=True)
    captions = [f"mostly {digit}" if digit >= 0 else "" for digit in majority]
    means = plot_means(model.means_, model.weights_, IMAGE, captions)
    course, (top, bottom) = plt.subplots(2, 1, figsize=(6.4, 5.6), layout="constrained")
    starts = [0, *rows_seen[:-1]]
    plot_clusters(rows_seen, n_clusters, ax=top)
    plot_evidence(
        rows_seen, np.add.reduceat(evidence, starts) / np.subtract(rows_seen, starts), ax=bottom
    )
    figures: dict[str, Any] = {"clusters.png": means.figure, "stream.png": course}
    for name, figure in figures.items():
        figure.savefig(out / name, dpi=150)
    return [str(out / name) for name in figures]


def _print(result: DemoResult, console: Console) -> None:
    table = Table(title=f"{result.n_clusters} clusters in order of weight", title_justify="left")
    for name in ("id", "weight", "images", "mostly", "share"):
        table.add_column(name, justify="right")
    table.add_column("")
    heaviest = result.clusters[0].weight
    for cluster in result.clusters:
        table.add_row(
            str(cluster.id),
            f"{cluster.weight:.1%}",
            str(cluster.images),
            "-" if cluster.digit is None else str(cluster.digit),
            "-" if cluster.share is None else f"{cluster.share:.0%}",
            "█" * round(20 * cluster.weight / heaviest),
        )
    console.print(table)
    summary = Table(show_header=False, box=None)
    summary.add_row("agreement with the true digits", f"NMI {result.nmi:.3f}")
    summary.add_row("", f"ARI {result.ari:.3f}")
    summary.add_row("", f"purity {result.purity:.3f}")
    summary.add_row(
        "evidence (sum of one-step-ahead log predictives)",
        f"{result.log_evidence:,.0f} nats, {result.log_evidence_per_row:.1f} a row",
    )
    summary.add_row("speed", f"{result.rows_per_second:,.0f} rows/s")
    console.print(summary)
    for picture in result.pictures:
        console.print(f"picture: {picture}", soft_wrap=True, markup=False)
