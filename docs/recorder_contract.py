"""The files by which the recorder knows leaves, lanes and Megatron's names without the engine.

``receipts/emit/contract.json`` holds what each leaf may be, read off the published schema, and what each lane asks of a
launch, found by judging a receipt of that lane in which nothing is stated but its steps.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from schemas import receipt_schema

from receipts.ingest.vocabulary import table, tables
from receipts.judging.rule import Topic
from receipts.judging.rulebook import builtin
from receipts.receipt.leaf import AGREE
from receipts.receipt.leaves import COLLECTIONS, leaves
from receipts.receipt.names import SPELLINGS

Node = Mapping[str, Any]


def recorder_contract() -> str:
    """The text of the file, one leaf and one need a line."""
    schema = receipt_schema()
    lanes = dict(_lanes())
    shares = Counter(need for lane in lanes.values() for need in lane["needs"].items())
    needs = dict(need for need, count in shares.items() if 2 * count > len(lanes))
    for lane in lanes.values():
        own = lane.pop("needs")
        lane["needs"] = {path: rule for path, rule in own.items() if needs.get(path) != rule}
        lane["without"] = [path for path in needs if path not in own]
    document = {
        "schema_version": max(schema["properties"]["schema_version"]["enum"]),
        "evidence_rule": builtin().rules.about(Topic.EVIDENCE)[0],
        "leaves": dict(_leaves(schema, schema["$defs"], "")),
        "ranks": {leaf.path: leaf.ranks for leaf in leaves() if leaf.ranks != AGREE},
        "groups": {leaf.path: leaf.group for leaf in leaves() if leaf.group},
        "collections": list(COLLECTIONS),
        "names": dict(SPELLINGS),
        "needs": needs,
        "lanes": lanes,
    }
    return _text(document, 0) + "\n"


def megatron_names() -> str:
    """The text of ``receipts/emit/megatron.json``: names that the recorder shares with the reader of logs."""
    parts = []
    for part in ("arguments", "features", "lists", "words"):
        rows = [f"    {json.dumps(name)}: {json.dumps(item)}" for name, item in table("megatron")[part].items()]
        parts.append(f"  {json.dumps(part)}: {{\n" + ",\n".join(rows) + "\n  }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def argument_names() -> str:
    """The text of ``receipts/axes/argument_names.json``: the leaves that frameworks' arguments state, by name."""
    known: dict[str, set[str]] = {}
    for framework in sorted(tables()):
        for path, entry in table(framework).get("arguments", {}).items():
            for name in entry["names"]:
                known.setdefault(name, set()).add(path)
    rows = (f"  {json.dumps(name)}: {json.dumps(sorted(paths))}" for name, paths in sorted(known.items()))
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _leaves(node: Node, defs: Mapping[str, Node], before: str) -> Iterator[tuple[str, list[Any]]]:
    for name, item in node["properties"].items():
        shape = _stated(item, defs)
        path = before + name
        if "properties" in shape and shape.get("additionalProperties") is False:
            yield from _leaves(shape, defs, f"{path}.")
        elif shape.get("type") == "array" and "properties" in _stated(shape["items"], defs):
            yield from _leaves(_stated(shape["items"], defs), defs, f"{path}[].")
        elif kind := _kind(shape):
            yield path, kind


def _stated(item: Node, defs: Mapping[str, Node]) -> Node:
    """The shape of a value that is stated: without null, and with references followed."""
    options = [option for option in item.get("anyOf", ()) if option.get("type") != "null"]
    found = options[0] if len(options) == 1 else item
    return defs[found["$ref"].rpartition("/")[2]] if "$ref" in found else found


def _kind(shape: Node) -> list[Any]:
    """What a leaf may be: its kind, then bounds or choices. Empty for open maps, which the recorder knows by name."""
    kind = shape.get("type")
    if "enum" in shape:
        return ["one", *shape["enum"]]
    if kind == "string":
        if "pattern" in shape:
            return ["hex", 64] if "{64}" in shape["pattern"] else ["match", shape["pattern"]]
        return ["time"] if shape.get("format") == "date-time" else ["text", shape.get("maxLength", 10_000)]
    if kind in ("integer", "number"):
        return [kind, shape.get("minimum"), shape.get("maximum")]
    if kind == "boolean":
        return ["boolean"]
    if kind == "array":
        return ["list", *_kind(shape["items"])]
    return ["counts"] if kind == "object" and "minimum" in shape.get("additionalProperties", {}) else []


def _lanes() -> Iterator[tuple[str, dict[str, Any]]]:
    from receipts.judging.rulebook import Rulebook

    book = Rulebook()
    for name in book.lanes.names():
        lane = book.lanes.get(name)
        yield (
            name,
            {
                "version": lane.version,
                "title": lane.title,
                "needs": dict(_needs(name, book)),
                "where": dict(_where(name, book)),
                "witness": list(lane.witness),
                "evidence": lane.evidence,
                "early_flags": list(lane.early_flags),
            },
        )


def _where(name: str, book: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is asked besides, and what is not, where a leaf has a value: a captured graph has breaks to count."""
    usual = dict(_needs(name, book))
    postures = book.lanes.get(name).postures
    for path, value in (*(("compile.posture", item) for item in postures), ("hardware.chips", 1)):
        section, leaf = path.split(".")
        needs = dict(_needs(name, book, {section: {leaf: value}}))
        also = {need: rule for need, rule in needs.items() if need not in usual}
        less = [need for need in usual if need not in needs and path not in need.split("|")]
        if also or less:
            yield f"{path}={value}", {"also": also, "less": less}


def _needs(name: str, book: Any, stated: Mapping[str, Any] | None = None) -> Iterator[tuple[str, str]]:
    """What the rules miss in a receipt of the lane, each path (``a|b`` for any) with the rule that asks first."""
    from receipts.judging.facts import Facts
    from receipts.judging.rule import Case
    from receipts.metrics import Launch
    from receipts.receipt import Document, parse

    run = {"launch": "none", "lane": name, "kind": "training", "outcome": "ok", "provenance": "measured"}
    tree: dict[str, Any] = {"schema_version": "1.0", "run": {**run, "started": "2026-01-01T00:00:00Z"}}
    tree |= stated or {}
    lane = book.lanes.get(name)
    found: dict[str, str] = {}
    # A rate that is stated, as that of tokens a step is, raises further questions.
    for measured in ({}, {"tokens_per_step": 1}):
        tree["measurement"] = {"step_durations_seconds": [1.0] * 100, **measured}
        case = Case(Launch(parse(Document(json.dumps(tree).encode(), name)), lane), lane, Facts())
        for rule in book.rules.on("receipt"):
            if not rule.applies(case):
                continue
            paths = list(rule.missing(case)) or [item.at for item in rule.judge(case) if item.found == "not stated"]
            for path in paths:
                found.setdefault(path, rule.code)
    wheels = {wheel for lineage in (*lane.documented, *lane.impossible) for wheel in lineage.wheels}
    for wheel in sorted(wheels):
        found.setdefault(wheel if "." in wheel else f"wheels.{wheel}", "R305")
    # R301 tells these itself, in one finding.
    for path in ("path.witnessed", "evidence"):
        found.pop(path, None)
    yield from found.items()


def _text(value: Any, depth: int) -> str:
    if not isinstance(value, dict) or not value or depth > 3:
        return json.dumps(value, ensure_ascii=False)
    inner = "  " * (depth + 1)
    rows = [f"{inner}{json.dumps(key)}: {_text(item, depth + 1)}" for key, item in value.items()]
    return "{\n" + ",\n".join(rows) + "\n" + "  " * depth + "}"
