"""The receipt: its identity, its leaves, its versions, its open maps."""

from __future__ import annotations

import copy
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import malformed
import rule_cases
from receipts.base.errors import InputError
from receipts.cli import main
from receipts.receipt import Document, Parsed, Role, parse, read
from receipts.receipt.document import VERSION, Receipt
from receipts.receipt.leaf import Name, Section, axis, observed, section
from receipts.receipt.leaves import _walk, find_leaf, leaves
from receipts.receipt.parse import upcast


def parsed(**changes: Any) -> Parsed:
    """The clean receipt with changes at dotted paths."""
    tree = rule_cases.base()
    for path, value in changes.items():
        rule_cases.put(tree, path, copy.deepcopy(value))
    return rule_cases.parsed(tree)


def problems(tree: dict[str, Any]) -> dict[str, str]:
    """What a document is refused for, by path."""
    with pytest.raises(InputError) as refused:
        rule_cases.parsed(tree)
    return {problem.at: problem.what for problem in refused.value.problems}


# identity


def test_the_id_is_the_digest_of_the_bytes_as_they_came() -> None:
    raw = json.dumps(rule_cases.base(), indent=3).encode() + b"\n\n"
    assert parse(Document(raw, "run.json")).id == hashlib.sha256(raw).hexdigest()


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs sha256sum")
def test_the_id_is_what_sha256sum_prints(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(rule_cases.base()))
    printed = subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout
    assert printed.split()[0] == parse(read(path)).id


def test_bytes_come_back_unchanged_and_a_space_makes_another_receipt() -> None:
    raw = json.dumps(rule_cases.base()).encode()
    one, other = parse(Document(raw, "a")), parse(Document(raw + b" ", "b"))
    assert one.raw == raw
    assert one.id != other.id
    assert one.receipt == other.receipt


def test_a_receipt_cannot_be_changed() -> None:
    receipt = parsed().receipt
    with pytest.raises(ValidationError, match="frozen"):
        receipt.run.lane = "other"
    with pytest.raises(ValidationError, match="frozen"):
        receipt.run = None


def test_a_receipt_is_called_by_its_label_else_by_its_id() -> None:
    tree = rule_cases.base()
    tree["run"]["label"] = "grid 4"
    assert rule_cases.parsed(tree).name == "grid 4"
    del tree["run"]["label"]
    unnamed = rule_cases.parsed(tree)
    assert unnamed.name == unnamed.id[:12]


# what is stated


def test_what_is_not_stated_is_not_there() -> None:
    smallest = {
        "schema_version": VERSION,
        "run": {
            "launch": "l",
            "lane": "unlisted",
            "kind": "training",
            "outcome": "ok",
            "provenance": "measured",
            "started": "2026-03-02T09:00:00Z",
        },
    }
    stated = rule_cases.parsed(smallest).stated
    assert sorted(stated) == ["run.kind", "run.lane", "run.launch", "run.outcome", "run.provenance", "run.started",
                              "schema_version"]  # fmt: skip


def test_null_means_not_stated() -> None:
    assert "model.hidden" not in parsed(**{"model.hidden": None}).stated


def test_false_zero_and_an_empty_list_are_stated() -> None:
    stated = parsed(**{"code.dirty": False, "model.mtp_depth": 0, "compile.cuda_graph_scope": []}).stated
    assert (stated["code.dirty"], stated["model.mtp_depth"], stated["compile.cuda_graph_scope"]) == (False, 0, [])


def test_step_durations_are_one_leaf_and_rows_of_memory_are_many() -> None:
    stated = parsed().stated
    assert isinstance(stated["measurement.step_durations_seconds"], list)
    assert "memory.chips[0].phase" in stated


def test_class_is_the_key_in_the_document() -> None:
    assert parsed(**{"failure.class": "capacity"}).stated["failure.class"] == "capacity"
    tree = rule_cases.base()
    tree["failure"] = {"class_": "capacity"}
    assert problems(tree) == {"failure.class_": "there is no such key"}


def test_a_time_without_zone_is_refused_and_any_zone_is_kept() -> None:
    tree = rule_cases.base()
    tree["run"]["started"] = "2026-03-02T09:00:00"
    assert problems(tree) == {"run.started": "the time has no zone"}
    assert parsed(**{"run.started": "2026-03-02T09:00:00-08:00"}).receipt.run.started.utcoffset() is not None


