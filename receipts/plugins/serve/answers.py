"""What the operations of ``/v1`` answer: each calls what the command of its name calls, in the same words.

``POST /v1/receipts`` and ``/v1/envelopes`` store the receipt's bytes as they are, with their verdict.
``PUT /v1/evidence/{sha256}`` keeps a file of evidence beside the store and never has the whole of it in memory.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
from anyio import to_thread

from receipts import metrics as registry
from receipts.base.errors import ConflictError, InputError, Problem, UsageError
from receipts.plugins.serve.operation import CODE, MEDIA, ORDERS, Call, Decided, Named, Pinned, Reply, Sides, reply
from receipts.plugins.serve.operation import listed_page as page_of
from receipts.plugins.serve.server import METRICS_MEDIA, AccessDenied
from receipts.publish.json_text import json_text
from receipts.publish.verdict import submission_json
from receipts.receipt import Document
from receipts.signing.envelope import Envelope, read_envelope
from receipts.store.evidence import VARIABLE, kept_files

if TYPE_CHECKING:
    from receipts.receipt import Parsed
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


def refuse_other_lane(call: Call, raw: bytes) -> None:
    """Refuse a lane that the token may not submit to; what is no receipt is refused later. Raises AccessDenied."""
    lanes = call.token.lanes if call.token is not None else ()
    if not lanes:
        return
    try:
        lane = orjson.loads(raw)["run"]["lane"]
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
    from receipts.plugins.serve.operations import OPERATIONS, document

    return Reply(json_text(document(OPERATIONS)) + "\n")


def metrics(call: Call) -> Reply:
    """Counts of requests and submits since the start."""
    return Reply(call.server.metrics.text(call.server.gate.running), METRICS_MEDIA)


def listed(call: Call) -> Reply:
    """A page of stored receipts, newest first; the header Link has the next one."""
    from receipts.api.answer import Receipts

    limit = call.get("limit", 50)
    rows, following = page_of(
        call.store.opened,
        call.get("where", []),
        order=call.get("order", ORDERS[0]),
        limit=limit,
        superseded=call.get("superseded", False),
        cursor=call.get("cursor"),
    )
    answered = reply(call, Receipts(call.store, rows))
    if following is None:
        return answered
    url = call.request.url.include_query_params(cursor=following)
    link = f'<{url.path}?{url.query}>; rel="next"'
    return Reply(answered.body, answered.media, headers={**answered.headers, "Link": link})


def receipt(call: Call) -> Reply:
    """One receipt: answers, verdict, stated leaves, memory by chip, decisions."""
    one = call.store.get(call.name)
    return reply(call, one, stated=call.get("facts", False))


def raw(call: Call) -> Reply:
    """The bytes of a receipt as they came. The ETag is their SHA-256, which is the receipt's id."""
    name = call.store.opened.resolve(call.name)
    return Reply(call.store.opened.document(name), digest=name)


def verify(call: Call) -> Reply:
    """Read the kept evidence of a receipt again: bytes, files by their digests, leaves by today's readers."""
    from receipts.workflows.evidence import exit_code, verify_stored

    opened = call.store.opened
    done = verify_stored(opened.resolve_all(call.name), opened, call.server.rulebook, {})
    return Reply(json_text([item.as_data() for item in done]) + "\n", headers={CODE: str(exit_code(done))})


def compare(call: Call) -> Reply:
    """Compare B against A, each with the launches of its session."""
    return _compared(call, call.values["a"], call.values["b"], call.get("witness", []))


def compare_documents(call: Call) -> Reply:
    """Compare words and documents: ``{"a": ["3f9c", {"document": "…"}], "b": […]}``."""
    body = Sides.read(call.body)
    return _compared(call, _named(body.a, "a"), _named(body.b, "b"), _named(body.witness, "witness"))


def _compared(call: Call, a: list[Any], b: list[Any], witnesses: list[Any]) -> Reply:
    waivers: dict[str, str] = {}
    for word in call.get("waive", []):
        axis, _, why = word.partition("=")
        if not why.strip():
            raise UsageError(f"waive={word}: write AXIS=the reason why it cannot matter")
        waivers[axis.strip()] = why.strip()
    answer = call.store.compare(
        a,
        b,
        metric=call.get("metric", registry.DEFAULT),
        waivers=waivers,
        study=call.get("study"),
        witnesses=witnesses,
        join=call.get("join", "session"),
    )
    if call.get("format") == "text" and call.get("line", False):
        verdict = answer.verdict
        text = f"{verdict.label_a} → {verdict.label_b}: {verdict.last_line()}\n"
        return Reply(text, MEDIA["text"], headers=reply(call, answer).headers)
    return reply(call, answer)


def neighbours(call: Call) -> Reply:
    """Stored configurations one axis away from a receipt, each compared."""
    metric, limit = call.get("metric", registry.DEFAULT), call.get("limit", 10)
    return reply(call, call.store.neighbours(call.values["of"], metric=metric, axis=call.get("axis"), limit=limit))


def bridge(call: Call) -> Reply:
    """The chain of accepted one-axis comparisons from A to B, or what is missing for one."""
    most = min(call.get("most", 200), call.server.settings.limits.hops)
    metric = call.get("metric", registry.DEFAULT)
    return reply(call, call.store.bridge(call.values["a"], call.values["b"], metric=metric, most=most))


def preflight(call: Call) -> Reply:
    """Whether a plan is known to work or to fail, and what to try next."""
    return reply(call, call.store.preflight(call.body if call.request.method == "POST" else call.values["plan"]))


def frontier(call: Call) -> Reply:
    """The best proven result of every shape, beside the best that is merely reported."""
    return reply(call, call.store.frontier(*call.get("lane", [])))


def claims(call: Call) -> Reply:
    """The store's claims with their present verdicts."""
    return reply(call, call.store.claims(status=call.get("status"), superseded=call.get("superseded", False)))


def claim_check(call: Call) -> Reply:
    """Judge the claims of a claims.toml against the store's receipts, and store nothing."""
    return Reply(json_text(call.store.judge_claims(call.body)) + "\n")


def claim_add(call: Call) -> Reply:
    """Add the claims of a claims.toml to the store, with a first verdict on each."""
    return Reply(json_text(call.store.add_claims(call.body)) + "\n", status=201)


def claim(call: Call) -> Reply:
    """One claim: its verdicts now and before, and the decisions on its receipts."""
    from receipts.questions.claims.stored import history

    past = history(call.store.opened, call.name, call.server.rulebook)
    return Reply(json_text(past.document()) + "\n", headers={CODE: str(past.verdict.exit_code)})


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
    from receipts.publish.report.documents import claim_page
    from receipts.publish.report.render import files
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


def _named(items: Sequence[Named], side: str) -> list[Parsed | str]:
    """Words as they are, documents as receipts. Raises InputError."""
    from receipts.receipt import Document, parse

    return [
        item if isinstance(item, str) else parse(Document(item["document"].encode(), f"{side}[{number}]"))
        for number, item in enumerate(items)
    ]
