"""A program's line within another one's record: Docker's log driver, a cloud's export, a logger in JSON, a notebook."""

from __future__ import annotations

import json
import re
from typing import Final

# Names of the member that holds the line: Docker, Cloud Logging, structured loggers, systemd, Loki.
_NAMES: Final = ("log", "textPayload", "message", "msg", "MESSAGE", "line")
_NAME: Final = b'"(?:' + "|".join(_NAMES).encode() + rb')"\s{0,4}:\s{0,4}"'
_RECORD: Final = re.compile(rb"\s*+\{.{0,4000}?" + _NAME)
# One member a line, as exports are indented, or an element of a notebook's output, which keeps its line end.
_MEMBER: Final = re.compile(rb"\s*+" + _NAME[:-1] + rb'("(?:[^"\\]|\\.)*+")\s*+,?\s*+')
_ELEMENT: Final = re.compile(rb'\s*+("(?:[^"\\]|\\.)*+(?<=\\n)")\s*+,?\s*+')

# A blank that does not break, in UTF-8: what was copied from a web page has them, also within anchors.
_UNBREAKABLE = b"\xc2\xa0"
# Characters that a web page escapes.
_ENTITIES = {
    b"lt": b"<",
    b"gt": b">",
    b"quot": b'"',
    b"#34": b'"',
    b"#39": b"'",
    b"#x27": b"'",
    b"nbsp": b" ",
    b"amp": b"&",
}
_ENTITY = re.compile(rb"&(" + b"|".join(_ENTITIES) + rb");")


def plain(chunk: bytes) -> bytes:
    """Text as it was before a web page wrote it: blanks that break, and characters that are not escaped."""
    if _UNBREAKABLE in chunk:
        chunk = chunk.replace(_UNBREAKABLE, b" ")
    if b"&" in chunk:
        chunk = _ENTITY.sub(lambda match: _ENTITIES[match[1]], chunk)
    return chunk


def unpacked(raw: bytes) -> bytes | None:
    """The line that a record holds, its inner line ends as carriage returns; None for a line that is no record."""
    head = raw.lstrip()[:1]
    if head == b"{":
        return _text(raw) if _RECORD.match(raw) else None
    if head == b'"' and (match := _MEMBER.fullmatch(raw) or _ELEMENT.fullmatch(raw)):
        return _text(match[1])
    return None


def _text(document: bytes) -> bytes | None:
    try:
        node = json.loads(document)
    except (ValueError, RecursionError):
        return None
    if isinstance(node, dict):
        node = next((node[name] for name in _NAMES if isinstance(node.get(name), str)), None)
    if not isinstance(node, str):
        return None
    return node.removesuffix("\n").replace("\n", "\r").encode("utf-8", "replace")
