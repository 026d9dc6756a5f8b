"""Base measures over an open vocabulary: a fixed total, given out as words appear."""

from dataclasses import asdict, dataclass

from bnpstream.likelihoods.bursty import GUESSED_DOCUMENT_STRENGTH
from bnpstream.likelihoods.multinomial import ALPHA_RANGE
from bnpstream.likelihoods.registry import register

TOTAL_PER_WORD = 0.15
"""Default of A as a multiple of `spread`: alpha is then .3 at the start of the vocabulary."""


@register()
@dataclass(frozen=True)
class OpenVocabulary:
    """Base measure over an open vocabulary: a fixed total, given out as words appear.

    When J words are known, the rest for all others is

        R(J) = A (g / (J + g))^2,

    and the m words that a document adds get (R(J) - R(J + m)) / m each, permanently. The sum of all
    alphas and the rest is always A (``docs/vocabulary.md``).

    Parameters
    ----------
    spread : float
        g: after this many words, a quarter of the base measure is left; about the number of words
        in the first hundred documents.
    total : float, optional
        A: how many words the base measure is worth in a cluster. Default .15 `spread`.

    Examples
    --------
    >>> from bnpstream.likelihoods import OpenVocabulary
    >>> base = OpenVocabulary(spread=100, total=40)
    >>> base.rest(0), base.rest(100)
    (40.0, 10.0)
    >>> round(60 * base.alpha(0, 60) + 40 * base.alpha(60, 40) + base.rest(100), 12)
    40.0
    """

    spread: float
    total: float | None = None

    def __post_init__(self) -> None:
        low, high = ALPHA_RANGE
        for name, value in asdict(self).items():
            known = value is not None or name != "total"
            if known and not (isinstance(value, int | float) and low < value < high):
                raise ValueError(f"{name} must be a number > 0, got {value!r}")

    @property
    def A(self) -> float:  # noqa: N802  (its name in the formulas)
        """Return A, the total."""
        return TOTAL_PER_WORD * self.spread if self.total is None else self.total

    def rest(self, known: int) -> float:
        """Return R(J): the alpha of all words other than the `known` ones."""
        return self.A * (self.spread / (known + self.spread)) ** 2

    def alpha(self, known: int, new: int) -> float:
        """Return (R(J) - R(J + m)) / m for m = `new` words, without subtracting."""
        before, after = known + self.spread, known + new + self.spread
        return self.A * (self.spread / before) * (self.spread / after) * (1 / before + 1 / after)


@register()
@dataclass(frozen=True)
class BurstyVocabulary(OpenVocabulary):
    """Base measure of bursty documents (`BurstyMultinomial`) with a growing vocabulary.

    Parameters
    ----------
    spread, total
        As in `OpenVocabulary`.
    document_strength : float
        s.
    """

    document_strength: float = GUESSED_DOCUMENT_STRENGTH
