"""The parsed receipt: model, id, bytes, and its stated leaves as one flat map."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from receipts.errors import InputError, Problem
from receipts.receipt.document import Receipt
from receipts.receipt.load import Document, parse_json
from receipts.receipt.upcast import upcast

MAX_REPORTED = 50


@dataclass(frozen=True)
class Parsed:
    """A receipt with its identity. ``id`` and ``raw`` are those of the bytes as they came."""

    id: str
    raw: bytes
    source: str
    receipt: Receipt

    @cached_property
    def stated(self) -> Mapping[str, Any]:
        """Every stated leaf by its dotted path; lists of values are leaves, rows of a list are ``chips[0].…``."""
        found: dict[str, Any] = {}
        _flatten(self.receipt.model_dump(mode="json", by_alias=True, exclude_none=True), "", found)
        return found

    @property
    def name(self) -> str:
        """What to call it in a sentence: its label, else the start of its id."""
        return self.receipt.run.label or self.id[:12]


_NOT_FLATTENED = ("measurement.step_durations_seconds", "measurement.step_flags")


def _flatten(node: Any, path: str, found: dict[str, Any]) -> None:
    if isinstance(node, dict) and path not in _NOT_FLATTENED:
        for key, value in node.items():
            _flatten(value, f"{path}.{key}" if path else key, found)
    elif isinstance(node, list) and node and isinstance(node[0], dict):
        for index, item in enumerate(node):
            _flatten(item, f"{path}[{index}]", found)
    else:
        found[path] = node


def parse(document: Document) -> Parsed:
    """Check a document and return the receipt. Raises InputError with every problem, each with its path."""
    tree = parse_json(document)
    current = upcast(tree, document.source)
    raw = document.raw if current is tree else json.dumps(current).encode()
    try:
        receipt = Receipt.model_validate_json(raw)
    except ValidationError as error:
        raise InputError(document.source, _problems(error, tree)) from None
    return Parsed(document.id, document.raw, document.source, receipt)


def _problems(error: ValidationError, tree: dict[str, Any]) -> list[Problem]:
    found: dict[str, Problem] = {}
    for item in error.errors(include_url=False, include_input=False):
        at = _where(item["loc"], tree)
        problem = Problem(at, _what(item), _do(item, at))
        found.setdefault(at, problem)
    problems = list(found.values())
    if len(problems) > MAX_REPORTED:
        rest = len(problems) - MAX_REPORTED
        problems = [*problems[:MAX_REPORTED], Problem("$", f"and {rest} more problems", "mend these first")]
    return problems


def _where(location: tuple[int | str, ...], tree: Any) -> str:
    """The path as the document has it: pydantic adds the names of union members, which are not in the document."""
    path, node = "", tree
    for position, part in enumerate(location):
        last = position == len(location) - 1
        if isinstance(part, int):
            if not isinstance(node, list) or part >= len(node):
                break
            path, node = f"{path}[{part}]", node[part]
        elif isinstance(node, dict) and part in node:
            path, node = f"{path}.{part}" if path else part, node[part]
        elif isinstance(node, dict) and last:
            path = f"{path}.{part}" if path else part
        else:
            break
    return path or "$"


def _what(item: Any) -> str:
    kind, context = item["type"], item.get("ctx", {})
    sentences = {
        "missing": "it is required and not stated",
        "extra_forbidden": "there is no such key",
        "finite_number": "it is not a finite number",
        "timezone_aware": "the time has no zone",
        "string_too_short": "it is empty",
        "literal_error": f"it is not one of {context.get('expected', '')}",
    }
    if kind in sentences:
        return sentences[kind]
    message: str = item["msg"]
    return message[0].lower() + message[1:]


def _do(item: Any, at: str) -> str:
    if item["type"] == "extra_forbidden":
        from receipts.receipt.catalogue import leaves

        names = {leaf.path.replace("[]", "").removesuffix(".*") for leaf in leaves()}
        names |= {name.rsplit(".", 1)[0] for name in names if "." in name}
        bare = at.replace("[", ".").split(".")[-1]
        close = difflib.get_close_matches(at, sorted(names), n=1, cutoff=0.75)
        close = close or [name for name in sorted(names) if name.split(".")[-1] == bare][:1]
        return f"did you mean {close[0]}?" if close else "leave it out, or put it under notes or features"
    if item["type"] == "missing":
        return "state it; receipts never fill a default"
    if item["type"] == "timezone_aware":
        return "add its zone, such as Z or +02:00"
    return ""
