import os
import signal

import dask
import numpy as np
import pytest
from dask import array, bag
from distributed import Client, LocalCluster
from scipy.sparse import csr_array, save_npz

from bnpstream import DocumentMixture, StreamingMixture
from bnpstream.distributed import Reached, StreamError, fit_stream, stream_partitions
from clusters import local_client
from distributed_streams import blocks, corpus, fingerprint, learning, serial


def numbers(n=400):
    rng = np.random.default_rng((9, 1))
    return rng.normal(1e4 + 8.0 * rng.integers(5, size=(n, 1)), 1.0, (n, 2))


def test_no_staleness_gives_the_bits_of_one_process(client):
    expected = serial(learning(), blocks())
    learner = expected.stream_.learner
    assert learner.n_next > 4 * learner.n_first  # it learnt again and again
    result = fit_stream(client, blocks(), learning(), staleness=0)
    assert fingerprint(result.model) == fingerprint(expected)
    assert (result.n_rows, result.reached.partitions) == (900, 9)


@pytest.mark.parametrize(
    "settings",
    [
        {"revisit": 60, "merge_threshold": 0.0},
        {"half_life": 200.0},
        {"max_clusters": 6},
        {"keep_sites": True},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_no_staleness_goes_with_every_setting(client, settings):
    parts = blocks(corpus()[:400])
    expected = serial(learning(**settings), parts)
    result = fit_stream(client, parts, learning(**settings), staleness=0)
    assert fingerprint(result.model) == fingerprint(expected)


def one_worker():
    return LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0")


def test_staleness_decides_on_the_bits_and_workers_do_not(client):
    with one_worker() as cluster, Client(cluster) as alone:
        for staleness in (0, 1, 3):
            by_one, by_two, again = (
                fit_stream(some, blocks(), learning(), staleness=staleness).model
                for some in (alone, client, client)
            )
            assert fingerprint(by_one) == fingerprint(by_two) == fingerprint(again)


def test_threads_of_one_process_give_the_bits_of_workers(client):
    """Workers that settle after every second partition do what threads do in rounds of two."""
    rows, model = corpus(), learning(staleness=1, block_rows=200, learn_threads=2)
    head = [rows[:100], rows[100:200]]  # the first block, which is absorbed row by row
    workers = fit_stream(
        client, [*head, *blocks(rows[200:], 200)], learning(), staleness=1, settle_every=2
    )
    assert fingerprint(workers.model) == fingerprint(model.fit(rows))
    with pytest.raises(
        ValueError, match=r"staleness=1, for threads .*leave that of the model at 0"
    ):
        fit_stream(client, blocks(), model)


@pytest.mark.parametrize("staleness", [1, 3])
def test_nothing_is_lost_or_counted_twice(client, staleness):
    rows = corpus()
    result = fit_stream(client, blocks(rows), learning(), staleness=staleness)
    state, costs = result.model.state_, result.costs
    assert state.n_observations == 900
    assert state.masses.sum() == pytest.approx(900, abs=1e-8)
    np.testing.assert_allclose(state.totals(120), rows.sum(axis=0), rtol=1e-9)
    assert result.model.stream_.learner.n_next == 1200  # learnt at 150, 300 and 600
    assert costs.n_matched > 0
    assert costs.n_born > 0
    births = [event.id for event in result.model.lineage_ if event.kind == "birth"]
    assert births == list(range(state.next_id))
    alone = serial(learning(), blocks(rows))
    assert result.model.score(rows) == pytest.approx(alone.score(rows), rel=0.01)


def test_cells_are_added_with_all_their_digits(client):
    parts = blocks(numbers())
    settings = {"prior": "nig", "likelihood": "gaussian", "prefix_rows": 80, "engine": "reference"}
    model = fit_stream(client, parts, StreamingMixture(**settings), staleness=2).model
    assert model.state_.masses.sum() == pytest.approx(400, abs=1e-9)
    alone = serial(StreamingMixture(**settings), parts)
    assert model.score(numbers()) == pytest.approx(alone.score(numbers()), rel=0.02)
    means = np.sort(model.means_[model.weights_ > 0.1][:, 0])
    np.testing.assert_allclose(means, 1e4 + 8.0 * np.arange(5), atol=1.0)


def test_a_budget_is_kept_after_every_partition(client):
    model = learning(max_clusters=8)
    most = [a.model.n_clusters_ for a in stream_partitions(client, blocks(), model)]
    assert max(most) < 8
    assert model.state_.n_observations == 900
    gone = {event.id for event in model.lineage_ if event.kind != "birth"}
    assert not gone & set(model.cluster_ids_.tolist())
    again = fit_stream(client, blocks(), learning(max_clusters=8)).model
    assert fingerprint(again) == fingerprint(model)


@pytest.mark.parametrize("staleness", [0, 2])
def test_a_killed_worker_changes_nothing(client, staleness):
    expected = fit_stream(client, blocks(), learning(), staleness=staleness)
    with local_client() as other:  # whose nanny may fail to start another worker
        model, victim = learning(), sorted(other.run(os.getpid).values())[0]
        for applied in stream_partitions(other, blocks(), model, staleness=staleness):
            if applied.partition == 3:
                os.kill(victim, signal.SIGKILL)
        assert victim not in other.run(os.getpid, on_error="ignore").values()
    assert fingerprint(model) == fingerprint(expected.model)


@pytest.mark.parametrize("lazy", [False, True])
def test_work_sent_to_workers_that_are_all_gone_is_done_by_new_ones(client, lazy):
    """Dask keeps it for a worker at the old address, which never comes."""
    expected = fit_stream(client, blocks(), learning(), staleness=2)
    parts = [dask.delayed(lambda part=part: part)() for part in blocks()] if lazy else blocks()
    with one_worker() as cluster, Client(cluster) as other:
        (victim,) = other.run(os.getpid).values()
        model = learning()
        for applied in stream_partitions(other, parts, model, staleness=2):
            if applied.partition == 3:
                os.kill(victim, signal.SIGKILL)
                cluster.scale(2)
    assert fingerprint(model) == fingerprint(expected.model)


def test_a_lost_scheduler_leaves_the_posterior_of_the_last_partition():
    with one_worker() as cluster:
        client = Client(cluster)
        stream = stream_partitions(client, blocks(size=50), learning())
        while next(stream).partition < 4:
            pass
        cluster.close()
        with pytest.raises(StreamError, match="the scheduler can no longer be reached") as caught:
            list(stream)
        client.close()
    reached = caught.value.reached
    assert reached.partitions >= 5
    assert caught.value.model.n_samples_seen_ == reached.records == 50 * reached.partitions


def test_partitions_that_cannot_be_read_are_rejected(client, tmp_path):
    parts = blocks()[:5]
    paths = [str(tmp_path / f"{i}.npz") for i in range(5)]
    for path, part in zip(paths, parts, strict=True):
        save_npz(path, part)
    (tmp_path / "1.npz").unlink()
    (tmp_path / "3.npz").write_bytes((tmp_path / "3.npz").read_bytes()[:2000])
    result = fit_stream(client, paths, learning(), staleness=0)
    assert fingerprint(result.model) == fingerprint(serial(learning(), [*parts[::2]]))
    assert result.unread == [paths[1], paths[3]]
    assert [reject.source for reject in result.rejects] == result.unread
    assert "no such file" in result.rejects[0].reason
    assert [reject.record for reject in result.rejects] == [100, 201]
    assert result.reached.partitions == 5
    stale = fit_stream(client, paths, learning(), staleness=1)
    assert (stale.unread, stale.n_rows) == (result.unread, 300)


def test_records_that_the_model_refuses_are_rejected(client):
    bad = blocks()[:4]
    bad[2] = bad[2].toarray().astype(float)
    bad[2][7, 3] = -1.0
    sound = [*bad[:2], np.delete(bad[2], 7, axis=0), bad[3]]
    result = fit_stream(client, bad, learning(), staleness=0)
    assert fingerprint(result.model) == fingerprint(serial(learning(), sound))
    [reject] = result.rejects
    assert (reject.source, reject.line, reject.record) == ("partition 2", 8, 207)


def broken():
    raise OSError("the disk is gone")


def test_what_dask_cannot_compute_is_rejected(client):
    parts = [dask.delayed(part) for part in blocks()[:4]]
    parts[2] = dask.delayed(broken)()
    result = fit_stream(client, parts, learning(), staleness=1)
    assert (result.n_rows, result.unread) == (300, ["partition 2"])
    assert "the disk is gone" in result.rejects[0].reason


@pytest.mark.parametrize("kind", ["bag", "array", "delayed", "frame", "parquet", "directory"])
def test_kinds_of_partitions(client, kind, tmp_path):
    pandas = pytest.importorskip("pandas")
    dense = numbers(300)
    frame = pandas.DataFrame(dense, columns=["x", "y"])
    if kind == "bag":
        partitions = bag.from_sequence(dense.tolist(), npartitions=3)
    elif kind == "array":
        partitions = array.from_array(dense, chunks=(100, 2))
    elif kind == "delayed":
        partitions = [dask.delayed(part) for part in blocks(dense)]
    elif kind == "frame":
        from dask import dataframe

        partitions = dataframe.from_pandas(frame, npartitions=3)
    elif kind == "parquet":
        partitions = tmp_path / "rows.parquet"
        frame.to_parquet(partitions, row_group_size=100)
    else:
        partitions = tmp_path
        for i, part in enumerate(blocks(dense)):
            save_npz(tmp_path / f"{i}.npz", csr_array(part))
    settings = {"prior": "nig", "likelihood": "diagonal", "prefix_rows": 80, "engine": "reference"}
    steps = list(stream_partitions(client, partitions, StreamingMixture(**settings), staleness=0))
    assert [step.n_rows for step in steps] == [100, 100, 100]
    expected = serial(StreamingMixture(**settings), blocks(dense))
    assert fingerprint(steps[-1].model)[0] == fingerprint(expected)[0]
    assert steps[-1].model.n_features_in_ == expected.n_features_in_
    assert hasattr(steps[-1].model, "feature_names_in_") == (kind == "frame")
    assert not hasattr(steps[-1].model, "labels_")


def test_documents_of_a_bag(client):
    texts = [["cat", "dog", "cat"], ["dog", "cat"], ["stock", "bond"], ["stock", "yield"]] * 10
    model = DocumentMixture(spread=20)
    fit_stream(client, bag.from_sequence(texts, npartitions=4), model, staleness=0)
    expected = DocumentMixture(spread=20).fit(texts)
    assert model.vocabulary_.words == expected.vocabulary_.words
    assert model.total_log_evidence_ == expected.total_log_evidence_


@pytest.mark.parametrize(
    "settings",
    [{"revisit": 12, "merge_threshold": 0.0}, {"half_life": 20.0}, {"max_clusters": 2}],
    ids=lambda settings: next(iter(settings)),
)
def test_no_staleness_goes_with_every_setting_of_documents(client, settings):
    texts = [["cat", "dog"], ["stock", "bond", "stock"], ["rain", "sun"], ["dog", "cow"]] * 10
    parts = [texts[start : start + 10] for start in range(0, 40, 10)]
    settings = settings | {"prefix_rows": 15}
    expected = serial(DocumentMixture(**settings), parts)
    result = fit_stream(client, parts, DocumentMixture(**settings), staleness=0)
    assert fingerprint(result.model) == fingerprint(expected)
    assert result.model.vocabulary_.words == expected.vocabulary_.words
    with pytest.raises(ValueError, match=r"a DocumentMixture.*staleness=0"):
        fit_stream(client, parts, DocumentMixture(**settings))


def test_a_run_that_settles_can_be_stopped_and_started_again(client):
    options = {"staleness": 2, "settle_every": 4}
    expected = fit_stream(client, blocks(), learning(), **options)
    model, reached = learning(), Reached()
    for applied in stream_partitions(client, blocks(), model, **options):
        reached = applied.reached
        if reached.partitions == 4:
            break
    assert reached.partitions == 4
    rest = fit_stream(client, blocks(), model, **options, start=reached)
    assert fingerprint(rest.model) == fingerprint(expected.model)
    assert rest.n_rows == 500


@pytest.mark.parametrize(
    "settings", [{"revisit": 50}, {"half_life": 100.0}, {"merge_threshold": 1.0}]
)
def test_what_staleness_does_not_go_with(client, settings):
    name, value = next(iter(settings.items()))
    with pytest.raises(ValueError, match=f"{name}={value}.*staleness=0"):
        fit_stream(client, blocks(), learning(**settings))


def test_bad_arguments(client):
    with pytest.raises(ValueError, match="staleness must be a whole number >= 0, got -1"):
        fit_stream(client, blocks(), learning(), staleness=-1)
    with pytest.raises(TypeError, match="a single matrix: give a list of blocks"):
        fit_stream(client, corpus(), learning())
    with pytest.raises(ValueError, match="rechunk"):
        fit_stream(client, array.ones((10, 4), chunks=(5, 2)), learning())
    with pytest.raises(FileNotFoundError, match="no such file"):
        fit_stream(client, "nowhere.parquet", learning())


def test_workers_forget_a_run_that_is_over(client):
    def held():
        from bnpstream.distributed import worker

        return set(worker._REPLICAS)

    before = client.run(held)  # aborted runs of other tests
    fit_stream(client, blocks()[:3], learning())
    assert all(names <= before[worker] for worker, names in client.run(held).items())
