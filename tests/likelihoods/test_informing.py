"""The base measure that is taken from the first rows."""

import numpy as np
import pytest

from bnpstream import DiagonalGaussian, Gaussian, SphericalGaussian, StreamingMixture
from bnpstream.likelihoods import base_measures as informing
from bnpstream.likelihoods.base_measures import first_rows


def clusters(n=400, K=4, D=5, apart=8.0, seed=0):
    rng = np.random.default_rng(seed)
    centres = apart * rng.normal(size=(K, D))
    return centres[rng.integers(K, size=n)] + rng.normal(size=(n, D))


@pytest.mark.parametrize(("K", "D"), [(1, 2), (1, 40), (3, 5), (20, 5), (5, 10), (10, 40)])
def test_the_variance_within_separated_clusters_is_found(K, D):
    found = first_rows(clusters(500, K, D, apart=10.0))
    assert np.exp(np.abs(np.log(found.within)).mean()) < 1.15
    assert (found.within > 0.5).all()
    assert (found.within < 2.0).all()


def test_columns_of_their_own_width_are_told_apart():
    widths = np.array([0.1, 1.0, 3.0])
    rows = clusters(500, 3, 3, apart=15.0) * widths
    np.testing.assert_allclose(first_rows(rows).within, widths**2, rtol=0.25)


def test_shifts_and_scales_of_single_columns_move_it_along():
    rows = clusters()
    shift = np.array([0.0, 1e6, -3.0, 1e-3, 50.0])
    scale = np.array([1e-6, 1.0, 1e6, -2.0, 1e3])
    before, after = first_rows(rows), first_rows(rows * scale + shift)
    np.testing.assert_allclose(after.mean, before.mean * scale + shift, rtol=1e-9)
    np.testing.assert_allclose(after.within, before.within * scale**2, rtol=1e-6)
    np.testing.assert_allclose(after.spread, before.spread * scale**2, rtol=1e-6)
    strengths = [found.mean_strength(found.within) for found in (before, after)]
    assert strengths[0] == pytest.approx(strengths[1], rel=1e-6)


def test_clusters_a_million_widths_apart_do_not_drown_their_width():
    rows = clusters(300, 3, 2, apart=1e6, seed=1)
    np.testing.assert_allclose(first_rows(rows).within, 1.0, rtol=0.3)


def test_means_are_expected_to_spread_as_the_rows_do():
    found = first_rows(clusters(500, 10, 3, apart=10.0))
    kappa = found.mean_strength(found.within)
    assert kappa * np.mean(found.spread / found.within) == pytest.approx(1.0)
    assert kappa < 0.02
    assert found.mean_strength(1e9 * found.within) == 1.0


def test_a_constant_column_changes_nothing_for_the_others():
    rows = clusters()
    with_constants = np.column_stack([rows[:, :2], np.full(len(rows), -7.0), rows[:, 2:]])
    with_constants = np.column_stack([with_constants, np.zeros(len(rows))])
    plain, found = first_rows(rows), first_rows(with_constants)
    np.testing.assert_array_equal(found.within[[0, 1, 3, 4, 5]], plain.within)
    np.testing.assert_array_equal(found.within[[2, 6]], [49.0, 1.0])
    np.testing.assert_array_equal(found.mean[[2, 6]], [-7.0, 0.0])
    assert found.mean_strength(found.within) == plain.mean_strength(plain.within)
    assert found.common_variance == plain.common_variance


def test_noise_of_the_arithmetic_is_no_variance():
    rows = clusters()
    rows[:, 0] = np.where(np.arange(len(rows)) % 2, 0.3, 0.1 + 0.2)
    found = first_rows(rows)
    assert found.varies.tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]
    rows[:, 0] = 0.3 + 1e-9 * clusters()[:, 0]
    assert first_rows(rows).within[0] == pytest.approx(1e-18, rel=0.5)


def test_a_column_of_few_values_keeps_the_variance_of_rounding():
    rows = clusters(400, 2, 3)
    rows[:, 0] = 10.0 * np.rint(rows[:, 0] > rows[:, 0].mean())
    assert first_rows(rows).within[0] == pytest.approx(100.0 / 12.0)


