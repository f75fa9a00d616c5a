"""The operations of ``/v1``: what each answers, the table from which routes and scopes come, and the OpenAPI document.

Each calls what the command of its name calls, in the same words. ``POST /v1/receipts`` and ``/v1/envelopes`` store the
receipt's bytes as they are, with their verdict. ``PUT /v1/evidence/{sha256}`` keeps a file of evidence beside the store
and never has the whole of it in memory.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
from anyio import to_thread

from receipts import __version__
from receipts.base.errors import ConflictError, InputError, Problem, UsageError
from receipts.plugins.serve.asked import operations
from receipts.plugins.serve.guard import PROBLEM_MEDIA as PROBLEM
from receipts.plugins.serve.guard import TITLES, AccessDenied
from receipts.plugins.serve.operation import (
    CODE,
    FLAG,
    MEDIA,
    WORD,
    Body,
    Call,
    Decided,
    Operation,
    Param,
    Pinned,
    Reply,
    Responder,
)
from receipts.plugins.serve.server import METRICS_MEDIA
from receipts.publish.text import json_text
from receipts.publish.verdict import submission_json
from receipts.receipt import Document
from receipts.signing.key import MEDIA as ENVELOPE_MEDIA
from receipts.signing.key import Envelope, read_envelope
from receipts.store.evidence import VARIABLE, kept_files

if TYPE_CHECKING:
    from receipts.workflows.submit import Submission


async def evidence_kept(call: Call) -> Reply:
    """Keep a file under its SHA-256; the application hands it over in pieces.

    201 for a file that is kept now, 200 for one that was. Raises InputError for bytes of another digest.
    """
    assert call.pieces is not None
    place = kept_files(call.server.opened.database.address)
    if place is None:
        raise UsageError(f"this server keeps no evidence: set {VARIABLE} to a folder or a bucket, and start it again")
    digest, whole = call.name, hashlib.sha256()
    with tempfile.TemporaryDirectory(prefix="receipts-evidence-") as folder:
        path = Path(folder) / "file"
        with path.open("wb") as file:
            async for piece in call.pieces:
                whole.update(piece)
                await to_thread.run_sync(file.write, piece)
        if whole.hexdigest() != digest:
            problem = Problem("sha256", f"the bytes have {whole.hexdigest()}", "name the digest of the file")
            raise InputError("the file", [problem])
        known = await to_thread.run_sync(place.held, [digest])
        await to_thread.run_sync(place.put, path)
    return Reply(json_text({"sha256": digest, "new": not known}), status=200 if known else 201)


async def submitted(call: Call) -> Reply:
    """Store a receipt; the writer stores it with others that wait."""
    return await _stored(call, call.body)


async def enveloped(call: Call) -> Reply:
    """Store a receipt and its signatures, as `submitted` does."""
    envelope = await to_thread.run_sync(read_envelope, call.body, "the envelope")
    return await _stored(call, envelope.payload, envelope)


async def _stored(call: Call, raw: bytes, envelope: Envelope | None = None) -> Reply:
    refuse_other_lane(call, raw)
    future = call.server.writer.put(Document(raw, "the document"), call.token, envelope)
    return submit_reply(call, await asyncio.wrap_future(future))


def refuse_other_lane(call: Call, raw: bytes, *, part: bool = False) -> None:
    """Refuse a lane that the token may not submit to; what is no receipt is refused later. Raises AccessDenied."""
    lanes = call.token.lanes if call.token is not None else ()
    if not lanes:
        return
    try:
        tree = orjson.loads(raw)
        lane = (tree["receipt"] if part else tree)["run"]["lane"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        lane = None
    if lane not in lanes:
        assert call.token is not None
        raise AccessDenied(
            403, f"{call.token.name} submits to {', '.join(lanes)} alone; this receipt has lane {lane!r}"
        )


def submit_reply(call: Call, outcome: Submission) -> Reply:
    """201 for a new receipt, 200 for one that was stored before. Raises what it was refused with."""
    metrics = call.server.metrics
    if outcome.submitted is None:
        metrics.submit("conflict" if isinstance(outcome.error, ConflictError) else "refused")
        assert outcome.error is not None
        raise outcome.error
    stored = outcome.submitted
    metrics.submit(stored.status if stored.new else "known")
    headers = {"Location": f"/v1/receipts/{stored.id}"}
    return Reply(json_text(submission_json(stored)), status=201 if stored.new else 200, headers=headers)


async def part_kept(call: Call) -> Reply:
    """Keep one rank's part; with the last one, or if ``partial``, merge them and store the launch's receipt.

    202 while ranks are missing, 201 and 200 as for a receipt.
    """
    from receipts.workflows.recorded import forget_parts, keep_part, launch_named, parts_folder, waiting_words

    partial = bool(call.get("partial", False))
    if not partial or launch_named(call.body) is None:  # what is merged of a named launch is looked at below
        refuse_other_lane(call, call.body, part=True)
    root = parts_folder(call.server.opened.database.address)
    waiting = await to_thread.run_sync(lambda: keep_part(root, call.body, partial=partial))
    names = ("launch", "world", "here", "missing")  # of many missing ranks the first
    data = {name: getattr(waiting, name) for name in names}
    if waiting.receipt is None:
        return Reply(json_text({**data, "status": waiting_words(waiting)}), status=202)
    reply = await _stored(call, waiting.receipt)
    await to_thread.run_sync(forget_parts, waiting)
    return reply


REPORTED: Final = {
    "json": ("report.json", "application/json"),
    "markdown": ("report.md", "text/markdown"),
    "html": ("index.html", "text/html"),
}


def healthz(call: Call) -> Reply:
    """The store answers."""
    return Reply(json_text({"status": "ok", "store": call.server.opened.id}) + "\n")


def openapi(call: Call) -> Reply:
    """This document."""
    return Reply(json_text(document(OPERATIONS)) + "\n")


def metrics(call: Call) -> Reply:
    """Counts since the start; store, queue, spool and failed notices as they are now; the build."""
    return Reply(call.server.measured(), METRICS_MEDIA)


def raw(call: Call) -> Reply:
    """The bytes of a receipt as they came. The ETag is their SHA-256, which is the receipt's id."""
    name = call.store.opened.resolve(call.name)
    return Reply(call.store.opened.document(name), digest=name)


