"""The page of all experiments, made of their results."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import orjson

from bnpstream.storage.files import write_atomically
from tank2015.showing import markdown
from tank2015.steps import Found

INTRODUCTION = """\
# The paper, reproduced

Tank, Foti & Fox, *Streaming Variational Inference for Bayesian Nonparametric Mixture Models*
(AISTATS 2015): every figure and table of its experiments, and what the corrected model adds. This
page and everything in `results` is written by

    bnpstream reproduce all

from a checkout, the KOS and New York Times corpora being where `bnpstream datasets list` says.
An interrupted run goes on where it stopped. `--small` runs everything in little time on less data.
Every number is in `results/NAME.json`, with settings, seeds, versions and seconds; every table is
there as CSV too and every figure as SVG.

The paper's IG is the normalized inverse Gaussian process, here NIG. Log-likelihoods are natural
logarithms, summed over held-out documents, multinomial coefficient included. ± is one standard
error.

A claim that one thing is ahead of another holds if all differences are positive by more than two
standard errors, and does not hold if one is negative by more. Otherwise it is *underpowered*: too
few runs to tell; the row says what could have been seen. *Reported* are claims that nothing can
refute ("about", "similar"), choices of a grid, times, and settings that do not fit the corpus.
"""


STATES = ("underpowered", "reported")
"""Verdicts that something is, and does not do."""


def write_page(out: Path, names: Sequence[str]) -> None:
    """Write README.md about the experiments that have results in a folder."""
    files = [out / "results" / f"{name}.json" for name in names]
    found = [orjson.loads(path.read_bytes()) for path in files if path.exists()]
    text = "\n".join([INTRODUCTION, _claims(found), *(_experiment(out, one) for one in found)])
    write_atomically(out / "README.md", lambda partial: partial.write_text(text, encoding="utf-8"))


def _claims(found: list[Found]) -> str:
    claims = [(one["experiment"], claim) for one in found for claim in one["claims"]]
    counts = Counter(claim["verdict"] for _, claim in claims)
    summary = ", ".join(f"{count} {_plural(verdict, count)}" for verdict, count in counts.items())
    rows = [
        [
            f"[{name}](#{name})",
            claim["text"],
            claim["paper"],
            claim["ours"],
            f"**{claim['verdict']}**",
        ]
        for name, claim in claims
    ]
    header = ("where", "what the paper says", "the paper's evidence", "found here", "verdict")
    return f"## Claims\n\nOf {len(claims)} claims {summary}.\n\n" + markdown(header, rows)


def _plural(verdict: str, count: int) -> str:
    words = {"holds": "hold", "does not hold": "do not hold"}
    verdict = verdict if count == 1 else words.get(verdict, verdict)
    return f"{'is' if count == 1 else 'are'} {verdict}" if verdict in STATES else verdict


def _experiment(out: Path, one: Found) -> str:
    minutes = one["seconds"] / 60
    settings = ", ".join(f"{name} = {value}" for name, value in one["settings"].items())
    versions = ", ".join(f"{name} {number}" for name, number in one["versions"].items())
    parts = [
        f"## {one['experiment']}\n\n{one['title']}\n\n"
        f"{len(one['steps'])} steps, {minutes:.1f} minutes; {settings}; {versions}.\n"
    ]
    for exhibit in one["exhibits"]:
        name, caption = exhibit["name"], exhibit["caption"]
        if exhibit["kind"] == "figure":
            parts.append(f"![{name}](results/{name}.png)\n\n*{caption}*\n")
        else:
            table = (out / "results" / f"{name}.md").read_text(encoding="utf-8")
            parts.append(f"{caption}\n\n{table}")
    return "\n".join(parts)
