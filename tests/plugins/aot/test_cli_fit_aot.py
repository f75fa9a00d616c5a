"""``receipts fit --aot``: what is said before anything is compiled, and the receipt of a refusal."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import pytest

from command_line import Shell
from receipts.axes.shape import sign
from receipts.judging.rulebook import Rulebook
from receipts.plugins.aot.compiler import ACCELERATOR, CompiledStep, CompilerAnswer, _failure, oom_receipt
from receipts.questions.fit import estimate
from receipts.questions.plan import plan_of
from receipts.receipt import Document, parse
from tpu_plan import PLAN, plan

pytestmark = pytest.mark.slow

GIB = 2**30
LANES = Rulebook(()).lanes


def test_the_extra_that_is_absent_is_named(shell: Shell) -> None:
    if find_spec("libtpu") is not None:
        pytest.skip("libtpu is installed")
    said = shell("fit", plan(shell.folder), "--aot")
    assert said.code == 2
    assert "pip install 'frontier-receipts[aot]'" in said.err


@pytest.mark.parametrize(("leaves", "says"), [
    (
        {"parallelism__context": 2, "parallelism__data": 2, "batch__global_batch": 4},
        "pipeline and context parallelism are not compiled",
    ),
    ({"hardware__accelerator": "NVIDIA H200"}, f"compiles for {ACCELERATOR}"),
    (
        {"hardware__chips": 3, "parallelism__data": 3, "parallelism__shard": 3, "batch__global_batch": None},
        "3 chips are not a v6e slice",
    ),
    ({"run__kind": "serving"}, "only a train step is compiled"),
])  # fmt: skip
def test_what_cannot_be_compiled_is_said_before_anything_is_loaded(
    shell: Shell, leaves: dict[str, Any], says: str
) -> None:
    said = shell("fit", plan(shell.folder, **leaves), "--aot")
    assert said.code == 2
    assert says in said.err


def test_a_refusal_becomes_a_receipt_of_the_product() -> None:
    message = (
        "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (192.00G) exceeds "
        "available HBM (31.25G)."
    )
    compiled = CompiledStep(message=message, seconds=12.0, versions="jax 0.10.2, jaxlib 0.10.2, libtpu 0.0.42.1")
    answer = CompilerAnswer(compiled, _failure(message), 190.0 * GIB)
    item = plan_of(PLAN, "plan")
    tree = oom_receipt(item, estimate(item, LANES.of("tpu-maxtext")), answer)
    made = parse(Document(json.dumps(tree).encode(), "made"))
    failure = made.receipt.failure
    assert failure is not None
    assert (failure.phase, failure.class_, failure.limit_bytes) == ("compile", "compile_hbm", int(31.25 * GIB))
    assert made.receipt.run.outcome == "oom"
    lane = LANES.of("tpu-maxtext")
    assert sign(made, lane) == sign(item, lane), "preflight finds it by the plan's signature"
    assert made.receipt.run.provenance == "quoted", "no launch of the plan's framework failed"
    assert made.stated["memory.predicted[0].surface"] == "replicated parameters"
    assert "on a host without a TPU" in made.stated["notes.aot"]
