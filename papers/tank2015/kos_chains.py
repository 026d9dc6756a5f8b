"""Gibbs chains on KOS that start and move in other ways: how far they mix, and in what time."""

import time
from typing import Any

import numpy as np
from scipy.special import logsumexp

from bnpstream import DirichletMultinomial
from bnpstream.inference import gibbs
from bnpstream.inference.convergence import effective_size, rhat
from bnpstream.inference.split_merge import move
from bnpstream.kernels.passes.steps import NEGLIGIBLE
from bnpstream.mixture import Model, log_joint, log_marginals
from tank2015.kos_runs import PRIORS
from tank2015.modelling import NAMES, fixed_prior
from tank2015.parts import KOS_ALPHA, kos_parts
from tank2015.showing import Claim, Show, spread
from tank2015.steps import Found, Results, Step, each, mean_and_error

PLAIN, MOVES, ANNEALED = "plain", "moves", "annealed"
WAYS = (PLAIN, MOVES, ANNEALED)
FIRST_SHARE = 0.05
"""Share of the words that the first annealed sweep sees."""
AIM, LONGEST = 1.1, 3.0
"""R-hat that chains should have, and in how many times the time of plain ones at most."""
KEYS = {"log_predictive": 0, "log_joint": 0, "clusters": 1}


def mix(
    way: str, prior: str, chain: int, n_rows: int, n_sweeps: int, n_kept: int, extra: int
) -> Found:
    """Run a chain of so many sweeps, and look at the last.

    Before them, an annealed chain has `extra` sweeps over thinned documents, whose share of the
    words grows from .05 to 1. Before each of them, a chain with moves has `extra` proposals to
    split or merge clusters.
    """
    _, rows, held_out, _ = kos_parts(n_rows)
    base = DirichletMultinomial(KOS_ALPHA).bound([]).informed(rows)
    model = Model(fixed_prior(prior, *PRIORS[prior]), base)
    batch, unseen = base.encode(rows), base.encode(held_out)
    kernel, kernel_unseen = model.kernel_arguments(batch), model.kernel_arguments(unseen)
    rng, found = np.random.default_rng((n_rows, chain)), {key: [] for key in KEYS}
    chain_, began = gibbs.init(model, batch), time.process_time()

    def swept(now: Any, words: Any, arguments: Any) -> Any:
        log_u = now.state.auxiliary
        now.state.auxiliary = gibbs.draw_auxiliary(model.prior, now.state.masses, log_u, rng)
        for _ in range(extra if way == MOVES else 0):
            now, _ = move(model, now, words, rng, arguments)
        gibbs.sweep(model, now, words, rng.random(len(words)), arguments)
        return now

    for share in np.geomspace(FIRST_SHARE, 1.0, extra if way == ANNEALED else 0, endpoint=False):
        thinned = rows.copy()
        thinned.data = rng.binomial(thinned.data.astype(np.int64), share)
        thinned.eliminate_zeros()
        words = base.encode(thinned)
        chain_ = gibbs.chain_at(model, words, chain_.assignments, chain_.state.auxiliary)
        chain_ = swept(chain_, words, model.kernel_arguments(words))
    chain_ = gibbs.chain_at(model, batch, chain_.assignments, chain_.state.auxiliary)
    for _ in range(n_sweeps - n_kept):
        chain_ = swept(chain_, batch, kernel)
    seconds = time.process_time() - began
    for _ in range(n_kept):
        began = time.process_time()
        chain_ = swept(chain_, batch, kernel)
        seconds += time.process_time() - began
        state = gibbs.chain_at(model, batch, chain_.assignments, np.nan).state
        log_weights = np.log(model.prior.predictive_rule(state.masses))
        joint = log_joint(model, state, unseen, kernel_unseen, log_weights, log_cut=NEGLIGIBLE)
        found["log_predictive"].append(float(logsumexp(joint, axis=1).sum()))
        found["log_joint"].append(
            float(log_marginals(model, state).sum()) + model.prior.log_eppf(state.masses)
        )
        found["clusters"].append(state.n_clusters)
    return found | {"seconds": seconds}


