"""Reading a plan: the receipt's own model over a document in which what only a run knows may be absent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from receipts.base.errors import InputError, Problem
from receipts.receipt import VERSION, Document, Parsed, Receipt, read
from receipts.receipt.load import parse_json
from receipts.receipt.parse import upcast
from receipts.receipt.problems import problems

if TYPE_CHECKING:
    from receipts.store import Store

# Placeholders for what only a run knows, so that the same model reads plans. They are never judged or stored.
_UNKNOWN: Final[Mapping[str, Any]] = {
    "kind": "training",
    "outcome": "ok",
    "provenance": "projected",
    "started": "1970-01-01T00:00:00Z",
}


def read_plan(source: str, store: Store | None = None) -> Parsed:
    """The plan in a file, or, where a store is given, the stored receipt of that id, label or pin.

    Raises InputError with every problem and its path, NotFound where there is neither.
    """
    if store is not None and not Path(source).exists() and not source.endswith(".json"):
        return store.get(source, repeated=True)
    return parse_plan(read(source))


def parse_plan(document: Document) -> Parsed:
    """The plan in a document. Raises InputError with every problem, each with its path.

    Its id is that of the bytes as they came, as a receipt's is; its launch is that id where it names none.
    """
    return _parsed(document, parse_json(document))


def plan_of(tree: Mapping[str, Any], source: str) -> Parsed:
    """The plan of an object that was read already, such as a line of a launcher's candidates."""
    return _parsed(Document(json.dumps(tree).encode(), source), dict(tree))


def _parsed(document: Document, tree: dict[str, Any]) -> Parsed:
    filled = _filled(tree, document.id)
    current = upcast(filled, document.source)
    if _outcome(tree) is None:
        _refuse_leftovers(current, document.source)
    try:
        receipt = Receipt.model_validate_json(json.dumps(current).encode())
    except ValidationError as error:
        raise InputError(document.source, problems(error, current)) from None
    return Parsed(document.id, document.raw, document.source, receipt)


def _outcome(tree: Mapping[str, Any]) -> Any:
    run = tree.get("run")
    return run.get("outcome") if isinstance(run, dict) else None


def _refuse_leftovers(tree: Mapping[str, Any], source: str) -> None:
    """What another launch applied would win over what a plan asks for. Raises InputError where the two differ."""
    numerics = tree.get("numerics")
    if not isinstance(numerics, dict):
        return
    requested, applied = numerics.get("recompute"), numerics.get("recompute_applied")
    if requested is not None and applied not in (None, requested):
        conflict = f"a launch applied {applied!r}, and this plan asks for {requested!r}"
        do = "leave it out of a plan: only a launch shows what is applied"
        raise InputError(source, [Problem("numerics.recompute_applied", conflict, do)])


def _filled(tree: dict[str, Any], plan_id: str) -> dict[str, Any]:
    """The document with placeholders where a plan may be silent. What is no object stays for the model to refuse."""
    plan = {**tree, "schema_version": tree.get("schema_version", VERSION)}
    run = plan.get("run", {})
    if isinstance(run, dict):
        unstated = {key: value for key, value in _UNKNOWN.items() if run.get(key) is None}
        launch = run.get("launch") or f"plan-{plan_id[:12]}"
        plan["run"] = {**run, **unstated, "launch": launch}
    return plan
