"""The published JSON Schemas, draft 2020-12: receipts and claims from their models, verdicts from dataclasses."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Mapping
from typing import Any

from receipts.receipt.leaf import POLICIES

DRAFT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]
COMPLETE = {
    "type": "boolean",
    "description": "Whether the whole set was captured: then an absent key is the stated value *unset*.",
}


def receipt_schema() -> Schema:
    """Schema of receipt 1: `x-receipts` carries each leaf's role, axis and unit. Null means *not stated*."""
    from receipts.receipt.document import VERSION, Receipt
    from receipts.receipt.parse import READ_AS_THEY_ARE

    found = _polished(Receipt.model_json_schema(by_alias=True))
    found["properties"]["schema_version"]["enum"] = sorted(READ_AS_THEY_ARE)
    for name in ("wheels", "flags", "patches", "features"):
        entries = found["properties"][name]["anyOf"][0]
        entries["properties"] = {"complete": COMPLETE}
        if name == "wheels":
            options = entries["additionalProperties"]["anyOf"]
            entries["additionalProperties"]["anyOf"] = [item for item in options if item.get("type") != "boolean"]
    head = {
        "$schema": DRAFT,
        "title": f"Receipt {VERSION}",
        "$comment": "Also refused, and beyond JSON Schema: duplicate keys, NaN, a byte-order mark, over 16 MiB.",
    }
    return {**head, **{key: value for key, value in found.items() if key not in head}}


def _polished(node: Any) -> Any:
    """Without pydantic's titles and null defaults, and with the declared roles, but no policy, under a vendor key."""
    if isinstance(node, list):
        return [_polished(item) for item in node]
    if not isinstance(node, dict):
        return node
    found: Schema = {}
    for key, value in node.items():
        if key == "title" and isinstance(value, str):
            continue
        if key == "default" and value is None:
            continue
        if key == "receipts" and isinstance(value, dict) and "role" in value:
            found["x-receipts"] = {name: item for name, item in value.items() if name not in POLICIES}
        else:
            found[key] = _polished(value)
    return found


def claims_schema() -> Schema:
    """Schema of ``claims.toml`` 1, which is TOML and has this shape."""
    from receipts.judging.claim import CLAIMS_VERSION, ClaimsDocument

    found = _polished(ClaimsDocument.model_json_schema())
    head = {
        "$schema": DRAFT,
        "title": f"Claims {CLAIMS_VERSION}",
        "$comment": "Also refused, and beyond JSON Schema: an id given twice, an effect that cannot be read, "
        "and an axis, metric or mechanism that does not exist.",
    }
    return {**head, **{key: value for key, value in found.items() if key not in head}}


def verdict_schema() -> Schema:
    """Schema of what ``check --json``, ``compare --json`` and ``claim check --json`` print."""
    from receipts.axes import Difference
    from receipts.judging.verdict import ClaimVerdict, Comparison, ReceiptVerdict
    from receipts.stats.equivalence import Effect

    names = {"Difference": Difference, "Effect": Effect}
    definitions: dict[str, Schema] = {}
    for kind in (ReceiptVerdict, Comparison, ClaimVerdict):
        _object(kind, names, definitions)
        properties = definitions[kind.__name__]["properties"]
        definitions[kind.__name__]["properties"] = {"schema_version": {"const": "1.0"}, **properties}
        definitions[kind.__name__]["required"].insert(0, "schema_version")
    counted = {"type": "array", "items": {"type": "string"}, "description": "Names of the changed axes that count."}
    definitions["Comparison"]["properties"]["counted"] = counted
    says = "What the comparison owes to inputs and context, in words; empty where nothing is held by them."
    definitions["Comparison"]["properties"]["owed"] = {"type": "string", "description": says}
    definitions["Comparison"]["required"] += ["counted", "owed"]
    # Only where the store holds some on its receipts, and so never required.
    definitions["Comparison"]["properties"]["decisions"] = {
        "type": "array",
        "items": {"type": "object"},
        "description": "What was decided on its receipts: receipt, decision, reason, at.",
    }
    # Only where both sides have a row a chip.
    definitions["Comparison"]["properties"]["memory"] = {
        "type": "object",
        "description": "Memory by chip, in bytes: whether pressure fell or moved, leaders, each chip's figures.",
    }
    # Only where there is any.
    for name, says in (
        ("envelope", "Where the shape of each side lies in the lane's envelope."),
        ("reproduced", "By side, who else came to its value: launches, other hosts, other actors."),
        ("gate", "What --require asked of B, its answer (holds, fails, open), and why."),
    ):
        definitions["Comparison"]["properties"][name] = {"type": "object", "description": says}
    says = "The command that would decide an inconclusive pair."
    definitions["Comparison"]["properties"]["next"] = {"type": "string", "description": says}
    reasons = {"type": "array", "items": {"type": "string"}, "description": "Why it is not supported."}
    definitions["ClaimVerdict"]["properties"]["reasons"] = reasons
    definitions["ClaimVerdict"]["required"].append("reasons")
    one, pair, claim = ({"$ref": f"#/$defs/{name}"} for name in ("ReceiptVerdict", "Comparison", "ClaimVerdict"))
    return {
        "$schema": DRAFT,
        "title": "Verdict 1.0",
        "description": "A list of verdicts (`check --json`, `claim check --json`), one verdict, or a comparison.",
        "anyOf": [{"type": "array", "items": one}, {"type": "array", "items": claim}, one, pair, claim],
        "$defs": dict(sorted(definitions.items())),
    }


