"""Ends of rows in a saved state: differences that wrap around do not hide ends that go back."""

import numpy as np
import pytest

from bnpstream.engine.row_sample import require_rows
from bnpstream.mixture.saved import require_ends

LEAST = np.iinfo(np.int64).min
WRAPPED = np.array([0, 2, LEAST, -1, 5])


def test_ends_that_go_back_are_refused():
    require_ends("ends", np.array([0, 2, 2, 3, 5]), 5)
    with pytest.raises(ValueError, match="the array ends is not valid"):
        require_ends("ends", WRAPPED, 5)


def test_rows_whose_ends_go_back_are_refused():
    arrays = {"indptr": WRAPPED, "columns": np.arange(5), "values": np.ones(5)}
    with pytest.raises(ValueError, match="indptr does not go from 0 to 5"):
        require_rows(arrays, "", "columns", "values", 4)
