"""Figures and tables of the KOS experiment."""

from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator, NullFormatter

from bnpstream.inference.convergence import effective_size, rhat
from bnpstream.plots.style import tidy
from tank2015.kos_runs import KEPT, PASSES, extend, sample, stream
from tank2015.modelling import COLOURS, LINES, NAMES
from tank2015.showing import WHOLE, Show, spread
from tank2015.steps import Results, mean_and_error

PAPER: dict[tuple[str, str], tuple[str, str]] = {
    ("ADF", "dp"): ("-346,023 ± 165", "80 ± .17"),
    ("ADF", "nig"): ("-345,588 ± 159", "92 ± .18"),
    ("EP", "dp"): ("-342,535 ± 181", "104 ± 2.4"),
    ("EP", "nig"): ("-342,195 ± 161", "114 ± 1.5"),
    ("Gibbs", "dp"): ("-342,164 ± 11", "119 ± 0.3"),
    ("Gibbs", "nig"): ("-341,468 ± 338", "128 ± 1.3"),
}
PAPER_LEVELS, PAPER_ERRORS = (
    {key: float(text.split(" ± ")[part].replace(",", "")) for key, (text, _) in PAPER.items()}
    for part in (0, 1)
)
PAPER_SECONDS = {"ADF": "220", "Gibbs": "160"}
METHODS = ("ADF", "EP", "Gibbs")
OURS = {
    "window": "window of 1,000 rows",
    "learnt": "learnt base measure, one pass",
    "learnt, window": "learnt base measure, window",
    "learnt, EP": "learnt base measure, 10 passes",
}


def last(found: Results, method: str, prior: str, key: str, **where: Any) -> Any:
    """Return a number at the end of every run of one of the paper's methods."""
    if method == "Gibbs":
        return found.values(sample, f"kept_{key}", prior=prior, **where)
    return np.array(
        [one[method.lower()][key][-1] for one in found.of(stream, prior=prior, **where)]
    )


def draw(found: Results, show: Show) -> None:
    """Draw the curves of the paper and of its supplement."""
    _draw_epochs(found, show)
    _draw_zoom(found, show)
    _draw_gibbs(found, show)


def curve(found: Results, prior: str, key: str) -> tuple[Any, Any]:
    """Return epochs, fractions of the first one included, and a number then in every order."""
    runs = found.of(stream, prior=prior, split=0)
    rows = np.array(runs[0]["adf"]["rows"], float)
    epochs = np.concatenate([rows / rows[-1], np.arange(2, len(runs[0]["ep"][key]) + 2)])
    return epochs, np.array([one["adf"][key] + one["ep"][key] for one in runs])


def _draw_epochs(found: Results, show: Show) -> None:
    figure, panels = show.panels(size=(5.8, 3.0))
    for ax, key in zip(panels, ("log_predictive", "clusters"), strict=True):
        for prior, name in NAMES.items():
            epochs, values = curve(found, prior, key)
            mean, spread_ = values.mean(axis=0), values.std(axis=0, ddof=1)
            colour = COLOURS[prior]
            ax.plot(epochs, mean, color=colour, label=name, linestyle=LINES[prior])
            ax.fill_between(epochs, mean - spread_, mean + spread_, color=colour, alpha=0.2, lw=0)
        _epoch_lines(tidy(ax), epochs[-1])
    low = min(curve(found, prior, "log_predictive")[1][:, 9].min() for prior in NAMES)
    _, top = panels[0].get_ylim()
    panels[0].set_ylim(low - 0.5 * (top - low), top)
    panels[0].set_ylabel("held-out log predictive, nats")
    panels[1].set_ylabel("clusters")
    panels[1].set_ylim(bottom=0)
    panels[0].yaxis.set_major_formatter(WHOLE)
    panels[0].legend(loc="lower right", frameon=False)
    show.figure(
        "epochs",
        figure,
        "Figure 3 of the paper: log predictive (left) and clusters (right) of EP, mean and one "
        "standard deviation over orders. Grey lines mark epochs, the black one the end of ADF.",
    )


