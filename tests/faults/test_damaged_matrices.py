"""Sparse matrices whose pointers or indices lead out of them: SciPy's loops would follow."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bnpstream import DirichletMultinomial, GibbsMixture, StreamingMixture

SOUND = csr_array(np.random.default_rng((91, 1)).poisson(1.0, (20, 6)))


def forged(format, name, place, value):
    """Return the matrix with one number of one of its arrays replaced."""
    matrix = SOUND.asformat(format).copy()
    array = matrix.coords[0] if name == "coords" else getattr(matrix, name)
    array[place] = value
    return matrix


def with_part(format, name, change):
    """Return the matrix with one of its arrays changed."""
    matrix = SOUND.asformat(format).copy()
    setattr(matrix, name, change(getattr(matrix, name)))
    return matrix


FORGED = [
    forged("csr", "indptr", 1, 2**31 - 5),
    forged("csr", "indptr", -1, 2**31 - 5),
    forged("csr", "indptr", 5, -3),
    forged("csr", "indptr", 0, 2),
    forged("csr", "indices", 3, 2**31 - 5),
    forged("csr", "indices", 3, 6),
    forged("csr", "indices", 3, -1),
    forged("csc", "indices", 3, 20),
    forged("csc", "indptr", 2, 2**31 - 5),
    forged("coo", "coords", 3, 2**31 - 5),
    forged("coo", "coords", 3, -2),
    forged("csr", "indptr", slice(2, 5), (2**31 - 1, -(2**31), -1)),
    forged("bsr", "indices", 0, 2**31 - 5),
    forged("bsr", "indptr", 1, 2**31 - 5),
    forged("dia", "offsets", 0, 2**31 - 5),
    with_part("csr", "indptr", list),
    with_part("csr", "indices", lambda indices: indices[None]),
    with_part("csc", "data", lambda data: None),
    with_part("dia", "offsets", lambda offsets: offsets[1:]),
]


@pytest.mark.parametrize("number", range(len(FORGED)))
def test_no_method_follows_them(number):
    model = StreamingMixture(likelihood=DirichletMultinomial(0.1), engine="reference").fit(SOUND)
    new = StreamingMixture(likelihood="auto", engine="reference")
    chains = GibbsMixture(likelihood=DirichletMultinomial(0.1), n_sweeps=1, n_kept=1)
    methods = (new.fit, new.partial_fit, model.partial_fit, model.predict, model.predict_proba)
    for method in (*methods, model.score_samples, chains.fit):
        with pytest.raises(ValueError, match=r"X is a damaged (cs[rc]|coo|bsr|dia) matrix"):
            method(FORGED[number])


def test_sound_matrices_of_every_format_are_taken():
    model = StreamingMixture(likelihood=DirichletMultinomial(0.1), engine="reference").fit(SOUND)
    for format in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr"):
        np.testing.assert_array_equal(model.predict(SOUND.asformat(format)), model.predict(SOUND))
    loose = SOUND.copy()
    loose.data, loose.indices = np.append(loose.data, 7), np.append(loose.indices, 99)
    np.testing.assert_array_equal(model.predict(loose), model.predict(SOUND))


@pytest.mark.parametrize("make", [np.array, csr_array])
@pytest.mark.parametrize("type_", [np.int64, np.uint64])
def test_a_count_that_a_float_would_round_is_refused(make, type_):
    rows = np.array([[1, 2], [3, 2**53 + 1]], type_)
    with pytest.raises(
        ValueError, match=r"row 1, column 1 is 9007199254740993: .*cannot be larger"
    ):
        StreamingMixture(likelihood=DirichletMultinomial(0.1)).fit(make(rows))
