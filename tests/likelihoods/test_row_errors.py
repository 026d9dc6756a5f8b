"""Errors about rows say which one it is, in a number and in words."""

import pickle

import numpy as np
import pytest

from bnpstream.likelihoods import NAMED_LIKELIHOODS, DiagonalGaussian, Poisson, Product
from bnpstream.likelihoods.documents import as_documents
from bnpstream.likelihoods.errors import RowError

BAD = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, -1.0]])
HUGE = np.array([[0.0], [1e300]])
TWO = Product([("numbers", DiagonalGaussian(), [0]), ("counts", Poisson(), [1])])


@pytest.mark.parametrize(
    ("check", "rows", "row", "reason"),
    [
        (NAMED_LIKELIHOODS["multinomial"].check_rows, BAD, 2, "column 0 is 0.5: "),
        (NAMED_LIKELIHOODS["poisson"].check_rows, BAD, 2, "column 0 is 0.5: Poisson"),
        (NAMED_LIKELIHOODS["bernoulli"].check_rows, BAD, 2, "column 0 is 0.5: Bernoulli"),
        (NAMED_LIKELIHOODS["gaussian"].check_rows, HUGE, 1, "column 0 is 1e+300: cells"),
        (NAMED_LIKELIHOODS["gaussian"].check_rows, [[1.0], [np.nan]], 1, "column 0 is missing"),
        (NAMED_LIKELIHOODS["gaussian"].check_rows, [[1.0], ["a"]], 1, "column 0 is "),
        (NAMED_LIKELIHOODS["auto"].check_rows, [["a"], [1e300]], 1, "column 0 is 1e+300"),
        (TWO.check_rows, BAD, 2, "part 'counts': column 0 is -1.0: Poisson"),
        (as_documents, [{"a": 1}, {"a": -1}], 1, "word 'a' is -1: a count cannot be negative"),
        (as_documents, [{"a": 1}, "a b"], 1, "it is a string"),
    ],
)
def test_the_row_is_named_once(check, rows, row, reason):
    with pytest.raises(RowError) as caught:
        check(np.array(rows, dtype=object) if isinstance(rows[0], list) else rows)
    error = caught.value
    assert error.row == row
    assert error.reason.startswith(reason)
    assert f"row {row}" in str(error) or f"document {row}" in str(error)
    assert f"{row}, " not in error.reason


def test_errors_come_back_from_other_processes_whole():
    error = RowError(3, "column 1 is nan").within("part 'sizes'")
    again = pickle.loads(pickle.dumps(error))
    assert (again.row, again.reason, str(again)) == (error.row, error.reason, str(error))
    assert str(again) == "part 'sizes': row 3, column 1 is nan"
