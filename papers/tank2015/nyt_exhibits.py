"""Figures, tables and claims of the New York Times experiment."""

from typing import Any

import numpy as np

from bnpstream.plots import plot_weights
from bnpstream.plots.style import BLUE, stream_axes
from tank2015.differences import ahead, text_of
from tank2015.modelling import COLOURS
from tank2015.nyt_runs import MODELS, describe, stream, tune
from tank2015.showing import WHOLE, Claim, Show
from tank2015.steps import Results, mean_and_error

LINES = {
    "dp": ("--", COLOURS["dp"]),
    "nig": ("-", COLOURS["nig"]),
    "learnt": (":", COLOURS["ours"]),
}
PAPER_MODELS = ("dp", "nig")
UNFIT = "not judged, because a tau^sigma = 1000 was meant for forty times as many documents"
TITLES = {
    "nyt8447": "8 447 articles in place of the UCI corpus",
    "drawn": "a synthetic corpus as large as the paper's",
    "uci": "the UCI corpus",
}


def curve_of(found: Results, corpus: str, model: str) -> dict[str, Any]:
    """Return the means over orders of what was seen along the stream."""
    curves = [one["curve"] for one in found.of(stream, corpus=corpus, model=model)]
    return {
        key: np.mean([curve[key] for curve in curves], axis=0)
        for key in ("rows", "log_predictive", "clusters", "small", "seconds_in_pass")
    }


def first(found: Results, corpus: str, model: str) -> dict[str, Any]:
    """Return what was found in the first order, weights and topics included."""
    return found.one(stream, corpus=corpus, model=model, order=0)


def draw(found: Results, corpus: str, show: Show) -> None:
    """Draw the stream, the weights and, where words have names, the topics."""
    _draw_stream(found, corpus, show)
    _draw_weights(found, corpus, show)
    if "topics" in first(found, corpus, "nig"):
        _draw_topics(found, corpus, show)


def _draw_stream(found: Results, corpus: str, show: Show) -> None:
    tokens = found.one(describe, corpus=corpus)["held_out_tokens"]
    figure, (left, right) = show.panels(size=(5.8, 3.0))
    for model, name in MODELS.items():
        curve = curve_of(found, corpus, model)
        line, colour = LINES[model]
        style = {"linestyle": line, "color": colour, "linewidth": 1.6}
        left.plot(curve["rows"], curve["log_predictive"] / tokens, label=name, **style)
        if model in PAPER_MODELS:
            right.plot(curve["rows"], curve["clusters"], **style)
    for ax in (left, right):
        stream_axes(ax, curve["rows"][-1])
        ax.set_xlabel("documents streamed")
    left.set_ylabel("log predictive,\nnats per held-out word")
    right.set_ylabel("clusters")
    right.set_ylim(bottom=0)
    right.yaxis.set_major_formatter(WHOLE)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    n_orders = len(found.of(stream, corpus=corpus, model="nig"))
    n_learnt = curve_of(found, corpus, "learnt")["clusters"][-1]
    show.figure(
        f"stream-{corpus}",
        figure,
        f"Figure 4 of the paper, {TITLES[corpus]}: log predictive (left) and clusters (right) "
        f"along one pass, means of {n_orders} orders. With a learnt base measure there are "
        f"{n_learnt:,.0f} clusters at the end, beyond the scale of the right panel.",
    )


def _draw_weights(found: Results, corpus: str, show: Show) -> None:
    figure, ax = show.panels(1, size=(5.8, 3.2))
    for model in PAPER_MODELS:
        plot_weights(first(found, corpus, model)["weights"], ax)
        line, colour = LINES[model]
        ax.lines[-1].set(color=colour, linestyle=line, label=MODELS[model])
    ax.set_ylabel("share of the documents")
    ax.legend(loc="lower left", frameon=False)
    show.figure(
        f"weights-{corpus}",
        figure,
        f"Figure 3 of the supplement, {TITLES[corpus]}: weights of clusters in decreasing order.",
    )