def _draw_zoom(found: Results, show: Show) -> None:
    figure, (left, right) = show.panels(size=(5.8, 2.8))
    for prior, name in NAMES.items():
        epochs, values = curve(found, prior, "log_predictive")
        style = {"color": COLOURS[prior], "linestyle": LINES[prior], "label": name}
        early = epochs <= 5
        left.plot(epochs[early], values.mean(axis=0)[early], **style)
        later = epochs >= 1
        right.plot(epochs[later], values.mean(axis=0)[later], **style)
    for ax, end in ((left, min(5, epochs[-1])), (right, epochs[-1])):
        _epoch_lines(tidy(ax), end)
        ax.yaxis.set_major_formatter(WHOLE)
    right.set_xlim(left=1)
    left.set_ylabel("held-out log predictive, nats")
    right.legend(loc="lower right", frameon=False)
    show.figure(
        "zoom",
        figure,
        "Figure 1 of the supplement: log predictive of EP, the first epochs from the first rows on "
        "(left), and a zoom into what follows ADF (right).",
    )


def _draw_gibbs(found: Results, show: Show) -> None:
    figure, ax = show.panels(1, size=(5.8, 3.2))
    for prior, name in NAMES.items():
        epochs, values = curve(found, prior, "log_predictive")
        whole = epochs >= 1
        style = {"color": COLOURS[prior], "linestyle": LINES[prior]}
        ax.plot(epochs[whole], values.mean(axis=0)[whole], label=f"ADF, then EP, {name}", **style)
        ax.plot(1, values[:, whole].mean(axis=0)[0], "o", color=COLOURS[prior], markersize=5)
        means = found.values(sample, "log_predictive", prior=prior, split=0).mean(axis=0)
        sweeps = np.array(found.of(sample, prior=prior, split=0)[0]["sweeps"])
        some = np.searchsorted(sweeps, np.unique(np.geomspace(1, sweeps[-1], 12).astype(int)))
        marks = {"marker": "x", "markersize": 5, "linewidth": 0.8, "markevery": some.tolist()}
        ax.plot(sweeps, means, label=f"Gibbs, {name}", **style, **marks)
    tidy(ax).set(xscale="log", xlabel="epochs", ylabel="held-out log predictive, nats")
    ax.xaxis.set_major_formatter(WHOLE)
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.yaxis.set_major_formatter(WHOLE)
    ax.legend(loc="lower right", frameon=False, ncols=2)
    show.figure(
        "gibbs",
        figure,
        "Figure 2 of the supplement, which shows NIG only: log predictive against epochs. Circles "
        "are ADF; Gibbs starts with all rows in one cluster; the mean of all chains is shown.",
    )


def _epoch_lines(ax: Any, end: float) -> None:
    """Mark every epoch, or every fifth if there are many."""
    step = 1 if end <= 12 else 5
    for epoch in range(step, int(end) + 1, step):
        ax.axvline(epoch, color="#bbbbbb", linewidth=0.5, zorder=0)
    ax.axvline(1, color="black", linewidth=0.8, zorder=0)
    ax.set(xlabel="epochs", xlim=(0, end))
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def tabulate(found: Results, show: Show) -> None:
    """Write the paper's table beside ours, and how both depend on the split."""
    _tabulate_methods(found, show)
    _tabulate_splits(found, show)


def _tabulate_methods(found: Results, show: Show) -> None:
    rows: list[tuple[Any, ...]] = []
    epochs = {"ADF": 1, "EP": found.settings.n_epochs, "Gibbs": found.settings.n_sweeps}
    for method in METHODS:
        for prior, name in NAMES.items():
            cells = [
                spread(*mean_and_error(last(found, method, prior, key, split=0)), digits)
                for key, digits in (("log_predictive", 0), ("clusters", 1))
            ]
            level, clusters = PAPER[method, prior]
            seconds = _seconds(found, method, prior)
            times = (PAPER_SECONDS.get(method, "220"), (seconds, f"{seconds:.2f}"))
            row = (f"{method}-{name}", level, cells[0], clusters, cells[1], epochs[method], *times)
            rows.append(row)
    for method, named in OURS.items():
        for prior, name in NAMES.items():
            cells = [
                spread(
                    *mean_and_error(found.values(extend, key, method=method, prior=prior, split=0)),
                    d,
                )
                for key, d in (("log_predictive", 0), ("clusters", 1))
            ]
            seconds = float(
                found.values(extend, "seconds", method=method, prior=prior, split=0).mean()
            )
            passes = PASSES if method.endswith("EP") else 2 if method.endswith("window") else 1
            took = (seconds / passes, f"{seconds / passes:.2f}")
            rows.append((f"{name}, {named}", "", cells[0], "", cells[1], passes, "", took))
    settings = found.settings
    averaged = [
        f"{found.values(sample, 'log_of_mean', prior=prior, split=0).mean():,.0f}"
        for prior in NAMES
    ]
    show.table(
        "methods",
        (
            "method",
            "paper: log predictive",
            "here: log predictive",
            "paper: clusters",
            "here: clusters",
            "epochs",
            "paper: s an epoch",
            "here: s an epoch",
        ),
        rows,
        f"Table 1 of the paper: means and standard errors over {settings.n_orders} orders, or "
        f"{settings.n_chains} Gibbs chains, of one split. Below it, what this package adds: a "
        "window of rows that are revisited once, and a base measure and prior learnt from the "
        f"stream, no option given ({settings.n_long_orders} orders of {PASSES} passes). "
        "Gibbs' figures are the paper's, means of log-likelihoods; the posterior predictive, the "
        f"log of the mean over the kept sweeps of a chain, is {' (DP) and '.join(averaged)} (NIG). "
        f"The paper's seconds are of ADF and Gibbs in Python, 2015{mixing(found)}.",
    )


