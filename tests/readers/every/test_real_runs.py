"""Whole runs of real packages on a CPU, clean and broken on purpose: what each one's verdict has to say.

The runs lie beside the checkout, and not in it: without them there is nothing to test.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from receipts.ingest.assembly import Ingested, assemble
from receipts.ingest.draft import Options
from receipts.ingest.files import gather, given
from receipts.judging.judge import judge_receipt
from receipts.judging.rulebook import builtin
from receipts.judging.verdict import Level, ReceiptVerdict
from receipts.receipt import Document, parse
from thorough import unless_thorough

REAL = Path(__file__).resolve().parents[4] / "shared" / "cases" / "real"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not REAL.is_dir(), reason="the public runs are not beside this checkout"),
]
STATED = {"run.started": "2026-11-20T13:00:00Z", "run.host": "bench"}
CPU = STATED | {
    "hardware.accelerator": "cpu",
    "hardware.chips": 1,
    "numerics.compute_dtype": "fp32",
    "numerics.recompute": "none",
    "path.intended.attention": "auto",
}
LANES = {"torch_xla": "cpu-torch-xla", "jax": "cpu-jax", "torch": "cpu-torch"}
# By folder: what it did, as the codes of its offences; `crash` is an outcome. Every other folder is a clean run.
# R111 is not asked here: that a loss above ln(vocabulary) is no offence of a short run is not ingest's to say.
OFFENCES: dict[str, set[str]] = {
    "jax/hlo_dump_1layer": {"R202"},  # it counts a compile after a warm-up of its own, of one step
    "jax/late_recompile": {"R202"},
    "jax/profile_host_sync": {"R303"},
    "jax/recompile_shapes": {"R202"},
    "maxtext/hlo_quantization_fp8": {"R302", "R307"},  # the program asks for fp8; what was compiled computes in bf16
    "torch/compile_graph_break_item": {"R202", "R302"},
    "torch/compile_recompile_limit": {"R302"},
    "torch/compile_recompile_python_int": {"R202"},
    "torch/compile_recompile_shapes": {"R202"},
    "torch_xla/cpu_fallback_nonzero": {"R202", "R302", "R303"},
    "torch_xla/cpu_fallback_static": {"R302", "R303"},
    "torch_xla/cpu_fallback_unique": {"R202", "R302", "R303"},
    "torch_xla/dynamic_shapes": {"R202"},
    "torch_xla/eager_mode": {"R302", "R304"},
    "torch_xla/item_every_step": {"R303"},
    "torch_xla/late_recompile": {"R202"},
    "torch_xla/openxla_dynamo": {"R302", "R304"},
    "torch_xla/print_loss": {"R303"},
}
# What shows in the folder's files is that it failed.
CRASHED = ("megatron-lm/single_bf16", "torchtitan/v0.2.2_fsdp2_gloo", "torchtitan/v0.3.0_cpu_fails_flexattention")
POSTURES = {"torch_xla": "xla_lazy", "torch/compile": "whole_graph", "torch/sdpa": "eager"}


def folders() -> list[str]:
    tools = (
        [tool for tool in sorted(REAL.iterdir()) if tool.name not in ("scripts", "versions")] if REAL.is_dir() else []
    )
    return [
        f"{tool.name}/{run.name}" for tool in tools if tool.is_dir() for run in sorted(tool.iterdir()) if run.is_dir()
    ]


def stated(name: str) -> dict[str, Any]:
    """What whoever ran it would state."""
    tool = name.partition("/")[0]
    if tool not in LANES:
        return STATED
    posture = next((value for start, value in POSTURES.items() if name.startswith(start)), None)
    own: dict[str, Any] = {"compile.posture": posture} if posture else {}
    if "bf16" in name:
        own["numerics.compute_dtype"] = "bf16"
    if "spmd" in name or (tool == "jax" and "single" not in name):
        own["hardware.chips"] = 8
    return CPU | own


@cache
def ingested(name: str, window: int | None = None) -> tuple[Ingested, ReceiptVerdict]:
    lanes = builtin().lanes
    known = tuple(lanes.get(item) for item in lanes.names())
    own = {} if window is None else {"measurement.window.start": window}
    with given([str(REAL / name)]) as (files, _):
        found = assemble(
            gather(files), Options(LANES.get(name.partition("/")[0]), "training", stated(name) | own, known)
        )
    parsed = parse(Document(found.raw, name))
    return found, judge_receipt(parsed, lanes.get(parsed.receipt.run.lane), builtin().rules)


def offences(verdict: ReceiptVerdict) -> set[str]:
    return {item.code for item in verdict.findings if item.level is Level.ERROR} - {"R111"}


@pytest.mark.parametrize("name", folders())
def test_a_run_has_the_offences_that_it_shows_and_no_other(name: str) -> None:
    found, verdict = ingested(name)
    assert offences(verdict) == OFFENCES.get(name, set())
    outcomes = ("crash",) if name in CRASHED else ("ok", "unknown")
    assert found.tree["run"]["outcome"] in outcomes


@pytest.mark.parametrize(
    "name", [name for name in folders() if name.startswith("torch_xla/")][:: unless_thorough(3, 1)]
)
def test_a_stated_window_changes_no_verdict_of_a_run_that_warmed_up_in_five_steps(name: str) -> None:
    assert offences(ingested(name, 5)[1]) == OFFENCES.get(name, set())


def test_math_attention_is_an_offence_of_who_asked_for_another() -> None:
    lanes, rules = builtin().lanes, builtin().rules
    for asked, wanted in (("sdpa_flash", {"R302"}), ("math", set())):
        with given([str(REAL / "torch/sdpa_math")]) as (files, _):
            settings = stated("torch/sdpa_math") | {"path.intended.attention": asked}
            found = assemble(gather(files), Options("cpu-torch", "training", settings, (lanes.get("cpu-torch"),)))
        parsed = parse(Document(found.raw, "math"))
        assert offences(judge_receipt(parsed, lanes.get("cpu-torch"), rules)) == wanted
