"""The peers: what other libraries do with the same rows.

gensim, tomotopy and river are imported where they are used: they may be absent.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import TfidfTransformer

from peers_corpora import Floats, Rows
from peers_learners import Learner, Watch


class OnlineLDA(Learner):
    """scikit-learn's online LDA: `fit` spelled as `partial_fit`, so that it can be looked at."""

    def load(self, rows: Rows) -> int:
        self.rows = rows
        self.model = LatentDirichletAllocation(
            learning_method="online",
            total_samples=rows.shape[0],
            random_state=self.seed,
            **self.settings,
        )
        return rows.shape[0]

    def learn(self, watch: Watch) -> None:
        size = self.model.batch_size
        for _ in range(self.model.max_iter):
            for start in range(0, self.rows.shape[0], size):
                self.model.partial_fit(self.rows[start : start + size])
                watch.look()

    def shares(self, rows: Rows) -> Floats:
        theta: Floats = self.model.transform(rows)
        return theta

    def word_probabilities(self) -> Floats:
        topics = self.model.components_
        phi: Floats = topics / topics.sum(axis=1, keepdims=True)
        return phi


class GensimHDP(Learner):
    """gensim's `HdpModel`; theta and phi are those of the LDA that it turns itself into."""

    model: Any

    def load(self, rows: Rows) -> int:
        self.n_words = rows.shape[1]
        self.documents = _pairs(rows)
        return rows.shape[0]

    def learn(self, watch: Watch) -> None:
        from gensim.models import HdpModel

        learner = self

        class Watched(HdpModel):  # type: ignore[misc]
            """Look after every chunk; the constructor does the training."""

            def update_chunk(self, *arguments: Any, **options: Any) -> Any:
                outcome = super().update_chunk(*arguments, **options)
                learner.model = self
                watch.look()
                return outcome

        names = {word: str(word) for word in range(self.n_words)}
        Watched(self.documents, names, random_state=self.seed, **self.settings)

    def shares(self, rows: Rows) -> Floats:
        self._become_lda()
        gamma = self.model.inference(_pairs(rows))
        theta: Floats = gamma / gamma.sum(axis=1, keepdims=True)
        return theta

    def word_probabilities(self) -> Floats:
        self._become_lda()
        phi: Floats = self.model.lda_beta
        return phi

    def _become_lda(self) -> None:
        if not self.model.m_status_up_to_date:
            self.model.update_expectations()
        self.model.lda_alpha, self.model.lda_beta = self.model.hdp_to_lda()


class TomotopyHDP(Learner):
    """tomotopy's `HDPModel`: Gibbs sampling; phi is that of the last sweep."""

    def load(self, rows: Rows) -> int:
        import tomotopy

        settings = dict(self.settings)
        self.n_sweeps = settings.pop("iterations")
        self.model = tomotopy.HDPModel(seed=self.seed, **settings)
        for tokens in _tokens(rows):
            self.model.add_doc(tokens)
        return rows.shape[0]

    def learn(self, watch: Watch) -> None:
        for _ in range(self.n_sweeps):
            self.model.train(1, workers=1)
            watch.look()

    def shares(self, rows: Rows) -> Floats:
        documents = [self.model.make_doc(tokens) for tokens in _tokens(rows)]
        return np.array(self.model.infer(documents, workers=1)[0], dtype=np.float64)

    def word_probabilities(self) -> Floats:
        columns = np.array([int(word) for word in self.model.used_vocabs])
        phi = np.empty((self.model.k, columns.size))
        for topic in range(self.model.k):
            phi[topic, columns] = self.model.get_topic_word_dist(topic)
        return phi


class KMeans(Learner):
    """scikit-learn's `MiniBatchKMeans` on tf-idf, whose computing is not timed."""

    completes = False

    def load(self, rows: Rows) -> int:
        settings = dict(self.settings)
        self.weights = TfidfTransformer(sublinear_tf=settings.pop("sublinear_tf", False)).fit(rows)
        self.rows = self.weights.transform(rows)
        self.model = MiniBatchKMeans(random_state=self.seed, **settings)
        return rows.shape[0]

    def learn(self, watch: Watch) -> None:
        self.model.fit(self.rows)

    def assign(self, rows: Rows) -> NDArray[np.intp]:
        clusters: NDArray[np.intp] = self.model.predict(self.weights.transform(rows))
        return clusters


class RiverTextClust(Learner):
    """river's `TextClust`: its micro-clusters; time is the number of the document.

    It slows down as clusters grow, to fewer than a hundred documents a second, so it learns from
    the first `limit` documents only.
    """

    completes = False
    limit = 400

    def load(self, rows: Rows) -> int:
        from river.cluster import TextClust

        self.documents = [dict(pairs) for pairs in _pairs(rows[: self.limit])]
        self.model = TextClust(**self.settings)
        return len(self.documents)

    def learn(self, watch: Watch) -> None:
        for number, document in enumerate(self.documents):
            self.model.learn_one(document, t=number)

    def assign(self, rows: Rows) -> NDArray[np.intp]:
        found = [self.model.predict_one(dict(pairs)) for pairs in _pairs(rows)]
        return np.array([-1 if cluster is None else cluster for cluster in found])


def _pairs(rows: Rows) -> list[list[tuple[int, int]]]:
    """Return (word, count) of every document."""
    words, counts, ends = rows.indices.tolist(), rows.data.tolist(), rows.indptr.tolist()
    return [
        list(zip(words[start:end], counts[start:end], strict=True)) for start, end in pairwise(ends)
    ]


def _tokens(rows: Rows) -> list[list[str]]:
    """Return the words of every document, as often as they occur."""
    return [[str(word) for word, count in pairs for _ in range(count)] for pairs in _pairs(rows)]
