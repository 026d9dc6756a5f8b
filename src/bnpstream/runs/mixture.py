"""The model of a run: a stream, and the estimator that it can be loaded as."""

from dataclasses import asdict, dataclass
from typing import Any

from bnpstream.engine import (
    Absorption,
    Encoder,
    FixedColumns,
    GrowingVocabulary,
    Phase,
    Posterior,
    Settings,
    Stream,
    resolve_likelihood,
    resolve_prior,
)
from bnpstream.inference.tree import MergeTree
from bnpstream.inference.visits import Absorbed
from bnpstream.likelihoods import Likelihood
from bnpstream.priors import Prior
from bnpstream.storage import Tensors
from bnpstream.storage.models import SavedModel, model_tensors

FIXED, GROWING = "StreamingMixture", "DocumentMixture"
"""Estimators that a model can be loaded as: of fixed columns, and of a growing vocabulary."""
DOCUMENT_PREFIX = 100
"""Initial documents used to learn unset parameters."""


@dataclass
class Mixture:
    """A stream with the parameters of the estimator that it can be loaded as.

    Parameters
    ----------
    estimator : str
        Its name.
    parameters : dict
        Arguments of its constructor.
    likelihood : Likelihood
        What rows look like in a cluster, as it was given.
    stream : Stream
        The posterior, and all that it takes to go on with it.
    n_features : int, optional
        Columns of the rows.
    """

    estimator: str
    parameters: dict[str, Any]
    likelihood: Likelihood
    stream: Stream
    n_features: int | None = None

    @classmethod
    def of_columns(
        cls, prior: Prior, likelihood: Likelihood | str, settings: dict[str, Any]
    ) -> "Mixture":
        """Return a model of rows with fixed columns."""
        given = {"prior": prior, "likelihood": likelihood}
        return cls._made(FIXED, given, settings, FixedColumns(resolve_likelihood(likelihood)))

    @classmethod
    def of_documents(cls, prior: Prior, settings: dict[str, Any], **words: Any) -> "Mixture":
        """Return a model of documents whose words are not known in advance."""
        given = {"prior": prior, "spread": None, "total": None} | words
        settings = {"prefix_rows": DOCUMENT_PREFIX} | settings
        encoder = GrowingVocabulary(given["spread"], given["total"])
        return cls._made(GROWING, given, settings, encoder)

    @classmethod
    def _made(
        cls, estimator: str, given: dict[str, Any], settings: dict[str, Any], encoder: Encoder
    ) -> "Mixture":
        chosen = Settings(**settings)
        stream = Stream(resolve_prior(given["prior"]), encoder, chosen)
        parameters = given | {**asdict(Settings()), **settings, "n_jobs": None}
        return cls(estimator, parameters, encoder.likelihood, stream)

    @classmethod
    def of(cls, tensors: Tensors) -> "Mixture":
        """Return the model that `tensors` described."""
        saved = SavedModel.of(tensors)
        given = dict(saved.settings)
        first = {name: given.pop(name) for name in WORDS if name in given}
        given.pop("n_jobs", None)
        if tensors.document["model"]["estimator"] == GROWING:
            model = cls.of_documents(settings=given, **first)
        else:
            model = cls.of_columns(first["prior"], first["likelihood"], given)
        model.stream = saved.stream(model.stream)
        model.n_features = saved.extra("n_features_in_")
        return model

    def tensors(self) -> Tensors:
        """Return the model as arrays and JSON."""
        extra = {} if self.n_features is None else {"n_features_in_": self.n_features}
        return model_tensors(self.estimator, self.parameters, self.stream, extra)

    def absorb(self, rows: Any, times: Any = None) -> Absorption | None:
        """Absorb rows of a source; ValueError names a bad one, and nothing is absorbed."""
        absorption = self.stream.absorb(rows, None, times)
        if not isinstance(rows, list):
            self.n_features = int(rows.shape[1])
        return absorption

    @property
    def provisional(self) -> bool:
        """Return whether the first rows are still being kept."""
        return self.stream.phase is Phase.PREFIX

    @property
    def absorbed(self) -> Absorbed:
        """Return what became of the rows absorbed last; of rows that wait, what would."""
        last = self.stream.answering.last
        assert last is not None
        return last.absorbed

    @property
    def posterior(self) -> Posterior:
        """Return what can be read off the posterior."""
        return self.stream.posterior

    def log_joint(self, rows: Any) -> list[Any]:
        """Return log joints of rows to look at, in blocks: clusters by id, the new one last."""
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
        """Return the parameters that were learnt so far, by name: of prior and base measure."""
        stream = self.stream.answering
        found = {name: float(getattr(stream.prior, name)) for name in stream.prior.learn}
        if stream.learner is not None and stream.learner.scale is not None:
            found |= stream.likelihood.learnt(stream.learner.scale)
        return found

    def coarsened(self, n_clusters: int, tree: MergeTree) -> "Mixture":
        """Return a copy whose clusters are merged into so many groups of a tree."""
        coarse = self.stream.coarsened(tree, n_clusters)
        return Mixture(self.estimator, self.parameters, self.likelihood, coarse, self.n_features)

    def __repr__(self) -> str:
        usual = asdict(Settings()) | {"prior": "dp", "likelihood": "auto", "n_jobs": None}
        usual |= {"spread": None, "total": None}
        given = [f"{k}={x!r}" for k, x in self.parameters.items() if x != usual[k]]
        return f"{self.estimator}({', '.join(given)})"


WORDS = ("prior", "likelihood", "spread", "total")
"""Parameters that are no settings of a stream."""