def claim_add(call: Call) -> Reply:
    """Add the claims of a claims.toml to the store, with a first verdict on each."""
    return Reply(json_text(call.store.add_claims(call.body)) + "\n", status=201)


def pins(call: Call) -> Reply:
    """Each pin that is set."""
    return Reply(json_text([item._asdict() for item in call.store.opened.pins().values()]) + "\n")


def pin_history(call: Call) -> Reply:
    """What a pin has pointed at, oldest first."""
    return Reply(json_text([item._asdict() for item in call.store.opened.pin_history(call.name)]) + "\n")


def pin(call: Call) -> Reply:
    """Point a name at a receipt: ``{"receipt": "3f9c", "note": "…"}``."""
    body, opened = Pinned.read(call.body), call.store.opened
    return Reply(json_text([opened.pin(call.name, opened.resolve(body.receipt), body.note)._asdict()]) + "\n")


def unpin(call: Call) -> Reply:
    """Take a pin away; its history stays."""
    return Reply(json_text([call.store.opened.pin(call.name, None)._asdict()]) + "\n")


def decide(call: Call) -> Reply:
    """Record a decision on a receipt: ``{"receipt": "3f9c", "decision": "ship", "reason": "…"}``."""
    body, opened = Decided.read(call.body), call.store.opened
    recorded = opened.published.decide(opened.resolve(body.receipt), body.decision, body.reason)
    return Reply(json_text([recorded._asdict()]) + "\n", status=201)


def weekly(call: Call) -> Reply:
    """The weekly report: its values, Markdown, or the page."""
    from receipts.publish.report.render import render
    from receipts.questions.week.collect import collect
    from receipts.questions.week.interval import asked, moment

    at = moment(call.get("as_of"))
    rulebook = call.server.rulebook
    data = collect(call.store.opened, rulebook, asked(call.get("week"), None, None, at), at, call.get("lane", []))
    return _report(call, render(data, rulebook.rules))


def claim_report(call: Call) -> Reply:
    """The page of one claim: its verdict, comparison and history, and where it is quoted."""
    from receipts.publish.report.render import claim_page, files
    from receipts.questions.week.documents import claim
    from receipts.questions.week.interval import moment

    rulebook = call.server.rulebook
    data = claim(call.store.opened, call.name, rulebook, moment(None))
    return _report(call, files(claim_page(data, rulebook.rules), data, "claim"))


def _report(call: Call, files: dict[str, bytes]) -> Reply:
    name, media = REPORTED[call.get("format", "json")]
    return Reply(files[name], media)


def tokens(call: Call) -> Reply:
    """Tokens that are not revoked, without their secrets."""
    return Reply(json_text([item._asdict() for item in call.server.tokens.all()]) + "\n")


