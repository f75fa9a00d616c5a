"""A proxy before a PostgreSQL server that counts round trips: how often a client asks for answers and waits for them.

A client of the protocol waits where it ends what it said with a Sync, with a query of the simple kind, or with a Flush
of its own. https://www.postgresql.org/docs/current/protocol-message-formats.html
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator

_BEFORE_THE_START = (80877103, 80877104)  # SSLRequest, GSSENCRequest: the message of the start follows


class Proxy:
    """``trips`` are those of all connections since it was started."""

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.trips = 0
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
                threading.Thread(target=_pump, args=(client, server, self._counter()), daemon=True).start()
                threading.Thread(target=_pump, args=(server, client, lambda said: None), daemon=True).start()

    def _counter(self) -> Callable[[bytes], None]:
        client = _Client()

        def count(said: bytes) -> None:
            self.trips += client.waits(said)

        return count


class _Client:
    """What one client said, message by message."""

    def __init__(self) -> None:
        self._said = b""
        self._started = False
        self._asked = False  # something that no Sync or Flush followed yet

    def waits(self, said: bytes) -> int:
        """How often it waits for an answer to these bytes."""
        self._said += said
        found = 0
        while (kind := self._next()) is not None:
            ends = kind in (b"S", b"Q") or (kind == b"H" and self._asked)
            found += ends
            self._asked = not ends and kind != b"H"
        return found

    def _next(self) -> bytes | None:
        """The kind of the next whole message; empty for those of the start, which have none."""
        lead = 1 if self._started else 0
        if len(self._said) < (5 if self._started else 8):
            return None
        (length,) = struct.unpack_from("!i", self._said, lead)
        if len(self._said) < lead + length:
            return None
        kind, message = self._said[:lead], self._said[lead : lead + length]
        self._said = self._said[lead + length :]
        if not self._started and struct.unpack_from("!i", message, 4)[0] not in _BEFORE_THE_START:
            self._started = True
        return kind


def _pump(one: socket.socket, other: socket.socket, seen: Callable[[bytes], None]) -> None:
    with contextlib.suppress(OSError), one, other:
        while said := one.recv(1 << 16):
            seen(said)
            other.sendall(said)


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
