"""What a leaf takes, in words and with an example: for whoever types a value by hand."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter

from receipts.receipt.leaves import find_leaf

_HEX: Final = re.compile(r"\{64\}")
_SUCH_AS: Final = re.compile(r"such as `([^`]+)`")
LARGEST: Final = 1 << 62  # where the format bounds an integer only because a database does
_NAMES: Final[Mapping[str, str]] = {
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "string": "text",
    "object": "an object",
}
_EXAMPLES: Final[Mapping[str, str]] = {"number": "0.5", "boolean": "true", "object": "{}"}
_NAMED: Final[Mapping[str, str]] = {
    "path.intended.attention": "sdpa_flash",
    "path.witnessed.attention": "sdpa_flash",
    "hardware.accelerator": "h200-sxm",
    "numerics.compute_dtype": "bf16",
    "run.lane": "cpu-torch",
}


class LeafType(NamedTuple):
    """The type in words, the allowed values if they are listed, and one value as it is typed."""

    type: str
    allowed: tuple[str, ...]
    example: str

    def __str__(self) -> str:
        return f"{self.type}: {', '.join(self.allowed)}" if self.allowed else self.type


def leaf_type(path: str, adapter: TypeAdapter[Any]) -> LeafType:
    """What the leaf at a path takes, by the schema of its field."""
    schema, leaf = adapter.json_schema(), find_leaf(path)
    form = _first_form(schema, schema.get("$defs", {}))
    allowed = tuple(str(item) for item in form.get("enum", ()))
    kinds = [_NAMES[kind] for choice in schema.get("anyOf", ()) if (kind := choice.get("type")) in _NAMES]
    words, example = _described(form)
    shown = _SUCH_AS.search(leaf.description) if leaf is not None else None
    return LeafType(
        "one of" if allowed else " or ".join(reversed(kinds)) if len(kinds) > 1 else words,
        allowed,
        _NAMED.get(path) or (allowed[0] if allowed else shown[1] if shown else example),
    )


def _first_form(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first form that a value may have, null left out."""
    if "$ref" in schema:
        return _first_form(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    return _first_form(choices[0], definitions) if choices else schema


def _described(form: Mapping[str, Any]) -> tuple[str, str]:
    """A form in words, and a value of it as it is typed behind ``=``."""
    kind = str(form.get("type", "a value"))
    if form.get("format") == "date-time":
        return "a time with its zone", "2026-03-02T09:00:00Z"
    if _HEX.search(str(form.get("pattern", ""))):
        return "a SHA-256 digest in hex", hashlib.sha256(b"").hexdigest()
    if kind == "array":
        inner = form.get("items", {})
        if "$ref" in inner:
            return "a list of objects", "[…]"
        words, example = _described(inner)
        item = example if inner.get("type") == "string" else json.loads(example)
        return f"a list of {words.removeprefix('an ')}", json.dumps([item])
    low, high = form.get("minimum"), form.get("maximum")
    bounds = f" of at least {low}" if low is not None else ""
    bounds += f" and at most {high}" if high is not None and high < LARGEST else ""
    example = str(max(4, int(low or 0))) if kind == "integer" else _EXAMPLES.get(kind, "VALUE")
    return _NAMES.get(kind, kind) + bounds, example