def _object(kind: type, names: Mapping[str, Any], definitions: dict[str, Schema]) -> Schema:
    reference = {"$ref": f"#/$defs/{kind.__name__}"}
    if kind.__name__ in definitions:
        return reference
    definitions[kind.__name__] = {}
    hints = typing.get_type_hints(kind, localns=dict(names))
    properties = {item.name: _type(hints[item.name], names, definitions) for item in dataclasses.fields(kind)}
    definitions[kind.__name__] = {
        "type": "object",
        "description": (kind.__doc__ or "").strip().partition("\n\n")[0].replace("\n    ", " "),
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return reference


_PLAIN = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def _type(hint: Any, names: Mapping[str, Any], definitions: dict[str, Schema]) -> Schema:
    if hint is Any:
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [item.value for item in hint]}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _object(hint, names, definitions)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_type(item, names, definitions) for item in arguments]}
    if origin is tuple and arguments[-1] is Ellipsis:
        return {"type": "array", "items": _type(arguments[0], names, definitions)}
    if origin is tuple:
        items = [_type(item, names, definitions) for item in arguments]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    raise TypeError(f"no JSON Schema for {hint!r}: teach docs/schemas.py")


def type_text(schema: Schema, path: str) -> str:
    """The type at a catalogue path (`[]` marks list items, `*` an open map's keys) in words."""
    node: Schema = schema
    for part in path.split("."):
        node = _plain(schema, node)
        if part == "*":
            return f"map to {_words(schema, node.get('additionalProperties', {}))}"
        name = part.removesuffix("[]")
        node = node["properties"][name]
        if part.endswith("[]"):
            node = _plain(schema, node)["items"]
    return _words(schema, node)


def _plain(schema: Schema, node: Schema) -> Schema:
    """Through references, and past the null that every unrequired key may be."""
    if "anyOf" in node:
        options = [item for item in node["anyOf"] if item.get("type") != "null"]
        if len(options) == 1:
            return _plain(schema, options[0])
    if "$ref" in node:
        return _plain(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
    return node


def _words(schema: Schema, node: Schema) -> str:
    node = _plain(schema, node)
    if "anyOf" in node:
        texts = [_words(schema, item) for item in node["anyOf"]]
        return " or ".join(dict.fromkeys(text for text in texts if text != "integer" or "number" not in texts))
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return "one of " + ", ".join(f"`{value}`" for value in node["enum"])
    kind = node.get("type")
    if kind == "array":
        return f"list of {_words(schema, node.get('items', {}))}"
    if (
        kind == "object"
        and "properties" in node
        and "additionalProperties" in node
        and not node["additionalProperties"]
    ):
        return "object (" + ", ".join(f"`{name}`" for name in node["properties"]) + ")"
    if kind == "object":
        return f"map to {_words(schema, node.get('additionalProperties', {}))}"
    return _scalar(node)


def _scalar(node: Schema) -> str:
    kind = node.get("type")
    if kind == "boolean":
        return "true or false"
    if kind == "string":
        if node.get("format") == "date-time":
            return "time with zone"
        return "64 hex digits" if "{64}" in node.get("pattern", "") else "text"
    low, high = node.get("minimum"), node.get("maximum")
    bounded = low is not None and abs(low) < 1e9
    if bounded and high == 1:
        return f"{kind} {low} to 1"
    return f"{kind} ≥ {low}" if bounded else str(kind)