def steps(settings: Any) -> list[Step]:
    """Return all chains of all ways."""
    extra = {PLAIN: 0, MOVES: settings.n_moves, ANNEALED: settings.n_annealed}
    return [
        step
        for prior in settings.sampled
        for way in WAYS
        for step in each(
            mix,
            way=way,
            prior=prior,
            chain=list(range(settings.n_chains)),
            n_rows=settings.n_rows,
            n_sweeps=settings.n_sweeps,
            n_kept=settings.n_kept,
            extra=extra[way],
        )
    ]


def report(found: Results, show: Show) -> list[Claim]:
    """Show how every way mixes; report what is left to the aim."""
    rows, said = [], []
    settings = found.settings
    names = {
        PLAIN: f"{settings.n_sweeps} sweeps",
        MOVES: f"{settings.n_moves} splits or merges before each",
        ANNEALED: f"after {settings.n_annealed} annealed",
    }
    for prior in settings.sampled:
        name, reached = NAMES[prior], {}
        plain = found.values(mix, "seconds", way=PLAIN, prior=prior).mean()
        for way in WAYS:
            kept = {key: found.values(mix, key, way=way, prior=prior).astype(float) for key in KEYS}
            levels = {key: draws.mean(axis=1) for key, draws in kept.items()}
            rhats = {key: rhat(kept[key]) for key in ("log_predictive", "clusters")}
            size = effective_size(kept["log_predictive"])
            apart = {key: levels[key].std(ddof=1) for key in ("log_predictive", "log_joint")}
            within = kept["log_predictive"].std(axis=1, ddof=1).mean()
            ratio = found.values(mix, "seconds", way=way, prior=prior).mean() / plain
            reached[way] = (max(rhats.values()), ratio, apart, within)
            rows.append(
                (
                    name,
                    names[way],
                    *(spread(*mean_and_error(levels[key]), KEYS[key]) for key in KEYS),
                    *((value, f"{value:.2f}") for value in rhats.values()),
                    (size, f"{size:.0f}"),
                    *((sd, f"{sd:,.0f}") for sd in (*apart.values(), within)),
                    (ratio, f"{ratio:.1f}"),
                )
            )
        in_time = [way for way in WAYS if reached[way][1] <= LONGEST]
        best, least = (min(ways, key=lambda way: reached[way][0]) for ways in (in_time, WAYS))
        worst, ratio, apart, within = reached[best]
        said.append(
            f"{name}: R-hat {worst:.2f} at best in at most {LONGEST:g} times the time of plain "
            f"chains ({names[best]}), {'not ' if worst > AIM else ''}below {AIM}: chains move by "
            f"{within:,.0f} nats, and end {apart['log_predictive']:,.0f} apart in log predictive "
            f"and {apart['log_joint']:,.0f} in log joint probability"
            + (
                ""
                if least == best
                else f"; {reached[least][0]:.2f} in {reached[least][1]:.1f} "
                f"times the time ({names[least]})"
            )
        )
    show.table(
        "chains",
        (
            "prior",
            "chains",
            "log predictive",
            "log joint",
            "clusters",
            "R-hat: log predictive",
            "R-hat: clusters",
            "effective draws",
            "apart: log predictive",
            "apart: log joint",
            "moves: log predictive",
            "time",
        ),
        rows,
        f"{settings.n_chains} Gibbs chains of one split, {settings.n_kept} sweeps kept of each. "
        f"Annealed sweeps see a random share of the words of each document, {FIRST_SHARE} at first "
        "and then ever more. Apart and moves are standard deviations between chains, and within "
        "them; time is that of the processor, against plain chains, without scoring.",
    )
    return [
        Claim.reported(
            "Gibbs sampling is the gold standard of the comparison.",
            "Table 1: 5 chains of 215 sweeps, the last 50 kept",
            "; ".join(said),
        )
    ]
