"""What the recorder says is missing is what the rules miss: for every lane, and where a leaf asks for another one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from receipts.emit.contract import missing
from receipts.emit.facts import StatedFacts
from receipts.judging.judge import judge_receipt
from receipts.judging.rulebook import builtin
from receipts.receipt import Document, parse

LANES = builtin().lanes
RUN = {"launch": "none", "kind": "training", "outcome": "ok", "provenance": "measured", "context": "mine"}
STEPS = {"step_durations_seconds": [1.0] * 100, "tokens_per_step": 4096}
# One finding of R301 holds the witnessed path, R305 all wheels; the recorder lists them one by one.
FOLDED = ("path.witnessed", "evidence", "wheels.", "platform.cudnn", "run.lane")


def stated() -> Iterator[tuple[str, dict[str, Any]]]:
    """Lanes, each with what a run of it may state."""
    for name in LANES.names():
        yield name, {}
        yield name, {"hardware.chips": 1}
        yield name, {"measurement.window.start": 10, "compile.compiles_after_warmup": 0}
        yield from ((name, {"compile.posture": posture}) for posture in LANES.get(name).postures)


def by_check(lane: str, leaves: dict[str, Any]) -> set[str]:
    tree: dict[str, Any] = {"schema_version": "1.0", "run": {**RUN, "lane": lane, "started": "2026-01-01T00:00:00Z"}}
    tree["measurement"] = dict(STEPS)
    for path, value in leaves.items():
        node, parts = tree, path.split(".")
        for part in parts[:-1]:
            node = node.setdefault(part, {})
        node[parts[-1]] = value
    parsed = parse(Document(json.dumps(tree).encode(), lane))
    findings = judge_receipt(parsed, LANES.get(lane), builtin().rules).findings
    return {item.at for item in findings if item.unjudged or item.found == "not stated"}


def by_recorder(lane: str, leaves: dict[str, Any]) -> set[str]:
    facts = StatedFacts()
    for path, value in {"run.context": "mine", **leaves}.items():
        facts.put(path, value)
    facts.values |= {f"measurement.{name}": value for name, value in STEPS.items()}
    return {item.path.partition("|")[0] for item in missing(facts, lane)}


@pytest.mark.parametrize(("lane", "leaves"), list(stated()), ids=str)
def test_the_recorder_and_the_rules_ask_for_the_same_leaves(lane: str, leaves: dict[str, Any]) -> None:
    asked, missed = by_recorder(lane, leaves), by_check(lane, leaves)
    assert {path for path in asked if not path.startswith(FOLDED)} == {
        path for path in missed if path != "wheels" and not path.startswith(FOLDED)
    }
    witnessed = {f"path.witnessed.{name}" for name in LANES.get(lane).witness}
    assert witnessed <= asked | ({"path.witnessed.sharding"} if leaves.get("hardware.chips") == 1 else set())


@pytest.mark.parametrize("lane", [name for name in LANES.names() if name.startswith("cpu-")])
def test_a_lane_without_cuda_asks_for_no_graphs(lane: str) -> None:
    assert not [path for path in by_recorder(lane, {}) | by_check(lane, {}) if "cuda_graph" in path]
