"""GitHub's REST API for comments and issues of one repository, on a port of this machine, as far as we ask it."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit


class GitHub:
    """``comments`` are those of pull request 7. ``calls`` holds the method and path of each request, in order.

    A request without the token is refused as GitHub refuses it; ``status`` refuses each with that status.
    """

    def __init__(self, repository: str = "team/bench", token: str = "secret-token") -> None:
        self.comments: list[dict[str, Any]] = []
        self.issues: list[dict[str, Any]] = []
        self.calls: list[tuple[str, str]] = []
        self.status = 0
        fake, base = self, f"/repos/{repository}/"

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = parse_qs(parts.query)
                items = self._items(parts.path)
                size, page = int(query["per_page"][0]), int(query["page"][0])
                self._answer(200, items[size * (page - 1) : size * page] if items is not None else None)

            def do_POST(self) -> None:
                items = self._items(self.path)
                if items is None:
                    return self._answer(404, None)
                bot = {"type": "Bot", "login": "github-actions[bot]"}
                number = len(items) + 1
                item = {"id": number, "number": number, "state": "open", "user": bot, "author_association": "NONE"}
                items.append({**item, **self._body(), "html_url": f"https://github.test/{number}"})
                return self._answer(201, items[-1])

            def do_PATCH(self) -> None:
                kind, _, number = self.path.removeprefix(base).rpartition("/")
                held = {"issues/comments": fake.comments, "issues": fake.issues}[kind][int(number) - 1]
                held.update(self._body())
                self._answer(200, held)

            def _items(self, path: str) -> list[dict[str, Any]] | None:
                return {f"{base}issues/7/comments": fake.comments, f"{base}issues": fake.issues}.get(path)

            def _body(self) -> Any:
                return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

            def _answer(self, status: int, content: Any) -> None:
                fake.calls.append((self.command, urlsplit(self.path).path.removeprefix(base)))
                allowed = self.headers["Authorization"] == f"Bearer {token}"
                status = fake.status or (404 if content is None else status) if allowed else 401
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(content if status < 300 else {"message": "refused"}).encode())

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self) -> GitHub:
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
