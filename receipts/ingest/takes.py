"""What a leaf takes, in words and with an example: for whoever types a value by hand."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from receipts.receipt.catalogue import find

_HEX = re.compile(r"\{64\}")
_SUCH_AS = re.compile(r"such as `([^`]+)`")
LARGEST = 1 << 62  # where the format bounds an integer only because a database does
_NAMES = {
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "string": "text",
    "object": "an object",
}
_EXAMPLES: Mapping[str, Any] = {"number": 0.5, "boolean": True}
_NAMED: Mapping[str, str] = {
    "path.intended.attention": "sdpa_flash",
    "path.witnessed.attention": "sdpa_flash",
    "hardware.accelerator": "h200-sxm",
    "numerics.compute_dtype": "bf16",
    "run.lane": "cpu-torch",
}


class Takes(NamedTuple):
    """The type in words, the allowed values if they are listed, and one value as it is typed."""

    type: str
    allowed: tuple[str, ...]
    example: str

    def __str__(self) -> str:
        listed = f": {', '.join(self.allowed)}" if self.allowed else ""
        return f"{self.type}{listed}"


def takes(path: str, adapter: TypeAdapter[Any]) -> Takes:
    """What the leaf at a path takes, by the schema of its field."""
    schema = adapter.json_schema()
    choice = _plain(schema, schema.get("$defs", {}))
    allowed = tuple(str(item) for item in choice.get("enum", ()))
    kind = "one of" if allowed else _types(schema) or _type(choice)
    return Takes(kind, allowed, _NAMED.get(path) or (allowed[0] if allowed else _described(path) or _typed(choice)))


def _described(path: str) -> str:
    """The first example that the description of a leaf gives; empty where it gives none."""
    leaf = find(path)
    match = _SUCH_AS.search(leaf.description) if leaf is not None else None
    return match[1] if match else ""


def _plain(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first form that a value may have, null left out."""
    if "$ref" in schema:
        return _plain(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    for choice in schema.get("anyOf", ()):
        if choice.get("type") != "null":
            return _plain(choice, definitions) if "type" not in choice else choice
    return schema


def _types(schema: Mapping[str, Any]) -> str:
    """Several scalar types as alternatives; empty for a single one."""
    kinds = [str(choice.get("type")) for choice in schema.get("anyOf", ())]
    names = [_NAMES[kind] for kind in kinds if kind in _NAMES]
    return " or ".join(reversed(names)) if len(names) > 1 else ""


def _type(choice: Mapping[str, Any]) -> str:
    kind = str(choice.get("type", "a value"))
    if choice.get("format") == "date-time":
        return "a time with its zone"
    if _HEX.search(str(choice.get("pattern", ""))):
        return "a SHA-256 digest in hex"
    if kind == "array":
        inner = choice.get("items", {})
        return "a list of objects" if "$ref" in inner else f"a list of {_type(inner).removeprefix('an ')}"
    low, high = choice.get("minimum"), choice.get("maximum")
    bounds = f" of at least {low}" if low is not None else ""
    bounds += f" and at most {high}" if high is not None and high < LARGEST else ""
    return _NAMES.get(kind, kind) + bounds


def _typed(choice: Mapping[str, Any]) -> str:
    """A value as it is typed behind ``=``."""
    kind = str(choice.get("type", "string"))
    if choice.get("format") == "date-time":
        return "2026-03-02T09:00:00Z"
    if kind == "array":
        inner = choice.get("items", {})
        return "[…]" if "$ref" in inner else json.dumps([json.loads(_quoted(inner))])
    if kind == "object":
        return "{}"
    if _HEX.search(str(choice.get("pattern", ""))):
        return hashlib.sha256(b"").hexdigest()
    if kind == "integer":
        return str(max(4, int(choice.get("minimum", 0))))
    return json.dumps(_EXAMPLES[kind]) if kind in _EXAMPLES else "VALUE"


def _quoted(choice: Mapping[str, Any]) -> str:
    text = _typed(choice)
    return json.dumps(text) if choice.get("type") == "string" else text
