"""The model of a run: a stream, and the estimator that it can be loaded as."""

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from bnpstream.engine import (
    Absorption,
    Encoder,
    FixedColumns,
    GrowingVocabulary,
    Posterior,
    Settings,
    Stream,
    Wording,
    resolve_likelihood,
    resolve_prior,
)
from bnpstream.engine.arrivals import Arrivals
from bnpstream.engine.topics import TopicGroups, Topics
from bnpstream.inference.tree import MergeTree
from bnpstream.inference.visits import Absorbed, Responsibilities
from bnpstream.kernels.arrays import Floats
from bnpstream.likelihoods import BurstyMultinomial, DirichletMultinomial, Likelihood
from bnpstream.priors import NAMED_PRIORS, PARAMETERS, Prior
from bnpstream.runs.description import TopicsFound
from bnpstream.runs.options import ModelOptions, OptionError, half_life_of
from bnpstream.sources.lists import read_vocabulary
from bnpstream.sources.records import Kind
from bnpstream.storage import Tensors
from bnpstream.storage.models import SavedModel, model_tensors

FIXED, GROWING = "StreamingMixture", "DocumentMixture"
"""Estimators that a model can be loaded as, for fixed columns and for a growing vocabulary."""
WORDS = ("prior", "likelihood", "spread", "total", "ngrams", "stop_words", "min_count", "bursty")
"""Parameters of estimators that are not settings of a stream."""
OPEN_WORDS = {
    "spread": None,
    "total": None,
    "ngrams": 1,
    "stop_words": None,
    "min_count": 1,
    "bursty": False,
}
"""Parameters of a growing vocabulary, with their defaults."""
THREADS = {"n_jobs": None, "learn_threads": 1}
"""Parameters that do not affect results; they are not saved."""
DOCUMENT_PREFIX = 100
"""Initial documents used to learn unset parameters."""
GIVEN = ("concentration", "discount", "tilt")
"""Parameters of priors that can be given, if the prior has them."""


