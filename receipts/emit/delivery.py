"""Delivering the receipt and its evidence to a team's server when the run has ended: in bounded time, at no job's cost.

One rank of many sends its part, so that ranks need no file system in common: the server merges them with the last one.

Where RECEIPTS_STORE is the URL of a server. The files stay where they were written, whatever the server answers.
"""

from __future__ import annotations

import os
from typing import Any

PATIENCE = 15.0  # seconds for all of it
_LOCAL = ("127.0.0.1", "::1", "localhost")


def server_url(requested: bool | None) -> str:
    """The server's URL; empty where none is named, or nobody asked for a delivery (RECEIPTS_DELIVER=1 asks)."""
    url = os.environ.get("RECEIPTS_STORE", "")
    asks = os.environ.get("RECEIPTS_DELIVER", "") not in ("", "0") if requested is None else requested
    return url.rstrip("/") if asks and url.lower().startswith(("https://", "http://")) else ""


def deliver(url: str, file: str) -> str:
    """Send a receipt, or a rank's part, and the files that it lists; says what became of them.

    Gives up after `PATIENCE`, never raises.
    """
    from threading import Thread

    answer = [f"{url} did not answer within {PATIENCE:g} s"]

    def send() -> None:
        try:
            _send(url, file, answer)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            answer[0] = f"{answer[0]} ({why})" if answer[0].startswith("delivered") else f"{url}: {why}"

    try:
        thread = Thread(target=send, daemon=True)
        thread.start()
        thread.join(PATIENCE)
    except RuntimeError as error:  # the interpreter is ending
        return f"not delivered: {error}; send it with: {_command(file)}"
    if answer[0].startswith("delivered"):
        return answer[0]
    return f"not delivered: {answer[0]}; send it with: {_command(file)}"


def _command(file: str) -> str:
    return f"receipts merge --send {file}" if file.endswith(".part.json") else f"receipts submit {file}"


def _send(url: str, file: str, answer: list[str]) -> None:
    """Post the receipt, then the files of its evidence; ``answer`` says how far it came."""
    import http.client
    import json
    from urllib.parse import urlsplit

    parts, token = urlsplit(url), os.environ.get("RECEIPTS_TOKEN")
    if parts.scheme.lower() == "http" and token and parts.hostname not in _LOCAL:
        answer[0] = f"{url}: the token would travel in the clear; name https://{parts.netloc}"
        return
    kind = http.client.HTTPSConnection if parts.scheme.lower() == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=PATIENCE / 2)

    def ask(method: str, path: str, body: Any, media: str) -> tuple[bool, Any]:
        headers = {"Content-Type": media, **({"Authorization": f"Bearer {token}"} if token else {})}
        if not isinstance(body, bytes):
            headers["Content-Length"] = str(os.fstat(body.fileno()).st_size)
        connection.request(method, f"{parts.path.rstrip('/')}{path}", body, headers)
        response = connection.getresponse()
        return response.status in (200, 201, 202), json.loads(response.read(1_000_000))

    try:
        with open(file, "rb") as stream:
            body = stream.read()
        tree = json.loads(body)
        part = "receipts_part" in tree
        taken, reply = ask("POST", "/v1/parts" if part else "/v1/receipts", body, "application/json")
        delivered = f"delivered to {url} as {reply.get('id', 'a part')[:12]}, {reply['status']}" if taken else ""
        answer[0] = delivered or f"{url}: {reply['detail']}"
        listed = (tree["receipt"] if part else tree).get("evidence", []) if taken else []
        for digest, path in [(row.get("sha256"), row.get("uri", "")) for row in listed]:
            if digest and os.path.isfile(path):
                with open(path, "rb") as stream:
                    kept, reply = ask("PUT", f"/v1/evidence/{digest}", stream, "application/octet-stream")
                answer[0] += f"; {path} is kept" if kept else f"; {path} is not kept: {reply['detail']}"
    finally:
        connection.close()
