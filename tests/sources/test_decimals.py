"""Real values in lines: every spelling is read as Python reads it, to the last bit."""

import numpy as np
import pytest
from number_files import read, rejects, write

from bnpstream.sources.formats.pairs import PairReader

SPELLINGS = ["{!r}", "{:.17g}", "{:.16e}", "{:.6g}", "{:.12f}", "{:.3E}", "{:+.15g}"]


def values(texts, tmp_path) -> np.ndarray:
    # The first value says that this is a table.
    lines = ["1 1:0.5\n", *(f"1 1:{text}\n" for text in texts)]
    batches = read(write(tmp_path, "".join(lines)), "svmlight")
    assert rejects(batches) == []
    return np.concatenate([records.rows[:, 0] for records, _ in batches])[1:]


@pytest.mark.kernel
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_random_numbers(tmp_path, spelling):
    rng = np.random.default_rng((65, len(spelling)))
    exponents = rng.integers(-30, 30, size=400)
    numbers = np.concatenate(
        [
            rng.normal(size=400) * 10.0**exponents,
            rng.integers(1, 1 << 53, size=400) / 2.0**exponents,  # many are close to halfway
            rng.integers(-99, 99, size=100),
        ]
    )
    texts = [spelling.format(float(number)) for number in numbers]
    assert np.array_equal(values(texts, tmp_path), [float(text) for text in texts])


@pytest.mark.kernel
def test_numbers_halfway_between_two_doubles(tmp_path):
    """2^52 + 1/2 and its neighbours: rounding the last digits in two steps would be wrong."""
    whole = 1 << 52
    texts = [f"{whole + i}.{rest}" for i in range(4) for rest in ("5", "49", "51", "5000", "0")]
    texts += [f"{2 * whole + i}" for i in range(8)] + [f"{2 * whole + i}.0e0" for i in range(8)]
    texts += [f"0.{whole + i}5" for i in range(4)] + ["9" * 18, "9" * 19, "0." + "9" * 18]
    assert np.array_equal(values(texts, tmp_path), [float(text) for text in texts])


def test_numbers_about_halfway_are_read_with_care(tmp_path, monkeypatch):
    seen, judge = [], PairReader.judge

    def watch(self, line, building):
        seen.append(line)
        return judge(self, line, building)

    monkeypatch.setattr(PairReader, "judge", watch)
    whole = 1 << 52
    values([f"{whole}.25", f"{whole}.5"], tmp_path)
    assert set(seen) == {b"1 1:%d.5" % whole}


@pytest.mark.parametrize(
    "text", ["5e-324", "1.7976931348623157e308", "1e-400", "0e999", "0.0e-7", "000.25", ".5", "5."]
)
def test_odd_numbers(tmp_path, text):
    assert values([text], tmp_path).tolist() == [float(text)]


def test_usual_numbers_need_no_care(tmp_path, monkeypatch):
    monkeypatch.delattr(PairReader, "judge")
    rng = np.random.default_rng((66, 0))
    texts = [repr(number) for number in rng.normal(size=1000).tolist()]
    assert np.array_equal(values(texts, tmp_path), [float(text) for text in texts])
