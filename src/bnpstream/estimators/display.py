"""HTML for notebooks: the largest clusters of a fitted model at a glance."""

from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnpstream._visible import visible

CLUSTERS, WORDS, COLUMNS = 10, 6, 3
"""As much as fits in a glance."""
LONGEST_NAME = 40

# Colours are the notebook's own or half transparent: light and dark themes both work.
QUIET = "opacity:.7"
CELL = "padding:.15em .75em .15em 0;text-align:left;vertical-align:middle;background:none"
NUMBER = f"{CELL};text-align:right;font-variant-numeric:tabular-nums"
BAR = "display:inline-block;height:.65em;min-width:1px;background:#3a8fc4"


def describe(model: Any) -> str:
    """Return a fitted model as HTML: rows, evidence, and the largest clusters."""
    state = model.state_
    n, total = state.n_observations, state.masses.sum()
    slots = np.argsort(-state.masses, kind="stable")[:CLUSTERS]
    weights = state.masses[slots] / total
    lines = [
        f'<tr style="background:none"><td style="{NUMBER}">{int(state.ids[slot])}</td>'
        f'<td style="{NUMBER}">{weight:.1%}</td>'
        f'<td style="{CELL};width:7em"><span style="{BAR};width:{100 * weight / weights[0]:.1f}%">'
        f'</span></td><td style="{CELL}">{features}</td></tr>'
        for slot, weight, features in zip(slots, weights, _features(model, slots), strict=True)
    ]
    head = "".join(
        f'<th scope="col" style="{style};font-weight:normal;{QUIET}">{name}</th>'
        for name, style in (("cluster", NUMBER), ("share", NUMBER), ("", CELL), ("about", CELL))
    )
    rest = state.n_clusters - len(slots)
    more = f"{rest:,} smaller clusters hold {max(0.0, 1 - weights.sum()):.1%}." if rest else ""
    evidence = f"{state.log_evidence / n:,.4g} nats per row, one step ahead"
    return (
        '<div style="font-size:13px;line-height:1.5">'
        f"<div><b>{escape(type(model).__name__)}</b>: {state.n_clusters:,} clusters in {n:,} rows "
        f'<span style="{QUIET}">({evidence})</span></div>'
        '<table style="border-collapse:collapse;border:0;margin:.5em 0;font-size:inherit">'
        f'<thead><tr style="background:none">{head}</tr></thead><tbody>{"".join(lines)}</tbody>'
        f'</table><div style="{QUIET}">{more}</div>'
        f'<details><summary style="cursor:pointer;{QUIET}">Parameters</summary>'
        f'<pre style="white-space:pre-wrap;background:none">{escape(repr(model))}</pre></details>'
        "</div>"
    )


def _features(model: Any, slots: NDArray[np.intp]) -> list[str]:
    """Return what tells clusters apart as HTML; "" if their means have no names."""
    try:
        means = model.means_of(slots)
    except NotImplementedError:  # families from elsewhere may lack it
        return [""] * len(slots)
    names = model.column_names()
    names = [f"x{i}" for i in range(means.shape[1])] if names is None else names
    if len(names) != means.shape[1]:  # a column of labels has one mean per label
        return [""] * len(slots)
    if model.likelihood_.feature_kind == "words":
        telling = model._fitted.posterior.telling(WORDS)
        chosen = np.searchsorted(model.cluster_ids_, model.state_.ids[slots])
        return ["&ensp;".join(_name(names[v]) for v in telling[k].words) for k in chosen]
    unusual = np.abs(means - means.mean(axis=0)) / (means.std(axis=0) + np.finfo(float).tiny)
    top = np.argsort(-unusual, axis=1, kind="stable")[:, :COLUMNS]
    return [
        "&ensp;".join(f'{_name(names[v])} <span style="{QUIET}">{mean[v]:.4g}</span>' for v in line)
        for mean, line in zip(means, top, strict=True)
    ]


def _name(feature: Any) -> str:
    """Return a name as safe HTML: cut, escaped, with its own direction."""
    text = visible(feature)
    if len(text) > LONGEST_NAME:
        text = text[: LONGEST_NAME - 1] + "…"
    return f"<bdi>{escape(text)}</bdi>"
