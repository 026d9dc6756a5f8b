"""What directions offer beside what every family has: centroids and cosines."""

import numpy as np
import pytest

from bnpstream import DiagonalGaussian, Directional, DocumentMixture, StreamingMixture


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(4)
    centres = rng.normal(size=(3, 40))
    return centres[np.arange(600) % 3] + 0.5 * rng.normal(size=(600, 40))


@pytest.fixture(scope="module")
def model(vectors):
    return StreamingMixture(likelihood=Directional(normalize=True)).fit(vectors)


def test_means_are_unit_centroids(model):
    np.testing.assert_allclose(np.linalg.norm(model.means_, axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cosines_are_those_of_rows_and_centroids(model, vectors, dtype):
    rows = vectors[:20].astype(dtype)
    found = model.cosine(rows)
    assert found.shape == (20, model.n_clusters_)
    for i, row in enumerate(rows.astype(np.float64)):
        for k, mean in enumerate(model.means_):
            expected = row @ mean / np.linalg.norm(row) / np.linalg.norm(mean)
            assert found[i, k] == pytest.approx(
                expected, abs=1e-12 if dtype is np.float64 else 1e-6
            )
    np.testing.assert_array_equal(np.argmax(found, axis=1), model.predict(rows))
    assert model.cosine(model.means_).diagonal() == pytest.approx(1.0)
    assert model.cosine(model.means_).max() <= 1.0


def test_the_length_of_rows_says_nothing(model, vectors):
    np.testing.assert_allclose(model.cosine(7.0 * vectors), model.cosine(vectors), rtol=1e-12)


def test_a_row_without_direction_is_named(model, vectors):
    rows = vectors.copy()
    rows[17] = 0.0
    for call in (model.cosine, model.predict, StreamingMixture(model.prior, model.likelihood).fit):
        with pytest.raises(ValueError, match=r"row 17.*all numbers are zero"):
            call(rows)


def test_other_families_have_no_cosines(vectors):
    other = StreamingMixture(likelihood="spherical").fit(vectors)
    with pytest.raises(ValueError, match="cosines need directions"):
        other.cosine(vectors)


def test_near_duplicates_name_the_first_row_that_is_as_close(vectors, model):
    rng = np.random.default_rng(0)
    rows = np.concatenate([vectors[:30], 2.0 * vectors[[4, 4]], rng.normal(size=(5, 40))])
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    for cosine in (0.9, 0.8):
        own, found = model.predict(rows), model.near_duplicates(rows, cosine)
        for i in range(len(rows)):
            close = [j for j in range(i) if own[i] == own[j] and units[i] @ units[j] >= cosine]
            assert found[i] == (close[0] if close else -1)
    assert (found[30:32] >= 0).all()
    assert model.near_duplicates(rows, 1.0 - 1e-9)[30:].tolist() == [4, 4, -1, -1, -1, -1, -1]


def test_near_duplicates_do_not_depend_on_the_blocks(vectors, model):
    rows = np.tile(vectors[:3], (1500, 1))
    expected = np.tile([0, 1, 2], 1500)
    expected[:3] = -1
    assert model.near_duplicates(rows).tolist() == expected.tolist()


def test_examples_in_frames_are_the_closest_rows(vectors, model):
    texts = [f"text {i}" for i in range(len(vectors))]
    nearest = model.exemplars(vectors)
    frame = model.clusters_frame(rows=vectors, texts=texts)
    for id, examples in zip(frame["id"], frame["examples"], strict=True):
        assert examples == [texts[i] for i in nearest.get(id, [])]
    numbers = model.clusters_frame(rows=vectors)["examples"].tolist()
    assert numbers[0] == nearest[model.clusters_frame()["id"][0]].tolist()
    topics = model.topics_frame(rows=vectors, texts=texts)
    own = model.predict_topics(vectors)
    for id, examples in zip(topics["id"], topics["examples"], strict=True):
        assert len(examples) == 3
        assert {int(own[texts.index(text)]) for text in examples} == {id}
    with pytest.raises(ValueError, match="texts has 2 entries"):
        model.clusters_frame(rows=vectors, texts=texts[:2])
    assert "examples" not in model.topics_frame()


def test_texts_have_no_near_duplicates_by_cosine():
    model = DocumentMixture().fit(["rain and wind", "stock and bond"] * 30)
    with pytest.raises(ValueError, match="cosines need directions"):
        model.near_duplicates(["rain"])


def test_missing_numbers_in_embeddings_are_warned_of(vectors):
    holed = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    holed[5, 1] = np.nan
    with pytest.warns(UserWarning, match="row 5 has missing numbers"):
        model = StreamingMixture().fit(holed)
    assert isinstance(model.likelihood_, DiagonalGaussian)
    StreamingMixture().fit(1.0 + 2.0 * holed)  # no embeddings: missing cells are usual
