"""Starts a run in a directory, or resumes one."""

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from msgspec import convert

from bnpstream._version import __version__
from bnpstream.runs.feed import Feed
from bnpstream.runs.journal import Journal, JournalDocument
from bnpstream.runs.mixture import Mixture, make_model
from bnpstream.runs.model_file import ModelFile, restored
from bnpstream.runs.options import ModelOptions, OptionError, check_times
from bnpstream.runs.sharing import Partitions, Sharing, SharingOptions
from bnpstream.sources import Options, Schema, Source, open_source
from bnpstream.sources.protocol import JSON
from bnpstream.storage import (
    NAMES,
    RunError,
    RunWriter,
    has_checkpoint,
    intact,
    is_run,
    read_checkpoint,
    read_config,
    read_names,
)
from bnpstream.storage.logs import Mark
from bnpstream.storage.models import loading


@dataclass(frozen=True)
class RunOptions:
    """Options of a run.

    Parameters
    ----------
    paths : tuple of str
        Files, patterns, or "-"; empty when resuming stands for the earlier ones.
    source, model : Options, ModelOptions
        Options of the records and of the model.
    follow : bool
        Wait for more at the end of the source.
    wait : bool
        Wait for a broker that does not answer, as long as it takes.
    start : str, optional
        Where to start reading a broker: "earliest" or "latest".
    model_file : ModelFile, optional
        The file from which `model` was read.
    sharing : SharingOptions, optional
        Divide the run between workers.
    """

    paths: tuple[str, ...] = ()
    source: Options = field(default_factory=Options)
    model: ModelOptions = field(default_factory=ModelOptions)
    follow: bool = False
    wait: bool = False
    start: str | None = None
    model_file: ModelFile | None = None
    sharing: SharingOptions | None = None


def start(
    folder: Path | None,
    options: RunOptions,
    *,
    resume: bool = False,
    check: Callable[[Mixture], None] | None = None,
) -> Feed:
    """Return a feed that is ready to run.

    Parameters
    ----------
    folder : Path or None
        The run directory; None saves nothing.
    options : RunOptions
        The user's options.
    resume : bool
        Continue from the last checkpoint in the directory, if there is one.
    check : callable, optional
        Raises if a new model is not acceptable; nothing is written then.
    """
    if folder is not None and resume and is_run(folder):
        return _go_on(folder, options)
    check_times(options.model, options.source.time_field)
    source = open_source(list(options.paths), options.source, **_ways(options))
    with _closed_on_error(source):
        return _begin(folder, options, source, check)


