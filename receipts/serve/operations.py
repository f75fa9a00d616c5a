"""The operations of ``/v1``: the one table from which routes, scopes and OpenAPI come."""

from __future__ import annotations

from typing import Final

from receipts import metrics as registry
from receipts.serve import answers
from receipts.serve.bodies import Decided, Pinned, Sides
from receipts.serve.cursor import ORDERS
from receipts.serve.evidence import kept
from receipts.serve.forms import FORMS
from receipts.serve.metrics import MEDIA as METRICS_MEDIA
from receipts.serve.operation import FLAG, WORD, Answer, Body, Operation, Param
from receipts.serve.submit import enveloped, submitted
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


def _read(path: str, answer: Answer, *query: Param, costly: bool = False) -> Operation:
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
        kept,
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
