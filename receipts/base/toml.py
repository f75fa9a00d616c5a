"""TOML that comes from outside: whatever is wrong with it is one kind of error, and its cost follows its length."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

MOST_PARTS: Final = 8  # of one dotted key: the parser walks through all of them for each
DEEPEST: Final = 64
LONGEST_WORD: Final = 1000  # a key without quotes, a number, a date
# Strings and comments hide what looks like structure. Each alternative ends where it began or fails at once.
_TOKENS: Final = re.compile(
    r"""(?P<text>\"{3}(?:[^"\\]|\\.|"(?!""))*+"{3,5}|'{3}(?:[^']|'(?!''))*+'{3,5}"""
    r"""|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')|(?P<unended>["'])|\#[^\n]*+|(?P<opens>[\[{])|(?P<closes>[\]}])"""
    r"""|(?P<dot>[ \t]*+\.[ \t]*+)|(?P<word>[A-Za-z0-9_+:-]++)|[ \t]++|(?P<other>.)""",
    re.DOTALL,
)


def parse_toml(raw: bytes) -> dict[str, Any]:
    """The table of a TOML document.

    Raises:
        ValueError: it is not UTF-8, not TOML, or its keys are too long or nest too deep; the message says which.
    """
    text = raw.decode("utf-8")
    _refuse_costly(text)
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise ValueError("it nests too deep") from None
    _refuse_deep(table)
    return table


def _refuse_costly(text: str) -> None:
    """Before it is parsed, which takes the square of a key's parts."""
    dots = depth = 0
    for token in _TOKENS.finditer(text):
        kind = token.lastgroup
        if kind == "dot":
            dots += 1
            if dots >= MOST_PARTS:
                raise ValueError(f"a key has more than {MOST_PARTS} parts")
        elif kind == "word":
            if token.end() - token.start() > LONGEST_WORD:
                raise ValueError(f"a key or a number is longer than {LONGEST_WORD:,} characters")
        elif kind == "opens":
            dots, depth = 0, depth + 1
            if depth > DEEPEST:
                raise ValueError("it nests too deep")
        elif kind == "closes":
            dots, depth = 0, depth - 1
        elif kind == "unended":
            return  # a string without an end: the parser says so
        elif kind == "other":
            dots = 0


def _refuse_deep(table: dict[str, Any]) -> None:
    """Tables may nest by their names too; what reads them calls itself for each level."""
    level: list[Any] = [table]
    for _ in range(DEEPEST):
        level = [item for node in level for item in (node.values() if isinstance(node, dict) else node)]
        level = [item for item in level if isinstance(item, dict | list)]
        if not level:
            return
    raise ValueError("it nests too deep")