def _begin(
    folder: Path | None,
    options: RunOptions,
    source: Source,
    check: Callable[[Mixture], None] | None,
) -> Feed:
    """Return the feed of a new run."""
    if (options.model.passes or 1) > 1 and not source.replayable:
        raise OptionError(
            f"--passes {options.model.passes} goes over all records again, but {source} cannot be "
            "read again from its beginning: leave it out, or give --revisit for the last rows"
        )
    make = make_model if options.model_file is None else options.model_file.make_model
    model = make(options.model, source.schema.kind, source.schema.ngrams)
    if check is not None:
        check(model)
    sharing = None if options.sharing is None else options.sharing.completed()
    writer = None
    if folder is not None:
        config = {
            "model": asdict(options.model),
            "source": {**source.identity(), "options": asdict(options.source)},
            "schema": asdict(replace(source.schema, names=None)),
            "sharing": None if sharing is None else asdict(sharing),
            "seed": None,
            "versions": versions(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        writer = RunWriter.create(folder, config, {NAMES: source.schema.names})
    return _begun(model, source, sharing, writer)


def _go_on(folder: Path, options: RunOptions) -> Feed:
    """Return the feed of a run that is resumed."""
    config = read_config(folder)
    schema, saved, model_options = read_schema(folder, config), *settings_of(folder, config)
    _check_same(options.model, model_options)
    _check_same(options.source, saved)
    sharing = _sharing_of(folder, config, options.sharing)
    begun_with: list[str] = config["source"]["paths"]
    source = open_source(list(options.paths) or begun_with, saved, schema, **_ways(options))
    with _closed_on_error(source):
        _check_identity(folder, source, config["source"])
        return _resumed(folder, model_options, source, sharing)


@contextmanager
def _closed_on_error(source: Source) -> Iterator[None]:
    """Close a source if the code inside fails."""
    try:
        yield
    except BaseException:
        source.close()
        raise


def _resumed(
    folder: Path, model_options: ModelOptions, source: Source, sharing: Sharing | None
) -> Feed:
    """Return the feed of a resumed run, positioned in its source."""
    schema = source.schema
    if not has_checkpoint(folder):
        with intact(folder / "config.json"):
            model = make_model(model_options, schema.kind, schema.ngrams)
        return _begun(model, source, sharing, RunWriter.resume(folder, {}))
    found, model, journal = load_checkpoint(folder, schema)
    try:
        source.check(found.position)
    except ValueError as error:
        raise RunError(f"{folder}: cannot continue from where it was saved: {error}") from error
    # Earlier versions counted invalid lines left out of a record as rejects.
    journal.n_parts = max(journal.n_parts, model.stream.n_rows - found.rows)
    writer, records = RunWriter.resume(folder, found.marks), found.rows + found.rejects
    source.repeat([(batch.order, batch.position) for batch in writer.batches_after(records)])
    return Feed(
        model,
        source,
        journal,
        found.position,
        writer,
        records=records,
        seconds=found.seconds,
        finished=found.finished,
        sharing=sharing,
        partitions=found.partitions,
    )


def _begun(
    model: Mixture, source: Source, sharing: Sharing | None, writer: RunWriter | None
) -> Feed:
    """Return a feed that stands before the first record."""
    feed = Feed(
        model,
        source,
        Journal(source.schema.names),
        source.beginning(),
        writer,
        sharing=sharing,
        partitions=None if sharing is None else Partitions(),
    )
    if source.begins_anew:
        feed.checkpoint()
    return feed


def _ways(options: RunOptions) -> dict[str, Any]:
    """Return options about how to read, which apply to any source."""
    return {"follow": options.follow, "wait": options.wait, "start": options.start}


def _check_identity(folder: Path, source: Source, saved: dict[str, Any]) -> None:
    """Raise RunError if a source is not the one that the run was started with."""
    for name, now in source.identity().items():
        if (before := saved.get(name)) != now:
            raise RunError(
                f"{folder}: reads {_shown(before)}, not {_shown(now)} ({name}): give the same "
                "source, or another --out"
            )


def _shown(value: JSON) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _sharing_of(
    folder: Path, config: dict[str, Any], given: SharingOptions | None
) -> Sharing | None:
    """Return how a run is divided; RunError if the options now say otherwise."""
    found = config.get("sharing")
    if found is None:
        if given is not None:
            raise RunError(
                f"{folder}: was started without --dask: leave it out, or give another --out"
            )
        return None
    with intact(folder / "config.json"):
        saved = restored(Sharing, found)
    if given is None:
        raise RunError(
            f"{folder}: was started with --dask: give it again; any cluster will do, such as "
            "local:2"
        )
    _check_same(given, saved)
    return saved


@dataclass(frozen=True)
class Checkpoint:
    """The JSON part of a checkpoint, besides model and stream."""

    rows: int
    rejects: int
    seconds: float
    finished: bool
    position: JSON
    """Position in the source, in the source's own terms."""
    journal: JournalDocument
    partitions: Partitions | None = None
    marks: dict[str, Mark] = field(default_factory=dict)


def load_checkpoint(folder: Path, schema: Schema) -> tuple[Checkpoint, Mixture, Journal]:
    """Return the contents of a run's last checkpoint; RunError if it cannot be read."""
    tensors = read_checkpoint(folder)
    with loading(folder):
        found = convert(tensors.document, Checkpoint)
        model = Mixture.of(tensors)
        return found, model, Journal.of(tensors.arrays, found.journal, schema.names)


def read_schema(folder: Path, config: dict[str, Any]) -> Schema:
    """Return the schema of a run's records."""
    names = read_names(folder)
    with intact(folder / "config.json"):
        schema = restored(Schema, {**config["schema"], "names": names})
    if schema.names is not None and len(schema.names) != schema.n_features:
        raise RunError(
            f"{folder / NAMES}: has {len(schema.names)} names for {schema.n_features} columns: "
            "restore it from a copy"
        )
    return schema


def settings_of(folder: Path, config: dict[str, Any]) -> tuple[Options, ModelOptions]:
    """Return the options of a run's source and model."""
    with intact(folder / "config.json"):
        if not convert(config["source"]["paths"], list[str]):
            raise ValueError("the source has no paths")
        source = restored(Options, config["source"]["options"])
        return source, restored(ModelOptions, config["model"])


def _check_same(
    given: Options | ModelOptions | SharingOptions, saved: Options | ModelOptions | Sharing
) -> None:
    """Raise RunError if an option differs from when the run was started."""
    for field_ in fields(given):
        value, before = (getattr(options, field_.name) for options in (given, saved))
        if value not in (field_.default, before):
            told = field_.metadata.get("told")
            named = told.flag if told is not None and told.flag else None
            option = (named or "--" + field_.name.replace("_", "-")).split("/")[0]
            begun = "without it" if before is None else f"with {before}"
            raise RunError(
                f"{option} {value}: this run was started {begun}: leave it out, or start a new run "
                "with another --out"
            )


def versions() -> dict[str, str]:
    """Return the versions that may affect results."""
    names = ("numpy", "scipy", "numba", "scikit-learn")
    return {
        "bnpstream": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in names},
    }
