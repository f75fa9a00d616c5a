"""Every lane's path can be witnessed from the files that its runs leave, and a run that left it is caught by them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from receipts.axes.lane import Lanes
from receipts.ingest import vocabulary
from receipts.ingest.assembly import Ingested, assemble
from receipts.ingest.draft import Options
from receipts.ingest.evidence import read
from receipts.judging.judge import judge_receipt
from receipts.judging.rulebook import builtin
from receipts.judging.verdict import Question, ReceiptVerdict
from receipts.receipt import Document, parse

pytestmark = pytest.mark.slow

SAMPLES = Path(__file__).parent / "samples"
QUIET = ("R301", "R302", "R303", "R304", "R306", "R307", "R309")
# What no file of the run says, and `receipts ingest` lists under "Not found".
PLAIN = {
    "compile.posture": "eager",
    "compile.cuda_graph_implementation": "none",
    "numerics.recompute": "none",
}
ALONE = {"hardware.accelerator": "cpu", "hardware.chips": 1, "numerics.adapters.kind": "none"}
TORCH = ALONE | {name: value for name, value in PLAIN.items() if not name.startswith("compile.cuda_graph")}
FSDP2 = PLAIN | {"numerics.compute_dtype": "bf16", "numerics.adapters.kind": "none"}
TORCH_XLA = {
    "hardware.accelerator": "tpu-v6e",
    "hardware.chips": 4,
    "numerics.compute_dtype": "bf16",
    "numerics.recompute": "none",
    "path.intended.sharding": "fsdp2_tp2",
}
JAX = ALONE | {
    "numerics.recompute": "none",
    "numerics.compute_dtype": "fp32",
}

# What torch_xla and XLA wrote in the launches of examples/recorder.
RECORDED = "../../../../../examples/recorder/evidence/torch-xla-decoder"
AHEAD = "../../../../../examples/recorder/evidence/v6e-decoder"
TRILLIUM = {"run.started": "2026-05-04T09:00:00Z", "hardware.accelerator": "tpu-v6e", "numerics.recompute": "none"}
CPU_XLA = JAX | {"compile.posture": "xla_step"}

# lane, files, and what is stated beside them
KEPT: dict[str, tuple[str, Sequence[str], dict[str, Any]]] = {
    "megatron": ("nvidia-megatron", ("run.log", "engine.log", "trace.json"), {"compile.posture": "eager"}),
    "megatron in fp8": (
        "nvidia-megatron",
        ("run-fp8.log", "engine.log", "trace-fp8.json"),
        {"compile.posture": "eager"},
    ),
    "megatron with its own compiled helpers": (
        "nvidia-megatron",
        ("run.log", "engine.log", "trace-helpers.json"),
        {"compile.posture": "regional"},
    ),
    "fsdp2": ("nvidia-fsdp2", ("run.log", "trace.json"), FSDP2),
    "fsdp2 in fp8": ("nvidia-fsdp2", ("run.log", "trace-fp8.json"), FSDP2 | {"numerics.compute_dtype": "fp8"}),
    "torch": ("nvidia-torch", ("run.log", "trace.json"), FSDP2),
    "torch, compiled": (
        "nvidia-torch",
        ("run.log", "trace-whole.json"),
        FSDP2 | {"compile.posture": "whole_graph"},
    ),
    "torchtitan": ("nvidia-torchtitan", ("run.log", "trace.json"), PLAIN),
    "torchtitan compiled by blocks": (
        "nvidia-torchtitan",
        ("run-blocks.log", "trace-blocks.json"),
        PLAIN | {"compile.posture": "regional"},
    ),
    "deepspeed": ("deepspeed-zero-offload", ("run.log", "trace.json"), PLAIN | {"numerics.adapters.kind": "none"}),
    "nanotron": ("nanotron", ("run.log", "trace.json"), PLAIN | {"numerics.compute_dtype": "bf16"}),
    "maxtext": (
        "tpu-maxtext",
        ("run.log", "freeze.txt", "program.txt.gz", "profile.json"),
        {"run.started": "2026-05-04T09:00:00Z", "hardware.accelerator": "tpu-v6e", "numerics.recompute": "none"},
    ),
    "maxtext, whose logger reads the last step's figures": (
        "tpu-maxtext",
        ("run.log", "freeze.txt", "program.txt.gz", "profile-reads.json"),
        {"run.started": "2026-05-04T09:00:00Z", "hardware.accelerator": "tpu-v6e", "numerics.recompute": "none"},
    ),
    "maxtext, with splash attention compiled ahead of time": (
        "tpu-maxtext",
        ("run.log", "freeze.txt", f"{AHEAD}-splash.hlo.txt.gz", "profile.json"),
        TRILLIUM,
    ),
    "torch_xla": (
        "tpu-torch-xla",
        ("run.log", "freeze.txt", "warm.txt", "end.txt", "debug.log", "program-fsdp-tensor.txt.gz"),
        TORCH_XLA,
    ),
    "torch on a cpu": (
        "cpu-torch",
        ("run.log", "trace.json.gz"),
        TORCH | {"numerics.compute_dtype": "bf16", "path.intended.attention": "sdpa_flash"},
    ),
    "torch on a cpu, compiled": (
        "cpu-torch",
        ("run.log", "trace-whole.json.gz"),
        TORCH | {"numerics.compute_dtype": "bf16", "compile.posture": "whole_graph"},
    ),
    "jax on a cpu": ("cpu-jax", ("run.log", "freeze.txt", "program.txt.gz"), JAX),
    "torch_xla on a cpu": (
        "cpu-torch-xla",
        ("run.log", "freeze.txt", *(f"{RECORDED}-clean.{name}.txt.gz" for name in ("metrics", "debug", "hlo"))),
        CPU_XLA,
    ),
}

# a kept run, the file that is put in another's place, and the finding: its code and what it names
LEFT = [
    ("megatron", "trace.json", "trace-unfused.json", "R302", "te_unfused"),
    ("megatron", "trace.json", "trace-host.json", "R302", "aten::addmm fell back 2 times"),
    ("megatron", "trace.json", "trace-compiled.json", "R304", "compiled region 1/0"),
    ("megatron", "trace.json", "trace-cut.json", "R301", "nothing shows posture, fallbacks"),
    ("megatron in fp8", "trace-fp8.json", "trace.json", "R307", "matmuls in bf16"),
    ("fsdp2", "trace.json", "trace-unfused.json", "R302", "attention sdpa_math"),
    ("fsdp2", "trace.json", "trace-host.json", "R302", "aten::addmm"),
    ("fsdp2", "trace.json", "trace-whole.json", "R304", "whole_graph"),
    ("fsdp2 in fp8", "trace-fp8.json", "trace.json", "R307", "matmuls in bf16"),
    ("torch", "trace.json", "trace-unfused.json", "R302", "attention sdpa_math"),
    ("torch", "trace.json", "trace-host.json", "R302", "aten::addmm"),
    ("torch, compiled", "trace-whole.json", "trace.json", "R302", "posture eager"),
    ("torchtitan", "trace.json", "trace-unfused.json", "R302", "attention sdpa_math"),
    ("torchtitan", "trace.json", "trace-host.json", "R302", "aten::addmm"),
    ("torchtitan", "trace.json", "trace-whole.json", "R304", "whole_graph"),
    ("torchtitan compiled by blocks", "trace-blocks.json", "trace.json", "R302", "posture eager"),
    ("deepspeed", "trace.json", "trace-unfused.json", "R302", "attention sdpa_math"),
    ("deepspeed", "trace.json", "trace-host.json", "R302", "aten::addmm"),
    ("deepspeed", "trace.json", "trace-whole.json", "R304", "whole_graph"),
    ("nanotron", "trace.json", "trace-unfused.json", "R302", "attention sdpa_math"),
    ("nanotron", "trace.json", "trace-host.json", "R302", "aten::addmm"),
    ("nanotron", "trace.json", "trace-blocks.json", "R304", "regional"),
    ("maxtext", "program.txt.gz", "program-dot.txt.gz", "R302", "xla_unfused"),
    *(
        (
            "maxtext, with splash attention compiled ahead of time",
            f"{AHEAD}-splash.hlo.txt.gz",
            f"{AHEAD}-{other}",
            *said,
        )
        for other, *said in (
            ("flash.hlo.txt.gz", "R302", "pallas_flash"),
            ("plain.hlo.txt.gz", "R302", "xla_unfused"),
        )
    ),
    ("maxtext", "program.txt.gz", "program-half.txt.gz", "R309", "state['up']"),
    ("maxtext", "program.txt.gz", "program-replicated.txt.gz", "R309", "sharding dp"),
    ("maxtext", "program.txt.gz", "program-callback.txt.gz", "R303", "2 transfers"),
    ("torch_xla", "end.txt", "end-median.txt", "R302", "aten::median fell back 20 times"),
    ("torch_xla", "end.txt", "end-item.txt", "R303", "transfers of live tensors"),
    ("torch_xla", "debug.log", "debug-lazy.log", "R304", "xla_lazy"),
    ("torch_xla", "program-fsdp-tensor.txt.gz", "program-dot.txt.gz", "R302", "xla_unfused"),
    ("torch_xla", "program-fsdp-tensor.txt.gz", "program-half.txt.gz", "R309", "replicated"),
    (
        "torch_xla on a cpu",
        f"{RECORDED}-clean.metrics.txt.gz",
        f"{RECORDED}-fallback.metrics.txt.gz",
        "R302",
        "aten::median fell back 320 times",
    ),
    ("torch_xla on a cpu", f"{RECORDED}-clean.debug.txt.gz", f"{RECORDED}-item.debug.txt.gz", "R303", "1 transfer of"),
    ("torch_xla on a cpu", f"{RECORDED}-clean.debug.txt.gz", f"{RECORDED}-lazy.debug.txt.gz", "R302", "xla_lazy"),
    ("torch on a cpu", "trace.json.gz", "trace-math.json.gz", "R302", "attention sdpa_math"),
    ("torch on a cpu", "trace.json.gz", "trace-f32.json.gz", "R302", "compute_dtype fp32"),
    ("torch on a cpu, compiled", "trace-whole.json.gz", "trace-blocks.json.gz", "R302", "posture regional"),
    ("torch on a cpu, compiled", "trace-whole.json.gz", "trace.json.gz", "R302", "posture eager"),
]


@cache
def evidence(lane: str, name: str) -> Any:
    """What is read from one sample."""
    return read(SAMPLES / lane / name, name)


@cache
def lanes() -> Lanes:
    """The lanes that are shipped."""
    return builtin().lanes


def ingested(lane: str, names: Sequence[str], stated: dict[str, Any]) -> Ingested:
    """The files put together as a run on a lane."""
    known = tuple(lanes().get(name) for name in lanes().names())
    return assemble([evidence(lane, name) for name in names], Options(lane, None, stated, known))


def judged(lane: str, found: Ingested) -> ReceiptVerdict:
    """The verdict of the real rules."""
    assert not found.problems
    return judge_receipt(parse(Document(found.raw, "sample")), lanes().get(lane), builtin().rules)


def path_findings(verdict: ReceiptVerdict) -> list[str]:
    """What stands against the path, a line each."""
    return [f"{item.code} {item.at}: {item.found}" for item in verdict.findings if item.question is Question.PATH]


@pytest.mark.parametrize("name", KEPT)
def test_a_run_that_kept_its_path_is_witnessed_by_its_files(name: str) -> None:
    lane, files, stated = KEPT[name]
    verdict = judged(lane, ingested(lane, files, stated))
    assert not [line for line in path_findings(verdict) if line.startswith(QUIET)]
    assert verdict.path == "witnessed", path_findings(verdict)


@pytest.mark.parametrize(("name", "good", "bad", "code", "word"), LEFT)
def test_a_run_that_left_its_path_is_caught_by_its_files(name: str, good: str, bad: str, code: str, word: str) -> None:
    lane, files, stated = KEPT[name]
    verdict = judged(lane, ingested(lane, [bad if item == good else item for item in files], stated))
    found = [item for item in verdict.findings if item.code == code]
    assert any(word in item.found for item in found), path_findings(verdict)
    assert verdict.path != "witnessed"


def test_a_type_that_the_compiler_widened_is_caught_by_its_program() -> None:
    lane, _, stated = KEPT["jax on a cpu"]
    verdict = judged(
        lane,
        ingested(lane, ("run.log", "freeze.txt", "program-bf16.txt.gz"), stated | {"numerics.compute_dtype": "bf16"}),
    )
    # The lane widens its products; which library computed them is asked and judged as ever.
    assert path_findings(verdict) == ["R302 path.witnessed.gemm: gemm xla_fp32"]


@pytest.mark.parametrize("name", KEPT)
def test_what_must_be_stated_by_hand_is_listed_as_not_found(name: str) -> None:
    lane, files, stated = KEPT[name]
    # An intent need not be stated: without one the lane is the intent.
    needed = {path for path in stated if not path.startswith(("run.", "hardware.", "path.intended.attention"))}
    listed = {item.path for item in ingested(lane, files, {"run.started": "2026-05-04T09:00:00Z"}).missing}
    told = {item.path for item in ingested(lane, files, {}).leaves}
    assert needed - told <= listed


def test_every_lane_but_the_undeclared_one_is_shown() -> None:
    # What others published can be witnessed by no more than their logs hold.
    owned = set(lanes().names()) - {"unlisted", "mlperf-closed", "modded-nanogpt"}
    assert {lane for lane, _, _ in KEPT.values()} == owned
    assert {KEPT[name][0] for name, *_ in LEFT} | {"cpu-jax"} == owned


def test_a_lane_is_for_each_loop_of_a_table_that_runs_on_torch() -> None:
    hosts = {name for lane in map(lanes().get, lanes().names()) for name in lane.frameworks}
    assert set(vocabulary.hosts().values()) - hosts == {"paddlenlp", "paxml", "levanter", "axlearn", "tinygrad"}


def test_nothing_witnesses_the_undeclared_lane() -> None:
    lane, files, stated = KEPT["megatron"]
    verdict = judged("unlisted", ingested(lane, files, stated | {"run.lane": "unlisted"}))
    assert verdict.path == "unwitnessed"
    assert any(item.code == "R301" and item.at == "run.lane" for item in verdict.findings)
