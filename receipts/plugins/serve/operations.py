"""The operations of ``/v1``: the one table from which routes, scopes and OpenAPI come, and the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from receipts import __version__
from receipts.plugins.serve import answers
from receipts.plugins.serve.answers import enveloped, evidence_kept, submitted
from receipts.plugins.serve.asked import operations
from receipts.plugins.serve.guard import PROBLEM_MEDIA as PROBLEM
from receipts.plugins.serve.guard import TITLES
from receipts.plugins.serve.operation import (
    CODE,
    FLAG,
    MEDIA,
    WORD,
    Body,
    Decided,
    Operation,
    Param,
    Pinned,
    Responder,
)
from receipts.plugins.serve.server import METRICS_MEDIA
from receipts.signing.key import MEDIA as ENVELOPE_MEDIA

RECEIPT: Final = {"type": "object", "description": "A receipt: schema/receipt-1.schema.json"}
ENVELOPE: Final = {"type": "object", "required": ["payload", "payloadType", "signatures"], "description": "DSSE v1"}
_LANE = Param("lane", WORD, "Only this lane", many=True)
_FORM = Param("format", {"type": "string", "enum": ["json", "markdown", "html"]}, "The form of the report")


def _read(path: str, answer: Responder, *query: Param, costly: bool = False) -> Operation:
    return Operation("GET", path, "read", answer, query, costly=costly)


OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation("GET", "/healthz", None, answers.healthz),
    Operation("GET", "/openapi.json", None, answers.openapi),
    Operation("GET", "/metrics", "read", answers.metrics, answers={200: METRICS_MEDIA}),
    Operation(
        "POST",
        "/v1/receipts",
        "submit",
        submitted,
        body=Body("application/json", RECEIPT, "The receipt's bytes; their SHA-256 is its id"),
        answers={201: "application/json", 200: "application/json"},
    ),
    Operation(
        "POST",
        "/v1/envelopes",
        "submit",
        enveloped,
        body=Body(
            ENVELOPE_MEDIA, ENVELOPE, "A DSSE envelope with the receipt's bytes; each of its signatures must count"
        ),
        answers={201: "application/json", 200: "application/json"},
    ),
    Operation(
        "POST",
        "/v1/parts",
        "submit",
        answers.part_kept,
        (Param("partial", FLAG, "Merge what is here, though ranks are missing"),),
        body=Body("application/json", {"type": "object"}, "One rank's part, as the recorder wrote it"),
        answers={202: "application/json", 201: "application/json", 200: "application/json"},
    ),
    Operation(
        "PUT",
        "/v1/evidence/{sha256}",
        "submit",
        evidence_kept,
        body=Body("application/octet-stream", None, "The file; its SHA-256 is in the path", streamed=True),
        answers={201: "application/json", 200: "application/json"},
    ),
    _read("/v1/receipts/{id}/raw", answers.raw),
    Operation(
        "POST",
        "/v1/claims",
        "decide",
        answers.claim_add,
        body=Body("application/toml", None, "A claims.toml"),
        answers={201: "application/json"},
    ),
    _read("/v1/pins", answers.pins),
    _read("/v1/pins/{name}", answers.pin_history),
    Operation(
        "PUT",
        "/v1/pins/{name}",
        "decide",
        answers.pin,
        body=Body("application/json", Pinned.model_json_schema(), "The receipt, and why it is pinned"),
    ),
    Operation("DELETE", "/v1/pins/{name}", "decide", answers.unpin),
    Operation(
        "POST",
        "/v1/decisions",
        "decide",
        answers.decide,
        body=Body("application/json", Decided.model_json_schema(), "The receipt, ship, hold or drop, and the reason"),
        answers={201: "application/json"},
    ),
    _read(
        "/v1/reports/weekly",
        answers.weekly,
        Param("week", WORD, "ISO week, such as 2026-W47; that of as_of by default"),
        Param("as_of", WORD, "Only what had run by then; now by default"),
        _LANE,
        _FORM,
        costly=True,
    ),
    _read("/v1/reports/claims/{id}", answers.claim_report, _FORM, costly=True),
    Operation("GET", "/v1/tokens", "admin", answers.tokens),
    *operations(),
)


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """The document, OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for item in operations:
        paths.setdefault(item.path, {})[item.method.lower()] = _operation(item)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "receipts",
            "version": __version__,
            "description": "Verdicts on training-performance numbers",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _PROBLEM},
        },
    }


_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {"type": "array", "items": {"type": "object", "required": ["at", "what", "do"]}},
    },
}


def _operation(item: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "summary": item.summary,
        "operationId": f"{item.method.lower()}_{re.sub(r'[^a-z0-9]+', '_', item.path.lower()).strip('_')}",
        "parameters": [*_of_path(item.path), *map(_parameter, item.query)],
        "responses": {
            **{str(status): _answer(item, media) for status, media in item.answers.items()},
            **_failures(item),
        },
    }
    if item.scope is not None:
        described["security"] = [{"token": []}]
        described["x-scope"] = item.scope
    if item.body is not None:
        content = {item.body.media: {"schema": item.body.schema or {"type": "string"}}}
        described["requestBody"] = {"required": True, "description": item.body.summary, "content": content}
    return described


_IN_PATH = {
    "id": {**WORD, "pattern": r"^[^\x00-\x1f\x7f-\x9f/?#%]+$"},
    "receipt": {**WORD, "pattern": r"^[^\x00-\x1f\x7f-\x9f/?#%]+$"},
    "claim_id": {**WORD, "pattern": r"^[^\x00-\x1f\x7f-\x9f/?#%]+$"},
    "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    "name": {"type": "string", "pattern": r"^[A-Za-z][A-Za-z0-9._-]{0,99}$"},
}


def _of_path(path: str) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)}", path)
    return [{"name": name, "in": "path", "required": True, "schema": _IN_PATH[name]} for name in names]


def _parameter(item: Param) -> dict[str, Any]:
    schema = {"type": "array", "items": item.schema, "minItems": 1} if item.many else item.schema
    return {"name": item.name, "in": "query", "required": item.required, "description": item.summary, "schema": schema}


def _answer(item: Operation, media: str) -> dict[str, Any]:
    forms = next((one.schema["enum"] for one in item.query if one.name == "format"), None)
    kinds = [MEDIA[form] for form in forms if form in MEDIA] if forms else [media]
    kinds += item.files
    answer: dict[str, Any] = {"description": item.summary, "content": {kind: {} for kind in kinds}}
    if any(one.name == "width" for one in item.query):
        answer["headers"] = {CODE: {"description": "What the command ends with", "schema": {"type": "string"}}}
    return answer


def _failures(item: Operation) -> dict[str, Any]:
    statuses = [400, 404, 421, 429, 503]
    statuses += [401, 403] if item.scope else []
    statuses += [409, 413, 415, 422] if item.body else []
    statuses += [504] if item.costly else []
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {str(status): {"description": TITLES[status], "content": content} for status in sorted(statuses)}
