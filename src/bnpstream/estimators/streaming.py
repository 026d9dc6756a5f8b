"""`StreamingMixture`: the streaming estimator."""

from typing import Any, Literal

from bnpstream.engine import (
    Encoder,
    FixedColumns,
    GrowingVocabulary,
    Phase,
    Stream,
    are_texts,
    resolve_likelihood,
)
from bnpstream.estimators.stream_estimator import FITTED, StreamEstimator
from bnpstream.likelihoods import Likelihood
from bnpstream.likelihoods.frames import as_rows, names_of
from bnpstream.priors import Prior

AUTO = "auto"


class StreamingMixture(StreamEstimator):
    """Cluster a stream in one pass, with as many clusters as the data call for.

    ADF-NRM, Algorithm 1 of Tank, Foti & Fox (2015): the variational posterior of a mixture model
    whose prior is a normalized random measure, updated row by row. Revisiting rows improves it:
    `fit` can make several passes over all rows (`n_passes`, EP-NRM, Algorithm 2), and an endless
    stream can revisit its last `revisit` rows in bounded memory.

    Parameters
    ----------
    prior : Prior or {"dp", "nig", "ngg", "stable", "py"}
        Prior over partitions. The strings are a Dirichlet process, a normalized inverse Gaussian
        process, a normalized generalized gamma process, a normalized stable process and a
        Pitman-Yor process; their concentration and discount are learnt from the clusters after P,
        2P, 4P... rows, where P is `prefix_rows`. A `Prior` object keeps its parameters, unless it
        is ``prior.learning()``.
    likelihood : Likelihood, "auto" or the name of one
        Distribution of the rows of one cluster. "auto" chooses by the first rows: word counts for a
        sparse matrix of counts, or for dense integers most of which are 0 and most others at most
        3; directions for vectors of unit length; a Gaussian with full covariance for up to 30
        columns of numbers (diagonal if cells are missing), a Gaussian with a scale per row for more
        columns; and a product of families for a table of mixed types. A list of strings is split
        into words and clustered as by `DocumentMixture`. Names are "multinomial", "bursty"
        (documents that repeat their words: `BurstyMultinomial`), "gaussian", "diagonal",
        "spherical", "directional", "scaled", "poisson", "bernoulli" and "categorical". Unset
        parameters are learnt from the first
        `prefix_rows` rows; the scale is learnt again after 2P, 4P... rows, by how well rows are
        predicted.
    prefix_rows : int
        Initial rows used to learn unset parameters: the family, its scale, its labels. They are
        counted from the start of the stream, whatever the calls. Until there are enough, rows are
        kept and a provisional model of them answers; then they are absorbed in order. `fit` and
        `finish` accept fewer.
    new_cluster_threshold : float, optional
        epsilon in [sigma, 1): a row opens a new cluster if the responsibility of the new cluster
        exceeds this. Below sigma, the discount of the prior, an opened cluster would keep zero
        weight forever. Default .1, or sigma if that is larger: low enough to truncate the
        posterior little, high enough that a doubtful row does not add a cluster that every later
        row has to be compared with.
    min_responsibility : float
        A cluster takes a share of a row only if its score is at least this fraction of the best
        score.
    max_responsibilities : int, optional
        Largest number of existing clusters that share a row: those with the best scores.
        Responsibilities and evidence are computed over these. None sets no limit; with
        ``min_responsibility=0`` that is Algorithm 1 of the paper.
    prune_threshold : float, optional
        A revisit that leaves a cluster with less mass than this drops the cluster. Default the
        new-cluster threshold.
    n_passes : int
        Passes of `fit` over its rows: the first is ADF, the others are EP sweeps.
    revisit : int or "all"
        W, the number of recent rows to keep. When there are W, all are revisited and the older half
        is frozen. 0 keeps none. "all" keeps every row until `finish`: `partial_fit` followed by
        `finish` with `n_revisits` = m is `fit` with `n_passes` = m + 1.
    n_revisits : int
        Sweeps over the window each time.
    tol : float
        Sweeps stop early when responsibilities change by no more than this per row on average
        (half the sum of absolute changes).
    keep_sites : bool
        Keep the contribution of every row, so that `refine` can revisit rows that are given again.
    merge_threshold : float, "auto" or None
        Merge two clusters that share rows when the model's log odds in favour exceed this: 0 means
        even odds; 5, about 150 to 1, is conservative. Merges are tried every `merge_every` rows, at
        each full window, in `refine` (with `keep_sites`), and in `finish`. None never merges.
        "auto" merges rows of numbers and labels at even odds, after the passes of `fit` and, where
        the base measure is learnt, among the first `prefix_rows` rows; it never merges documents.
    merge_every : int
        Rows between two attempts to merge, without a window.
    split_threshold : float, optional
        Split a cluster when a revisit finds two parts of it for which the model's log odds of two
        clusters exceed this (``bnpstream.inference.split``). Splits are tried at each full window,
        before the later passes, and in `refine`. 0 means even odds, the least. None never splits.
    max_clusters : int, optional
        Largest number of clusters, at least 2. At the limit, the least costly of the smallest
        clusters, one in sixteen, are merged into others or retired, by the model's own odds
        (``bnpstream.inference.budget``) and recorded in `lineage_`.
    max_memory : int or str, optional
        Memory limit of the posterior (``state_.nbytes``) in bytes, or a size such as "512MB". At
        the limit, clusters make room as with `max_clusters`.
    engine : {"auto", "compiled", "reference"}
        Compiled loops if prior and likelihood have them, or plain NumPy. Both take the same
        decisions from the same posterior; identical bits are promised within one engine.
    n_jobs : int, optional
        Threads for prediction and scoring: -1 for all cores, one by default. Results are identical
        for any number. For learning, see `learn_threads`.
    half_life : float, optional
        Forget: a row counts half after this many further rows or, with `timestamps`, after this
        much time, and a quarter after twice as much. Forgetting happens in 64 small steps per
        half-life, at fixed row counts or times, whatever the calls. A cluster left with less mass
        than `prune_threshold` is retired. The prior counts all rows at their current weight. Rows
        in a window, or of several passes, are revisited with their current weight, unless that is
        below `prune_threshold`. None never forgets.
    staleness : int
        s: absorb blocks of `block_rows` rows, s + 1 blocks in parallel, each starting from the
        posterior before the first of them. New clusters that several blocks opened for the same
        kind of rows are then matched. 0, the default, absorbs every row after all rows before it.
        Above 0, the first block is absorbed alone and later rows wait until there are (s + 1)
        `block_rows` of them; until then a provisional model that has absorbed them answers, and
        `finish` absorbs the rest. Blocks are counted from the start of the stream, whatever the
        calls. With `n_passes`, or ``revisit="all"``, the first pass is serial and later ones sweep
        all blocks in parallel, each against the posterior before the sweep. Cannot be combined with
        a window, `keep_sites`, a number for `merge_threshold`, or `half_life`; nor can several
        passes be combined with a budget.
    block_rows : int
        Rows per block. Larger blocks use threads better, but start from an older posterior.
    learn_threads : int
        Threads that absorb blocks; at most s + 1 are busy. Results depend on `staleness` and
        `block_rows`, and are identical for any number of threads. Every block needs a copy of the
        posterior. More than 1 needs a `staleness` of 1 or more.
    n_topics : int, optional
        Number of topics (`topics_`); by default it is found from the data.
    granularity : float
        Factor on the number of topics found: 2 for twice as many, .5 for half as many.

    Attributes
    ----------
    n_clusters_ : int
        Number of clusters.
    cluster_ids_ : ndarray of shape (n_clusters_,)
        Stable ids, ascending; the arrays below are in this order.
    weights_ : ndarray of shape (n_clusters_,)
        S_k / sum S: the share of the stream in each cluster.
    means_ : ndarray of shape (n_clusters_, n_features_in_)
        Posterior means of the parameters; word probabilities for documents.
    labels_ : ndarray of shape (n_rows,)
        For the rows of the last `fit` or `partial_fit`: position in `cluster_ids_` of the most
        likely cluster when the row arrived, or at the end of the call if rows were revisited or
        that cluster is gone. After `fit` and `refine` labels are 0, 1, 2... without gaps: clusters
        that are most likely for no row are skipped.
    label_ids_ : ndarray of shape (n_rows,)
        For the same rows: the stable id of that cluster.
    probabilities_ : ndarray of shape (n_rows,)
        For the same rows: the responsibility of that cluster.
    log_evidence_ : ndarray of shape (n_rows,)
        For the same rows: the one-step-ahead log predictive, before the row was absorbed.
    novelty_ : ndarray of shape (n_rows,)
        For the same rows: the responsibility of a new cluster, before the row was absorbed.
    absorbed_ : Absorbed
        All of the above, and the responsibilities, for every row that the last call absorbed. For
        the call that completes the prefix, these are all rows of the prefix.
    provisional_ : bool
        Whether rows are waiting, for the prefix to fill or for a block to fill, so that a
        provisional model answers.
    total_log_evidence_ : float
        Sum of the one-step-ahead log predictives since the start of the stream.
    n_samples_seen_ : int
        Rows absorbed.
    prior_, likelihood_ : Prior, Likelihood
        Prior and likelihood with all parameters, as learnt so far.
    n_features_in_ : int
        Columns of the rows.
    epochs_ : list of Epoch
        For every sweep of the last call: change, log predictive, number of clusters.
    lineage_ : list of Event
        Every birth, merge, death and retirement of a cluster since the start of the stream.
    state_ : MixtureState
        The posterior's arrays.
    window_ : Window
        The rows that can still be revisited.
    clock_ : Clock
        State of forgetting; only with `half_life`.

    Examples
    --------
    >>> from bnpstream import StreamingMixture, normalized_inverse_gaussian
    >>> from bnpstream.datasets import bars
    >>> images = bars(n_images=200, seed=0)
    >>> model = StreamingMixture(prior=normalized_inverse_gaussian(concentration=10, tilt=100))
    >>> model.partial_fit(images.counts[:100]).partial_fit(images.counts[100:]).n_samples_seen_
    200
    >>> model.predict_proba(images.counts).sum(axis=1).round(12).min()
    np.float64(1.0)
    """

    likelihood: Likelihood | str

    def __init__(
        self,
        prior: Prior | str = "dp",
        likelihood: Likelihood | str = "auto",
        *,
        prefix_rows: int = 500,
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
        """Return the likelihood as given; parameters may be unset."""
        return resolve_likelihood(self.likelihood)

    def _new_encoder(self, X: Any) -> Encoder:
        """Return an encoder of rows of a matrix, or of texts."""
        if are_texts(X):
            if self.likelihood != AUTO:
                raise ValueError(
                    f"X holds texts, but likelihood is {self.likelihood!r}: leave it out, or give "
                    "word counts, as from scikit-learn's CountVectorizer"
                )
            return GrowingVocabulary()
        return FixedColumns(self._open_likelihood().bound(names_of(X) or []))

    def _rows(self, X: Any) -> Any:
        """Return X as an array, sparse if it is, or as a list of texts."""
        return list(X) if are_texts(X) else as_rows(X)

    def _remember(self, X: Any, *, reset: bool) -> None:
        """Check the columns of X; with `reset`, take over their number; texts have none."""
        if not are_texts(X):
            super()._remember(X, reset=reset)
        elif reset:
            for name in filter(lambda name: hasattr(self, name), FITTED):
                delattr(self, name)

    def _parameters(self) -> tuple[Any, ...]:
        """Return all parameters that affect a stream."""
        return (*super()._parameters(), self.likelihood)

    def _other_likelihood(self, stream: Stream) -> Likelihood | None:
        """Return a likelihood set since the last call, if the posterior can continue with it."""
        before = self._used[-1] if self._used else self.likelihood
        same = before is self.likelihood or (isinstance(before, str) and before == self.likelihood)
        if same or stream.phase is not Phase.RUNNING:
            return None
        names = list(getattr(self, "feature_names_in_", []))
        likelihood = self._open_likelihood().bound(names)
        stream.check_likelihood(likelihood, self.likelihood)
        return likelihood
