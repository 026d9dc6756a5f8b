"""What falls into independent parts: the same on a cluster as here, to the last bit."""

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz
from sklearn.base import clone

from bnpstream import (
    DirichletMultinomial,
    GibbsMixture,
    StreamingMixture,
    distributed,
    normalized_inverse_gaussian,
)
from bnpstream import search as tuning
from bnpstream.datasets import bars, synthetic_corpus
from clusters import kill_worker

ROWS = csr_array(bars(n_images=200, seed=5).counts)
UNSEEN = csr_array(bars(n_images=90, seed=6).counts)
GIBBS = GibbsMixture(
    normalized_inverse_gaussian(10, 100), DirichletMultinomial(0.1), n_sweeps=12, n_kept=8
)
GRID = {"likelihood": [DirichletMultinomial(alpha) for alpha in (0.1, 0.3, 0.5, 1.0)]}


def same(points, others):
    """Return whether all points are the same but for the time that they took."""
    return len(points) == len(others) and all(
        np.array_equal(one.scores, other.scores)
        and np.array_equal(one.n_clusters, other.n_clusters)
        and repr(one.parameters) == repr(other.parameters)
        for one, other in zip(points, others, strict=True)
    )


def test_grid_search(client):
    told = []
    here = tuning.grid_search(StreamingMixture("nig"), ROWS, GRID, n_prefix=150)
    there = distributed.grid_search(
        client,
        StreamingMixture("nig"),
        ROWS,
        GRID,
        n_prefix=150,
        on_point=lambda *p: told.append(p),
    )
    assert same(here.points, there.points)
    assert (there.best_index, there.n_tokens) == (here.best_index, here.n_tokens)
    assert [(done, n) for _, done, n in told] == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_worker_lost_in_a_grid_search(client):
    here = tuning.grid_search(StreamingMixture("nig"), ROWS, GRID, n_prefix=150)

    def kill_once(point, done, n):
        if done == 1:
            kill_worker(client)

    there = distributed.grid_search(
        client, StreamingMixture("nig"), ROWS, GRID, n_prefix=150, on_point=kill_once
    )
    client.wait_for_workers(2, timeout=300)
    assert same(here.points, there.points)


def test_a_bad_point_is_named(client):
    with pytest.raises(ValueError, match=r"prior.*with prior='crp'"):
        distributed.grid_search(client, StreamingMixture(), ROWS, {"prior": ["nig", "crp"]})


@pytest.mark.parametrize(
    "estimator",
    [StreamingMixture("nig"), GIBBS],
    ids=["streaming", "Gibbs"],
)
def test_replicates(client, estimator):
    seeds = [3, 1, 4]
    here = tuning.replicate(estimator, ROWS, UNSEEN, seeds, n_jobs=2)
    assert same(here, distributed.replicate(client, estimator, ROWS, UNSEEN, seeds))
    alone = [tuning.replicate(estimator, ROWS, UNSEEN, [seed])[0] for seed in seeds]
    assert same(here, alone)
    assert len({point.score for point in here}) == 3


def test_a_replicate_is_a_fit_to_rows_in_another_order():
    point = tuning.replicate(StreamingMixture("nig"), ROWS, UNSEEN, [7])[0]
    shuffled = ROWS[np.random.default_rng(7).permutation(200)]
    expected = StreamingMixture("nig").fit(shuffled).score_samples(UNSEEN)
    np.testing.assert_array_equal(point.scores, expected)


def test_chains(client):
    sampler = clone(GIBBS).set_params(n_chains=3)
    rows = synthetic_corpus(n_documents=150, n_words=64, mean_length=12, seed=0).counts
    here, there = clone(sampler).fit(rows), distributed.fit_chains(client, sampler, rows)
    assert there is sampler
    assert len(np.unique(here.log_likelihood_)) > 3
    for name in ("log_likelihood_", "n_clusters_", "assignments_", "auxiliaries_", "labels_"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))
    np.testing.assert_equal(there.rhat_, here.rhat_)
    np.testing.assert_array_equal(there.score_samples(UNSEEN), here.score_samples(UNSEEN))


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score_samples"])
def test_answers_over_blocks(client, tmp_path, method):
    import dask
    import dask.array

    model = StreamingMixture("nig").fit(ROWS)
    here = getattr(model, method)(UNSEEN)
    blocks = [UNSEEN[:20], UNSEEN[20:70], UNSEEN[70:]]
    paths = [tmp_path / f"{number}.npz" for number in range(3)]
    for path, block in zip(paths, blocks, strict=True):
        save_npz(path, block)
    for given in (
        blocks,
        paths,
        (dask.delayed(csr_array)(block) for block in blocks),
        dask.array.from_array(UNSEEN.toarray(), chunks=(25, -1)),
    ):
        there = getattr(distributed, method)(client, model, given)
        np.testing.assert_array_equal(there, here)


def test_blocks_that_are_none(client, tmp_path):
    import dask.array

    model = StreamingMixture("nig").fit(ROWS)
    with pytest.raises(TypeError, match="give a list of blocks of rows"):
        distributed.predict(client, model, UNSEEN)
    with pytest.raises(ValueError, match="blocks of columns"):
        distributed.predict(client, model, dask.array.zeros((90, 64), chunks=(30, 32)))
    with pytest.raises(ValueError, match="blocks is empty"):
        distributed.predict(client, model, [])
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"a": 1}\nnonsense\n')
    with pytest.raises(ValueError, match=r"bad.jsonl, line 2: .*correct or remove"):
        distributed.predict(client, model, [bad])