@dataclass
class Mixture:
    """A stream, with the parameters of the estimator that it can be loaded as.

    Parameters
    ----------
    estimator : str
        Name of the estimator.
    parameters : dict
        Arguments of its constructor.
    likelihood : Likelihood
        Likelihood as it was given.
    stream : Stream
        The posterior and everything needed to continue.
    n_features : int, optional
        Columns of the rows.
    topics_before : Topics, optional
        Topics known before the last rows were absorbed.
    arrivals_before : Arrivals
        Records of earlier rows at that time.
    """

    estimator: str
    parameters: dict[str, Any]
    likelihood: Likelihood
    stream: Stream
    n_features: int | None = None
    topics_before: Topics | None = None
    arrivals_before: Arrivals = field(default_factory=Arrivals)

    @classmethod
    def made(cls, **given: Any) -> "Mixture":
        """Return a new model from arguments of the estimator's constructor.

        Without a likelihood, rows are documents with a growing vocabulary.
        """
        encoder: Encoder
        if "likelihood" in given:
            name, usual = FIXED, Settings()
            encoder = FixedColumns(resolve_likelihood(given["likelihood"]))
        else:
            given = OPEN_WORDS | given
            name, usual = GROWING, Settings(prefix_rows=DOCUMENT_PREFIX)
            wording = Wording(given["ngrams"], given["stop_words"], given["min_count"])
            spread, total, bursty = given["spread"], given["total"], given["bursty"]
            encoder = GrowingVocabulary(spread, total, wording=wording, bursty=bursty)
        chosen = {k: x for k, x in given.items() if k not in (*WORDS, *THREADS)}
        stream = Stream(resolve_prior(given["prior"]), encoder, replace(usual, **chosen))
        parameters = asdict(usual) | given | THREADS
        return cls(name, parameters, encoder.likelihood, stream)

    @classmethod
    def of(cls, tensors: Tensors) -> "Mixture":
        """Return the model that `tensors` described."""
        saved = SavedModel.of(tensors)
        model = cls.made(**saved.settings)
        model.stream = saved.stream(model.stream)
        model.n_features = saved.extra("n_features_in_")
        return model

    def tensors(self) -> Tensors:
        """Return the model as arrays and JSON."""
        extra = {} if self.n_features is None else {"n_features_in_": self.n_features}
        return model_tensors(self.estimator, self.parameters, self.stream, extra)

    def absorb(self, rows: Any, times: Any = None) -> Absorption | None:
        """Absorb rows of a source; a ValueError names a bad row, and nothing is absorbed."""
        self.topics_before, self.arrivals_before = self.known_topics, copy(self.stream.arrivals)
        absorption = self.stream.absorb(rows, None, times)
        if self.estimator == FIXED:
            self.n_features = int(rows.shape[1])
        return absorption

    @property
    def rows_to_topics(self) -> int:
        """Return the number of rows until topics are found again."""
        return self.stream.finder.n_next - self.stream.n_rows

    def topics_of_arrivals(self, rows: Any, ranked: Responsibilities) -> Sequence[int | None]:
        """Return the topics of the last rows, among those known when they arrived, if any.

        The result does not depend on how rows are split, if parts end as `rows_to_topics` says.
        """
        if self.topics_before is None:
            return [None] * (ranked.indptr.size - 1)
        return self.topics_before.of_arrivals(self.stream.view(rows), ranked)

    def quantiles_of_arrivals(self) -> Floats | None:
        """Return how unusual the last rows were when they arrived; see `novelty_quantiles`.

        None while rows wait.
        """
        if self.provisional or not self._ranks:
            return None
        return self.arrivals_before.quantiles_of_next(self.absorbed.rows.log_evidence)

    def novelty_quantiles(self, log_predictives: Floats) -> Floats | None:
        """Return, per row, the share of the stream's last rows that were more probable.

        None for documents, whose log predictives depend on their lengths, and if no rows are
        remembered.
        """
        arrivals = self.stream.answering.arrivals
        if not self._ranks or arrivals.log_evidence.size == 0:
            return None
        return arrivals.quantiles(log_predictives)

    @property
    def _ranks(self) -> bool:
        return self.stream.answering.likelihood.feature_kind != "words"

    @property
    def provisional(self) -> bool:
        """Return whether rows wait, so that a provisional model answers."""
        return self.stream.waits

    def learn_by(self, n_threads: int) -> None:
        """Absorb with this many threads; OptionError if the stream is serial."""
        settings = self.stream.settings
        if n_threads > 1 and settings.staleness == 0:
            raise OptionError(
                f"--jobs {n_threads}: this run was started without --jobs, for one thread: leave "
                "it out, or start a new run with another --out"
            )
        self.stream.configure(replace(settings, learn_threads=n_threads))

    @property
    def absorbed(self) -> Absorbed:
        """Return the results for the last rows absorbed; provisional ones for rows that wait."""
        last = self.stream.answering.last
        assert last is not None
        return last.absorbed

    @property
    def posterior(self) -> Posterior:
        """Return the posterior."""
        return self.stream.posterior

    @property
    def known_topics(self) -> Topics | None:
        """Return the topics found last, without a search; None before that, and while rows wait."""
        return None if self.provisional else self.stream.finder.topics

    @property
    def topics_found(self) -> TopicsFound | None:
        """Return when the topics were found; None if after the last row."""
        found, stream = self.stream.topics, self.stream.answering
        if found.n_observations == stream.state.n_observations:
            return None
        return TopicsFound(found.n_observations, stream.finder.n_next)

    def topics_of(self, topics: Topics, rows: Any, clusters: Any) -> list[int]:
        """Return the topics of rows, given the ids of their likeliest clusters.

        A document has the topic that explains its words best; a row of cells that of its cluster.
        """
        posterior = self.posterior
        if isinstance(topics.found, TopicGroups) and np.isin(clusters, posterior.ids).all():
            groups = topics.of_clusters(posterior)[np.searchsorted(posterior.ids, clusters)]
        else:
            groups = topics.of_rows(posterior, self.stream.view(rows))
        found: list[int] = topics.ids[groups].tolist()
        return found

    def log_joint(self, rows: Any) -> list[Any]:
        """Return the log joints of rows in blocks: clusters by id, the new one last."""
        return self.posterior.log_joint(self.stream.view(rows))

    @property
    def n_clusters(self) -> int:
        """Return the number of clusters."""
        return self.stream.answering.state.n_clusters

    @property
    def log_evidence(self) -> float:
        """Return the summed one-step-ahead log predictive of the stream."""
        return self.stream.answering.state.log_evidence

    def learnt(self) -> dict[str, float]:
        """Return the parameters of prior and base measure learnt so far, by name."""
        stream = self.stream.answering
        found = {name: float(getattr(stream.prior, name)) for name in stream.prior.learn}
        if stream.learner is not None and stream.learner.scale is not None:
            found |= stream.likelihood.learnt(stream.learner.scale)
        return found

    def coarsened(self, n_clusters: int, tree: MergeTree) -> "Mixture":
        """Return a copy whose clusters are merged into this many groups of a tree."""
        coarse = self.stream.coarsened(tree, n_clusters)
        return Mixture(self.estimator, self.parameters, self.likelihood, coarse, self.n_features)

    def __repr__(self) -> str:
        usual = asdict(Settings()) | {"prior": "dp", "likelihood": "auto"} | THREADS
        usual |= OPEN_WORDS
        given = [f"{k}={x!r}" for k, x in self.parameters.items() if x != usual[k]]
        return f"{self.estimator}({', '.join(given)})"