def _draw_topics(found: Results, corpus: str, show: Show) -> None:
    topics = first(found, corpus, "nig")["topics"]
    figure, panels = show.panels(2, (len(topics) + 1) // 2, size=(5.8, 5.2))
    for ax, topic in zip(np.ravel(panels), topics, strict=False):
        words, shares = zip(*topic["words"], strict=True)
        places = np.arange(len(words))
        ax.barh(places, shares, color=BLUE, height=0.7)
        ax.set_yticks(places, words)
        ax.invert_yaxis()
        ax.set_xlabel("% of the topic's words")
        ax.set_title(f"{100 * topic['weight']:.1f}% of the documents")
        ax.spines[["top", "right"]].set_visible(False)
    show.figure(
        f"topics-{corpus}",
        figure,
        f"Figure 5 of the paper, {TITLES[corpus]}: most probable words of the four most prevalent "
        "topics, NIG.",
    )


def tabulate(found: Results, corpus: str, show: Show) -> None:
    """Write where the streams end, and the topics."""
    about = found.one(describe, corpus=corpus)
    rows = []
    for model, name in MODELS.items():
        curve = curve_of(found, corpus, model)
        level = curve["log_predictive"][-1]
        speed = about["streamed"] / curve["seconds_in_pass"]
        rows.append(
            (
                name,
                (level, f"{level:,.0f}"),
                (level / about["held_out_tokens"], f"{level / about['held_out_tokens']:.4f}"),
                (curve["clusters"][-1], f"{curve['clusters'][-1]:,.0f}"),
                (curve["small"][-1], f"{curve['small'][-1]:,.0f}"),
                (speed, f"{speed:,.0f}"),
            )
        )
    documents, words = about["documents"], about["words"]
    show.table(
        f"final-{corpus}",
        (
            "model",
            "log predictive",
            "nats per word",
            "clusters",
            "of fewer than 10 documents",
            "documents per second",
        ),
        rows,
        f"{corpus}: of {documents[0]:,} documents {documents[1]:,} are left, of {words[0]:,} words "
        f"{words[1]:,}; {about['tuned']:,} to tune by, {about['streamed']:,} streamed, "
        f"{about['held_out']:,} held out, a look every {about['every']:,}.",
    )


def claims(found: Results, corpus: str) -> list[Claim]:
    """Judge the paper's sentences on one corpus."""
    runs = {model: first(found, corpus, model) for model in PAPER_MODELS}
    curves = {model: curve_of(found, corpus, model) for model in PAPER_MODELS}
    gaps = curves["nig"]["log_predictive"] - curves["dp"]["log_predictive"]
    ends = {
        model: np.array(
            [r["curve"]["log_predictive"][-1] for r in found.of(stream, corpus=corpus, model=model)]
        )
        for model in PAPER_MODELS
    }
    lead = ahead(ends["nig"], ends["dp"])
    clusters, small = (
        {
            model: np.array(
                [r["curve"][key][-1] for r in found.of(stream, corpus=corpus, model=model)]
            )
            for model in PAPER_MODELS
        }
        for key in ("clusters", "small")
    )
    extra, extra_small = (one["nig"] - one["dp"] for one in (clusters, small))
    n_tuned = found.one(describe, corpus=corpus)["tuned"]
    best = {model: found.one(tune, corpus=corpus, prior=model)["best"] for model in PAPER_MODELS}
    made = [
        Claim.ahead(
            f"NIG attains a superior predictive log-likelihood ({corpus}).",
            "Figure 4, left",
            f"ahead of DP by {text_of(lead, 0)} nats at the end; ahead at {int((gaps > 0).sum())} "
            f"of {len(gaps)} looks",
            [lead],
        ),
        Claim.ahead(
            f"NIG introduces many additional small clusters ({corpus}).",
            "Figure 4, right",
            f"{clusters['dp'].mean():,.1f} (DP) and {clusters['nig'].mean():,.1f} (NIG) clusters, "
            f"{text_of(mean_and_error(extra), 1)}; of fewer than 10 documents "
            f"{text_of(mean_and_error(extra_small), 1)}",
            [mean_and_error(extra), mean_and_error(extra_small - extra / 2)],
            unit="clusters",
        ),
        *_tails(runs, corpus),
    ]
    if corpus == "nyt8447":
        made = [Claim.reported(one.text, one.paper, f"{one.ours}; {UNFIT}") for one in made]
    made.append(
        Claim.reported(
            f"The grid chooses a = 1000 for DP, and a = 100, tau = 100 for NIG ({corpus}).",
            "Supplement, section 3.1: a tau^sigma = 1000 for both",
            f"a tau^sigma = {best['dp']:g} and {best['nig']:.4g}, on {n_tuned:,} documents",
        )
    )
    if "topics" in runs["nig"]:
        made.append(_topics(runs["nig"], corpus))
    return made


def pipeline(found: Results, corpora: list[str]) -> Claim:
    """Judge what pruning leaves of the UCI corpus, if it is here."""
    text = "Pruning leaves 266,000 documents and 7,841 words of the UCI corpus."
    if "uci" not in corpora:
        return Claim(text, "section 4.4", "the UCI corpus is not here", "cannot be tested here")
    about = found.one(describe, corpus="uci")
    left = f"{about['documents'][1]:,} documents and {about['words'][1]:,} words"
    close = abs(about["documents"][1] / 266_000 - 1) < 0.01 and about["words"][1] == 7_841
    return Claim.of(text, "section 4.4", left, close)


def _tails(runs: Any, corpus: str) -> list[Claim]:
    weights = {model: np.array(run["weights"]) for model, run in runs.items()}
    shared = min(one.size for one in weights.values())
    top = max(1, shared // 4)
    large = [weights[model][:top] for model in PAPER_MODELS]
    apart = float(np.exp(np.abs(np.log(large[1] / large[0])).mean()))
    middle = weights["dp"].size // 2
    tails = {model: float(one[middle:].sum()) for model, one in weights.items()}
    return [
        Claim.reported(
            f"The weights of NIG have a heavier tail ({corpus}).",
            "Figure 3 of the supplement",
            f"clusters of rank {middle + 1} and beyond hold {100 * tails['dp']:.2f}% (DP) and "
            f"{100 * tails['nig']:.2f}% (NIG) of the documents, in one order",
        ),
        Claim.reported(
            f"Weights of large and medium clusters are similar ({corpus}).",
            "Figure 3 of the supplement",
            f"the {top} largest differ by a factor of {apart:.2f} on average, rank by rank",
        ),
    ]


def _topics(run: Any, corpus: str) -> Claim:
    coherence = [topic["coherence"] for topic in run["topics"]]
    common = run["coherence_of_common"]
    heads = "; ".join(" ".join(word for word, _ in topic["words"][:4]) for topic in run["topics"])
    return Claim.of(
        f"Clusters with the highest weights are interpretable topics ({corpus}).",
        "Figure 5",
        f"{heads}; their words go together in held-out articles (mean normalized mutual "
        f"information {np.mean(coherence):.2f}; {common:.2f} for the commonest words)",
        float(np.mean(coherence)) > common,
    )
