"""How the recorder reports: a fault becomes a note and never an exception in the job; lines on standard error.

Standard error has faults on the first day, and at the end what was written and is missing. Where RECEIPTS_STORE is the
URL of a team's server, the receipt and its evidence are delivered to it then, in bounded time and at no job's cost: one
rank of many sends its part, so that ranks need no file system in common, and the server merges them with the last one.
The files stay where they were written, whatever the server answers.
"""

from __future__ import annotations

import os
import sys
from functools import wraps

from receipts.emit import files, identity
from receipts.emit.contract import unstated_summary

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec

    from receipts.emit.contract import UnstatedFact
    from receipts.emit.run_record import RunRecord

    Given = ParamSpec("Given")


def fault(note: Callable[[str], None], where: str, error: BaseException) -> None:
    """Note an error. It may be unable to say its own text, and the note may fail as what it is about did."""
    kind = type(error).__name__
    try:
        note(f"{where}: {kind}: {error}")
    except Exception:
        try:
            note(f"{where}: {kind}")
        except Exception:
            return


def guarded(method: Callable[Given, None]) -> Callable[Given, None]:
    """A method whose faults become notes: training goes on. Its object takes them by `_fault(where, error)`."""

    @wraps(method)
    def call(*given: Given.args, **named: Given.kwargs) -> None:
        try:
            method(*given, **named)
        except Exception as error:
            owner: Any = given[0]
            owner._fault(method.__name__, error)

    return call


MAX_WARNINGS = 20


class Console:
    """Lines on standard error, of the process that made it alone; a stream that is gone silences it."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._warned = 0
        self._process = os.getpid()

    def warn(self, text: str) -> None:
        """A word on a fault, so that a misspelt leaf is seen on the first day; a flood is cut."""
        self._warned += 1
        if self._warned <= MAX_WARNINGS:
            self.say(text)

    def say(self, text: str) -> None:
        """A line on standard error."""
        if self._quiet or os.getpid() != self._process:
            return
        try:
            sys.stderr.write(f"receipts: {text}\n")
        except (OSError, ValueError, AttributeError):
            self._quiet = True

    def without_steps(self) -> None:
        """That there is no receipt, and why; a worker of the job is silent."""
        if not identity.helper():
            self.say(
                "no step ended, so there is no receipt: put `with rec.step(tokens=…):` around each step; "
                "a run without steps is of another kind than training"
            )

    def written(self, record: RunRecord, path: str, open_facts: tuple[UnstatedFact, ...]) -> None:
        """What was written, what to do next, and what the lane asks for that nobody stated."""
        if os.environ.get("RECEIPTS_SIGHT_REPORT"):
            return  # `receipts record` says what became of it
        steps = f"{record.steps} steps, {record.outcome}"
        if record.place.world > 1:
            if record.place.rank == 0:
                pattern = path.replace("rank00000", "rank*")
                self.say(f"{record.place.world} ranks write their parts ({path}, {steps}); next:")
                self.say(f"  receipts merge {pattern} -o {files.RECEIPT}")
            return
        self.say(f"wrote {path} ({steps}); next: receipts check {path}")
        if open_facts and record.outcome == "ok":
            self.say(f"lane {record.head['lane']} asks for {len(open_facts)} facts that nobody stated:")
            for line in unstated_summary(open_facts):
                self.say(f"  {line}")


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
