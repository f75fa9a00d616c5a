"""The published JSON Schemas say what the program does."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import malformed
import rule_cases
from receipts.base.environment import bundled_folder
from receipts.base.errors import InputError
from receipts.cli import main
from receipts.receipt.leaves import leaves
from thorough import unless_thorough


def _schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((bundled_folder("schema") / name).read_text(encoding="utf-8"))
    return found


RECEIPT = Draft202012Validator(_schema("receipt-1.schema.json"))
VERDICT = Draft202012Validator(_schema("verdict-1.schema.json"))


@pytest.mark.parametrize("validator", [RECEIPT, VERDICT], ids=["receipt", "verdict"])
def test_the_schema_is_a_schema(validator: Draft202012Validator) -> None:
    Draft202012Validator.check_schema(validator.schema)


@pytest.mark.parametrize("base", ["cpu", "megatron"])
def test_a_receipt_fits(base: str) -> None:
    RECEIPT.validate(rule_cases.base(base))


def test_null_fits_wherever_nothing_need_be_stated() -> None:
    document = rule_cases.base()
    for name in ("model", "measurement", "memory", "flags"):
        document[name] = None
    document["batch"]["micro_batch"] = None
    RECEIPT.validate(document)
    rule_cases.parsed(document)


# What JSON Schema cannot say: a zone, and that 4.0 is not the whole number 4.
BEYOND = {
    'run.started = "2026-03-02T09:00:00"',
    'run.finished = "2026-13-02T09:00:00Z"',
    "batch.micro_batch = 4.0",
    "memory.predicted[0].bytes = 1000000000.0",
}
REFUSED = [*malformed.wrong_types(), *malformed.unknown_keys(), *malformed.required_keys(), *malformed.versions()]


@pytest.mark.parametrize("item", [item for item in REFUSED if item.name not in BEYOND], ids=str)
def test_what_the_program_refuses_the_schema_refuses(item: malformed.Malformed) -> None:
    assert not RECEIPT.is_valid(json.loads(item.make()))


def test_what_lies_beyond_the_schema_is_still_among_the_cases() -> None:
    assert {item.name for item in REFUSED} >= BEYOND


def _places(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items: Any = enumerate(node) if isinstance(node, list) else node.items() if isinstance(node, dict) else ()
    for key, value in items:
        yield (*path, key)
        yield from _places(value, (*path, key))


SMALL = malformed.tree()
SMALL["measurement"]["step_durations_seconds"] = [0.5, 0.4]
SMALL["memory"]["chips"] = SMALL["memory"]["chips"][:1]
SMALL["failure"] = {"class": "capacity", "ladder": [{"launch": "a", "rung": "b"}]}
SMALL["notes"] = {"links": ["x"]}
SMALL["run"]["supersedes"] = {"target": "a", "reason": "b"}
# Neither whole floats nor times without a zone: JSON Schema cannot tell those.
SCALARS = st.none() | st.booleans() | st.integers() | st.sampled_from([0.5, -1.5, "", "x", "x" * 501, "1.0", 2**62 + 1])
KEYS = st.sampled_from(["complete", "value", "version", "chip", "phase", "warmup", "", "x"])
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2))


@pytest.mark.slow
@given(st.sampled_from(list(_places(SMALL))), VALUES)
@settings(max_examples=unless_thorough(100, 300))
def test_on_any_value_anywhere_program_and_schema_agree(place: tuple[str | int, ...], value: Any) -> None:
    document = copy.deepcopy(SMALL)
    node: Any = document
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    told = ""
    try:
        rule_cases.parsed(document)
    except InputError as refused:
        told = str(refused)
    missed = [error.message for error in RECEIPT.iter_errors(document)]
    assert bool(told) == bool(missed), told or missed


def _declared(node: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(node, dict):
        if isinstance(node.get("x-receipts"), dict):
            yield node["x-receipts"]
        for value in node.values():
            yield from _declared(value)
    elif isinstance(node, list):
        for value in node:
            yield from _declared(value)


def test_roles_stand_in_the_schema() -> None:
    declared = list(_declared(_schema("receipt-1.schema.json")))
    assert {item["role"] for item in declared} == {leaf.role.value for leaf in leaves()}
    assert {item["axis"] for item in declared if "axis" in item} <= {leaf.axis for leaf in leaves()}


@pytest.mark.parametrize("name", ["wheels", "flags", "patches", "features"])
def test_open_maps_document_complete(name: str) -> None:
    entries = _schema("receipt-1.schema.json")["properties"][name]["anyOf"][0]
    assert entries["properties"]["complete"]["type"] == "boolean"


def _write(place: Any, name: str, changes: Mapping[str, Any]) -> str:
    tree = rule_cases.base()
    for path, value in changes.items():
        rule_cases.put(tree, path, copy.deepcopy(value))
    target = place / name
    target.write_text(json.dumps(tree))
    return str(target)


def test_what_check_prints_fits(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    clean = _write(tmp_path, "clean.json", {})
    wrong = _write(tmp_path, "wrong.json", {"parallelism.tensor": 3, "numerics.seed": None})
    assert main(["check", "--json", clean, wrong]) == 1
    printed = json.loads(capsys.readouterr().out)
    VERDICT.validate(printed)
    assert [item["status"] for item in printed] == ["valid", "invalid"]
    assert printed[1]["findings"]


@pytest.mark.parametrize(
    "changes",
    [
        {"numerics.learning_rate": 0.5},
        {"numerics.learning_rate": 0.5, "model.mtp_depth": 3, "numerics.seed": None},
        {"run.outcome": "oom", "failure": {"class": "capacity"}},
    ],
    ids=["one axis", "many axes and one unknown", "a failure"],
)
def test_what_compare_prints_fits(
    changes: Mapping[str, Any], tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    a = _write(tmp_path, "a.json", {})
    b = _write(tmp_path, "b.json", {"run.launch": "another", **changes})
    code = main(["compare", "--json", a, b])
    assert code in (0, 1, 3)
    printed = json.loads(capsys.readouterr().out)
    VERDICT.validate(printed)
    assert printed["difference"]["changed"] or printed["findings"]


def test_a_verdict_without_an_answer_does_not_fit(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "--json", _write(tmp_path, "clean.json", {})])
    printed = json.loads(capsys.readouterr().out)
    del printed[0]["path"]
    assert not VERDICT.is_valid(printed)
