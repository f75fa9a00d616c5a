"""The launches of examples/recorder: the clean ones are accepted, and each broken one is named for what is broken."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from command_line import Shell
from receipts.ingest.evidence import read as evidence
from receipts.receipt import parse, read

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "recorder"
RECEIPTS = sorted(FOLDER.glob("*.json"))
CLEAN = (
    *("torch-decoder-clean", "torch-hybrid-clean", "torch-decoder-compiled", "torch-decoder-item"),
    *("torch-xla-decoder-clean", "torch-xla-hybrid-clean", "torch-xla-decoder-lazy"),
)
# The rules that name what was broken on purpose, and a word of what each found.
BROKEN = {
    "torch-decoder-sdpa": {"R302": "sdpa_math"},
    "torch-decoder-breaks": {"R202": "graph break", "R302": "posture regional"},
    "torch-decoder-loop": {"R202": "graph break", "R302": "posture"},
    "torch-decoder-eager": {"R302": "posture eager"},
    "torch-decoder-shapes": {"R202": "compiles after warm-up"},
    "jax-decoder-shapes": {"R202": "compiles after warm-up"},
    "jax-decoder-shapes-8": {"R202": "compiles after warm-up"},
    "jax-decoder-item": {"R303": "1 transfer of live tensors"},
    "jax-decoder-item-8": {"R303": "1 transfer of live tensors"},
    "jax-decoder-drift-8": {"R309": "sharding dp"},
    "torch-xla-decoder-item": {"R303": "1 transfer of live tensors"},
    "torch-xla-decoder-item-8": {"R303": "1 transfer of live tensors"},
    "torch-xla-decoder-fallback": {"R302": "aten::median fell back 320 times", "R303": "1 transfer of"},
    "torch-xla-decoder-shapes": {"R202": "6 compiles after warm-up"},
    "torch-xla-decoder-recompiles": {"R202": "12 compiles after warm-up"},
    "torch-xla-decoder-drift-8": {"R309": "sharding dp"},
}
# What a launch of several virtual devices leaves open: memory by chip, which no runtime tells of a processor. And one
# on a host that became busy: its steps went from 15 to 40 ms.
OPEN = {"jax-decoder-clean": {"R203"}} | {
    name: {"R401"}
    for name in (
        *("jax-decoder-clean-8", "jax-hybrid-clean-8"),
        *("torch-xla-decoder-clean-8", "torch-xla-hybrid-clean-8"),
    )
}
# What evidence says by the engine's own readers, beside the leaves of the receipt that it must agree with.
SEEN = ("attention", "posture", "sharding", "compute_dtype", "runtime", "framework")


def verdict(shell: Shell, name: str) -> dict[str, Any]:
    (found,) = shell("check", str(FOLDER / f"{name}.json"), "--json").json
    assert isinstance(found, dict)
    return found


def test_every_receipt_is_either_clean_or_broken_on_purpose() -> None:
    assert sorted(path.stem for path in RECEIPTS) == sorted([*CLEAN, *BROKEN, *OPEN])


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_launch_is_valid(shell: Shell, name: str) -> None:
    found = verdict(shell, name)
    assert (found["status"], found["path"], found["tainted"]) == ("valid", "witnessed", [])


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_launch_is_named_for_what_is_broken(shell: Shell, name: str) -> None:
    found = verdict(shell, name)
    assert found["status"] == "invalid"
    for code, word in BROKEN[name].items():
        assert any(
            item["code"] == code and item["level"] == "E" and word in item["found"] for item in found["findings"]
        )


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_launch_offends_in_nothing_else(shell: Shell, name: str) -> None:
    offenses = {item["code"] for item in verdict(shell, name)["findings"] if item["level"] == "E"}
    assert offenses == set(BROKEN[name])


@pytest.mark.parametrize("name", OPEN)
def test_a_launch_of_many_virtual_devices_leaves_open_what_it_cannot_know(shell: Shell, name: str) -> None:
    found = verdict(shell, name)
    assert found["status"] == "open"
    assert {item["code"] for item in found["findings"] if item["level"] != "W"} == OPEN[name]


@pytest.mark.parametrize("framework", ["jax", "torch"])
def test_a_loss_that_is_read_in_every_step_is_another_regime(shell: Shell, framework: str) -> None:
    pair = (str(FOLDER / f"{framework}-decoder-{name}.json") for name in ("clean", "item"))
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
        if item.uri.endswith(".json"):
            assert json.loads(content)["launch"] == receipt.run.launch


@pytest.mark.parametrize("path", [path for path in RECEIPTS if "xla" in path.stem], ids=lambda path: path.stem)
def test_what_torch_xla_wrote_says_what_the_receipt_says(path: Path) -> None:
    stated = parse(read(path)).stated
    for item in parse(read(path)).receipt.evidence:
        if not (item.uri or "").endswith(".gz"):
            continue
        seen = evidence(FOLDER / item.uri, item.uri)
        for reading in seen.readings:
            for witness in reading.seen:
                if witness.leaf in SEEN:
                    assert stated[f"path.witnessed.{witness.leaf}"] == witness.value
            if reading.fallbacks is not None:
                named = {key: value for key, value in stated.items() if key.startswith("path.witnessed.fallbacks.")}
                assert {f"path.witnessed.fallbacks.{name}": count for name, count in reading.fallbacks.items()} == named


@pytest.mark.parametrize("path", RECEIPTS, ids=lambda path: path.stem)
def test_a_receipt_names_no_folder_of_the_machine_that_made_it(path: Path) -> None:
    named = parse(read(path)).receipt.evidence
    texts = [path.read_text(encoding="utf-8")]
    for item in named:
        if (item.uri or "").endswith(".gz"):
            texts.append(gzip.decompress((FOLDER / item.uri).read_bytes()).decode())
    found = re.findall(r'(?<![\w./~-])/(?:home|root|work|tmp|Users|mnt|opt)/[^"\s]*', "\n".join(texts))
    assert not found


def test_the_page_has_a_row_for_each_receipt() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(path.stem for path in RECEIPTS)
