"""BERTopic's online mode with `StreamingMixture` as its clusterer, by the real package."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from bnpstream import StreamingMixture


def test_online_topics_are_those_of_the_clusterer():
    bertopic = pytest.importorskip("bertopic", reason="not installed: it needs much else")
    from bertopic.dimensionality import BaseDimensionalityReduction
    from bertopic.vectorizers import OnlineCountVectorizer

    class Same(BaseDimensionalityReduction):
        def partial_fit(self, X, y=None):
            return self

    rng = np.random.default_rng(441)
    words = [text.split() for text in ("rain wind snow hail", "bond stock loan rate")]
    of = rng.integers(2, size=300)
    texts = [" ".join(rng.choice(words[k], 5)) for k in of]
    vectors = rng.normal(size=(2, 64))[of] + 0.3 * rng.normal(size=(300, 64))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    model = bertopic.BERTopic(
        embedding_model=None,
        umap_model=Same(),
        hdbscan_model=StreamingMixture(),
        vectorizer_model=OnlineCountVectorizer(),
    )
    found = []
    for start in range(0, 300, 100):
        part = slice(start, start + 100)
        model.partial_fit(texts[part], embeddings=vectors[part])
        found += list(model.topics_)
    assert adjusted_rand_score(of, found) == 1.0
    tops = {frozenset(word for word, _ in pairs[:4]) for pairs in model.get_topics().values()}
    assert tops == {frozenset(own) for own in words}
