"""What is slow by nature says so before the first row is absorbed, and names a way out."""

import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from bnpstream import Gaussian, Product, SphericalGaussian, StreamingMixture
from bnpstream.cli import app
from bnpstream.engine import SlowFamilyWarning
from bnpstream.engine.notice import SLOW_SECONDS, warn_of_slowness

WIDE = 400


def wide(D):
    return Gaussian(mean=np.zeros(D), covariance=np.eye(D))


def test_auto_takes_no_wide_covariance():
    rows = np.random.default_rng((19, 1)).normal(size=(5, WIDE))
    assert not isinstance(StreamingMixture().fit(rows).likelihood_, Gaussian)


@pytest.mark.parametrize("likelihood", ["gaussian", wide(WIDE)])
def test_a_wide_covariance_warns_before_the_first_row(likelihood):
    """Warnings are errors here: nothing of the rows is in the posterior when this one comes."""
    rows = np.random.default_rng((19, 1)).normal(size=(5, WIDE))
    model = StreamingMixture(likelihood=likelihood)
    with pytest.raises(SlowFamilyWarning, match=r"400 columns.*s per 1,000 rows.*spherical"):
        model.fit(rows)
    assert not hasattr(model, "state_")


def test_the_estimate_is_in_seconds_per_thousand_rows():
    with pytest.warns(SlowFamilyWarning, match="about 154 s per 1,000 rows"):
        warn_of_slowness(wide(1000))
    for D in (1, 16, 128, 256):  # those are not slow
        assert 1000.0 * wide(D).slowness().seconds_per_row < SLOW_SECONDS
        warn_of_slowness(wide(D))
    assert SphericalGaussian(mean=np.zeros(5000), variance=1.0).slowness() is None


def test_a_product_is_as_slow_as_its_slowest_part():
    parts = [
        ("narrow", wide(2), slice(0, 2)),
        ("wide", wide(WIDE), slice(2, 2 + WIDE)),
        ("plain", SphericalGaussian(mean=np.zeros(2), variance=1.0), slice(-2, None)),
    ]
    assert Product(parts).slowness() == wide(WIDE).slowness()
    assert Product(parts[2:]).slowness() is None


def test_the_command_line_says_it_in_one_line(tmp_path):
    rows = np.random.default_rng((19, 2)).normal(size=(6, WIDE))
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",")
    command = ["fit", str(tmp_path / "rows.csv"), "--likelihood", "gaussian", "--prior", "nig"]
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    said = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert len(said) == 1
    assert "400 columns" in said[0]
    assert "spherical" in said[0]