def make_prior(options: ModelOptions) -> Prior:
    """Return the prior; parameters that are not given are learnt.

    OptionError names a parameter that the prior does not have.
    """
    name = options.prior or "dp"
    if name not in NAMED_PRIORS:
        raise OptionError(f"unknown prior {name!r}; give one of {', '.join(NAMED_PRIORS)}")
    given = {
        parameter: float(value)
        for parameter in GIVEN
        if (value := getattr(options, parameter)) is not None
    }
    for parameter in given:
        if parameter not in PARAMETERS[name]:
            raise OptionError(
                f"--{parameter}: the prior {name} has no {parameter}; "
                f"it has {' and '.join(PARAMETERS[name])}"
            )
    guess = NAMED_PRIORS[name]
    left: Any = tuple(parameter for parameter in guess.learn if parameter not in given)
    change: Any = given
    try:
        return replace(guess, learn=left, **change)
    except ValueError as error:
        raise OptionError(str(error)) from error


def make_model(options: ModelOptions, kind: Kind, ngrams: int = 1) -> Mixture:
    """Return a model for a kind of rows; OptionError names a setting that does not fit them.

    With `ngrams`, phrases of up to this many words count as words too.
    """
    prior = make_prior(options)
    if options.topics is not None and options.granularity is not None:
        raise OptionError("--topics sets the number that --granularity multiplies: give only one")
    chosen = {
        "new_cluster_threshold": options.threshold,
        "half_life": None if options.half_life is None else half_life_of(options.half_life).value,
        "merge_threshold": options.merge_threshold,
        "split_threshold": options.split_threshold,
        "max_clusters": options.max_clusters,
        "max_memory": options.max_memory,
        "prefix_rows": options.prefix_rows,
        "engine": options.engine,
        "n_topics": options.topics,
        "granularity": options.granularity,
        "staleness": options.staleness,
        "block_rows": options.block_rows,
        **_revisits(options),
    }
    settings = {name: value for name, value in chosen.items() if value is not None}
    if options.max_responsibilities is not None:
        settings["max_responsibilities"] = options.max_responsibilities or None
    try:
        if kind == "documents":
            _refuse_for_documents(options)
            bursty = options.likelihood == "bursty"
            words = _wording(options, ngrams)
            return Mixture.made(prior=prior, bursty=bursty, **settings, **words)
        _refuse_for_columns(options)
        return Mixture.made(prior=prior, likelihood=_likelihood(options, kind), **settings)
    except OptionError:
        raise
    except ValueError as error:
        raise OptionError(str(error)) from error


def _revisits(options: ModelOptions) -> dict[str, Any]:
    """Return the settings of a stream about revisits."""
    if options.revisits is not None and options.revisit is None:
        raise OptionError("--revisits says how often to revisit the rows of --revisit: give both")
    if (passes := options.passes or 1) == 1:
        return {"revisit": options.revisit, "n_revisits": options.revisits}
    if options.revisit is not None:
        raise OptionError("--passes revisits all rows, --revisit the last ones: give only one")
    return {"revisit": "all", "n_revisits": passes - 1}


def _likelihood(options: ModelOptions, kind: Kind) -> Likelihood | str:
    name = options.likelihood or ("multinomial" if kind == "counts" else "auto")
    if options.alpha is None:
        return name
    families = {"multinomial": DirichletMultinomial, "bursty": BurstyMultinomial}
    if name not in families:
        raise OptionError(
            f"--alpha is the base measure of word counts, but these rows are {name}: "
            "leave it out, or give --likelihood multinomial"
        )
    try:
        return families[name](options.alpha)
    except ValueError as error:
        raise OptionError(f"--alpha: {error}") from error


def _wording(options: ModelOptions, ngrams: int) -> dict[str, Any]:
    """Return which words count, as parameters of an estimator."""
    words: Any = options.stop_words
    if words == "none":
        words = None
    elif words not in (None, "auto", "english"):
        try:
            words = read_vocabulary(words)
        except (OSError, ValueError) as error:
            raise OptionError(
                f"--stop-words {words}: give auto, english, none, or a file of words: {error}"
            ) from error
    return {"ngrams": ngrams, "stop_words": words, "min_count": options.min_count or 1}


def _refuse_for_columns(options: ModelOptions) -> None:
    """Raise OptionError for options that need a growing vocabulary."""
    for name in ("stop_words", "min_count"):
        if getattr(options, name) is not None:
            raise OptionError(
                f"--{name.replace('_', '-')} is for texts with a growing vocabulary, but these "
                "rows have columns: leave it out, or give texts without --vocab and --hash-bits"
            )


def _refuse_for_documents(options: ModelOptions) -> None:
    """Raise OptionError for options that need fixed columns."""
    for name, known in (("alpha", ()), ("likelihood", ("multinomial", "bursty"))):
        if getattr(options, name) not in (None, *known):
            raise OptionError(
                f"--{name} needs a fixed vocabulary, but the vocabulary of texts grows: "
                "also give --vocab FILE or --hash-bits 18"
            )
