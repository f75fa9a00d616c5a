"""A server on a port of this machine: every route by every scope, fuzzed calls, bodies that break programs, and kills.

What it must hold: no scope does what it does not name, no answer is a 5xx but for what was killed, none takes long, the
process stays small, and what was acknowledged is stored once and whole.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx

from benchmarks.attack.hostile import WORDS
from benchmarks.attack.mutations import MUTATE
from benchmarks.serve import Running, running
from benchmarks.submitting.documents import summary
from receipts.judging.rulebook import Rulebook
from receipts.plugins.serve.operations import OPERATIONS, document
from receipts.receipt import Document
from receipts.store import open_store
from receipts.store.credentials import INCLUDES, Tokens
from receipts.workflows.audit import audit
from receipts.workflows.submit import submit

SCOPES: Final = ("submit", "submit:cpu-torch", "read", "decide", "admin")
JSON: Final = {"Content-Type": "application/json"}
SLOW: Final = 20.0  # seconds for one answer
GREW: Final = 300.0  # MiB of the process above its rest
KILLS_EVERY: Final = 30  # fuzzed calls


class Attacked(NamedTuple):
    """How many requests ended with which status, the slowest, and what went wrong."""

    requests: int
    ends: Counter[int]
    slowest: float
    kills: int
    grew: float
    faults: tuple[str, ...]

    def __str__(self) -> str:
        ends = ", ".join(f"{count:,} {status}" for status, count in sorted(self.ends.items()))
        cost = f"slowest {self.slowest:.1f} s, {self.grew:.0f} MiB above rest, {self.kills} kills"
        return f"{self.requests:,} ({ends}), {cost}"


class _Asking:
    """Requests to a server, each counted."""

    def __init__(self, server: Running, client: httpx.Client) -> None:
        self.server, self.client = server, client
        self.ends, self.faults, self.slowest = Counter[int](), list[str](), 0.0

    def ask(self, method: str, path: str, secret: str | None = None, **more: Any) -> int:
        """The status of one request; 0 where none came."""
        headers = {**more.pop("headers", {}), **({"Authorization": f"Bearer {secret}"} if secret else {})}
        begun = time.perf_counter()
        try:
            answer = self.client.request(method, f"{self.server.url}{path}", headers=headers, timeout=70, **more)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            # A server may close a connection whose body it refuses before the whole body is sent.
            if not isinstance(error, httpx.WriteError | httpx.ReadError | httpx.RemoteProtocolError | httpx.InvalidURL):
                self.faults.append(f"{method} {path[:80]}: {type(error).__name__}")
            return 0
        taken = time.perf_counter() - begun
        self.slowest = max(self.slowest, taken)
        self.ends[answer.status_code] += 1
        if (answer.status_code >= 500 and answer.status_code != 504) or taken > SLOW:
            what = f"{answer.status_code} after {taken:.1f} s: {answer.text[:100]}"
            self.faults.append(f"{method} {path[:80]} {str(more)[:80]}: {what}")
        return answer.status_code


def attacked(folder: Path, calls: int, seed: int) -> Attacked:
    """Attack one server with so many fuzzed calls, besides every route by every scope and every hostile body."""
    store, draw = folder / "store.sqlite", random.Random(seed)
    with open_store(str(store)) as opened:
        first = [Document(summary(number), str(number)) for number in range(8)]
        ids = [item.submitted.id for item in submit(first, opened, Rulebook()) if item.submitted is not None]
        tokens = {one: Tokens(opened.database).add(one.replace(":", "-"), [one], None)[1] for one in SCOPES}
    acknowledged: set[str] = set()
    with running(store) as server, httpx.Client() as client:
        asking = _Asking(server, client)
        asking.ask("GET", f"/v1/compare?a={ids[0]}&b={ids[1]}", tokens["read"])
        rest, kills = server.memory(), 0
        asking.faults += _scopes(asking, tokens, ids[0])
        _bodies(asking, tokens["admin"])
        grew = server.memory() - rest
        for number in range(calls):
            if number % KILLS_EVERY == KILLS_EVERY - 1:
                server.kill()
                server.start()
                kills += 1
            _fuzzed(asking, tokens, ids, draw)
            raw = summary(1000 + number)
            if asking.ask("POST", "/v1/receipts", tokens["submit"], content=raw, headers=JSON) in (200, 201):
                acknowledged.add(sha256(raw).hexdigest())
        if grew > GREW:
            asking.faults.append(f"the process is {grew:.0f} MiB larger than at rest")
    asking.faults += _lost(store, acknowledged)
    return Attacked(asking.ends.total(), asking.ends, asking.slowest, kills, grew, tuple(asking.faults))


def _scopes(asking: _Asking, tokens: Mapping[str, str], receipt: str) -> Iterator[str]:
    """Every route without a token, with a wrong one, and with one of each scope."""
    for path, methods in document(OPERATIONS)["paths"].items():
        for method, operation in methods.items():
            wanted, url = operation.get("x-scope"), re.sub(r"{\w+}", receipt, path)
            if wanted is None:
                continue
            verb = method.upper()
            if asking.ask(verb, url) != 401:
                yield f"{verb} {path}: answered without a token"
            for own, secret in tokens.items():
                kind = own.partition(":")[0]
                status = asking.ask(verb, url, secret)
                if (status == 403) is (wanted in INCLUDES.get(kind, {kind})) and own != "submit:cpu-torch":
                    yield f"{verb} {path}: {status} for a token that may {own}"
    status = asking.ask("GET", "/v1/pins", "rcp_00000000_" + "x" * 43)
    if status != 401:
        yield f"a token that nobody made is answered with {status}"
    elsewhere = {"Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site", **JSON}
    body = json.dumps({"receipt": receipt, "decision": "drop", "reason": "x"})
    for headers in (elsewhere, {**elsewhere, "Content-Type": "text/plain"}, {"Content-Type": "text/plain"}):
        if asking.ask("POST", "/v1/decisions", tokens["admin"], content=body, headers=headers) < 400:
            yield f"a decision was written by {headers}"


def _bodies(asking: _Asking, secret: str) -> None:
    """Bodies that break programs: deep, long, packed a thousandfold, cut, of another type."""
    zeros, deep = gzip.compress(b"\x00" * (256 << 20)), b"[" * 200_000
    toml, packed = {"Content-Type": "application/toml"}, {"Content-Encoding": "gzip"}
    octets = {"Content-Type": "application/octet-stream"}
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    asking.ask("PUT", f"/v1/evidence/{'0' * 64}", secret, content=zeros, headers={**octets, **packed})
    for path, headers, body in (
        ("/v1/receipts", {**JSON, **packed}, zeros),
        ("/v1/receipts", JSON, deep),
        ("/v1/receipts", JSON, b"{" + b'"a":1,' * 2_000_000),
        ("/v1/compare", JSON, b'{"a":' + deep),
        ("/v1/compare", JSON, json.dumps({"a": ["x"] * 1000, "b": ["y"] * 1000}).encode()),
        ("/v1/claims", toml, b"a" + b".a" * 120_000 + b" = 1"),
        ("/v1/claims", toml, b"a = " + deep),
        ("/v1/claims", toml, b"[" + b"a." * 3000 + b"a]\n"),
        ("/login", form, b"token=" + b"a" * 3_000_000),
        ("/v1/envelopes", JSON, b"{}"),
    ):
        asking.ask("POST", path, secret, content=body, headers=headers)
        asking.ask("POST", path, secret, content=body[: len(body) // 2], headers=headers)


def _fuzzed(asking: _Asking, tokens: Mapping[str, str], ids: Sequence[str], draw: random.Random) -> None:
    item = draw.choice(OPERATIONS)

    def word() -> str:
        return draw.choice((draw.choice(ids), *draw.choices(WORDS, k=3)))

    path = re.sub(
        r"{\w+}", lambda _: httpx.URL("http://h/" + (word() or "x").replace("/", "")[:200]).path[1:], item.path
    )
    names = draw.sample([one.name for one in item.query], min(len(item.query), draw.choice((0, 1, 2, 3))))
    body = draw.choice(MUTATE)(summary(draw.randrange(8)), draw) if item.method in ("POST", "PUT") else None
    headers = {"Content-Type": draw.choice(("application/json", "application/toml", "application/octet-stream"))}
    params = [(name, word()) for name in names]
    secret = draw.choice([*tokens.values()])
    asking.ask(item.method, path, secret, params=params, content=body, headers=headers)


def _lost(store: Path, acknowledged: set[str]) -> Iterator[str]:
    with open_store(str(store), create=False) as opened:
        held = {item.id for item in opened.entries(sorted(acknowledged))}
        yield from (f"{item.where}: {item.found}" for item in audit(opened, Rulebook()).faults if item.kind != "gap")
    if lost := acknowledged - held:
        yield f"{len(lost)} of {len(acknowledged)} acknowledged receipts are lost"