@pytest.mark.parametrize("family", [Gaussian, DiagonalGaussian, SphericalGaussian])
@pytest.mark.parametrize("n_rows", [1, 2, 3, 7])
def test_few_rows_are_enough_to_go_on(family, n_rows):
    rows = clusters(60)
    model = StreamingMixture(likelihood=family().informed(rows[:n_rows])).fit(rows)
    assert np.isfinite(model.total_log_evidence_)


def test_one_row_gives_its_own_size():
    found = first_rows(np.array([[3.0, 0.0, -2.0]]))
    np.testing.assert_array_equal(found.mean, [3.0, 0.0, -2.0])
    np.testing.assert_array_equal(found.within, [9.0, 1.0, 4.0])
    assert found.mean_strength(found.within) == 1.0


def test_missing_cells_are_left_out():
    rng = np.random.default_rng(3)
    rows = clusters(500, 3, 5, apart=12.0)
    rows[rng.random(rows.shape) < 0.3] = np.nan
    rows[:, 4] = np.nan
    rows[7] = np.nan
    found = first_rows(rows)
    np.testing.assert_allclose(found.within[:4], 1.0, rtol=0.3)
    np.testing.assert_allclose(found.mean, np.append(np.nanmean(rows[:, :4], axis=0), 0.0), atol=1)
    assert found.varies.tolist() == [1.0, 1.0, 1.0, 1.0, 0.0]


def test_rows_that_share_no_cell_leave_the_variance_of_the_rows(monkeypatch):
    monkeypatch.setattr(informing, "PAIR_CELLS", 2)  # every second row is looked at
    rows = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, 4.0], [np.nan, 10.0]])
    np.testing.assert_allclose(first_rows(rows).within, [1.0, 9.0])


def test_a_few_outliers_do_not_make_the_spread():
    rows = clusters()
    plain = first_rows(rows)
    rows[[5, 100, 200]] *= 1e4
    found = first_rows(rows)
    np.testing.assert_allclose(found.spread, plain.spread, rtol=0.2)
    np.testing.assert_allclose(found.within, plain.within, rtol=0.2)


def test_collinear_columns_give_a_positive_definite_covariance():
    rows = clusters()
    rows = np.column_stack([rows, rows[:, 0], rows[:, :2].sum(axis=1), np.ones(len(rows))])
    covariance = np.asarray(Gaussian().informed(rows).covariance)
    correlation = covariance / np.sqrt(np.outer(*2 * [np.diag(covariance)]))
    assert np.linalg.eigvalsh(correlation)[0] > 0.01


def test_many_rows_and_wide_rows_are_thinned_out(monkeypatch):
    rows = clusters(1000, 3, 4, apart=10.0)
    monkeypatch.setattr(informing, "PAIR_CELLS", 4 * 200 * 199 // 2)
    found = first_rows(rows)
    monkeypatch.undo()
    np.testing.assert_allclose(found.within, first_rows(rows[::5]).within, rtol=0.01)
    assert (found.within != first_rows(rows).within).all()


def test_what_a_user_gives_is_kept():
    rows = clusters(D=2)
    given = Gaussian(covariance=[[4.0, 1.0], [1.0, 9.0]]).informed(rows)
    found = first_rows(rows)
    np.testing.assert_array_equal(given.covariance, [[4.0, 1.0], [1.0, 9.0]])
    np.testing.assert_array_equal(given.mean, found.mean)
    assert given.mean_strength == found.mean_strength(np.array([4.0, 9.0]))
    assert DiagonalGaussian(mean_strength=0.5).informed(rows).mean_strength == 0.5
    with pytest.raises(ValueError, match="one number per column"):
        DiagonalGaussian(variance=[1.0, 2.0, 3.0]).informed(rows)


@pytest.mark.parametrize("family", [Gaussian, DiagonalGaussian, SphericalGaussian])
def test_twenty_clusters_are_found_in_one_pass_with_no_option(family):
    rng = np.random.default_rng(7)
    centres = 10.0 * rng.normal(size=(20, 10))
    labels = rng.integers(20, size=2000)
    rows = centres[labels] + rng.normal(size=(2000, 10))
    found = StreamingMixture(likelihood=family()).fit(rows).labels_
    pairs = {(int(a), int(b)) for a, b in zip(labels, found, strict=True)}
    assert len(pairs) == 20
