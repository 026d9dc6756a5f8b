"""`DocumentMixture`: documents with a growing vocabulary."""

from collections.abc import Sequence
from typing import Any, Literal

from bnpstream.engine import GrowingVocabulary, Wording, require_whole
from bnpstream.estimators.stream_estimator import StreamEstimator
from bnpstream.likelihoods import Likelihood, Vocabulary
from bnpstream.priors import Prior


class DocumentMixture(StreamEstimator):
    """Cluster a stream of documents in one pass; the vocabulary grows with the stream.

    Like `StreamingMixture` with a `DirichletMultinomial`, but rows are texts, lists of words or
    dicts of counts. The base measure has a fixed total, part of which is reserved for unseen words
    (`OpenVocabulary`). A word is known from the first document that contains it; the
    result depends on the order of the documents, not on how they are split into calls.

    Texts are split into words of two or more letters, digits or underscores, in lower case. The
    command line splits texts in the same way.

    Parameters
    ----------
    prior : Prior or {"dp", "nig", "ngg", "stable", "py"}
        Prior over partitions; see `StreamingMixture`.
    spread : float, optional
        g: after this many words, a quarter of the base measure is left for new words. Default the
        number of words in the first `prefix_rows` documents; until there are as many, documents are
        kept and a provisional model of them answers.
    total : float, optional
        A, the total of the base measure: how many words it is worth in a cluster. Default .15
        `spread` if that is given; otherwise it is learnt from the stream, and redistributed by
        word frequency whenever the number of documents has doubled.
    ngrams : int
        Also count phrases of up to this many words: with 2, "new york" counts besides "new" and
        "york".
    stop_words : {"auto", "english"}, list of str or None
        Words to ignore; phrases that contain one are ignored too. "english": function words.
        "auto", for any language: words that are uninformative in the first `prefix_rows` documents,
        that is, spread over them almost as evenly as if their tokens had been dealt out at random;
        short texts do not show this for any word. None, the default, ignores no word.
    min_count : int
        Ignore a word until it has occurred this many times in the stream.
    bursty : bool
        Model documents that repeat their words more than their cluster does, as `StreamingMixture`
        with a `BurstyMultinomial`; this gives fewer clusters. The amount of repetition is learnt
        from the first `prefix_rows` documents, and `total` defaults to the number of words in fifty
        of these.
    prefix_rows : int
        Initial documents used to learn unset parameters.
    new_cluster_threshold, min_responsibility, max_responsibilities, prune_threshold, n_passes, \
revisit, n_revisits, tol, keep_sites, merge_threshold, merge_every, split_threshold, \
max_clusters, max_memory, \
engine, n_jobs, half_life, staleness, block_rows, learn_threads, n_topics, granularity
        As in `StreamingMixture`. Words stay known when clusters are retired.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        The words seen so far; `len` gives their number.
    n_clusters_, cluster_ids_, weights_, labels_, label_ids_, probabilities_, log_evidence_, \
novelty_, absorbed_, provisional_, total_log_evidence_, n_samples_seen_, lineage_, state_, clock_
        As in `StreamingMixture`.
    means_ : ndarray of shape (n_clusters_, len(vocabulary_))
        Word probabilities; the rest up to one is reserved for unseen words.

    Examples
    --------
    >>> from bnpstream import DocumentMixture
    >>> model = DocumentMixture(spread=20)
    >>> model = model.partial_fit([["cat", "dog", "cat"], ["dog", "cat"]])
    >>> model = model.partial_fit([{"bond": 2, "stock": 3}, {"stock": 2, "yield": 1}])
    >>> model.vocabulary_.words
    ['cat', 'dog', 'bond', 'stock', 'yield']
    >>> model.predict([["dog"], ["stock", "option"]])     # "option" is a new word
    array([0, 1])
    >>> [word for word, _ in model.top_words(2)[1]]
    ['stock', 'bond']
    >>> model.predict(["Cats? A dog!", "Stock, and yield."])          # texts are split into words
    array([0, 1])
    """

    spread: float | None
    total: float | None
    ngrams: int
    stop_words: str | Sequence[str] | None
    min_count: int
    bursty: bool

    def __init__(
        self,
        prior: Prior | str = "dp",
        *,
        spread: float | None = None,
        total: float | None = None,
        ngrams: int = 1,
        stop_words: str | Sequence[str] | None = None,
        min_count: int = 1,
        bursty: bool = False,
        prefix_rows: int = 100,
        new_cluster_threshold: float | None = None,
        min_responsibility: float = 1e-4,
        max_responsibilities: int | None = 4,
        prune_threshold: float | None = None,
        n_passes: int = 1,
        revisit: int | Literal["all"] = 0,
        n_revisits: int = 1,
        tol: float = 1e-4,
        keep_sites: bool = False,
        merge_threshold: float | Literal["auto"] | None = "auto",
        merge_every: int = 1000,
        split_threshold: float | None = None,
        max_clusters: int | None = None,
        max_memory: int | str | None = None,
        engine: Literal["auto", "compiled", "reference"] = "auto",
        n_jobs: int | None = None,
        half_life: float | None = None,
        staleness: int = 0,
        block_rows: int = 16_384,
        learn_threads: int = 1,
        n_topics: int | None = None,
        granularity: float = 1.0,
    ) -> None:
        self._take(locals())

    def _open_likelihood(self) -> Likelihood:
        """Return the likelihood of documents over an empty vocabulary."""
        return self._new_encoder(None).likelihood

    def _new_encoder(self, X: Any) -> GrowingVocabulary:
        """Return an encoder of documents with an empty vocabulary."""
        wording = Wording(self.ngrams, self.stop_words, self.min_count)
        given = (self.spread, self.total)
        return GrowingVocabulary(*given, wording=wording, bursty=self.bursty)

    def _rows(self, X: Any) -> Any:
        """Return the documents unchanged; the encoder validates them."""
        return X

    def _remember(self, X: Any, *, reset: bool) -> None:
        """Do nothing: documents have no columns."""

    @property
    def vocabulary_(self) -> Vocabulary:
        """Return the words seen so far; `len` gives their number."""
        encoder = self._fitted.encoder
        assert isinstance(encoder, GrowingVocabulary)
        return encoder.vocabulary

    def top_words(self, n: int = 10) -> list[list[tuple[Any, float]]]:
        """Return the n most distinctive words of each cluster, and their probabilities.

        Parameters
        ----------
        n : int
            Words per cluster.

        Returns
        -------
        top : list of lists of (word, probability)
            One list per cluster, in the order of `cluster_ids_`.
        """
        require_whole("n", n, 1)
        return self.top_features(n)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.dict, tags.input_tags.two_d_array = True, False
        return tags
