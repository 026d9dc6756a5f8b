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
    """Cluster a stream in one pass, with as many clusters as the data ask for.

    ADF-NRM, Algorithm 1 of Tank, Foti & Fox (2015): a variational posterior of a mixture model
    whose prior is a normalized random measure, updated row by row. Rows that can be revisited
    improve it: all of them in `fit` (`n_passes`, EP-NRM, Algorithm 2), or on an endless stream
    the last `revisit` ones, in bounded memory.

    Parameters
    ----------
    prior : Prior or {"dp", "nig", "ngg", "stable", "py"}
        How clusters arise. The strings stand for a Dirichlet process, a normalized inverse
        Gaussian, a normalized generalized gamma and a normalized stable process, and a Pitman-Yor
        process, whose concentration and discount are learnt from the clusters at n = P, 2P, 4P...
        rows, P being `prefix_rows`. A `Prior` stays as it is, unless it is ``prior.learning()``.
    likelihood : Likelihood, "auto" or the name of one
        What a row looks like in a cluster. "auto" chooses by what the rows look like: counts of
        words for a sparse matrix or whole numbers >= 0, directions for vectors of unit length, a
        Gaussian with any covariance for up to 30 columns of real numbers (with a diagonal one if
        cells are missing), one with a width for every row for more, and a product of families for
        a table of mixed types; texts, a list of strings, are cut into words and clustered as
        `DocumentMixture` does. Names are "multinomial", "bursty" (documents that repeat their
        words: `BurstyMultinomial`), "gaussian", "diagonal", "spherical", "directional", "scaled",
        "poisson", "bernoulli" and "categorical". What a likelihood leaves open is learnt, its scale
        again at 2P, 4P... rows, by how well rows are predicted.
    prefix_rows : int
        Rows from which a likelihood takes what it leaves open: its choice, its scale, its labels.
        They are counted from the start of the stream, never by calls: until there are so many they
        are kept, and a throw-away model of them answers; then they are absorbed in order. `fit` and
        `finish` make do with fewer.
    new_cluster_threshold : float, optional
        epsilon in [sigma, 1): a row opens a cluster if the new cluster's responsibility is
        larger. Below sigma, the prior's discount, an opened cluster would have zero weight ever
        after. Default .1, or sigma where that is larger: low enough that the posterior is
        truncated little, high enough that a doubtful row does not cost every later row a
        cluster to look at.
    min_responsibility : float
        The cut: a cluster takes part in a row only if its score is at least this fraction of
        the best one's. Cells that would get a negligible share stay empty.
    max_responsibilities : int, optional
        A row takes part in at most this many existing clusters, those with the best scores;
        responsibilities and evidence are over these. None sets no limit: together with
        ``min_responsibility=0`` that is the paper's Algorithm 1.
    prune_threshold : float, optional
        A cluster that a revisit leaves with less mass is dropped. Default the opening threshold.
    n_passes : int
        Passes of `fit` over its rows: the first is ADF, the others EP sweeps.
    revisit : int or "all"
        W: the last W rows are kept; when there are W, all are revisited and the older half is
        frozen. 0 keeps none. "all" keeps all until `finish`: `partial_fit` and then `finish` with
        `n_revisits` = m amount to `fit` with `n_passes` = m + 1.
    n_revisits : int
        Sweeps over the window each time.
    tol : float
        Sweeps end early when the responsibilities of a row move by no more than this on average
        (half the summed absolute change).
    keep_sites : bool
        Keep what every row contributed, so that `refine` can revisit rows given again.
    merge_threshold : float, "auto" or None
        Merge two clusters that share rows when the model's log odds exceed this. 0 is even odds; 5,
        about 150 to 1, is conservative. Merging happens after every `merge_every` rows, or at each
        full window, or with `keep_sites` in `refine`, and to finish. None never merges. "auto"
        merges rows of cells at even odds: once the passes of `fit` are done, and, where the base
        measure is learnt, among the first `prefix_rows` rows, which are swept and merged before
        the stream goes on. It never merges documents.
    merge_every : int
        Rows between merges where there is no window.
    split_threshold : float, optional
        Split a cluster when a revisit finds two parts of its rows whose log odds of being two
        exceed this (``bnpstream.inference.split``): at each full window, before the later passes,
        or in `refine`. 0 is even odds, the least. None never splits.
    max_clusters : int, optional
        Clusters at most, two at least. Before a row that finds so many, the least costly of the
        lightest clusters, one in sixteen, make room: merged into another or retired by the model's
        own odds (``bnpstream.inference.budget``). The lineage says so.
    max_memory : int or str, optional
        Bytes of the posterior at most, ``state_.nbytes``, or such as "512MB"; room is made
        likewise.
    engine : {"auto", "compiled", "reference"}
        Compiled loops where prior and likelihood have them, or NumPy. Both make the same
        decisions from the same posterior; identical bits are promised within one engine.
    n_jobs : int, optional
        Threads that predict and score rows: -1 for all cores; by default one. Results do not
        depend on it, to the last bit. It is not about learning: see `learn_threads`.
    half_life : float, optional
        Forget: a row counts for half after so many further rows, or, with `timestamps`, after so
        much time; for a quarter after twice as many. This happens in 64 small steps a half-life,
        at fixed row counts or times, never by calls. A cluster that is left with less mass than
        `prune_threshold` is retired. n of the prior's rule is what all rows still count for. Rows
        in a window, or of several passes, are revisited with what they count for then, and not at
        all below `prune_threshold`. None never forgets.
    staleness : int
        s: rows are absorbed in blocks of `block_rows`, s + 1 blocks side by side. All of these
        start from the posterior before the first of them, so that the last one lacks s blocks; new
        clusters that several blocks opened for the same rows are then recognised as one. 0, the
        default, absorbs every row with all rows before it. Above 0, the first `block_rows` rows
        are absorbed one after the other too, and later ones wait until there are (s + 1)
        `block_rows` of them; meanwhile a throw-away model that has absorbed them answers, and
        `finish` absorbs what waits. Blocks are counted from the start of the stream, never by
        calls. With `n_passes`, or ``revisit="all"``, the first pass is that of 0, and a later one
        sweeps over all blocks side by side, each against the posterior before the sweep. Not with
        a window, `keep_sites`, a number for `merge_threshold`, or `half_life`, and several passes
        not with a budget.
    block_rows : int
        Rows of a block. Larger ones are faster by threads, and starting points older.
    learn_threads : int
        Threads that absorb blocks, of which s + 1 at most have something to do. Results depend on
        `staleness` and `block_rows` and not on the number of threads, to the last bit. Every block
        needs a copy of the posterior. More than 1 need a `staleness` of 1 or more.
    n_topics : int, optional
        Topics wanted (`topics_`); by default as many as the data ask for.
    granularity : float
        By what the number of topics found is multiplied: 2 for twice as many, .5 for half.

    Attributes
    ----------
    n_clusters_ : int
        Clusters so far.
    cluster_ids_ : ndarray of shape (n_clusters_,)
        Stable ids, ascending; everything below is in this order.
    weights_ : ndarray of shape (n_clusters_,)
        S_k / sum S: the share of the stream in each cluster.
    means_ : ndarray of shape (n_clusters_, n_features_in_)
        Posterior mean parameters; word probabilities for documents.
    labels_ : ndarray of shape (n_rows,)
        For the rows of the last `fit` or `partial_fit`: position in `cluster_ids_` of the
        likeliest cluster at the moment the row arrived, or at the end of the call if rows were
        revisited during it, or if that cluster is gone by then. After `fit` and `refine` they are
        0, 1, 2... without a gap: a cluster that is no row's likeliest is not counted.
    label_ids_ : ndarray of shape (n_rows,)
        For the same rows: the stable id of that cluster.
    probabilities_ : ndarray of shape (n_rows,)
        For the same rows: the responsibility of that cluster.
    log_evidence_ : ndarray of shape (n_rows,)
        For the same rows: the log predictive one step ahead, before the row was absorbed.
    novelty_ : ndarray of shape (n_rows,)
        For the same rows: the responsibility of a new cluster, before the row was absorbed.
    absorbed_ : Absorbed
        What became of every row that the last call absorbed, when it did: all of the above, and its
        responsibilities. With the call that fills the prefix these are all rows of the prefix.
    provisional_ : bool
        Whether rows wait, for the prefix to fill or for others to be absorbed side by side with, so
        that a throw-away model answers.
    total_log_evidence_ : float
        Sum of all one-step-ahead log predictives since the start of the stream.
    n_samples_seen_ : int
        Rows absorbed.
    prior_, likelihood_ : Prior, Likelihood
        Prior and likelihood with nothing left open, as learnt so far.
    n_features_in_ : int
        Columns of the rows.
    epochs_ : list of Epoch
        What every sweep of the last call did: change, log predictive, clusters.
    lineage_ : list of Event
        Every birth, merge, death and retirement of a cluster since the start.
    state_ : MixtureState
        The posterior's arrays.
    window_ : Window
        The rows that can still be revisited.
    clock_ : Clock
        How far forgetting has come; only with `half_life`.

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
        """Return the likelihood as it was given: it may leave something open."""
        return resolve_likelihood(self.likelihood)

    def _new_encoder(self, X: Any) -> Encoder:
        """Return an encoder of rows of a matrix, or of texts."""
        if are_texts(X):
            if self.likelihood != AUTO:
                raise ValueError(
                    f"X holds texts, and likelihood is {self.likelihood!r}: leave it out, or give "
                    "counts of words, as scikit-learn's CountVectorizer makes them"
                )
            return GrowingVocabulary()
        return FixedColumns(self._open_likelihood().bound(names_of(X) or []))

    def _rows(self, X: Any) -> Any:
        """Return X as an array, sparse as it is, or a list of texts."""
        return list(X) if are_texts(X) else as_rows(X)

    def _remember(self, X: Any, *, reset: bool) -> None:
        """Check the columns of X, and with `reset` take over their number; texts have none."""
        if not are_texts(X):
            super()._remember(X, reset=reset)
        elif reset:
            for name in filter(lambda name: hasattr(self, name), FITTED):
                delattr(self, name)

    def _parameters(self) -> tuple[Any, ...]:
        """Return all parameters that a stream goes by."""
        return (*super()._parameters(), self.likelihood)

    def _other_likelihood(self, stream: Stream) -> Likelihood | None:
        """Return a likelihood that was given since the last call, if the posterior can go on."""
        before = self._used[-1] if self._used else self.likelihood
        same = before is self.likelihood or (isinstance(before, str) and before == self.likelihood)
        if same or stream.phase is not Phase.RUNNING:
            return None
        names = list(getattr(self, "feature_names_in_", []))
        likelihood = self._open_likelihood().bound(names)
        stream.check_likelihood(likelihood, self.likelihood)
        return likelihood