@pytest.mark.parametrize(
    ("given", "stated"),
    [
        ("2026-03-02T09:00:00Z", "2026-03-02T09:00:00Z"),
        ("2026-03-02T09:00:00.250+00:00", "2026-03-02T09:00:00.250000Z"),
        ("2026-03-02T09:00:00-08:30", "2026-03-02T09:00:00-08:30"),
    ],
)
def test_a_time_is_stated_in_one_form(given: str, stated: str) -> None:
    one = parsed(**{"run.started": given})
    assert one.stated["run.started"] == stated == one.receipt.model_dump(mode="json")["run"]["started"]


def test_a_section_or_map_in_which_nothing_is_stated_is_an_empty_leaf() -> None:
    one = parsed(model={"hidden": None}, patches={}, **{"measurement.step_flags": {"compile": [0]}})
    assert one.stated["model"] == one.stated["patches"] == {}
    assert one.stated["measurement.step_flags"] == {"compile": [0]}
    assert not {"model", "patches", "measurement.step_flags"} & one.places


def test_a_whole_number_may_be_written_for_a_number_and_never_the_other_way() -> None:
    assert parsed(**{"model.capacity_factor": 1}).receipt.model.capacity_factor == 1.0  # type: ignore[union-attr]
    tree = rule_cases.base()
    tree["model"]["hidden"] = 512.0
    assert problems(tree) == {"model.hidden": "it must be a whole number, and is 512.0"}


# roles


def test_every_leaf_has_a_role_and_says_what_it_is() -> None:
    for leaf in leaves():
        assert isinstance(leaf.role, Role), leaf.path
        assert leaf.description.endswith((".", ")")), leaf.path


def test_a_leaf_without_a_role_is_refused() -> None:
    class Inner(Section):
        declared: Name | None = observed("Declared.")
        forgotten: int | None = None

    class Outer(Section):
        inner: Inner | None = section("A part.")

    with pytest.raises(TypeError, match=r"inner\.forgotten declares no role"):
        list(_walk(Outer, ""))


def test_a_leaf_declares_its_axis_on_the_field() -> None:
    class Part(Section):
        alone: int | None = axis("Alone.")
        member: int | None = axis("Member.", of="group", unit="bytes", since="1.3")

    alone, member = _walk(Part, "part.")
    assert (alone.path, alone.axis, alone.since) == ("part.alone", "part.alone", "1.0")
    assert (member.axis, member.unit, member.since) == ("group", "bytes", "1.3")


def test_every_axis_has_a_name_and_nothing_else_has_one() -> None:
    for leaf in leaves():
        assert (leaf.axis is not None) == (leaf.role is Role.AXIS), leaf.path


def test_units_stand_in_names() -> None:
    units = {"seconds": "seconds", "bytes": "bytes", "FLOP/s": "flops_per_second"}
    for leaf in leaves():
        if leaf.unit in units:
            assert units[leaf.unit] in leaf.path.rpartition(".")[2], leaf.path


def test_required_keys_are_those_of_the_design() -> None:
    parts = ("schema_version", "run")
    required = {leaf.path for leaf in leaves() if leaf.required and leaf.path.partition(".")[0] in parts}
    run = {f"run.{key}" for key in ("launch", "lane", "kind", "outcome", "provenance", "started")}
    inside = {
        "run.supersedes.target",
        "run.supersedes.reason",
        "run.parts[].start_step",
        "run.recorded.by",
        "run.recorded.digest",
    }
    assert required == {"schema_version", *run, *inside}


def test_every_stated_leaf_of_a_receipt_is_in_the_catalogue() -> None:
    for path in rule_cases.parsed(rule_cases.base("megatron")).stated:
        leaf = re.sub(r"\[\d+\]", "[]", path)
        assert find_leaf("evidence[].observed" if leaf.startswith("evidence[].observed.") else leaf) is not None, path


# open maps


def test_an_open_map_holds_texts_numbers_and_switches() -> None:
    stated = parsed(**{"flags.A": 1, "flags.B": "x", "flags.C": True, "flags.D": 0.5}).stated
    assert [stated[f"flags.{name}"] for name in "ABCD"] == [1, "x", True, 0.5]


