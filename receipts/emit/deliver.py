"""Delivering the receipt to a team's server when the run has ended: in bounded time, and never at the job's cost.

Where RECEIPTS_STORE is the URL of a server. The file stays where it was written, whatever the server answers.
"""

from __future__ import annotations

import os

PATIENCE = 15.0  # seconds for all of it
_LOCAL = ("127.0.0.1", "::1", "localhost")


def wanted(asked: bool | None) -> str:
    """The server's URL; empty where none is named, or nobody asked for a delivery (RECEIPTS_DELIVER=1 asks)."""
    url = os.environ.get("RECEIPTS_STORE", "")
    asks = os.environ.get("RECEIPTS_DELIVER", "") not in ("", "0") if asked is None else asked
    return url.rstrip("/") if asks and url.lower().startswith(("https://", "http://")) else ""


def deliver(url: str, file: str) -> str:
    """Send a file's bytes to a server; says what became of it. Gives up after `PATIENCE`, and never raises."""
    from threading import Thread

    answer = [f"{url} did not answer within {PATIENCE:g} s"]

    def send() -> None:
        try:
            answer[0] = _sent(url, file)
        except Exception as error:
            answer[0] = f"{url}: {type(error).__name__}: {error}"

    try:
        thread = Thread(target=send, daemon=True)
        thread.start()
        thread.join(PATIENCE)
    except RuntimeError as error:  # the interpreter is ending
        return f"not delivered: {error}; send it with: receipts submit {file}"
    if answer[0].startswith("delivered"):
        return answer[0]
    return f"not delivered: {answer[0]}; send it with: receipts submit {file}"


def _sent(url: str, file: str) -> str:
    import http.client
    import json
    from urllib.parse import urlsplit

    parts, token = urlsplit(url), os.environ.get("RECEIPTS_TOKEN")
    if parts.scheme.lower() == "http" and token and parts.hostname not in _LOCAL:
        return f"{url}: the token would travel in the clear; name https://{parts.netloc}"
    with open(file, "rb") as stream:
        body = stream.read()
    kind = http.client.HTTPSConnection if parts.scheme.lower() == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=PATIENCE / 2)
    try:
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        connection.request("POST", f"{parts.path.rstrip('/')}/v1/receipts", body, headers)
        response = connection.getresponse()
        answer = json.loads(response.read(1_000_000))
    finally:
        connection.close()
    if response.status in (200, 201):
        return f"delivered to {url} as {answer['id'][:12]}, {answer['status']}"
    return f"{url}: {answer['detail']}"
