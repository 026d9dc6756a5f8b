"""The OpenAPI description of the API."""

from typing import Any

from bnpstream._version import __version__
from bnpstream.serve.api import LISTED, MOST_LISTED, MOST_ROWS

Document = dict[str, Any]

ERROR = {"description": "What is wrong, and what to do.", "content": {
    "application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}  # fmt: skip
RECORD: Document = {
    "description": "A record as in the run's source: an object with its fields, or a text. "
    "A record that cannot be used is answered with an error.",
}
WITH_ID: Document = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
}


def openapi(*, with_predict: bool, with_learn: bool) -> Document:
    """Return the OpenAPI description of a server."""
    paths: Document = {
        "/clusters": _get("Clusters, largest first.", "Clusters", _limit("top"),
                          _number("topic", "Only clusters of this topic.")),
        "/clusters/{id}": _get("One cluster.", "Cluster", {
            "name": "id", "in": "path", "required": True,
            "schema": {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}}),
        "/topics": _get("Topics, largest first.", "Topics"),
        "/lineage": _get("Births, merges, splits, deaths and retirements.", "Lineage",
                         _number("id", "Only events of this cluster."),
                         _number("after", "Only events after this row."), _limit("limit")),
        "/now": _get("Current state of the run.", "Now"),
        "/healthz": {"get": {"summary": "Whether the server runs.", "responses": {
            "200": _ok("State")}}},
        "/readyz": {"get": {"summary": "Whether a checkpoint is loaded.",
                            "responses": {"200": _ok("State"), "503": ERROR}}},
    }  # fmt: skip
    if with_predict:
        paths["/predict"] = _post("Clusters of records.", "Predictions")
        paths["/novelty"] = _post("Novelty of records.", "Predictions")
    if with_learn:
        learn = _post("Append records to the log to be learnt.", "Learnt", WITH_ID)
        learn["post"]["parameters"] = [{
            "name": "ack", "in": "query", "description": "Answer when records are in the log, or "
            "when a checkpoint contains them.",
            "schema": {"type": "string", "enum": ["logged", "checkpoint"], "default": "logged"},
        }]  # fmt: skip
        learn["post"]["responses"]["202"] = _ok("Learnt")
        paths["/learn"] = learn
    return {
        "openapi": "3.1.0",
        "info": {"title": "bnpstream", "version": __version__},
        "paths": paths,
        "components": {"schemas": _schemas()},
    }


def _schemas() -> Document:
    number, whole, text = {"type": "number"}, {"type": "integer"}, {"type": "string"}
    stamp = {"version": text, "rows": whole}
    return {
        "Error": _object({"error": text}),
        "State": _object({"state": text}),
        "Now": _object({"state": text, "rows": whole, "records": whole, "rejects": whole,
                        "clusters": whole, "rows_per_second": number}),
        "Clusters": _object({**stamp, "n_clusters": whole, "clusters": _list()}),
        "Cluster": _object({**stamp, "cluster": {"type": "object"}}),
        "Topics": _object({**stamp, "topics": _list()}),
        "Lineage": _object({**stamp, "n_events": whole, "events": _list()}),
        "Predictions": _object({**stamp, "answers": {"type": "array", "items": {
            "type": "object", "required": ["record"], "properties": {
                "record": whole, "cluster": whole, "topic": whole, "probability": number,
                "novelty": number, "error": text}}}}),
        "Learnt": _object({"logged": whole, "known": whole, "records": whole,
                           "checkpoint": {"type": "boolean"}}),
    }  # fmt: skip


def _object(properties: Document) -> Document:
    return {"type": "object", "required": list(properties), "properties": properties}


def _list() -> Document:
    return {"type": "array", "items": {"type": "object"}}


def _ok(name: str) -> Document:
    schema = {"$ref": f"#/components/schemas/{name}"}
    return {"description": "The answer.", "content": {"application/json": {"schema": schema}}}


def _number(name: str, about: str, **more: Any) -> Document:
    schema = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1, **more}
    return {"name": name, "in": "query", "description": about, "schema": schema}


def _limit(name: str) -> Document:
    return _number(name, "Most items to list.", minimum=1, maximum=MOST_LISTED, default=LISTED)


def _get(about: str, name: str, *parameters: Document) -> Document:
    """Return the description of a GET request."""
    responses = {"200": _ok(name), "400": ERROR, "404": ERROR, "503": ERROR}
    return {"get": {"summary": about, "parameters": list(parameters), "responses": responses}}


def _post(about: str, name: str, record: Document = RECORD) -> Document:
    """Return the description of a POST request with records."""
    records = {"type": "array", "items": record, "minItems": 1, "maxItems": MOST_ROWS}
    body = {"application/json": {"schema": _object({"records": records})}}
    codes = ("400", "408", "413", "415", "503")
    responses = {"200": _ok(name)} | dict.fromkeys(codes, ERROR)
    return {"post": {"summary": about, "requestBody": {"required": True, "content": body},
                     "responses": responses}}  # fmt: skip
