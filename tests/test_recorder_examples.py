"""The launches of examples/recorder: the clean ones are accepted, and each broken one is named for what is broken."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from command_line import Shell
from receipts.receipt import parse, read

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "recorder"
RECEIPTS = sorted(FOLDER.glob("*.json"))
CLEAN = ("torch-decoder-clean", "torch-hybrid-clean", "torch-decoder-compiled", "jax-decoder-clean", "jax-decoder-item")
# The rule that names what was broken on purpose, and a word of what it found.
BROKEN = {
    "torch-decoder-sdpa": ("R302", "sdpa_math"),
    "torch-decoder-breaks": ("R202", "graph break"),
    "torch-decoder-shapes": ("R202", "compiles after warm-up"),
    "jax-decoder-shapes": ("R202", "compiles after warm-up"),
}
# What a launch of several virtual devices leaves open: memory by chip, which one process of all of them cannot tell.
OPEN = {"jax-hybrid-clean-8": {"R401"}}


def verdict(shell: Shell, name: str) -> dict[str, Any]:
    (found,) = shell("check", str(FOLDER / f"{name}.json"), "--json").json
    assert isinstance(found, dict)
    return found


def test_every_receipt_is_either_clean_or_broken_on_purpose() -> None:
    assert [path.stem for path in RECEIPTS] == sorted([*CLEAN, *BROKEN, *OPEN])


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_launch_is_valid(shell: Shell, name: str) -> None:
    found = verdict(shell, name)
    assert (found["status"], found["path"], found["tainted"]) == ("valid", "witnessed", [])


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_launch_is_named_for_what_is_broken(shell: Shell, name: str) -> None:
    code, word = BROKEN[name]
    found = verdict(shell, name)
    assert found["status"] == "invalid"
    assert any(item["code"] == code and item["level"] == "E" and word in item["found"] for item in found["findings"])


@pytest.mark.parametrize("name", OPEN)
def test_a_launch_of_many_virtual_devices_leaves_open_what_it_cannot_know(shell: Shell, name: str) -> None:
    found = verdict(shell, name)
    assert found["status"] == "unwitnessed"
    assert {item["code"] for item in found["findings"] if item["level"] != "W"} == OPEN[name]


def test_a_loss_that_is_read_in_every_step_is_another_regime(shell: Shell) -> None:
    pair = (str(FOLDER / f"{name}.json") for name in ("jax-decoder-clean", "jax-decoder-item"))
    said = shell("compare", *pair)
    assert said.code == 1
    assert "C104 different_regime" in said.out
    assert "measurement.synchronisation: device on A, loss read on B" in said.out


@pytest.mark.parametrize("path", RECEIPTS, ids=lambda path: path.stem)
def test_a_receipt_is_the_recorders_own_and_its_evidence_has_its_digest(path: Path) -> None:
    receipt = parse(read(path)).receipt
    assert receipt.measurement.window.start == 20
    witnesses = [item for item in receipt.evidence if item.uri]
    assert witnesses
    for item in witnesses:
        content = (FOLDER / item.uri).read_bytes()
        assert hashlib.sha256(content).hexdigest() == item.sha256
        assert json.loads(content)["launch"] == receipt.run.launch


@pytest.mark.parametrize("path", RECEIPTS, ids=lambda path: path.stem)
def test_a_receipt_names_no_folder_of_the_machine_that_made_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = re.findall(r'(?<![\w./~-])/(?:home|root|work|tmp|Users|mnt|opt)/[^"\s]*', text)
    assert not found


def test_the_page_has_a_row_for_each_receipt() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == [path.stem for path in RECEIPTS]
