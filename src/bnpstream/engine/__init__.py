"""The stream engine: rows in, a posterior out; knows no estimators, files or clusters."""

from bnpstream.engine.absorption import Absorption, Checked
from bnpstream.engine.checks import require_whole
from bnpstream.engine.codec import UnknownClassError
from bnpstream.engine.encoder import Encoder, FixedColumns
from bnpstream.engine.labels import Labels, labels_of
from bnpstream.engine.learner import Learner, Trial
from bnpstream.engine.names import resolve_likelihood, resolve_prior
from bnpstream.engine.notice import SlowFamilyWarning, announce_compilation
from bnpstream.engine.phase import Phase
from bnpstream.engine.posterior import Posterior
from bnpstream.engine.settings import Settings
from bnpstream.engine.snapshot import Snapshot, restore, snapshot
from bnpstream.engine.stream import Stream
from bnpstream.engine.vocabulary import GrowingVocabulary
from bnpstream.engine.wording import Wording, are_texts

announce_compilation()

__all__ = [
    "Absorption",
    "Checked",
    "Encoder",
    "FixedColumns",
    "GrowingVocabulary",
    "Labels",
    "Learner",
    "Phase",
    "Posterior",
    "Settings",
    "SlowFamilyWarning",
    "Snapshot",
    "Stream",
    "Trial",
    "UnknownClassError",
    "Wording",
    "are_texts",
    "labels_of",
    "require_whole",
    "resolve_likelihood",
    "resolve_prior",
    "restore",
    "snapshot",
]
