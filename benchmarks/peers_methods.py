"""Methods of the comparison with peers, at their defaults and at settings that know the data.

"Tuned" settings were chosen alike for all: between four and twenty trials each, judged by documents
of the training part that were set aside, not by the held-out ones. The exceptions are KOS' settings
of bnpstream, which are the paper's, and of the two methods that have no figure there.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from bnpstream import DirichletMultinomial, dirichlet_process, normalized_inverse_gaussian
from peers_learners import Learner, Streaming
from peers_libraries import GensimHDP, KMeans, OnlineLDA, RiverTextClust, TomotopyHDP


class Method(NamedTuple):
    """A row of the table: settings by the name of the corpus."""

    tool: str
    variant: str
    tuned: bool
    package: str
    learner: Callable[..., Learner]
    settings: dict[str, dict[str, Any]]

    @property
    def name(self) -> str:
        """Return what the row is called."""
        return ", ".join(filter(None, (self.tool, self.variant)))

    def why_missing(self) -> str | None:
        """Return why the package cannot be used, or None if it can."""
        try:
            import_module(self.package)
        except ImportError as error:
            return str(error)
        return None


def _everywhere(**settings: Any) -> dict[str, dict[str, Any]]:
    return {"KOS": settings, "20 Newsgroups": settings}


# bnpstream. KOS: the paper's priors, as in papers/tank2015. 20 Newsgroups: documents are shorter
# and the vocabulary three times as large, so a word's share of a cluster is expected to be smaller.
_DP: dict[str, dict[str, Any]] = {
    "KOS": {"prior": dirichlet_process(100), "likelihood": DirichletMultinomial(0.1)},
    "20 Newsgroups": {"prior": dirichlet_process(10), "likelihood": DirichletMultinomial(0.05)},
}
_NIG: dict[str, dict[str, Any]] = {
    "KOS": {
        "prior": normalized_inverse_gaussian(10, 100),
        "likelihood": DirichletMultinomial(0.1),
    },
    "20 Newsgroups": {
        "prior": normalized_inverse_gaussian(1, 100),
        "likelihood": DirichletMultinomial(0.05),
    },
}


def _and(settings: dict[str, dict[str, Any]], **more: Any) -> dict[str, dict[str, Any]]:
    return {corpus: {**chosen, **more} for corpus, chosen in settings.items()}


# gensim: the default step, 1/65 a chunk and falling, leaves the random start in place on corpora of
# tens of chunks: larger steps, and two passes over the smaller corpus. eta=.5: no topic has seen
# most of the words often.
_GENSIM: dict[str, dict[str, Any]] = {
    "KOS": {"tau": 1.0, "kappa": 0.8, "chunksize": 128, "eta": 0.5, "max_chunks": 44},
    "20 Newsgroups": {"tau": 1.0, "kappa": 0.8, "chunksize": 256, "eta": 0.5},
}
# tomotopy: from two topics it adds one or two a sweep and stops at ten; 50 to start with, broader
# topics (eta), more topics a document (alpha), and sweeps until the figure hardly moves.
_TOMOTOPY: dict[str, dict[str, Any]] = {
    "KOS": {"iterations": 50, "initial_k": 50, "alpha": 1.0, "eta": 0.5},
    "20 Newsgroups": {"iterations": 50, "initial_k": 50, "alpha": 1.0, "eta": 0.3},
}
# scikit-learn's LDA: a hundred topics on KOS, few of them in a document; on 20 Newsgroups as many
# topics as labels. Fewer passes than ten lose little.
_LDA: dict[str, dict[str, Any]] = {
    "KOS": {
        "n_components": 100,
        "doc_topic_prior": 0.05,
        "topic_word_prior": 0.1,
        "max_iter": 5,
    },
    "20 Newsgroups": {
        "n_components": 20,
        "doc_topic_prior": 0.5,
        "topic_word_prior": 0.3,
        "max_iter": 3,
    },
}
# MiniBatchKMeans: as many clusters as labels (a hundred on KOS, as bnpstream finds), the logarithm
# of counts, larger batches and the best of three random starts.
_KMEANS: dict[str, dict[str, Any]] = {
    corpus: {
        "n_clusters": n_clusters,
        "init": "random",
        "n_init": 3,
        "batch_size": 4096,
        "sublinear_tf": True,
    }
    for corpus, n_clusters in {"KOS": 100, "20 Newsgroups": 20}.items()
}
# TextClust: two documents of a topic share few words, so the radius is wide; words do not fade and
# clusters hardly do, since the order of documents means nothing here.
_TEXTCLUST = _everywhere(radius=0.8, real_time_fading=False, fading_factor=1e-4, term_fading=False)

_LIBRARIES: list[tuple[str, str, Callable[..., Learner], Any, Any]] = [
    ("gensim HDP", "gensim", GensimHDP, _everywhere(), _GENSIM),
    # `train` makes 10 sweeps unless told.
    ("tomotopy HDP", "tomotopy", TomotopyHDP, _everywhere(iterations=10), _TOMOTOPY),
    ("scikit-learn LDA", "sklearn", OnlineLDA, _everywhere(), _LDA),
    ("scikit-learn KMeans", "sklearn", KMeans, _everywhere(), _KMEANS),
    ("river TextClust", "river", RiverTextClust, _everywhere(), _TEXTCLUST),
]

METHODS = [
    Method(f"bnpstream, {schedule}", prior, tuned, "bnpstream", Streaming, settings)
    for schedule, prior, tuned, settings in (
        ("one pass", "DP", False, _everywhere(prior="dp")),
        ("one pass", "NIG", False, _everywhere(prior="nig")),
        ("one pass", "DP", True, _DP),
        ("one pass", "NIG", True, _NIG),
        ("window", "NIG", True, _and(_NIG, revisit=1000)),
        ("five passes", "NIG", True, _and(_NIG, n_passes=5)),
    )
] + [
    Method(tool, "", tuned, package, learner, settings)
    for tool, package, learner, defaults, chosen in _LIBRARIES
    for tuned, settings in ((False, defaults), (True, chosen))
]
