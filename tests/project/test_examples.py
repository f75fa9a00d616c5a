"""The example receipts are receipts, and the program says of each what their page says."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from receipts.base.environment import bundled_folder
from receipts.cli import main
from receipts.receipt import parse, read

pytestmark = pytest.mark.slow

FOLDER = bundled_folder("schema") / "examples"
_ROW = re.compile(r"^\| \[([^]]+)\]\(([^)]+)\) \| ([^|]+) \| (\w+) \| (\w+) \| ([^|]+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """A row of the page."""

    name: str
    provenance: str
    status: str
    findings: frozenset[str]

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path:
        return FOLDER / self.name


def _rows() -> list[Example]:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    found = []
    for name, link, _, provenance, status, findings in _ROW.findall(page):
        assert name == link
        codes = frozenset() if findings.strip() == "–" else frozenset(findings.strip().split(", "))
        found.append(Example(name, provenance, status, codes))
    return found


EXAMPLES = _rows()
every_example = pytest.mark.parametrize("example", EXAMPLES, ids=str)


def _tree(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return found


def test_every_example_stands_on_the_page() -> None:
    assert {item.name for item in EXAMPLES} == {path.name for path in FOLDER.glob("*.json")}


@every_example
def test_an_example_fits_the_json_schema(example: Example) -> None:
    schema = json.loads((bundled_folder("schema") / "receipt-1.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(_tree(example.name))


@every_example
def test_an_example_is_a_receipt_of_its_provenance(example: Example) -> None:
    assert parse(read(example.path)).receipt.run.provenance == example.provenance


@every_example
def test_check_says_of_an_example_what_the_page_says(example: Example, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["check", "--json", str(example.path)])
    (verdict,) = json.loads(capsys.readouterr().out)
    assert verdict["status"] == example.status
    assert code == {"valid": 0, "invalid": 1, "open": 3}[example.status]
    assert {f"{item['level']} {item['code']}" for item in verdict["findings"]} == example.findings


@every_example
def test_an_illustration_says_so_in_its_notes(example: Example) -> None:
    assert ("illustration" in _tree(example.name)["notes"]) == (example.provenance == "illustrative")


@pytest.mark.parametrize("name", ["measured.json", "profile.json", "resumed.json"])
def test_a_measured_example_was_written_by_the_program_beside_it(name: str) -> None:
    digest = hashlib.sha256((FOLDER / "decoder.py").read_bytes()).hexdigest()
    assert _tree(name)["code"]["imported_digest"] == digest


@pytest.mark.parametrize(("name", "key"), [("profile.json", "witness_for"), ("resumed.json", "resumed_from")])
def test_an_example_that_names_a_launch_names_the_measured_one(name: str, key: str) -> None:
    assert _tree(name)["run"][key] == _tree("measured.json")["run"]["launch"]


def test_the_lanes_that_people_run_and_their_failures_are_shown() -> None:
    shown = {(_tree(item.name)["run"]["lane"], _tree(item.name)["run"]["outcome"]) for item in EXAMPLES}
    assert shown >= {
        ("nvidia-megatron", "ok"),
        ("nvidia-megatron", "oom"),
        ("tpu-torch-xla", "ok"),
        ("tpu-torch-xla", "oom"),
        ("nvidia-fsdp2", "ok"),
    }


@pytest.mark.parametrize("name", [item.name for item in EXAMPLES if item.status == "invalid"])
def test_only_its_provenance_makes_an_illustration_invalid(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = _tree(name)
    tree["run"]["provenance"] = "measured"
    path = tmp_path / name
    path.write_text(json.dumps(tree))
    # Called measured, it is no result either: no program wrote it.
    asked = tree["run"]["outcome"] == "ok"
    assert main(["check", "--json", str(path)]) == (3 if asked else 0)
    (row,) = json.loads(capsys.readouterr().out)
    assert [item["code"] for item in row["findings"] if item["level"] != "W"] == (["R316"] if asked else [])
