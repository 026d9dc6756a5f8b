"""Beginning a run in a directory, or going on with one."""

import platform
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from bnpstream._version import __version__
from bnpstream.estimator import DocumentMixture, StreamingMixture
from bnpstream.jobs.feeding import Feed
from bnpstream.jobs.journal import Journal
from bnpstream.jobs.models import Mixture, ModelOptions, make_model
from bnpstream.runs import (
    RunError,
    RunWriter,
    Tensors,
    has_checkpoint,
    is_run,
    marks_of,
    read_checkpoint,
    read_config,
)
from bnpstream.streams import Options, Position, Schema, open_source

ESTIMATORS: dict[str, type[Mixture]] = {
    "StreamingMixture": StreamingMixture,
    "DocumentMixture": DocumentMixture,
}
NAMES = "features.json"
"""What the columns are called: apart from the settings, as there may be very many."""


@dataclass(frozen=True)
class RunOptions:
    """What a user says about a run.

    Parameters
    ----------
    paths : tuple of str
        Files, patterns, or "-"; when a run goes on, none stands for those it had.
    source, model : Options, ModelOptions
        What is known about the records, and what model they are clustered by.
    follow : bool
        Wait for more at the end.
    """

    paths: tuple[str, ...] = ()
    source: Options = field(default_factory=Options)
    model: ModelOptions = field(default_factory=ModelOptions)
    follow: bool = False


def start(folder: Path | None, options: RunOptions, *, resume: bool = False) -> Feed:
    """Return a feed that is ready to run.

    Parameters
    ----------
    folder : Path or None
        The run directory; None keeps nothing.
    options : RunOptions
        What the user says.
    resume : bool
        Go on from the last checkpoint of the directory, if there is one.
    """
    if folder is not None and resume and is_run(folder):
        return _go_on(folder, options)
    source = open_source(list(options.paths), options.source, follow=options.follow)
    model = make_model(options.model, source.schema.kind)
    writer = None
    if folder is not None:
        config = {
            "model": asdict(options.model),
            "source": {**source.identity(), "options": asdict(options.source)},
            "schema": {**asdict(source.schema), "names": None},
            "seed": None,
            "versions": versions(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        writer = RunWriter.create(folder, config, {NAMES: source.schema.names})
    return Feed(model, source, Journal(source.schema.names), Position(), writer)


def _go_on(folder: Path, options: RunOptions) -> Feed:
    """Return the feed of a run that was begun before."""
    config = read_config(folder)
    _check_same("model", asdict(options.model), config["model"])
    _check_same("source", asdict(options.source), config["source"]["options"])
    schema = read_schema(folder, config)
    paths = list(options.paths) or config["source"]["paths"]
    source = open_source(paths, source_options(config), schema, follow=options.follow)
    if source.identity()["paths"] != config["source"]["paths"]:
        raise RunError(
            f"{folder}: reads {', '.join(config['source']['paths'])}, not "
            f"{', '.join(source.identity()['paths'])}: give the same source, or another --out"
        )
    if not has_checkpoint(folder):
        model = make_model(options_of(config), schema.kind)
        writer = RunWriter.resume(folder, {})
        return Feed(model, source, Journal(schema.names), Position(), writer)
    found = read_checkpoint(folder)
    document = found.document
    writer = RunWriter.resume(folder, marks_of(document))
    return Feed(
        model_of(found),
        source,
        Journal.of(found.arrays, document["journal"], schema.names),
        Position(**document["position"]),
        writer,
        seconds=document["seconds"],
        finished=document["finished"],
    )


def model_of(found: Tensors) -> Mixture:
    """Return the model of a checkpoint."""
    return ESTIMATORS[found.document["model"]["estimator"]].from_tensors(found)


def read_schema(folder: Path, config: dict[str, Any]) -> Schema:
    """Return what the records of a run are."""
    try:
        names = orjson.loads((folder / NAMES).read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise RunError(f"{folder / NAMES}: cannot be read: {error}: restore it") from error
    saved = {**config["schema"], "names": None if names is None else tuple(names)}
    if saved["types"] is not None:
        saved["types"] = tuple(saved["types"])
    return Schema(**saved)


def source_options(config: dict[str, Any]) -> Options:
    """Return what a run was told about its source."""
    saved = dict(config["source"]["options"])
    if saved["columns"] is not None:
        saved["columns"] = tuple(saved["columns"])
    return Options(**saved)


def options_of(config: dict[str, Any]) -> ModelOptions:
    """Return what a run was told about its model."""
    return ModelOptions(**config["model"])


def _check_same(what: str, given: dict[str, Any], saved: dict[str, Any]) -> None:
    """Raise RunError if something is said otherwise than when the run was begun."""
    defaults = {f.name: f.default for f in fields(Options if what == "source" else ModelOptions)}
    for name, value in given.items():
        plain = list(value) if isinstance(value, tuple) else value
        if value != defaults[name] and plain != saved.get(name):
            option = "--" + name.replace("_", "-")
            raise RunError(
                f"{option} {value}: this run was begun with {saved.get(name)}: leave it out, or "
                "begin another run with another --out"
            )


def versions() -> dict[str, str]:
    """Return the versions that results may depend on."""
    names = ("numpy", "scipy", "numba", "scikit-learn")
    return {
        "bnpstream": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in names},
    }
