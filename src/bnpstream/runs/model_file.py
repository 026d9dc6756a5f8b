"""Model settings in a JSON file: written by ``tune``, read by ``fit --config``, edited by people.

The file is a JSON object of `ModelOptions`; missing ones have their defaults. ``tune`` adds
"tuning": the kind of rows that the settings are for, and how they were found.
"""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_args

import orjson
from msgspec import ValidationError, convert

from bnpstream.likelihoods.multinomial import LEARN
from bnpstream.runs.mixture import GIVEN, Mixture, make_model
from bnpstream.runs.options import ModelOptions, OptionError
from bnpstream.sources.records import Kind

NAMES_OF_KINDS: dict[Kind, str] = {
    "counts": "word counts",
    "table": "a table",
    "documents": "texts with a growing vocabulary",
}
T = TypeVar("T")

LEARNABLE = ("concentration", "discount", "alpha")
"""Settings that are learnt by default, so that "learn" is a value for them."""


@dataclass(frozen=True)
class ModelFile:
    """A file with settings of a model.

    Parameters
    ----------
    path : Path
        Path of the file.
    options : ModelOptions
        Its settings.
    kind : Kind or None
        Kind of rows that it was tuned on; None for any.
    """

    path: Path
    options: ModelOptions
    kind: Kind | None = None

    def overridden(self, given: dict[str, Any]) -> ModelOptions:
        """Return the settings of the file, overridden by the options given (not None).

        If a different prior is given, the parameters of the file's prior are not used.
        """
        said = {name: value for name, value in given.items() if value is not None}
        values = asdict(self.options)
        if "prior" in said and said["prior"] != (self.options.prior or "dp"):
            values |= dict.fromkeys(GIVEN)
        return ModelOptions(**(values | said))

    def make_model(self, options: ModelOptions, kind: Kind, ngrams: int = 1) -> Mixture:
        """Return a model as `mixture.make_model` does; an OptionError names the file."""
        if self.kind not in (None, kind):
            raise OptionError(
                f"{self.path}: was tuned on {NAMES_OF_KINDS[self.kind]}, but these records are "
                f"{NAMES_OF_KINDS[kind]}: tune on such records, or give options without --config"
            )
        try:
            return make_model(options, kind, ngrams)
        except OptionError as error:
            raise OptionError(f"{self.path}, with the options given: {error}") from error


def read_model_file(path: Path) -> ModelFile:
    """Return the settings in a file; OptionError names an invalid one."""
    try:
        document = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path}: no such file: bnpstream tune SOURCE --out {path} creates it"
        ) from None
    except orjson.JSONDecodeError as error:
        raise OptionError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise OptionError(f'{path}: not a JSON object of settings, such as {{"prior": "nig"}}')
    tuning = document.pop("tuning", {})
    for name, value in document.items():
        learnt = name in LEARNABLE and value == LEARN
        document[name] = None if learnt else value
        try:
            restored(ModelOptions, {name: document[name]})
        except ValidationError as error:
            raise OptionError(f"{path}: {name} is {value!r}, which is not valid") from error
        except OptionError as error:
            raise OptionError(f"{path}: {error}") from error
    options = restored(ModelOptions, document)
    kind = tuning.get("kind") if isinstance(tuning, dict) else None
    if kind is not None and kind not in get_args(Kind):
        raise OptionError(f"{path}: was tuned on rows of an unknown kind, {kind!r}: tune again")
    return ModelFile(path, options, kind)


def restored(cls: type[T], values: dict[str, Any]) -> T:
    """Return settings from JSON; ValueError for an unknown name or a wrong type.

    Examples
    --------
    >>> restored(ModelOptions, {"passes": "7"})
    Traceback (most recent call last):
    ...
    msgspec.ValidationError: Expected `int | null`, got `str` - at `$.passes`
    """
    known = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise OptionError(f"unknown setting {name!r}; known are {', '.join(known)}")
    return convert(values, cls)


def written(options: ModelOptions) -> dict[str, Any]:
    """Return settings as JSON, without defaults."""
    return {name: value for name, value in asdict(options).items() if value is not None}


def parsed(name: str, text: str) -> float | None:
    """Return the number given for an option; None if it is to be learnt.

    Examples
    --------
    >>> parsed("alpha", "0.1"), parsed("alpha", "learn")
    (0.1, None)
    """
    if text == LEARN and name in LEARNABLE:
        return None
    try:
        return float(text)
    except ValueError:
        learnt = ' or "learn"' if name in LEARNABLE else ""
        raise OptionError(f"--{name} {text}: give a number{learnt}") from None
