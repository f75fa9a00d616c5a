"""``POST /v1/receipts`` and ``/v1/envelopes``: the receipt's bytes as they are, stored with their verdict."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import orjson
from anyio import to_thread

from receipts.base.errors import ConflictError
from receipts.publish.json_text import json_text
from receipts.publish.submissions import as_data
from receipts.receipt import Document
from receipts.serve.operation import Call, Reply
from receipts.serve.server import AccessDenied
from receipts.signing.envelope import Envelope, read_envelope

if TYPE_CHECKING:
    from receipts.workflows.submit import Submission


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
    return reply(call, await asyncio.wrap_future(future))


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


def reply(call: Call, outcome: Submission) -> Reply:
    """201 for a new receipt, 200 for one that was stored before. Raises what it was refused with."""
    metrics = call.server.metrics
    if outcome.submitted is None:
        metrics.submit("conflict" if isinstance(outcome.error, ConflictError) else "refused")
        assert outcome.error is not None
        raise outcome.error
    stored = outcome.submitted
    metrics.submit(stored.status if stored.new else "known")
    headers = {"Location": f"/v1/receipts/{stored.id}"}
    return Reply(json_text(as_data(stored)), status=201 if stored.new else 200, headers=headers)