MEASURED = {"log_predictive": "log predictive", "clusters": "clusters"}


def mixing(found: Results, *keys: str) -> str:
    """Say how well the chains have mixed in the sweeps kept, by R-hat and effective sample size."""
    said = []
    for key in keys or MEASURED:
        kept = {p: found.values(sample, key, prior=p, split=0)[:, -KEPT:] for p in NAMES}
        if min(len(draws) for draws in kept.values()) < 2:
            return ""
        of = ", ".join(
            f"{rhat(draws):.2f} ({NAMES[prior]}, {effective_size(draws):.0f} effective draws)"
            for prior, draws in kept.items()
        )
        said.append(f"{MEASURED[key]} {of}")
    return f"; R-hat of the chains, 1.01 if they have mixed: {'; '.join(said)}"


def _seconds(found: Results, method: str, prior: str) -> float:
    if method == "Gibbs":
        return float(found.values(sample, "seconds_per_epoch", prior=prior, split=0).mean())
    key = "seconds_in_pass" if method == "ADF" else "seconds_per_epoch"
    runs = found.of(stream, prior=prior, split=0)
    return float(np.mean([one[method.lower()][key] for one in runs]))


def levels(found: Results, method: str, prior: str) -> Any:
    """Return the log predictive of the first order or chain of every split."""
    splits = range(found.settings.n_splits)
    first = {"chain": 0} if method == "Gibbs" else {"order": 0}
    return np.array(
        [last(found, method, prior, "log_predictive", split=split, **first)[0] for split in splits]
    )


def _tabulate_splits(found: Results, show: Show) -> None:
    base = levels(found, "ADF", "dp")
    rows: list[tuple[Any, ...]] = []
    for method in METHODS:
        for prior, name in NAMES.items():
            ours = levels(found, method, prior)
            paper = PAPER_LEVELS[method, prior]
            rows.append(
                (
                    f"{method}-{name}",
                    (paper, f"{paper:,.0f}"),
                    (ours.mean(), f"{ours.mean():,.0f}"),
                    (ours.std(ddof=1), f"{ours.std(ddof=1):,.0f}"),
                    (ours.min(), f"{ours.min():,.0f}"),
                    (ours.max(), f"{ours.max():,.0f}"),
                    (
                        paper - PAPER_LEVELS["ADF", "dp"],
                        f"{paper - PAPER_LEVELS['ADF', 'dp']:+,.0f}",
                    ),
                    spread(*mean_and_error(ours - base)),
                )
            )
    for prior, name in NAMES.items():
        ours = np.array(
            [
                found.of(extend, method="learnt", prior=prior, split=split, order=0)[0][
                    "log_predictive"
                ]
                for split in range(found.settings.n_splits)
            ]
        )
        cells = [(v, f"{v:,.0f}") for v in (ours.mean(), ours.std(ddof=1), ours.min(), ours.max())]
        rows.append((f"{name}, learnt", "", *cells, "", spread(*mean_and_error(ours - base))))
    show.table(
        "splits",
        (
            "method",
            "paper",
            "mean of splits",
            "standard deviation",
            "least",
            "most",
            "paper: ahead of ADF-DP",
            "here: ahead of ADF-DP",
        ),
        rows,
        f"Effect of the split: one order or chain for each of {found.settings.n_splits} "
        "splits. The levels of all methods move together. Differences within a split do not: "
        "compare these with the paper.",
    )