RECEIPT: Final = {"type": "object", "description": "A receipt: schema/receipt-1.schema.json"}
ENVELOPE: Final = {"type": "object", "required": ["payload", "payloadType", "signatures"], "description": "DSSE v1"}
_LANE = Param("lane", WORD, "Only this lane", many=True)
_FORM = Param("format", {"type": "string", "enum": ["json", "markdown", "html"]}, "The form of the report")


def _read(path: str, answer: Responder, *query: Param, costly: bool = False) -> Operation:
    return Operation("GET", path, "read", answer, query, costly=costly)


OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation("GET", "/healthz", None, healthz),
    Operation("GET", "/openapi.json", None, openapi),
    Operation("GET", "/metrics", "read", metrics, answers={200: METRICS_MEDIA}),
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
        part_kept,
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
    _read("/v1/receipts/{id}/raw", raw),
    Operation(
        "POST",
        "/v1/claims",
        "decide",
        claim_add,
        body=Body("application/toml", None, "A claims.toml"),
        answers={201: "application/json"},
    ),
    _read("/v1/pins", pins),
    _read("/v1/pins/{name}", pin_history),
    Operation(
        "PUT",
        "/v1/pins/{name}",
        "decide",
        pin,
        body=Body("application/json", Pinned.model_json_schema(), "The receipt, and why it is pinned"),
    ),
    Operation("DELETE", "/v1/pins/{name}", "decide", unpin),
    Operation(
        "POST",
        "/v1/decisions",
        "decide",
        decide,
        body=Body("application/json", Decided.model_json_schema(), "The receipt, ship, hold or drop, and the reason"),
        answers={201: "application/json"},
    ),
    _read(
        "/v1/reports/weekly",
        weekly,
        Param("week", WORD, "ISO week, such as 2026-W47; that of as_of by default"),
        Param("as_of", WORD, "Only what had run by then; now by default"),
        _LANE,
        _FORM,
        costly=True,
    ),
    _read("/v1/reports/claims/{id}", claim_report, _FORM, costly=True),
    Operation("GET", "/v1/tokens", "admin", tokens),
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
    params = [
        {"name": name, "in": "path", "required": True, "schema": _IN_PATH[name]}
        for name in re.findall(r"{(\w+)}", item.path)
    ]
    for one in item.query:
        schema = {"type": "array", "items": one.schema, "minItems": 1} if one.many else one.schema
        at = {"name": one.name, "in": "query", "required": one.required}
        params.append({**at, "description": one.summary, "schema": schema})
    failures = [400, 404, 421, 429, 503]
    failures += [401, 403] if item.scope else []
    failures += [409, 413, 415, 422] if item.body else []
    failures += [504] if item.costly else []
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    described: dict[str, Any] = {
        "summary": item.summary,
        "operationId": f"{item.method.lower()}_{re.sub(r'[^a-z0-9]+', '_', item.path.lower()).strip('_')}",
        "parameters": params,
        "responses": {
            **{str(status): _answer(item, media) for status, media in item.answers.items()},
            **{str(status): {"description": TITLES[status], "content": content} for status in sorted(failures)},
        },
    }
    if item.scope is not None:
        described["security"] = [{"token": []}]
        described["x-scope"] = item.scope
    if item.body is not None:
        taken = {item.body.media: {"schema": item.body.schema or {"type": "string"}}}
        described["requestBody"] = {"required": True, "description": item.body.summary, "content": taken}
    return described


_IN_PATH = {
    "id": {**WORD, "pattern": r"^[^\x00-\x1f\x7f-\x9f/?#%]+$"},
    "receipt": {**WORD, "pattern": r"^[^\x00-\x1f\x7f-\x9f/?#%]+$"},
    "claim_id": {**WORD, "pattern": r"^[^\x00-\x1f\x7f-\x9f/?#%]+$"},
    "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    "name": {"type": "string", "pattern": r"^[A-Za-z][A-Za-z0-9._-]{0,99}$"},
}


def _answer(item: Operation, media: str) -> dict[str, Any]:
    forms = next((one.schema["enum"] for one in item.query if one.name == "format"), None)
    kinds = [MEDIA[form] for form in forms if form in MEDIA] if forms else [media]
    kinds += item.files
    answer: dict[str, Any] = {"description": item.summary, "content": {kind: {} for kind in kinds}}
    if any(one.name == "width" for one in item.query):
        answer["headers"] = {CODE: {"description": "What the command ends with", "schema": {"type": "string"}}}
    return answer
