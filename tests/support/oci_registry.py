"""A registry of the OCI distribution specification on a port of this machine, with one artifact as oras pushes it.

It asks for a token, which it gives to one login, and sends readers of blobs to another address, as registries do.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

EMPTY = b"{}"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
LOGIN = b64encode(b"ana:secret").decode()


def digest_of(content: bytes) -> str:
    """As descriptors have it."""
    return f"sha256:{sha256(content).hexdigest()}"


def _described(content: bytes, media: str, **more: Any) -> dict[str, Any]:
    return {"mediaType": media, "digest": digest_of(content), "size": len(content), **more}


class Registry:
    """``seen`` has the path and the Authorization of each request."""

    def __init__(self, name: str, tag: str, content: bytes) -> None:
        titled = {"annotations": {"org.opencontainers.image.title": "bundle.tar"}}
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": "application/vnd.frontier-receipts.bundle+tar",
            "config": _described(EMPTY, "application/vnd.oci.empty.v1+json"),
            "layers": [_described(content, "application/vnd.frontier-receipts.bundle+tar", **titled)],
        }
        raw = json.dumps(manifest).encode()
        self.manifest = digest_of(raw)
        self.blobs = {digest_of(EMPTY): EMPTY, digest_of(content): content}
        self.seen: list[tuple[str, str | None]] = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                granted = self.headers["Authorization"]
                registry.seen.append((self.path, granted))
                here, _, query = self.path.partition("?")
                if here == "/token":
                    known = (
                        granted == f"Basic {LOGIN}" and f"scope=repository%3A{name.replace('/', '%2F')}%3Apull" in query
                    )
                    return self._send(200 if known else 401, json.dumps({"token": "granted"}).encode())
                if here.startswith("/storage/"):
                    return self._send(400 if granted else 200, registry.blobs[here.removeprefix("/storage/")])
                if granted != "Bearer granted":
                    challenge = f'Bearer realm="{registry.url}/token",service="here",scope="repository:{name}:pull"'
                    return self._send(401, b"", {"WWW-Authenticate": challenge})
                if here in (f"/v2/{name}/manifests/{tag}", f"/v2/{name}/manifests/{registry.manifest}"):
                    fits = MANIFEST in self.headers["Accept"]
                    return self._send(200 if fits else 404, raw, {"Content-Type": MANIFEST})
                digest = here.removeprefix(f"/v2/{name}/blobs/")
                if digest in registry.blobs:
                    return self._send(307, b"", {"Location": f"{registry.url}/storage/{digest}"})
                return self._send(404, b"")

            def _send(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
                self.send_response(status)
                for key, value in (headers or {}).items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.host}"
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self) -> Registry:
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
