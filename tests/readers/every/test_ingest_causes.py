"""Proven defects are offences, and the finding tells their cause: the argument, the operator, the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from receipts.ingest.assembly import assemble
from receipts.ingest.draft import Options
from receipts.ingest.files import gather, given
from receipts.judging.judge import judge_receipt
from receipts.judging.rulebook import builtin
from receipts.judging.verdict import Level, ReceiptVerdict
from receipts.receipt import Document, parse

SAMPLES = Path(__file__).parent / "samples" / "causes"
WHOLE = {"compile.posture": "whole_graph"}


def judged(place: Path, lane: str | None = None, **settings: Any) -> ReceiptVerdict:
    """The verdict on what a user gets out of one file or folder."""
    rulebook = builtin()
    known = tuple(rulebook.lanes.get(name) for name in rulebook.lanes.names())
    with given([str(place)]) as (items, _):
        found = assemble(gather(items), Options(lane, None, {"run.started": "2026-03-02T09:00:00Z"} | settings, known))
    parsed = parse(Document(found.raw, place.name))
    return judge_receipt(parsed, rulebook.lanes.of(parsed.receipt.run.lane), rulebook.rules)


def offences(verdict: ReceiptVerdict) -> dict[str, str]:
    """What was found, by the code of each rule that rejects."""
    return {item.code: item.found for item in verdict.findings if item.level is Level.ERROR}


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        ("jax_late_shape_1", "argument ids changed from f32[64,64] to f32[32,64] (train.py:34)"),
        ("jax_late_shape_0", "train_step: argument 2 of 3 changed from float32[64,64] to float32[32,64]"),
        ("jax_weak_type_1", "rate changed from f32[]{weak_type=True} to f32[]{weak_type=False} (train.py:34)"),
        ("jax_new_lambda_1", "<lambda> is defined anew for every call (train.py:30), 10 times"),
        ("dynamo_late_shape", "tensor 'x' size at index 0 changed from 8 to 4 (dyn.py:13)"),
    ],
)
def test_a_late_compile_names_what_changed_and_the_line(log: str, cause: str) -> None:
    assert cause in offences(judged(SAMPLES / f"{log}.log"))["R202"]


def test_a_compile_after_the_last_step_and_first_traces_are_no_offence_and_no_news() -> None:
    verdict = judged(SAMPLES / "jax_after_end_1.log", "cpu-jax")
    assert not offences(verdict)
    (file,) = gather_one(SAMPLES / "jax_after_end_1.log")
    assert not [remark for reading in file.readings for remark in reading.remarks if "traced" in remark.text]


def gather_one(place: Path) -> Any:
    with given([str(place)]) as (items, _):
        return gather(items)


def test_a_graph_break_names_the_operator_and_the_line() -> None:
    found = offences(judged(SAMPLES / "dynamo_graph_break.log", "cpu-torch", **WHOLE))
    assert "`Tensor.item()`" in found["R202"]
    assert found["R202"].endswith("(dyn.py:15)")
    assert found["R302"].endswith("(dyn.py:15)")


def test_a_function_that_lost_its_program_left_the_path_on_any_lane() -> None:
    found = offences(judged(SAMPLES / "dynamo_limit.log", "cpu-torch", **WHOLE))["R302"]
    assert "torch.compile:forward fell back once: recompile_limit of 3 reached" in found
    assert "guard self.turn == 2 failed (dyn.py:20)" in found


@pytest.mark.parametrize("lane", [None, "cpu-torch-xla"])
@pytest.mark.parametrize(
    ("case", "code", "cause"),
    [
        ("torch_xla/dynamic_shapes", "R202", "xla_train.py:128"),
        ("torch_xla/late_recompile", "R202", "xla_train.py:128"),
        ("torch_xla/cpu_fallback_nonzero", "R302", "aten::nonzero fell back 20 times"),
        ("torch_xla/cpu_fallback_static", "R302", "aten::median fell back 20 times"),
        ("torch_xla/cpu_fallback_unique", "R302", "aten::_unique2 fell back 20 times"),
        ("torch_xla/item_every_step", "R303", "(xla_train.py:123), 20 times; aten::_local_scalar_dense, 20 times"),
        ("torch_xla/print_loss", "R303", "(xla_train.py:125), 20 times; no operator"),
    ],
)
def test_torch_xla_runs_that_were_broken_on_purpose(
    cases: Path, case: str, lane: str | None, code: str, cause: str
) -> None:
    assert cause in offences(judged(cases / "real" / case, lane))[code]


@pytest.mark.parametrize(
    ("case", "code", "cause"),
    [
        ("recompile_shapes", "R202", "train_step: argument ids changed from"),
        ("late_recompile", "R202", "argument ids changed from i32[8,128] to i32[8,64] (jax_train.py:90)"),
        ("profile_host_sync", "R303", "__float__ of an array, 3 times"),
    ],
)
def test_jax_runs_that_were_broken_on_purpose(cases: Path, case: str, code: str, cause: str) -> None:
    for lane in (None, "cpu-jax"):
        assert cause in offences(judged(cases / "real" / "jax" / case, lane))[code]


@pytest.mark.parametrize(
    ("case", "code", "cause"),
    [
        ("recompile_shapes", "R202", "tensor 'i' size at index 1 changed"),
        ("recompile_python_int", "R202", "(torch_compile_cases.py:17)"),
        ("graph_break_item", "R202", "(torch_compile_cases.py:15)"),
        ("recompile_limit", "R302", "guard s.k == 2 failed (torch_compile_cases.py:17)"),
    ],
)
def test_torch_compile_runs_that_were_broken_on_purpose(cases: Path, case: str, code: str, cause: str) -> None:
    assert cause in offences(judged(cases / "real" / "torch" / f"compile_{case}", "cpu-torch", **WHOLE))[code]


@pytest.mark.parametrize("case", ["torch_xla/clean", "jax/clean_no_cache", "jax/profile_clean", "torch/compile_clean"])
def test_a_clean_run_has_no_offence(cases: Path, case: str) -> None:
    assert not offences(judged(cases / "real" / case))


def test_eager_operators_leave_a_lazy_path(cases: Path) -> None:
    found = offences(judged(cases / "real" / "torch_xla" / "eager_mode", **{"compile.posture": "xla_lazy"}))
    assert found["R302"].startswith("posture eager")


@pytest.mark.parametrize("number", ["01", "02", "03", "07"])
def test_another_attention_backend_left_the_path(cases: Path, number: str) -> None:
    (log,) = (cases / "logs" / "nvidia" / "te").glob(f"{number}-*.log")
    meant = "te_flash" if number == "07" else "te_fused"
    assert "R302" in offences(judged(log, **{"path.intended.attention": meant}))
