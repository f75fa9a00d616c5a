"""What is asked over the network: 2 where an answer is the caller's own fault, 4 where it may be another one later."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from command_line import Shell

ROOT = Path(__file__).resolve().parents[2]
CUT, CLOSED = 1, 2


@pytest.fixture(scope="module")
def server() -> Iterator[ThreadingHTTPServer]:
    """Answers each request with ``status``; `CUT` ends an answer early, and `CLOSED` gives none."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status = vars(self.server)["status"]
            if status != CLOSED:
                self.send_response(200 if status == CUT else status)
                self.send_header("Content-Length", "999" if status == CUT else "2")
                self.end_headers()
                self.wfile.write(b"[]")
            self.close_connection = True

        do_POST = do_PUT = do_GET  # noqa: N815 — the names that the library calls

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as started:
        Thread(target=started.serve_forever, args=(0.01,), daemon=True).start()
        yield started
        started.shutdown()


def asking(shell: Shell, address: str) -> Iterator[tuple[str, ...]]:
    """One call for each that asks somebody: pointers, a comment, a log of checkpoints, a tracker."""
    launch, other = (ROOT / "examples" / "cpu" / f"attention-{name}-1.json" for name in ("math", "flash"))
    digest = sha256(launch.read_bytes()).hexdigest()
    for name, place in (("web", f"http://{address}/x"), ("registry", f"oci://{address}/team/x:1")):
        file = shell.folder / f"{name}.receipt.toml"
        values = {"schema_version": "1.0", "receipt": digest, "digest": f"sha256:{digest}", "bundle": place}
        file.write_text("".join(f'{key} = "{value}"\n' for key, value in values.items()), encoding="utf-8")
        yield "show", str(file)
    (shell.folder / "compare.json").write_text(shell("compare", str(launch), str(other), "--json").out)
    yield "comment", "compare.json", "--repository", "team/bench", "--pull", "7", "--always"
    shell("key", "new", "ana")
    shell("submit", str(launch))
    yield "audit", "--seal", "--publish", f"http://{address}/log", "--sign", "ana"
    yield "import", "mlflow", f"http://{address}", "--lane", "cpu-torch"


@pytest.mark.parametrize(
    ("status", "code"), [(401, 2), (403, 2), (422, 2), (429, 4), (500, 4), (503, 4), (CUT, 4), (CLOSED, 4)]
)
def test_an_error_of_the_network_has_its_code_and_says_what_to_do(
    shell: Shell, server: ThreadingHTTPServer, status: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    vars(server)["status"] = status
    address = f"127.0.0.1:{server.server_port}"
    monkeypatch.setenv("GITHUB_API_URL", f"http://{address}")
    monkeypatch.setenv("GITHUB_TOKEN", "secret-token")
    for words in asking(shell, address):
        ran = shell(*words)
        assert ran.code == code, f"{words}: {ran.code} {ran.err}"
        assert ";" in ran.err, ran.err
        assert "secret-token" not in ran.err
