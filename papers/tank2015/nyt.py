"""The New York Times: long streams with DP and NIG, their topics, and their tails."""

from dataclasses import dataclass

from tank2015.nyt_exhibits import claims, draw, pipeline, tabulate
from tank2015.nyt_runs import MODELS, PLANS, describe, stream, tune
from tank2015.showing import Claim, Show
from tank2015.steps import Results, Step, each

TITLE = (
    "Figures 4 and 5, and Figure 3 of the supplement. The UCI corpus of 300 000 articles is not "
    "part of this run: `bnpstream reproduce nyt --docword FILE --vocab FILE --out FOLDER` runs it. "
    "In its place are nyt8447, 8 447 articles of the same newspaper, and a synthetic corpus as "
    "large as the paper's: 266 000 documents, 7 841 words, power laws of words and of clusters. "
    "All go through the paper's pipeline: words in fewer than 20 or more than 90 % of the "
    "documents are removed, then documents of fewer than 20 remaining words. Alpha is .5, a is "
    "1000 for DP, and a and tau are 100 for NIG, as in the paper."
)


@dataclass(frozen=True)
class Settings:
    """Which corpora in place of the real one, how many documents at most, and its files."""

    corpora: tuple[str, ...]
    n_documents: int
    n_orders: int
    """At most: of long corpora there are fewer."""
    docword: str | None = None
    vocab: str | None = None


FULL = Settings(("nyt8447", "drawn"), 266_000, 10)
SMALL = Settings(("nyt8447", "drawn"), 3_000, 2)


def steps(settings: Settings) -> list[Step]:
    """Return tuning and streams of every corpus."""
    made = []
    for name in ("uci",) if settings.docword else settings.corpora:
        source = {"corpus": name, "n_documents": settings.n_documents}
        if settings.docword:
            source |= {"docword": settings.docword, "vocab": settings.vocab}
        made += each(describe, **source)
        made += each(tune, prior=["dp", "nig"], **source)
        orders = list(range(min(settings.n_orders, PLANS[name].n_orders)))
        made += each(stream, model=list(MODELS), order=orders, **source)
    return made


def report(found: Results, show: Show) -> list[Claim]:
    """Draw curves, weights and topics of every corpus; judge the paper's sentences."""
    corpora = list(dict.fromkeys(record["arguments"]["corpus"] for record in found.records))
    made = [pipeline(found, corpora)]
    for corpus in corpora:
        draw(found, corpus, show)
        tabulate(found, corpus, show)
        made += claims(found, corpus)
    return made
