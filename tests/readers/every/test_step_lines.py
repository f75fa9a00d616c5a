"""Which training step a line names, in whatever words, and which lines name none."""

from __future__ import annotations

import json

import pytest

from late_compiles import late
from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.ingest.steps import STEP_ANCHORS, step_of
from receipts.readers.jax.compiles import JaxCompiles
from receipts.readers.loops.loop import reader
from receipts.readers.torch.dynamo import DynamoReader

FORMS = [
    "completed step: {}, seconds: 0.5",
    "step:{}/24 train_loss:4.61 train_time:61322ms",
    "step {} | loss 2.64 | 330.04 ms | 873 tok/s",
    "Step: {} loss=2.5",
    "step={} loss=2.5",
    '{{"step": {}, "step_time_ms": 21.0, "loss": 2.694}}',
    '{{"loss":2.694,"step":{},"step_time_ms":21.0}}',
    "{{'step': {}, 'loss': 2.694}}",
    " iteration {:>8}/      24 | elapsed time per iteration (ms): 12.5 |",
    "iter {}: loss 2.5, time 12.00ms",
]
JAX = "Finished tracing {0} for jit in 0.000401497 sec\nFinished XLA compilation of jit({0}) in 1.250000000 sec\n"
DYNAMO = (
    "V0101 10:00:00.000000 77 torch/_dynamo/guards.py:5000] [0/1] [__recompiles] "
    "Recompiling function forward in /home/a/train.py:34\n"
)


def compiled(kind: type[JaxCompiles | DynamoReader], event: str, form: str, step: int) -> Reading:
    """A log of 24 steps of a form, with one compile before the end of a step."""
    lines = [event * (number == step) + form.format(number) + "\n" for number in range(24)]
    (found,) = scan(["".join([*lines, event * (step == 24)]).encode()], [kind])
    return found


@pytest.mark.parametrize("form", FORMS)
def test_a_line_names_its_step_and_holds_an_anchor(form: str) -> None:
    assert step_of(form.format(19)) == 19
    assert any(anchor in form.format(19).encode() for anchor in STEP_ANCHORS)


@pytest.mark.parametrize(
    "line",
    [
        "Completed eval step: 3, seconds: 0.01",
        '{"step": 24, "eval_loss": 2.5, "eval_seconds": 3.0}',
        "step:24/24 val_loss:3.28 train_time:100ms step_avg:4ms",
        "successfully loaded checkpoint from /data at iteration 100",
        "global_step 7 of the scheduler",
        '{"step": null, "loss": 2.5}',
    ],
)
def test_a_line_of_something_else_names_none(line: str) -> None:
    assert step_of(line) is None


@pytest.mark.parametrize("form", FORMS)
def test_compiles_of_jax_and_of_torch_are_placed_among_the_steps_of_any_form(form: str) -> None:
    for kind, event in ((JaxCompiles, JAX.format("advance")), (DynamoReader, DYNAMO)):
        assert late(compiled(kind, event, form, 18)) == 1


def test_an_evaluation_behind_the_last_step_is_no_step_whose_compile_is_late() -> None:
    lines = [json.dumps({"step": step, "step_time_ms": 21.0, "loss": 2.5}) + "\n" for step in range(24)]
    text = "".join([JAX.format("advance"), *lines, JAX.format("judge"), '{"step": 24, "eval_loss": 2.25}\n'])
    compiles, loop = scan([text.encode()], [JaxCompiles, reader("jax_loop")])
    assert (late(compiles), compiles.compile.steps, len(loop.steps)) == (0, 24, 24)
