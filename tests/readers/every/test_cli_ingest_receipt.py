"""``receipts ingest`` with a receipt among its files: the receipt stands, and what the others show is added to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from command_line import Shell

Writer = Callable[..., dict[str, Any]]
FREEZE = "click==8.1\nnumpy==2.1\npip==24.0\ntorch=={}\nwheel==0.4\n"
STEPS = [0.5 + step / 1000 for step in range(30)]


@pytest.fixture
def receipt(shell: Shell) -> Writer:
    """Write run.json as a recorder leaves it, with sections of the caller's; the tree."""

    def make(**sections: Any) -> dict[str, Any]:
        run = {"launch": "one", "lane": "unlisted", "kind": "training", "outcome": "ok", "provenance": "measured"}
        tree = {
            "schema_version": "1.0",
            "run": {**run, "started": "2026-03-02T09:00:00Z"},
            "hardware": {"accelerator": "cpu", "chips": 1},
            "batch": {"global_batch": 8, "sequence_length": 128},
            "measurement": {"step_durations_seconds": STEPS},
        }
        for name, section in sections.items():
            tree[name] = {**tree.get(name, {}), **section} if isinstance(section, dict) else section  # type: ignore[dict-item]
        (shell.folder / "run.json").write_text(json.dumps(tree, indent=1), encoding="utf-8")
        return tree

    return make


def trace(shell: Shell, kernel: str = "aten::_scaled_dot_product_flash_attention_for_cpu") -> None:
    """A profile of the processor's operators: flash attention, ten times."""
    events = [
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 990},
        *(
            {"ph": "X", "cat": "cpu_op", "name": kernel, "pid": 1, "tid": 1, "ts": 10 + 20 * at, "dur": 10}
            for at in range(10)
        ),
    ]
    document = {"schemaVersion": 1, "deviceProperties": [], "record_shapes": 1, "traceEvents": events}
    (shell.folder / "trace.json").write_text(json.dumps(document), encoding="utf-8")


def ingest(shell: Shell, *words: str) -> dict[str, Any]:
    """The receipt and all that is told of it."""
    outcome = shell("ingest", *words, "--json")
    assert outcome.code == 0, outcome.err
    return dict(outcome.json)


def test_a_receipt_keeps_what_it_states_and_gains_what_a_trace_shows(shell: Shell, receipt: Writer) -> None:
    own = receipt()
    trace(shell)
    found = ingest(shell, "run.json", "trace.json")["receipt"]
    for section in ("hardware", "batch"):
        assert found[section] == own[section]
    assert found["measurement"]["step_durations_seconds"] == STEPS
    assert (found["run"]["launch"], found["run"]["started"]) == ("one", "2026-03-02T09:00:00Z")
    assert found["path"]["witnessed"]["attention"] == "sdpa_flash"
    assert [entry["kind"] for entry in found["evidence"]] == ["receipt", "torch-profiler"]


def test_a_receipt_alone_keeps_its_bytes(shell: Shell, receipt: Writer) -> None:
    receipt()
    assert shell("ingest", "run.json", "-o", "same.json").code == 0
    assert (shell.folder / "same.json").read_bytes() == (shell.folder / "run.json").read_bytes()


def test_a_file_that_contradicts_the_receipt_is_told_and_moves_nothing(shell: Shell, receipt: Writer) -> None:
    receipt(wheels={"torch": {"version": "2.9.0"}})
    (shell.folder / "freeze.txt").write_text(FREEZE.format("2.8.0"), encoding="utf-8")
    found = ingest(shell, "run.json", "freeze.txt")
    assert found["receipt"]["wheels"] == {
        "torch": {"version": "2.9.0"},
        "click": "8.1",
        "numpy": "2.1",
        "pip": "24.0",
        "wheel": "0.4",
    }
    assert [(item["path"], item["stands"]) for item in found["contradictions"]] == [
        ("wheels.torch", "2.9.0, as run.json states")
    ]


