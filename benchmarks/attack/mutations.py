"""Documents and logs as nobody would write them: bytes, texts and trees, changed at random."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

_TEXTS: Final = (
    *("", " ", "\x00", "=cmd()", "../../etc/passwd", "\u202e", "\ud800", "{{7*7}}", "%s%n", "<script>", "a" * 70_000),
    *("'; DROP TABLE receipts; --", "\x1b[2J", "--index-url=x", "NaN", "1e999", "१२३", "0x10", "nul\u0000", "\n" * 999),
)
_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 0.5, -0.0, 10**9, 10**18, 2**63, 10**400, 1e308, 5e-324, float("nan"), float("inf")),
    *([], {}, [[]], [None] * 1000, [0] * 20_000, {"a": {}}, {str(key): key for key in range(3000)}),
)
_TOKENS: Final = (
    *(b"[" * 2000, b"{" * 70, b"1" * 5000, b"\xff\xfe", b"\x00", b'"', b"\\", b"NaN", b"1e999", b"\xed\xa0\x80"),
    *(b"\r", b"\n" * 500, b"=" * 300, b"0" * 40, b"-", b"e", b"\xe2\x80\xae", b"\x1b[31m", b"a" * 100_000, b"9" * 18),
)


def changed_bytes(raw: bytes, draw: random.Random) -> bytes:
    """One to four changes of bytes: flipped, cut out, doubled, exchanged, cut off, or a token put in."""
    content = bytearray(raw)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(content) + 1)
        end = min(len(content), at + draw.choice((1, 1, 4, 40, 400, 4000)))
        match draw.randrange(6):
            case 0 if at < len(content):
                content[at] ^= 1 << draw.randrange(8)
            case 1:
                del content[at:end]
            case 2:
                content[at:at] = content[at:end] * draw.choice((1, 1, 2, 50))
            case 3:
                other = draw.randrange(len(content) + 1)
                content[at:end] = content[other : other + end - at]
            case 4 if draw.random() < 0.2:
                del content[at:]
            case _:
                content[at:at] = draw.choice(_TOKENS)
    return bytes(content[: 4 << 20])


def changed_tree(raw: bytes, draw: random.Random) -> bytes:
    """One to five leaves or branches of a JSON document exchanged, dropped, doubled or renamed."""
    tree = json.loads(raw)
    for _ in range(draw.randint(1, 5)):
        node, key = _place(tree, draw)
        match draw.randrange(5):
            case 0:
                node[key] = draw.choice(_VALUES)
            case 1:
                node[key] = draw.choice(_TEXTS)
            case 2 if isinstance(node, dict):
                del node[key]
            case 3 if isinstance(node, dict):
                node[draw.choice(_TEXTS)] = node.pop(key)
            case _:
                other, name = _place(tree, draw)
                node[key] = json.loads(json.dumps(other[name]))
    return json.dumps(tree, ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass")


def _place(tree: dict[str, Any], draw: random.Random) -> tuple[Any, Any]:
    """A node with one of its keys or indexes, at any depth."""
    node: Any = tree
    while True:
        key = draw.choice(list(node)) if isinstance(node, Mapping) else draw.randrange(len(node))
        inner = node[key]
        if not isinstance(inner, dict | list) or not inner or draw.random() < 0.25:
            return node, key
        node = inner


MUTATE: Final[tuple[Callable[[bytes, random.Random], bytes], ...]] = (changed_bytes, changed_tree, changed_tree)
