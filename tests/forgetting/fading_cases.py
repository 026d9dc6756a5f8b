"""Streams and models that the tests of forgetting share."""

import numpy as np
from scipy.sparse import csr_array

from bnpstream import DiagonalGaussian, DirichletMultinomial, Gaussian, StreamingMixture
from bnpstream.priors import PitmanYor, dirichlet_process, normalized_inverse_gaussian

WORDS = 24
PRIORS = {
    "dp": dirichlet_process(0.8),
    "nig": normalized_inverse_gaussian(2.0, 3.0),
    "py": PitmanYor(0.6, 0.2),
}


def changing(number, rows=90, length=9):
    """Return counts over WORDS words: three topics, then three others, then the first ones."""
    rng = np.random.default_rng((71, number))
    theta = rng.dirichlet(np.full(WORDS, 0.2), size=6)
    phase = np.arange(rows) * 3 // rows
    topic = rng.integers(0, 3, size=rows) + 3 * (phase == 1)
    return rng.multinomial(rng.integers(1, 2 * length, size=rows), theta[topic])


def widened(counts, columns=9000):
    """Return the same counts in a matrix too wide to be stored densely."""
    rows, words = np.nonzero(counts)
    values = counts[rows, words]
    return csr_array((values, (rows, 371 * words)), shape=(len(counts), columns))


def numbers(number, rows=90, offset=0.0):
    """Return rows of three numbers about centres that change twice."""
    rng = np.random.default_rng((72, number))
    centres = 9.0 * rng.normal(size=(6, 3))
    phase = np.arange(rows) * 3 // rows
    which = rng.integers(0, 3, size=rows) + 3 * (phase == 1)
    return offset + centres[which] + rng.normal(size=(rows, 3))


def mixture(kind="nig", likelihood=None, **options):
    likelihood = likelihood or DirichletMultinomial(0.3)
    return StreamingMixture(PRIORS[kind], likelihood, **options)


KINDS = {
    "words": (DirichletMultinomial(0.3), changing(1)),
    "wide words": (DirichletMultinomial(0.05), widened(changing(2))),
    "gaussian": (Gaussian(np.zeros(3), 0.1, 6.0, 2 * np.eye(3)), numbers(1)),
    "diagonal": (
        DiagonalGaussian(np.full(3, 1e5), 0.1, 4.0, np.full(3, 2.0)),
        numbers(2, offset=1e5),
    ),
}
