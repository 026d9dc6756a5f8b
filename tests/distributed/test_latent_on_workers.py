"""Likelihoods whose rows add what depends on the cluster, on workers."""

import numpy as np
import pytest

from bnpstream import StreamingMixture, normalized_inverse_gaussian
from bnpstream.distributed import fit_ep, fit_stream
from bnpstream.engine.parallel.shards import damped
from bnpstream.inference.visits import Responsibilities
from bnpstream.kernels.arrays import GONE
from bnpstream.mixture.sites import totals
from latent_families import FAMILIES
from states import bits

families = pytest.mark.parametrize("family", FAMILIES)


def mixture(family, **options):
    return StreamingMixture(normalized_inverse_gaussian(1.0, 1.0), FAMILIES[family][0], **options)


@families
@pytest.mark.parametrize("merging", [None, 0.0])
def test_one_shard_is_fit(client, family, merging):
    X, options = FAMILIES[family][1](60), {"n_passes": 4, "merge_threshold": merging}
    serial = mixture(family, **options).fit(X)
    parallel = fit_ep(client, [X], mixture(family, **options))
    assert bits(serial.state_) == bits(parallel.state_)
    assert [e.change for e in serial.epochs_] == [e.change for e in parallel.epochs_]


@families
@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_the_posterior_is_the_sum_of_what_shards_add(client, family, damping):
    X = FAMILIES[family][1](90, 1)
    model = mixture(family, n_passes=5, keep_sites=True, merge_threshold=0.0)
    fit_ep(client, [X[:20], X[20:50], X[50:]], model, damping=damping)
    batch = model.likelihood_.encode(X)
    statistics, masses, _ = totals(model.window_.sites, batch, model.n_clusters_)
    assert model.state_.distance(statistics) < 1e-9 * np.abs(model.state_.statistics).max()
    np.testing.assert_allclose(masses, model.state_.masses, atol=1e-9)
    kept = model.window_.sites.contributions
    assert kept.n_rows == 90
    plain = batch.weighted_sums(model.window_.sites.matrix(model.n_clusters_))
    assert model.state_.distance(plain) > 0.1


@families
def test_a_damped_site_is_the_mean_of_what_was_added(family):
    X = FAMILIES[family][1](50, 4)
    model = mixture(family, keep_sites=True).partial_fit(X)
    before = Responsibilities.of(model.state_, model.window_.sites, 0, 50)
    model.refine(X)
    after = Responsibilities.of(model.state_, model.window_.sites, 0, 50)
    found = damped(model.state_, before, after, 0.3, 0.0).sites(model.state_)
    old, new = (sites.sites(model.state_) for sites in (before, after))
    n_mixed = 0
    for i in range(50):
        expected, total = {}, 0.0
        for part, sites in ((0.3, old), (0.7, new)):
            for slot, share, line in zip(*sites.row(i), sites.lines(i), strict=True):
                if slot != GONE:
                    expected[slot] = expected.get(slot, 0.0) + part * share * line
                    total += part * share
                    n_mixed += sites is new and slot in old.row(i)[0] and share < 0.9
        for slot, share, line in zip(*found.row(i), found.lines(i), strict=True):
            np.testing.assert_allclose(total * share * line, expected[slot], rtol=1e-9)
    assert n_mixed > 3


@families
@pytest.mark.parametrize(
    "options",
    [{}, {"revisit": 25, "half_life": 40.0, "merge_threshold": 0.0}],
    ids=["plain", "window"],
)
def test_a_stream_without_staleness_has_the_bits_of_one_process(client, family, options):
    X = FAMILIES[family][1](80, 2)
    serial = mixture(family, **options).partial_fit(X).finish()
    parallel = mixture(family, **options)
    fit_stream(client, [X[:17], X[17:50], X[50:]], parallel, staleness=0)
    assert bits(serial.state_) == bits(parallel.state_)


@families
def test_a_stream_with_staleness_absorbs_every_row(client, family):
    X = FAMILIES[family][1](80, 3)
    model = mixture(family)
    fit_stream(client, [X[:40], X[40:60], X[60:]], model, staleness=1)
    assert model.n_samples_seen_ == 80
    np.testing.assert_allclose(model.state_.total_mass, 80.0)
