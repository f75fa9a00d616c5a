"""``PUT /v1/evidence/{sha256}``: a file of evidence, kept beside the store without ever being whole in memory."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from anyio import to_thread

from receipts.base.errors import InputError, Problem, UsageError
from receipts.publish.json_text import json_text
from receipts.serve.operation import Call, Reply
from receipts.store.evidence import VARIABLE, kept_files


async def kept(call: Call) -> Reply:
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
