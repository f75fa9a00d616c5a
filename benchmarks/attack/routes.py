"""Every operation and page of the server, asked with hostile words and bodies: an answer below 500, in bounded time."""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from benchmarks.attack.hostile import WORDS, files
from benchmarks.attack.mutations import MUTATE
from benchmarks.attack.outcome import Outcome, Tally, in_parts

if TYPE_CHECKING:
    from starlette.testclient import TestClient

EXAMPLES: Final = Path(__file__).resolve().parents[2] / "examples"
SLOW: Final = 20.0  # seconds for one answer
_AT_ONCE: Final = 250  # requests a process


def asked(folder: Path, requests: int, seed: int = 27) -> Outcome:
    """Send so many requests to a server over the examples."""
    (folder / "files").mkdir()
    files(folder / "files", EXAMPLES)
    every = sorted(path for path in (folder / "files").iterdir() if path.is_file())
    bodies = [path.read_bytes() for path in every if path.stat().st_size < 4 << 20]
    receipts = [path.read_bytes() for path in sorted((EXAMPLES / "cpu").glob("*.json"))]
    url = str(folder / "store.sqlite")
    return in_parts(lambda part: _ask(url, bodies, receipts, part, seed), requests, _AT_ONCE, 900)


def _ask(url: str, bodies: Sequence[bytes], receipts: Sequence[bytes], part: range, seed: int) -> int:
    from starlette.testclient import TestClient

    from receipts.judging.rulebook import Rulebook
    from receipts.plugins.serve.guard import Limits
    from receipts.plugins.serve.operations import OPERATIONS
    from receipts.plugins.serve.run import with_pages
    from receipts.plugins.serve.server import Server, Settings
    from receipts.plugins.serve.site import VIEWS
    from receipts.receipt import Document
    from receipts.store import open_store
    from receipts.workflows.submit import submit

    tally, rulebook = Tally(), Rulebook()
    opened = open_store(url)
    ids = [
        outcome.submitted.id
        for outcome in submit([Document(raw, "an example") for raw in receipts], opened, rulebook)
        if outcome.submitted is not None
    ]
    settings = Settings(("testserver",), open=True, limits=Limits(rate="100000/second"))
    routes = [(item.method, item.path, [one.name for one in item.query]) for item in OPERATIONS]
    routes += [("GET", path, ["lane", "metric", "a", "b", "where"]) for path, _ in VIEWS]
    with TestClient(with_pages(Server(opened, rulebook, settings)), raise_server_exceptions=False) as client:
        for number in part:
            draw = random.Random(f"{seed} {number}")
            method, path, names = draw.choice(routes)
            _one(
                client,
                tally,
                number,
                method,
                _filled(path, ids, draw),
                _query(names, ids, draw),
                _body(bodies, receipts, draw),
            )
    return tally.close()


def _one(
    client: TestClient, tally: Tally, number: int, method: str, path: str, query: list[tuple[str, str]], body: bytes
) -> None:
    draw, headers = random.Random(number), dict[str, str]()
    if draw.random() < 0.1:
        headers["content-encoding"] = draw.choice(("gzip", "br", "identity"))
        body = gzip.compress(body) if draw.random() < 0.5 else body
    headers["accept"] = draw.choice(("*/*", "text/html", "application/json", "text/markdown", "x/y;q=z"))
    begun = time.perf_counter()
    try:
        answer = client.request(
            method, path, params=query, content=body if method in ("POST", "PUT") else None, headers=headers
        )
    except Exception as error:  # whatever it raises is a fault of the program
        tally.fault(f"request {number}, {method} {path[:80]} {str(query)[:80]}: {type(error).__name__}: {error}")
        return
    taken = time.perf_counter() - begun
    tally.add(f"{answer.status_code // 100}xx", taken)
    if answer.status_code >= 500 or taken > SLOW:
        what = f"{answer.status_code} after {taken:.1f} s: {answer.text[:100]}"
        tally.fault(f"request {number}, {method} {path[:80]} {str(query)[:100]}: {what}")


def _filled(path: str, ids: Sequence[str], draw: random.Random) -> str:
    parts = [
        quote(draw.choice((draw.choice(ids), draw.choice(WORDS) or "x")), safe="@=*,") if part.startswith("{") else part
        for part in path.split("/")
    ]
    return "/".join(parts)


def _query(names: Sequence[str], ids: Sequence[str], draw: random.Random) -> list[tuple[str, str]]:
    chosen = draw.sample(names, min(len(names), draw.choice((0, 1, 1, 2, 3))))
    return [(name, draw.choice((draw.choice(ids), *draw.choices(WORDS, k=3)))) for name in chosen]


def _body(bodies: Sequence[bytes], receipts: Sequence[bytes], draw: random.Random) -> Any:
    if draw.random() < 0.5:
        return draw.choice(bodies)
    return draw.choice(MUTATE)(draw.choice(receipts), draw)
