"""An S3-like server on this machine, in memory: objects whole or in parts, and the list of a bucket; nothing signed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

_DATE: Final = "Mon, 02 Mar 2026 09:00:00 GMT"
_ENTRY: Final = "<Contents><Key>{}</Key><LastModified>2026-03-02T09:00:00.000Z</LastModified><Size>{}</Size></Contents>"
_LIST: Final = "<ListBucketResult><Name>{}</Name><IsTruncated>false</IsTruncated>{}</ListBucketResult>"
_UPLOAD: Final = "<InitiateMultipartUploadResult><UploadId>one</UploadId></InitiateMultipartUploadResult>"
_WHOLE: Final = "<CompleteMultipartUploadResult><ETag>whole</ETag></CompleteMultipartUploadResult>"


class ObjectServer(ThreadingHTTPServer):
    """Objects by ``bucket/key``. While ``failing``, every answer is 403."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.parts: dict[tuple[str, int], bytes] = {}
        self.failing = False

    @property
    def settings(self) -> dict[str, str]:
        """The environment in which an S3 client asks this server."""
        url = f"http://127.0.0.1:{self.server_port}"
        keys = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing", "AWS_REGION": "us-east-1"}
        return {"AWS_ENDPOINT": url, "AWS_ALLOW_HTTP": "true", **keys}

    def answer(self, method: str, key: str, query: dict[str, list[str]], body: bytes) -> tuple[int, bytes]:
        """Status and body of one request."""
        if self.failing:
            return 403, b"<Error><Code>AccessDenied</Code></Error>"
        if method == "POST" and "uploads" in query:
            return 200, _UPLOAD.encode()
        if method == "POST" and "delete" in query:
            names = re.findall(r"<Key>(.+?)</Key>", body.decode())
            for name in names:
                self.objects.pop(f"{key.rstrip('/')}/{name}", None)
            gone = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
            return 200, f"<DeleteResult>{gone}</DeleteResult>".encode()
        if method == "POST":
            numbers = sorted(number for name, number in self.parts if name == key)
            self.objects[key] = b"".join(self.parts.pop((key, number)) for number in numbers)
            return 200, _WHOLE.encode()
        if method == "PUT" and "partNumber" in query:
            self.parts[key, int(query["partNumber"][0])] = body
            return 200, b""
        if method == "PUT":
            self.objects[key] = body
            return 200, b""
        if "list-type" in query:
            return 200, self._listed(key.rstrip("/"), query.get("prefix", [""])[0]).encode()
        whole = self.objects.get(key)
        return (404, b"<Error><Code>NoSuchKey</Code></Error>") if whole is None else (200, whole)

    def _listed(self, bucket: str, prefix: str) -> str:
        sizes = {name.removeprefix(f"{bucket}/"): len(whole) for name, whole in sorted(self.objects.items())}
        rows = (_ENTRY.format(name, size) for name, size in sizes.items() if name.startswith(prefix))
        return _LIST.format(bucket, "".join(rows))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ObjectServer

    def log_message(self, *_: object) -> None:
        pass

    def _request(self) -> None:
        place = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key, query = unquote(place.path).lstrip("/"), parse_qs(place.query, keep_blank_values=True)
        status, answer = self.server.answer(self.command, key, query, body)
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.send_header("ETag", f'"{sha256(answer).hexdigest()}"')
        self.send_header("Last-Modified", _DATE)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_HEAD = do_PUT = do_POST = _request  # noqa: N815 - the names that http.server looks up


@contextmanager
def object_server() -> Iterator[ObjectServer]:
    """A server for as long as the block lasts."""
    with ObjectServer() as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