def test_a_map_that_the_receipt_lists_whole_gains_no_entry(shell: Shell, receipt: Writer) -> None:
    receipt(wheels={"complete": True, "torch": "2.9.0"})
    (shell.folder / "freeze.txt").write_text(FREEZE.format("2.9.0"), encoding="utf-8")
    found = ingest(shell, "run.json", "freeze.txt")
    assert found["receipt"]["wheels"] == {"complete": True, "torch": "2.9.0"}
    assert {item["path"] for item in found["contradictions"]} == {
        f"wheels.{name}" for name in ("click", "numpy", "pip", "wheel")
    }


def test_an_observation_that_a_trace_opposes_is_stated_with_it(shell: Shell, receipt: Writer) -> None:
    receipt(path={"witnessed": {"attention": "sdpa_flash", "fallbacks": {}}})
    trace(shell, "aten::_scaled_dot_product_attention_math")
    found = ingest(shell, "run.json", "trace.json")
    assert found["receipt"]["path"]["witnessed"]["attention"] == "sdpa_flash+sdpa_math"
    assert "path.witnessed.attention" in {item["path"] for item in found["contradictions"]}


def test_steps_of_a_log_beside_the_receipts_own_are_left_out_and_told(shell: Shell, receipt: Writer) -> None:
    receipt()
    lines = (
        f"[titan] 2026-03-02 09:00:{step:02d},512 - root - INFO - step: {step:2d}  loss: {9 - step / 10:8.5f}  "
        f"memory: 40.25GiB(50.31%)  tps: {100 + step:,}  tflops: 251.20  mfu: 25.40%\n"
        for step in range(1, 41)
    )
    (shell.folder / "run.log").write_text("".join(lines), encoding="utf-8")
    found = ingest(shell, "run.json", "run.log")
    assert found["receipt"]["measurement"]["step_durations_seconds"] == STEPS
    assert found["receipt"]["measurement"]["loss"]["first"] == 8.9
    assert "run.log prints 40 steps; the 30 of run.json stand" in " ".join(item["text"] for item in found["remarks"])


def test_what_a_person_states_stands_above_the_receipt(shell: Shell, receipt: Writer) -> None:
    receipt()
    words = ("--set", "hardware.chips=2", "--lane", "cpu-torch", "--kind", "profile")
    found = ingest(shell, "run.json", *words)["receipt"]
    assert (found["hardware"]["chips"], found["run"]["lane"], found["run"]["kind"]) == (2, "cpu-torch", "profile")
    assert found["notes"]["ingest.stated_by_user"] == ["hardware.chips", "run.kind", "run.lane"]


def test_two_receipts_are_two_launches(shell: Shell, receipt: Writer) -> None:
    receipt()
    (shell.folder / "other.json").write_bytes((shell.folder / "run.json").read_bytes() + b"\n")
    refused = shell("ingest", "run.json", "other.json")
    assert refused.code == 2
    assert "2 receipts (other.json, run.json)" in refused.err


def test_a_receipt_with_errors_is_refused_with_all_of_them(shell: Shell, receipt: Writer) -> None:
    receipt(hardware={"chips": "eight"}, batch={"global_batch": -1})
    refused = shell("ingest", "run.json")
    assert refused.code == 2
    assert "hardware.chips" in refused.err
    assert "batch.global_batch" in refused.err


def test_records_of_other_programs_and_plans_are_no_receipts(shell: Shell, receipt: Writer) -> None:
    own = receipt()
    record = '{"schema_version": 1, "created_at": "2026-03-02T09:00:00Z", "startup": {"outcome": "pass"}}'
    (shell.folder / "startup.json").write_text(record, encoding="utf-8")
    plan = {**own, "run": {"launch": "one", "lane": "unlisted", "kind": "training", "provenance": "projected"}}
    (shell.folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    assert ingest(shell, "run.json", "startup.json", "plan.json")["receipt"] == own


def test_a_receipt_that_was_cut_off_is_refused(shell: Shell, receipt: Writer) -> None:
    receipt()
    path = shell.folder / "run.json"
    path.write_bytes(path.read_bytes()[:-10])
    refused = shell("ingest", "run.json")
    assert refused.code == 2
    assert "this is not JSON" in refused.err
