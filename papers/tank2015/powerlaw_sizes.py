"""Power-law clusters with other vocabularies and lengths, and sweeps that begin at the truth."""

from functools import cache
from typing import Any

import numpy as np

from bnpstream import DirichletMultinomial
from bnpstream.evaluation import agreement
from bnpstream.inference import gibbs
from bnpstream.mixture import Model
from tank2015.differences import ahead, beyond_noise, signed
from tank2015.modelling import (
    NAMES,
    THRESHOLD,
    fixed_prior,
    labelled_log_predictive,
    mixture,
)
from tank2015.parts import POWERLAW_ALPHA, Parts, powerlaw_parts
from tank2015.powerlaw import TRUTH
from tank2015.powerlaw_tuned import ORDER
from tank2015.showing import Claim, Show, spread
from tank2015.steps import Found, Results, Step, each, mean_and_error


@cache
def _preferred(name: str, part: Any, exponents: tuple[float, ...]) -> float:
    """Return the strength with the highest evidence of the stream."""
    rows = _rows(powerlaw_parts(*part), ORDER)[0]
    evidence = []
    for exponent in exponents:
        model = mixture(fixed_prior(name, 10.0**exponent), POWERLAW_ALPHA)
        evidence.append(model.fit(rows).total_log_evidence_)
    return float(10.0 ** exponents[int(np.argmax(evidence))])


def _rows(part: Parts, order: int) -> tuple[Any, Any]:
    chosen = np.random.default_rng(order).permutation(part.rows.shape[0])
    return part.rows[chosen], part.labels[chosen]


def resize(name: str, n_words: int, length: int, order: int, scale: float, exponents: Any) -> Found:
    """Stream documents of so many words each, out of so many."""
    part = powerlaw_parts(scale, n_words, length)
    strength = _preferred(name, (scale, n_words, length), tuple(exponents))
    rows, labels = _rows(part, order)
    model = mixture(fixed_prior(name, strength), POWERLAW_ALPHA).fit(rows)
    return {
        "strength": strength,
        "log_predictive": float(model.score_samples(part.held_out).mean()),
        "clusters": model.n_clusters_,
        "ari": agreement(labels, model.predict(rows)).ari,
    }


def told_of(n_words: int, length: int, scale: float) -> Found:
    """Predict such documents with the labels and the prior known."""
    _, rows, held_out, labels = powerlaw_parts(scale, n_words, length)
    told = labelled_log_predictive(TRUTH, POWERLAW_ALPHA, rows, labels, held_out)
    return {"log_predictive": told / held_out.shape[0], "clusters": int(np.unique(labels).size)}


def leave(n_sweeps: int, scale: float) -> Found:
    """Sweep by Gibbs sampling under the true prior from the true clusters on."""
    _, rows, _, labels = powerlaw_parts(scale)
    model = Model(TRUTH, DirichletMultinomial(POWERLAW_ALPHA).bound([]).informed(rows))
    batch = model.likelihood.encode(rows)
    kernel, rng = model.kernel_arguments(batch), np.random.default_rng(0)
    chain = gibbs.chain_at(model, batch, np.unique(labels, return_inverse=True)[1], np.nan)
    found: Found = {"clusters": [chain.state.n_clusters], "ari": [1.0]}
    for _ in range(n_sweeps):
        gibbs.sweep(model, chain, batch, rng.random(len(batch)), kernel)
        found["clusters"].append(chain.state.n_clusters)
        found["ari"].append(agreement(labels, chain.assignments).ari)
    sizes = np.unique(labels, return_counts=True)[1]
    return found | {"singletons": int((sizes == 1).sum())}


def steps(settings: Any) -> list[Step]:
    """Return the bound and the streams of every corpus, and the sweeps."""
    scale, orders = settings.scale, list(range(settings.n_repeats))
    corpora = {"n_words": list(settings.words), "length": list(settings.lengths)}
    # One corpus after another, whose strengths are sought once for all orders.
    ways = {"order": orders, "scale": scale, "exponents": settings.exponents[::2]}
    return [
        *each(told_of, **corpora, scale=scale),
        *each(resize, name=list(NAMES), **corpora, **ways),
        *each(leave, n_sweeps=settings.n_sweeps, scale=scale),
    ]


def report(found: Results, show: Show) -> list[Claim]:
    """Show clusters and agreement side by side; report what the truth loses."""
    rows: list[tuple[Any, ...]] = []
    closer = []
    for n_words in found.settings.words:
        for length in found.settings.lengths:
            which = {"n_words": n_words, "length": length}
            told = found.one(told_of, **which)
            ends = {
                (name, key): found.values(resize, key, name=name, **which)
                for name in NAMES
                for key in ("log_predictive", "clusters", "ari")
            }
            lead = ahead(ends["nig", "log_predictive"], ends["dp", "log_predictive"])
            agreed = ahead(ends["nig", "ari"], ends["dp", "ari"])
            off = {p: abs(ends[p, "clusters"] - told["clusters"]) for p in NAMES}
            closer.append((mean_and_error(off["dp"] - off["nig"]), agreed, lead))
            strengths = [found.of(resize, name=p, **which)[0]["strength"] for p in NAMES]
            rows.append(
                (
                    n_words,
                    length,
                    " and ".join(f"{strength:.3g}" for strength in strengths),
                    *(spread(*mean_and_error(ends[p, "clusters"]), 0) for p in NAMES),
                    told["clusters"],
                    *(spread(*mean_and_error(ends[p, "ari"]), 3) for p in NAMES),
                    signed(*agreed),
                    signed(*lead),
                    signed(*mean_and_error(ends["dp", "log_predictive"] - told["log_predictive"])),
                )
            )
    show.table(
        "sizes",
        (
            "words",
            "words a document",
            "strengths",
            "clusters: DP",
            "NIG",
            "truth",
            "ARI: DP",
            "NIG",
            "NIG ahead: ARI",
            "NIG ahead: nats per document",
            "DP ahead of the true labels",
        ),
        rows,
        f"Power-law documents of other sizes, {found.settings.n_repeats} orders; both priors at "
        f"epsilon {THRESHOLD}, each at the strength with the highest evidence of "
        f"{len(found.settings.exponents[::2])}. ARI is the adjusted Rand index of the clusters "
        "after the pass.",
    )
    return _claims(found, closer)


def _claims(found: Results, closer: list[Any]) -> list[Claim]:
    def where(place: int) -> str:
        sure = [one[place][0] for one in closer if beyond_noise(one[place])]
        better, worse = sum(mean > 0 for mean in sure), sum(mean < 0 for mean in sure)
        return f"NIG is ahead in {better} of {len(closer)} corpora and behind in {worse}"

    gone = found.of(leave)[0]
    leads = [one[2][0] for one in closer]
    return [
        Claim.reported(
            "The number of clusters shows how well a prior fits.",
            "Figure 2, right",
            f"by distance to the true number {where(0)}, by ARI {where(1)}, beyond two standard "
            f"errors; NIG's lead is {min(leads):+.3f} to {max(leads):+.3f} nats per document. "
            f"{found.settings.n_sweeps} Gibbs sweeps with the true prior that begin at the true "
            f"clusters, of which {gone['singletons']:,} are single documents, lead from "
            f"{gone['clusters'][0]:,} clusters to {gone['clusters'][-1]:,}, at ARI "
            f"{gone['ari'][-1]:.3f}",
        ),
    ]