def test_a_flag_may_say_when_it_was_set() -> None:
    stated = parsed(**{"flags.XLA_FLAGS": {"value": "--a=1", "before_runtime": False}}).stated
    assert stated["flags.XLA_FLAGS.value"] == "--a=1"
    assert stated["flags.XLA_FLAGS.before_runtime"] is False


@pytest.mark.parametrize("name", ["wheels", "flags", "patches", "features"])
def test_complete_is_true_or_false_and_nothing_else(name: str) -> None:
    tree = rule_cases.base()
    tree[name] = {"complete": False}
    assert rule_cases.parsed(tree).stated[f"{name}.complete"] is False
    tree[name] = {"complete": "yes"}
    assert problems(tree) == {name: "its `complete` must be true or false"}


def test_a_wheel_is_a_version_and_never_a_switch() -> None:
    tree = rule_cases.base()
    tree["wheels"] = {"torch": True}
    assert problems(tree) == {"wheels": "torch must be a version, or an object with its version"}
    tree["wheels"] = {"torch": {"digest": "x"}}
    assert problems(tree) == {"wheels.torch.version": "it is required and not stated"}


def test_a_list_in_an_open_map_is_told_in_one_sentence() -> None:
    tree = rule_cases.base()
    tree["features"] = {"mtp": [1]}
    assert problems(tree) == {"features.mtp": "it must be a text, a number or true/false, and is a list"}


def test_a_misspelt_key_is_told_the_one_that_was_meant() -> None:
    tree = rule_cases.base()
    tree["model"]["hiden"] = 1
    with pytest.raises(InputError, match=r"did you mean model\.hidden\?"):
        rule_cases.parsed(tree)


def test_rows_of_a_list_are_told_by_their_number() -> None:
    tree = malformed.tree()
    tree["memory"]["chips"][5]["bytes_used"] = -1
    assert problems(tree) == {"memory.chips[5].bytes_used": "it must be 0 or more, and is -1"}


# versions


STEPS = {
    "0.8": ("0.9", lambda tree: {**tree, "run": {**tree["run"], "kind": "training"}}),
    "0.9": ("1.0", lambda tree: {key: value for key, value in tree.items() if key != "machine"}),
}


def old(version: str) -> dict[str, Any]:
    """A document of a made-up older version, in which `machine` stood and `run.kind` did not."""
    tree = rule_cases.base()
    del tree["run"]["kind"]
    return {**tree, "schema_version": version, "machine": "a"}


def test_an_older_version_is_read_by_one_step_a_version() -> None:
    tree = old("0.8")
    before = copy.deepcopy(tree)
    current = upcast(tree, "old.json", steps=STEPS)
    assert Receipt.model_validate_json(json.dumps(current)).run.kind == "training"
    assert current["schema_version"] == "1.0"
    assert tree == before


def test_a_receipt_of_an_older_version_keeps_its_bytes_and_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(upcast.__kwdefaults__ or {}, "steps", STEPS)
    raw = json.dumps(old("0.8")).encode()
    receipt = parse(Document(raw, "old.json"))
    assert receipt.raw == raw
    assert receipt.id == hashlib.sha256(raw).hexdigest()
    assert receipt.receipt.schema_version == "1.0"


def test_a_document_of_1_0_is_read_as_it_is() -> None:
    tree = {**rule_cases.base(), "schema_version": "1.0"}
    receipt = parse(Document(json.dumps(tree).encode(), "old.json"))
    assert receipt.receipt.schema_version == "1.0"
    assert upcast(tree, "old.json") is tree


def test_an_older_version_without_a_step_is_refused() -> None:
    with pytest.raises(InputError, match=r"there is no version 0\.7"):
        upcast(old("0.7"), "old.json", steps=STEPS)


@pytest.mark.parametrize("version", ["1.2", "1.10", "2.0"])
def test_a_newer_version_is_refused_with_the_upgrade_to_make(
    version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**rule_cases.base(), "schema_version": version, "tomorrow": 1}))
    assert main(["check", str(path)]) == 2
    told = capsys.readouterr().err
    assert f"it is version {version}, and this program reads up to {VERSION}" in told
    assert "pip install --upgrade frontier-receipts" in told
