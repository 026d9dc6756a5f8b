import numpy as np
import pytest
from sklearn.base import clone

from bnpstream import (
    DirichletMultinomial,
    DocumentMixture,
    StreamingMixture,
    dirichlet_process,
    normalized_inverse_gaussian,
)
from bnpstream.datasets import bars, synthetic_corpus
from bnpstream.distributed import ep, fit_ep
from bnpstream.engine.parallel.shards import SparseStream, combine, sweep_shard
from bnpstream.inference.visits import Responsibilities
from bnpstream.kernels.arrays import GONE
from bnpstream.mixture.sites import totals
from bnpstream.mixture.snapshot import state_arrays
from clusters import kill_worker, local_client

ROWS = synthetic_corpus(n_documents=300, n_words=100, mean_length=12, seed=0).counts
"""Short documents: in every sweep dozens of clusters are opened and dropped, in all shards."""


def mixture(**options):
    """Return a model of short documents."""
    prior = dirichlet_process(100)
    return StreamingMixture(prior, DirichletMultinomial(0.1), n_passes=7, tol=0.0, **options)


def cut(rows, n_shards):
    """Return rows in shards of unequal size."""
    n = rows.shape[0]
    ends = [n * s * (s + 1) // (n_shards * (n_shards + 1)) for s in range(n_shards + 1)]
    return [rows[ends[s] : ends[s + 1]] for s in range(n_shards)]


def same_posterior(one, other):
    """Return whether all bits of two posteriors are the same."""
    left, right = state_arrays(one.state_), state_arrays(other.state_)
    return all(np.array_equal(left[name], right[name], equal_nan=True) for name in left)


def cells():
    """Return rows in six clusters, in too little order for one pass."""
    rng = np.random.default_rng((91, 0))
    return 6.0 * rng.integers(0, 6, size=(300, 1)) + rng.normal(size=(300, 3))


def test_threads_of_one_process_sweep_as_workers_do(client):
    workers = fit_ep(client, [ROWS[:100], ROWS[100:200], ROWS[200:]], mixture())
    threads = mixture(staleness=1, block_rows=100, learn_threads=2).fit(ROWS)
    assert same_posterior(workers, threads)
    assert workers.lineage_ == threads.lineage_
    assert workers.label_ids_.tolist() == threads.label_ids_.tolist()
    with pytest.raises(ValueError, match="fit_ep does not support staleness, got 1"):
        fit_ep(client, [ROWS], threads)


@pytest.mark.parametrize(
    ("make", "rows"),
    [
        (mixture, ROWS),
        (lambda: mixture(merge_threshold=0.0, keep_sites=True), ROWS),
        (lambda: StreamingMixture(n_passes=4, prefix_rows=60), ROWS),
        (lambda: StreamingMixture(n_passes=4), ROWS),
        (lambda: StreamingMixture(n_passes=5, likelihood="diagonal", prefix_rows=80), cells()),
    ],
    ids=["given", "merging", "learnt", "all in the prefix", "cells, merged at the end"],
)
def test_one_shard_is_fit(client, make, rows):
    serial, parallel = make().fit(rows), fit_ep(client, [rows], make())
    assert same_posterior(serial, parallel)
    assert parallel.lineage_ == serial.lineage_
    assert len(parallel.epochs_) == len(serial.epochs_)
    assert [e.change for e in parallel.epochs_] == [e.change for e in serial.epochs_]
    for name in ("labels_", "label_ids_", "probabilities_", "log_evidence_", "novelty_"):
        np.testing.assert_array_equal(getattr(parallel, name), getattr(serial, name))
    np.testing.assert_array_equal(
        parallel.absorbed_.responsibilities.ids, serial.absorbed_.responsibilities.ids
    )
    assert parallel.prior_ == serial.prior_
    assert parallel.get_params()["n_passes"] == serial.n_passes


def test_shards_of_a_prefix_are_learnt_from_as_one(client):
    """The first pass does not notice where the shards end."""
    make = lambda: StreamingMixture(n_passes=2, prefix_rows=150)  # noqa: E731
    serial, parallel = make().fit(ROWS), fit_ep(client, cut(ROWS, 4), make())
    np.testing.assert_array_equal(parallel.log_evidence_, serial.log_evidence_)
    np.testing.assert_array_equal(parallel.likelihood_.alpha, serial.likelihood_.alpha)
    assert parallel.prior_ == serial.prior_


@pytest.mark.parametrize("damping", [0.0, 0.2])
def test_the_posterior_is_the_sum_of_the_sites(client, damping):
    model = fit_ep(client, cut(ROWS, 3), mixture(keep_sites=True), damping=damping)
    batch = model.likelihood_.encode(ROWS)
    statistics, masses, log_vacancy = totals(model.window_.sites, batch, model.n_clusters_)
    assert model.state_.distance(statistics) < 1e-9
    np.testing.assert_allclose(masses, model.state_.masses, rtol=0, atol=1e-10)
    np.testing.assert_allclose(log_vacancy, model.state_.log_vacancy, rtol=1e-10)
    lost = model.state_.n_observations - model.state_.total_mass
    n_dead = sum(event.kind == "death" for event in model.epochs_[-1].events)
    assert -1e-9 < lost <= n_dead * model.stream_.visits.least_mass + 1e-9
    assert model.n_samples_seen_ == 300
    refined = model.refine(ROWS, n_passes=1)  # as after `fit`
    assert refined.epochs_[0].n_rows == 300


def test_events_tell_which_clusters_there_are(client):
    model = fit_ep(client, cut(ROWS, 4), mixture())
    alive = set()
    for event in model.lineage_:
        if event.kind == "birth":
            assert event.id not in alive
            alive.add(event.id)
        else:
            alive.remove(event.id)
    assert alive == set(model.cluster_ids_.tolist())
    assert all(epoch.events for epoch in model.epochs_)
    assert model.state_.next_id == sum(event.kind == "birth" for event in model.lineage_)


def test_as_good_as_serial_passes(client):
    """Both find the bars, and predict others alike."""
    images, unseen = bars(n_images=240, seed=3).counts, bars(n_images=100, seed=4).counts
    options = {"likelihood": DirichletMultinomial(0.5), "n_passes": 7}
    serial = StreamingMixture(normalized_inverse_gaussian(10, 100), **options).fit(images)
    parallel = fit_ep(client, cut(images, 2), clone(serial))
    assert parallel.score(unseen) == pytest.approx(serial.score(unseen), rel=0.01)
    assert parallel.n_clusters_ == pytest.approx(serial.n_clusters_, rel=0.1)


def test_the_same_bits_on_any_number_of_workers(client):
    two = fit_ep(client, cut(ROWS, 3), mixture())
    with local_client(1, processes=False) as one_worker:
        one = fit_ep(one_worker, cut(ROWS, 3), mixture())
    assert same_posterior(one, two)
    np.testing.assert_array_equal(one.labels_, two.labels_)


def test_lost_workers_change_nothing(client, monkeypatch):
    """They go when the sites of the last sweep are on them, before and after the driver's copy."""
    undisturbed = fit_ep(client, cut(ROWS, 3), mixture())
    lost = []

    def combine_and_kill(stream, sweeps):
        if len(stream.epochs) in (2, 5):
            lost.append(kill_worker(client))
        return combine(stream, sweeps)

    monkeypatch.setattr(ep, "combine", combine_and_kill)
    disturbed = fit_ep(client, cut(ROWS, 3), mixture())
    client.wait_for_workers(2, timeout=300)
    assert len(lost) == 2
    assert same_posterior(undisturbed, disturbed)
    assert disturbed.lineage_ == undisturbed.lineage_


def test_a_cluster_that_two_shards_open_is_one():
    """Rows of a kind that the posterior does not know: each shard opens a cluster for them."""
    words = np.zeros((60, 40), int)
    words[:30, :10], words[30:, 20:30] = 3, 3
    model = StreamingMixture("nig", DirichletMultinomial(0.5), keep_sites=True).fit(words[:30])
    known = model.n_clusters_
    posterior = SparseStream.of(model.stream_)
    at_home = Responsibilities.of(model.state_, model.window_.sites, 0, 30)
    rest = sweep_shard(model.likelihood_.encode(words[:30]), at_home, posterior, 0.0)[1]
    batch = model.likelihood_.encode(words[30:45])
    gone = Responsibilities(np.arange(16), np.full(15, GONE), np.ones(15))
    swept = sweep_shard(batch, gone, posterior, 0.0)[1]
    assert swept.summed.ids.size == known + 1
    combined = combine(model.stream_, [rest, swept, swept])
    assert combined.state.n_clusters == known + 1
    assert combined.state.masses[-1] == 2 * swept.summed.masses[-1]
    assert combined.state.total_mass == pytest.approx(60)
    np.testing.assert_array_equal(combined.names[1], combined.names[2])
    births = [event for event in combined.epoch.events if event.kind == "birth"]
    assert [event.id for event in births] == [combined.state.ids[-1]]
    other = model.likelihood_.encode(np.roll(words[30:45], 10, axis=1))
    apart = combine(model.stream_, [rest, swept, sweep_shard(other, gone, posterior, 0.0)[1]])
    assert apart.state.n_clusters == known + 2


def test_a_cluster_that_all_shards_leave_is_dropped():
    """Each shard thought that the other would stay."""
    words = np.zeros((60, 40), int)
    words[:30, :10], words[30:, 20:30] = 3, 3
    model = StreamingMixture("nig", DirichletMultinomial(0.5), keep_sites=True).fit(words)
    assert model.n_clusters_ == 2
    sites = Responsibilities.of(model.state_, model.window_.sites, 0, 60)
    swept = sweep_shard(
        model.likelihood_.encode(words), sites, SparseStream.of(model.stream_), 0.0
    )[1]
    left = swept._replace(summed=swept.summed._replace(masses=np.array([30.0, 0.03])))
    combined = combine(model.stream_, [left, left])
    assert combined.state.ids.tolist() == [swept.summed.ids[0]]
    assert combined.state.total_mass == 60.0
    events = [(event.kind, event.id, event.mass) for event in combined.epoch.events]
    assert events == [("death", swept.summed.ids[1], 0.06)]


def test_shards_that_workers_make(client, tmp_path):
    """Delayed blocks and files are the rows that they hold."""
    import dask
    from scipy.sparse import csr_array, save_npz

    in_memory = fit_ep(client, cut(ROWS, 2), mixture())
    paths = []
    for number, shard in enumerate(cut(ROWS, 2)):
        paths.append(tmp_path / f"{number}.npz")
        save_npz(paths[-1], csr_array(shard))
    delayed = [dask.delayed(csr_array)(shard) for shard in cut(ROWS, 2)]
    for shards in (paths, delayed):
        assert same_posterior(in_memory, fit_ep(client, shards, mixture()))


def test_saved_and_loaded_it_predicts_the_same(client, tmp_path):
    model = fit_ep(client, cut(ROWS, 2), mixture())
    model.save(tmp_path)
    loaded = StreamingMixture.load(tmp_path)
    np.testing.assert_array_equal(loaded.score_samples(ROWS), model.score_samples(ROWS))
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    assert model.partial_fit(ROWS[:10]).n_samples_seen_ == 310


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_passes": 1}, "n_passes >= 2"),
        ({"half_life": 100.0}, "does not support half_life, got 100.0"),
        ({"max_clusters": 5}, "does not support max_clusters, got 5"),
        ({"split_threshold": 0.0}, r"does not support split_threshold, got 0\.0"),
        ({"revisit": 10}, "give only one of them"),
    ],
)
def test_what_cannot_be_done_in_parallel_is_refused(client, options, message):
    with pytest.raises(ValueError, match=message):
        fit_ep(client, [ROWS], mixture().set_params(**options))


