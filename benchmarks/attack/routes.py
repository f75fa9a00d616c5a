"""Every operation and page of the server, asked with hostile words and bodies: an answer below 500, in bounded time."""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from benchmarks.attack.hostile import WORDS, files
from benchmarks.attack.mutations import MUTATE
from benchmarks.attack.outcome import Outcome, Tally, in_parts

if TYPE_CHECKING:
    from starlette.testclient import TestClient

EXAMPLES: Final = Path(__file__).resolve().parents[2] / "examples"
SLOW: Final = 20.0  # seconds for one answer
_AT_ONCE: Final = 250  # requests a process
_PAGE: Final = ("lane", "metric", "a", "b", "where", "q", "sort", "page", "next")  # what some page asks for
_FORM: Final = "application/x-www-form-urlencoded"


class Asked(NamedTuple):
    """A method of a path, the names that its query and its JSON body have, and the types of a body that it takes."""

    method: str
    path: str
    query: Sequence[str]
    body: Sequence[str]
    types: Sequence[str]


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
    from receipts.plugins.serve.operations import OPERATIONS, document
    from receipts.plugins.serve.run import with_pages
    from receipts.plugins.serve.server import Server, Settings
    from receipts.plugins.serve.site import Site
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
    server = Server(opened, rulebook, Settings(("testserver",), open=True, limits=Limits(rate="100000/second")))
    every = [*_operations(document(OPERATIONS)["paths"])]
    every += [
        Asked(method, route.path, _PAGE, (), (_FORM,))
        for route in Site(server).routes()
        for method in sorted(route.methods or ())
    ]
    with TestClient(with_pages(server), raise_server_exceptions=False, follow_redirects=False) as client:
        for number in part:
            draw = random.Random(f"{seed} {number}")
            item = draw.choice(every)
            body = _named(item.body, ids, draw) if item.body and draw.random() < 0.7 else _body(bodies, receipts, draw)
            path, query = _filled(item.path, ids, draw), _query(item.query, ids, draw)
            _one(client, tally, number, item._replace(path=path), query, body)
    return tally.close()


def _operations(paths: Mapping[str, Any]) -> Iterator[Asked]:
    for path, methods in paths.items():
        for method, described in methods.items():
            content = described.get("requestBody", {}).get("content", {})
            names = content.get("application/json", {}).get("schema", {}).get("properties", {})
            query = [one["name"] for one in described.get("parameters", ()) if one["in"] == "query"]
            yield Asked(method.upper(), path, query, sorted(names), sorted(content))


def _one(client: TestClient, tally: Tally, number: int, item: Asked, query: list[tuple[str, str]], body: bytes) -> None:
    draw, headers = random.Random(number), dict[str, str]()
    if draw.random() < 0.1:
        headers["content-encoding"] = draw.choice(("gzip", "br", "identity"))
        body = gzip.compress(body) if draw.random() < 0.5 else body
    if item.types and draw.random() < 0.95:
        headers["content-type"] = draw.choice(item.types)
    headers["accept"] = draw.choice(("*/*", "text/html", "application/json", "text/markdown", "x/y;q=z"))
    what, begun = f"request {number}, {item.method} {item.path[:80]} {str(query)[:100]}", time.perf_counter()
    content = body if item.method in ("POST", "PUT") else None
    try:
        answer = client.request(item.method, item.path, params=query, content=content, headers=headers)
    except Exception as error:  # whatever it raises is a fault of the program
        tally.fault(f"{what}: {type(error).__name__}: {error}")
        return
    taken = time.perf_counter() - begun
    tally.add(str(answer.status_code), taken)
    if answer.status_code >= 500 or taken > SLOW:
        tally.fault(f"{what}: {answer.status_code} after {taken:.1f} s: {answer.text[:100]}")


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


def _named(names: Sequence[str], ids: Sequence[str], draw: random.Random) -> bytes:
    """A body with some of its names, of values of any kind."""

    def word() -> str:
        return draw.choice((draw.choice(ids), draw.choice(WORDS)))

    def value() -> Any:
        some: Any = (word(), [word(), word()], {"document": word(), "name": word()}, draw.randrange(-1, 99), None, True)
        return draw.choice((word(), *some, [], {}, 1e308))

    return json.dumps({name: value() for name in names if draw.random() < 0.7}).encode()
