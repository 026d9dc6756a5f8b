"""Handwritten digits, clustered as documents of ink with settings chosen by hand."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse import save_npz

from bnpstream.cli.demo.steps import print_paths, report, stream_into
from bnpstream.cli.output import print_json
from bnpstream.datasets import digits
from bnpstream.evaluation import agreement, majority_labels
from bnpstream.runs.mixture import make_model
from bnpstream.runs.options import ModelOptions, Pace
from bnpstream.runs.overview import Run

BATCH_ROWS, WARM_ROWS = 32, 256
IMAGE = (8, 8)
MODEL = ModelOptions(prior="nig", concentration=1.0, tilt=1.0, alpha=2.0)


def run_digits(out: Path, console: Console, as_json: bool) -> None:
    """Cluster the digits as a run, print what was found, and write the report."""
    data = digits()
    # The file is sorted by writer; shuffling makes the stream stationary.
    order = np.random.default_rng(0).permutation(data.counts.shape[0])
    images, labels = data.counts[order], np.asarray(data.labels)[order]
    console.print(
        f"Clustering {len(order)} images of handwritten digits in one pass, each as a document of "
        "ink over 64 pixels.\nThe model knows neither the digits nor their number. Its prior and "
        "alpha were chosen by hand.\n"
    )
    began = time.perf_counter()
    with console.status("compiling (first run only) ..."):
        model = make_model(MODEL, "counts")
        model.absorb(images[:WARM_ROWS])
        model.log_joint(images[:1])
        model.stream.topics  # noqa: B018  their loops are compiled, too
    compile_seconds = time.perf_counter() - began
    source, folder = out / "digits.npz", out / "run"
    save_npz(source, images)
    feed = stream_into(folder, source, MODEL, Pace(batch_rows=BATCH_ROWS))

    run = Run(folder)
    positions = run.model.posterior.best(run.model.stream.view(images))
    scores = agreement(labels, positions)
    result = {
        "rows": feed.n_rows,
        "rows_per_second": feed.n_rows / feed.seconds_in_pass,
        "compile_seconds": compile_seconds,
        "topic_seconds": feed.model.stream.finder.seconds,
        "n_clusters": run.model.n_clusters,
        "log_evidence": run.model.log_evidence,
        "log_evidence_per_row": run.model.log_evidence / feed.n_rows,
        "nmi": scores.nmi,
        "ari": scores.ari,
        "purity": scores.purity,
        "clusters": _clusters(run, labels, positions),
        "run": str(folder),
        "report": report(run.describe(image_shape=IMAGE), out, console),
    }
    if as_json:
        print_json(result)
    else:
        _print(result, console)


def _clusters(
    run: Run, labels: NDArray[np.intp], positions: NDArray[np.intp]
) -> list[dict[str, Any]]:
    """Return what each cluster shows, largest first."""
    posterior = run.model.posterior
    ids, weights = posterior.ids, posterior.weights
    majority, shares = majority_labels(labels, positions, ids.size)
    sizes = np.bincount(positions, minlength=ids.size)
    return [
        {
            "id": int(ids[k]),
            "weight": float(weights[k]),
            "images": int(sizes[k]),
            "digit": int(majority[k]) if sizes[k] else None,
            "share": float(shares[k]) if sizes[k] else None,
        }
        for k in np.argsort(-weights, kind="stable")
    ]


def _print(result: dict[str, Any], console: Console) -> None:
    clusters = result["clusters"]
    table = Table(title=f"{len(clusters)} clusters, largest first", title_justify="left")
    for name in ("id", "weight", "images", "mostly", "share"):
        table.add_column(name, justify="right")
    table.add_column("")
    for cluster in clusters:
        table.add_row(
            str(cluster["id"]),
            f"{cluster['weight']:.2%}",
            str(cluster["images"]),
            "-" if cluster["digit"] is None else str(cluster["digit"]),
            "-" if cluster["share"] is None else f"{cluster['share']:.0%}",
            "█" * round(20 * cluster["weight"] / clusters[0]["weight"]),
        )
    console.print(table)
    evidence = f"{result['log_evidence']:,.0f} nats, {result['log_evidence_per_row']:.4g} per row"
    summary = Table(show_header=False, box=None)
    summary.add_row("agreement with the true digits", f"NMI {result['nmi']:.3f}")
    summary.add_row("", f"ARI {result['ari']:.3f}")
    summary.add_row("", f"purity {result['purity']:.3f}")
    summary.add_row("log evidence, one-step-ahead prediction", evidence)
    summary.add_row("speed of the pass alone", f"{result['rows_per_second']:,.0f} rows/s")
    summary.add_row("time to find topics", f"{result['topic_seconds']:.2f} s")
    console.print(summary)
    print_paths(result, console)
