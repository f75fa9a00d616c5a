"""A proxy before a PostgreSQL server that counts round trips: how often a client says something and then has to wait.

What the server says is held back for a moment, so that all that the client sends before it waits is seen as one.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

HELD_SECONDS = 0.02


class Proxy:
    """Counts on one connection at a time; ``trips`` since it was started."""

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.trips = 0
        self._client_spoke = False
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._to)
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._from_client, args=(client, server), daemon=True).start()
                threading.Thread(target=self._from_server, args=(server, client), daemon=True).start()

    def _from_client(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError), client, server:
            while said := client.recv(1 << 16):
                self.trips += not self._client_spoke
                self._client_spoke = True
                server.sendall(said)

    def _from_server(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while said := server.recv(1 << 16):
                time.sleep(HELD_SECONDS)
                self._client_spoke = False
                client.sendall(said)


@contextlib.contextmanager
def before(url: str) -> Iterator[tuple[Proxy, str]]:
    """A proxy before the server of a URL, and the URL that goes through it."""
    from sqlalchemy import make_url

    named = make_url(url)
    proxy = Proxy(named.host or "127.0.0.1", named.port or 5432)
    try:
        through = named.set(host="127.0.0.1", port=proxy.port)
        yield proxy, through.render_as_string(hide_password=False)
    finally:
        proxy.close()
