"""Saving estimators as arrays and JSON, and loading them: the format of a run's checkpoints."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from bnpstream._version import __version__
from bnpstream.estimators.base import MixtureEstimator
from bnpstream.estimators.codec import decode, encode
from bnpstream.estimators.prefix import Prefix
from bnpstream.mixture import Event
from bnpstream.mixture.snapshot import lineage_arrays, lineage_from, state_arrays, state_from
from bnpstream.storage import (
    RunError,
    Tensors,
    checkpoint_path,
    intact,
    read_checkpoint,
    read_config,
    read_log,
    read_names,
    save_run,
)

Arrays = dict[str, NDArray[Any]]

PER_ROW = ("labels_", "label_ids_", "probabilities_", "log_evidence_", "novelty_")
"""Attributes that describe the rows of the last call."""


class Savable(MixtureEstimator):
    """An estimator that can be saved to a directory and loaded from it, or from a run's."""

    lineage_: list[Event]

    def save(self, path: str | Path) -> None:
        """Save everything to a directory: settings as JSON, arrays as safetensors, no pickle.

        Parameters
        ----------
        path : str or Path
            The directory; made if it is not there. A model saved there before is replaced.
        """
        tensors = self.to_tensors()
        per_row = {name: vars(self)[name] for name in PER_ROW if name in vars(self)}
        tensors.arrays.update({f"rows.{name}": array for name, array in per_row.items()})
        save_run(Path(path), {"model": tensors.document["model"]}, tensors)

    @classmethod
    def load(cls, path: str | Path, *, classes: Iterable[type] = ()) -> Self:
        """Return the estimator that was saved in a directory, or that a run has fitted so far.

        Parameters
        ----------
        path : str or Path
            What `save` was given, or a run directory.
        classes : iterable of type
            Priors and likelihoods of your own, dataclasses, that it was saved with.
        """
        folder = Path(path)
        config, tensors = read_config(folder), read_checkpoint(folder)
        with intact(checkpoint_path(folder)):
            kind = tensors.document["model"]["estimator"]
            if kind != cls.__name__:
                raise RunError(f"{folder}: holds a {kind}: load it with {kind}.load")
            model = cls.from_tensors(tensors, classes)
        if "schema" in config and "state_" in vars(model):
            model._name_columns(config["schema"].get("kind"), read_names(folder))
        events = [Event(**event) for event in read_log(folder, "lineage", tensors.document)]
        if events:
            model.lineage_ = events + model.lineage_
        for name in PER_ROW:
            if f"rows.{name}" in tensors.arrays:
                setattr(model, name, tensors.arrays[f"rows.{name}"])
        return model

    def _name_columns(self, kind: Any, names: list[str] | None) -> None:
        """Take over the names of columns that a run knows.

        Rows of a table are then expected with these names. Counts are given as matrices without.
        """
        if names is not None and len(names) == getattr(self, "n_features_in_", None):
            attribute = "feature_names_in_" if kind == "table" else "names_"
            setattr(self, attribute, np.array(names, dtype=object))

    def to_tensors(self) -> Tensors:
        """Return settings and posterior as arrays and JSON; what describes the last call is not."""
        settings = {name: encode(x) for name, x in self.get_params(deep=False).items()}
        document: dict[str, Any] = {
            "model": {"estimator": type(self).__name__, "settings": settings},
            "version": __version__,
        }
        arrays: Arrays = {}
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                document[name] = encode(getattr(self, name))
        self._save_into(document, arrays)
        return Tensors(arrays, document)

    @classmethod
    def from_tensors(cls, tensors: Tensors, classes: Iterable[type] = ()) -> Self:
        """Return the estimator that `to_tensors` described."""
        classes = list(classes)
        settings = tensors.document["model"]["settings"]
        model = cls(**{name: decode(x, classes) for name, x in settings.items()})
        for name in ("n_features_in_", "feature_names_in_"):
            if name in tensors.document:
                setattr(model, name, decode(tensors.document[name]))
        model._load_from(tensors.document, tensors.arrays, classes)
        return model

    def _save_into(self, document: dict[str, Any], arrays: Arrays) -> None:
        """Add what has been learnt so far."""
        raise NotImplementedError

    def _load_from(self, document: dict[str, Any], arrays: Arrays, classes: list[type]) -> None:
        """Take over what `_save_into` added."""
        raise NotImplementedError


def posterior_arrays(state: Any, lineage: list[Event]) -> Arrays:
    """Return the arrays of a posterior and its history."""
    return {**state_arrays(state), **lineage_arrays(lineage)}


def posterior_from(arrays: Arrays, *, paired: bool) -> tuple[Any, list[Event]]:
    """Return a posterior and its history."""
    return state_from(arrays, paired=paired), lineage_from(arrays)


def save_prefix(prefix: Prefix, document: dict[str, Any], arrays: Arrays) -> None:
    """Add rows that wait for more."""
    rows, weights = prefix.rows(), prefix.weights()
    document["prefix"] = {
        "likelihood": encode(prefix.likelihood),
        "n_last": prefix.n_last,
    }
    if weights is not None:
        arrays["prefix.weights"] = weights
    if (stamps := prefix.stamps()) is not None:
        arrays["prefix.stamps"] = stamps
    if issparse(rows):
        matrix: Any = rows
        names = ("indptr", "indices", "data")
        arrays |= {f"prefix.{name}": getattr(matrix, name) for name in names}
        document["prefix"]["shape"] = list(matrix.shape)
    elif rows.dtype.kind in "biuf":
        arrays["prefix.rows"] = rows
    else:
        document["prefix"]["rows"] = encode(rows.astype(object))


def load_prefix(document: dict[str, Any], arrays: Arrays, classes: list[type]) -> Prefix:
    """Return rows that wait for more."""
    saved = document["prefix"]
    prefix = Prefix(decode(saved["likelihood"], classes))
    rows: Any
    if "shape" in saved:
        parts = tuple(arrays[f"prefix.{name}"] for name in ("data", "indices", "indptr"))
        rows = csr_array(parts, shape=tuple(saved["shape"]))
    elif "rows" in saved:
        rows = decode(saved["rows"])
    else:
        rows = arrays["prefix.rows"]
    weights = arrays.get("prefix.weights", np.ones(rows.shape[0]))
    stamps = arrays.get("prefix.stamps")
    first = rows.shape[0] - saved["n_last"]
    for part in (slice(0, first), slice(first, None)):
        if part.start < rows.shape[0] and part.stop != 0:
            times = None if stamps is None else stamps[part]
            prefix.append(rows[part], weights[part], times)
    return prefix


__all__ = ["PER_ROW", "Savable", "load_prefix", "posterior_arrays", "posterior_from", "save_prefix"]
