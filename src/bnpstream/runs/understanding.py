"""What a run takes its records for, reported before the first one is read."""

from typing import Any

from bnpstream.likelihoods import Likelihood
from bnpstream.sources import Schema
from bnpstream.sources.formats.schemas import DIFFERS

SHOWN = 20
"""Most columns that are named."""
_PLAIN = {
    "Automatic": "chosen by the first rows",
    "VocabularyLikelihood": "multinomial over a growing vocabulary",
}
_TYPES = {"truth": "boolean"}
_ROLES = ("text", "counts", "vector", "id", "time")


def understood(schema: Schema, likelihood: Likelihood) -> dict[str, Any]:
    """Return, as JSON, what the records are taken for: columns, fields, likelihood."""
    columns = None
    if schema.types is not None and schema.names is not None:
        columns = dict(zip(schema.names, schema.types, strict=True))
    return {
        "format": schema.format,
        "kind": schema.kind,
        "family": type(likelihood).__name__,
        "n_features": schema.n_features,
        "columns": columns,
        "fields": {role: schema.fields[role] for role in _ROLES if role in schema.fields},
        "left_out": schema.left_out,
    }


def told(found: dict[str, Any]) -> str:
    """Return the result of `understood` for people.

    Examples
    --------
    >>> from bnpstream.likelihoods.automatic import Automatic
    >>> schema = Schema("csv", "table", 1, ("size",), ("number",), {"id": "name"})
    >>> told(understood(schema, Automatic()))
    'records: csv, table of 1 columns: size (number); id in name; family: chosen by the first rows'
    """
    parts = [f"records: {found['format']}, {found['kind']}"]
    if "vector" in found["fields"]:
        parts = [f"records: {found['format']}, vectors of {found['n_features']:,} numbers"]
    elif found["n_features"] is not None:
        parts[0] += f" of {found['n_features']:,} columns"
    if found["columns"] is not None:
        names = [f"{name} ({_TYPES.get(type_, type_)})" for name, type_ in found["columns"].items()]
        parts[0] += f": {_listed(names)}"
    parts += [f"{role} in {name}" for role, name in found["fields"].items()]
    if found["left_out"]:
        parts.append(f"left out: {_listed(list(found['left_out']))}")
    family = _PLAIN.get(found["family"], found["family"])
    return "; ".join([*parts, f"family: {family}"])


def plain_family(likelihood: Likelihood) -> str:
    """Return the family that was chosen for a table, for people.

    Examples
    --------
    >>> from bnpstream.likelihoods import Bernoulli, DiagonalGaussian, Product
    >>> plain_family(Product([("a", DiagonalGaussian(), [0]), ("b", Bernoulli(), [1])]))
    'DiagonalGaussian, Bernoulli'
    """
    parts: Any = getattr(likelihood, "parts", [(None, likelihood)])
    return ", ".join(type(part[1]).__name__ for part in parts)


def warnings_of(found: dict[str, Any]) -> list[str]:
    """Return warnings about unused columns that look like labels."""
    return [
        f"column {name!r} is left out, as {DIFFERS}. If it holds the texts to cluster, give "
        f"--text-field {name}; if it is the id, --id-field {name}; to use it as it is, --columns"
        for name, reason in found["left_out"].items()
        if reason == DIFFERS
    ]


def _listed(names: list[str]) -> str:
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")
