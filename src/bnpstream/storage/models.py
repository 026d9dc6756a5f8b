"""Models in directories: settings as JSON, a stream as arrays and JSON, never pickle."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bnpstream._version import __version__
from bnpstream.engine import Encoder, Phase, Snapshot, Stream, UnknownClassError, restore, snapshot
from bnpstream.engine.codec import decode, encode
from bnpstream.engine.snapshot import ENCODERS, from_format_1
from bnpstream.mixture.saved import require
from bnpstream.storage.directory import checkpoint_path, read_checkpoint, read_config, save_run
from bnpstream.storage.files import RunError, intact
from bnpstream.storage.tensors import Tensors

OLD_DEFAULTS = {"max_responsibilities": None}
"""Values of settings that models saved by earlier versions lack."""


class UnnamedClassError(RunError, ValueError):
    """A model was saved with a class that must be named on loading."""


class SavedModel(NamedTuple):
    """A saved model."""

    settings: dict[str, Any]
    """Arguments of its constructor."""
    tensors: Tensors
    classes: list[type]
    """Dataclasses that it may name besides those of the package."""

    @classmethod
    def of(cls, tensors: Tensors, classes: Iterable[type] = ()) -> "SavedModel":
        """Return the model that `model_tensors` described."""
        known = list(classes)
        settings = OLD_DEFAULTS | tensors.document["model"]["settings"]
        return cls({name: decode(x, known) for name, x in settings.items()}, tensors, known)

    def stream(self, fresh: Stream, encoders: dict[str, type[Encoder]] | None = None) -> Stream:
        """Return the saved stream; `fresh` is a new stream with the same settings."""
        document, arrays = self.tensors.document, self.tensors.arrays
        if "stream" in document:
            found = Snapshot(document["stream"], arrays)
        elif "masses" in arrays or "prefix" in document:
            vocabulary = {k: x for k, x in self.settings.items() if k in ("spread", "total")}
            found = from_format_1(document, arrays, fresh.given_prior, vocabulary)
        else:
            return fresh
        stream = restore(found, fresh.settings, self.classes, encoders or ENCODERS)
        n, likelihood = document.get("n_features_in_"), stream.encoder.likelihood
        if n is not None and stream.phase is Phase.RUNNING and likelihood.feature_kind == "words":
            require("statistics.shape", stream.state.n_statistics == n + 1)
        return stream

    def extra(self, name: str) -> Any:
        """Return something that was saved beside the stream, or None."""
        document = self.tensors.document
        return decode(document[name]) if name in document else None


def model_tensors(
    kind: str, settings: dict[str, Any], stream: Stream | None, extra: dict[str, Any] | None = None
) -> Tensors:
    """Return a model as arrays and JSON.

    Parameters
    ----------
    kind : str
        Kind of model.
    settings : dict
        Arguments of its constructor.
    stream : Stream or None
        Its stream.
    extra : dict, optional
        Anything else to save.
    """
    document: dict[str, Any] = {
        "model": {"estimator": kind, "settings": {k: encode(x) for k, x in settings.items()}},
        "version": __version__,
        **{name: encode(x) for name, x in (extra or {}).items()},
    }
    if stream is None:
        return Tensors({}, document)
    found = snapshot(stream)
    return Tensors(found.arrays, document | {"stream": found.document})


def save_model(folder: Path, kind: str, settings: dict[str, Any], stream: Stream) -> None:
    """Save a model to a directory; an earlier model there is replaced."""
    tensors = model_tensors(kind, settings, stream)
    save_run(folder, {"model": tensors.document["model"]}, tensors)


def read_model(folder: Path, kind: str, classes: Iterable[type] = ()) -> SavedModel:
    """Return the model that was saved in a directory, or that of a run."""
    read_config(folder)
    tensors = read_checkpoint(folder)
    with loading(folder):
        found = tensors.document["model"]["estimator"]
        if found != kind:
            raise RunError(f"{folder}: holds a {found}: load it with {found}.load")
        return SavedModel.of(tensors, classes)


@contextmanager
def loading(folder: Path) -> Iterator[None]:
    """Blame a checkpoint if the code inside, which uses it, fails."""
    path = checkpoint_path(folder)
    with intact(path):
        try:
            yield
        except UnknownClassError as error:
            raise UnnamedClassError(f"{path}: {error}") from error
