"""The operations of ``/v1``: the one table from which routes, scopes and OpenAPI come, and the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from receipts import __version__
from receipts import metrics as registry
from receipts.plugins.serve import answers
from receipts.plugins.serve.answers import enveloped, evidence_kept, submitted
from receipts.plugins.serve.guard import PROBLEM_MEDIA as PROBLEM
from receipts.plugins.serve.guard import TITLES
from receipts.plugins.serve.operation import (
    CODE,
    FLAG,
    FORMS,
    MEDIA,
    ORDERS,
    WORD,
    Body,
    Decided,
    Operation,
    Param,
    Pinned,
    Responder,
    Sides,
)
from receipts.plugins.serve.server import METRICS_MEDIA
from receipts.signing.envelope import MEDIA as ENVELOPE_MEDIA

RECEIPT: Final = {"type": "object", "description": "A receipt: schema/receipt-1.schema.json"}
ENVELOPE: Final = {"type": "object", "required": ["payload", "payloadType", "signatures"], "description": "DSSE v1"}
METRIC: Final = Param("metric", {"type": "string", "enum": list(registry.METRICS)}, "The metric to compare")
_WHERE = Param("where", WORD, "A condition, such as batch.micro_batch=4 or chips>=8", many=True)
_LANE = Param("lane", WORD, "Only this lane", many=True)
_FORM = Param("format", {"type": "string", "enum": ["json", "markdown", "html"]}, "The form of the report")
_SIDES = (
    METRIC,
    Param("waive", WORD, "AXIS=REASON: an axis that does not count", many=True),
    Param("study", WORD, "A study whose axes change together on purpose"),
    Param("join", {"type": "string", "enum": ["session", "only", "all"]}, "Which stored launches join those named"),
    Param("line", FLAG, "With format=text: one line"),
    *FORMS,
)


def _read(path: str, answer: Responder, *query: Param, costly: bool = False) -> Operation:
    return Operation("GET", path, "read", answer, query, costly=costly)


OPERATIONS: Final = (
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
    _read(
        "/v1/receipts",
        answers.listed,
        _WHERE,
        Param("order", {"type": "string", "enum": list(ORDERS)}, "newest by default"),
        Param("limit", {"type": "integer", "minimum": 1, "maximum": 1000}, "Rows of a page; 50 by default"),
        Param("superseded", FLAG, "true: superseded and retracted ones, too"),
        Param("cursor", WORD, "The cursor of the page before, from its Link header"),
        *FORMS,
    ),
    _read("/v1/receipts/{id}", answers.receipt, Param("facts", FLAG, "With every stated leaf in the text"), *FORMS),
    Operation(
        "PUT",
        "/v1/evidence/{sha256}",
        "submit",
        evidence_kept,
        body=Body("application/octet-stream", None, "The file; its SHA-256 is in the path", streamed=True),
        answers={201: "application/json", 200: "application/json"},
    ),
    _read("/v1/receipts/{id}/verify", answers.verify, costly=True),
    _read("/v1/receipts/{id}/raw", answers.raw),
    _read(
        "/v1/compare",
        answers.compare,
        Param("a", WORD, "A receipt of side A: id, prefix, label, label=GLOB or @pin", required=True, many=True),
        Param("b", WORD, "A receipt of side B", required=True, many=True),
        Param("witness", WORD, "A launch that shows the path of one of them", many=True),
        *_SIDES,
        costly=True,
    ),
    Operation(
        "POST",
        "/v1/compare",
        "read",
        answers.compare_documents,
        _SIDES,
        Body("application/json", Sides.model_json_schema(), "Each side: words that name receipts, and documents"),
        costly=True,
    ),
    _read(
        "/v1/neighbours",
        answers.neighbours,
        Param("of", WORD, "The receipt", required=True),
        METRIC,
        Param("axis", WORD, "Only this axis"),
        Param("limit", {"type": "integer", "minimum": 1, "maximum": 100}, "Configurations of an axis"),
        *FORMS,
        costly=True,
    ),
    _read(
        "/v1/bridge",
        answers.bridge,
        Param("a", WORD, "The receipt to start from", required=True),
        Param("b", WORD, "The receipt to get to", required=True),
        METRIC,
        Param("most", {"type": "integer", "minimum": 1, "maximum": 500}, "Hops that are judged"),
        *FORMS,
        costly=True,
    ),
    _read("/v1/preflight", answers.preflight, Param("plan", WORD, "A stored receipt", required=True), *FORMS),
    Operation(
        "POST",
        "/v1/preflight",
        "read",
        answers.preflight,
        FORMS,
        Body("application/json", {"type": "object"}, "The plan: a receipt, as far as it is known before a launch"),
    ),
    _read("/v1/frontier", answers.frontier, _LANE, *FORMS, costly=True),
    _read(
        "/v1/claims",
        answers.claims,
        Param("status", {"type": "string", "enum": ["supported", "refuted", "unproven", "stale"]}, "Only these"),
        Param("superseded", FLAG, "true: superseded and withdrawn ones, too"),
        *FORMS,
        costly=True,
    ),
    Operation(
        "POST",
        "/v1/claims",
        "decide",
        answers.claim_add,
        body=Body("application/toml", None, "A claims.toml"),
        answers={201: "application/json"},
    ),
    Operation(
        "POST",
        "/v1/claims/check",
        "read",
        answers.claim_check,
        body=Body("application/toml", None, "A claims.toml"),
        costly=True,
    ),
    _read("/v1/claims/{id}", answers.claim, costly=True),
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
    kinds = [MEDIA.get(form, "text/html") for form in forms] if forms else [media]
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