def test_other_refusals(client):
    with pytest.raises(TypeError, match="needs a StreamingMixture, got Doc"):
        fit_ep(client, [ROWS], DocumentMixture())
    with pytest.raises(ValueError, match=r"damping must be in \[0, 1\), got 1.0"):
        fit_ep(client, [ROWS], mixture(), damping=1.0)
    with pytest.raises(TypeError, match="give a list of blocks"):
        fit_ep(client, ROWS, mixture())
    with pytest.raises(ValueError, match="blocks is empty"):
        fit_ep(client, [], mixture())


@pytest.mark.slow
def test_kos_is_as_good_as_serial_passes(client, kos):
    """The means over five orders differ by less than .2 %.

    The standard error of the serial mean is .12 %, so this cannot tell a bias of .1 % from chance.
    """
    order = np.random.default_rng(0).permutation(3430)
    held_out, rows = kos.counts[order[:686]], kos.counts[order[686:]]

    def make():
        prior = normalized_inverse_gaussian(10, 100)
        return StreamingMixture(prior, DirichletMultinomial(0.1), n_passes=20, tol=0.0)

    figures = []
    for seed in range(5):
        shuffled = rows[np.random.default_rng(seed).permutation(len(order) - 686)]
        halves = [shuffled[:1372], shuffled[1372:]]
        models = make().fit(shuffled), fit_ep(client, halves, make())
        figures.append([model.score_samples(held_out).sum() for model in models])
    serial, parallel = np.mean(figures, axis=0)
    assert parallel == pytest.approx(serial, rel=0.002)
