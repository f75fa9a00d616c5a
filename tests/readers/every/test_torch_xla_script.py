"""Step lines of torch_xla's scripts, torchprime, and plain loops that print JSON."""

from __future__ import annotations

import math

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.loops.loop import reader
from receipts.readers.xla.torch_xla import TorchXlaScript


def script(*lines: str) -> Reading:
    (reading,) = scan(["\n".join(lines).encode()], [TorchXlaScript])
    return reading


def training(step: int, loss: float, *, device: str = "xla:0/0", epoch: int = 1) -> str:
    return (
        f"| Training Device={device} Epoch={epoch} Step={step} Loss={loss:.5f} Rate=250.00 GlobalRate=240.00 "
        "Time=10:11:12"
    )


@pytest.mark.parametrize(
    "line",
    [
        training(40, 2.5),
        "2020-06-11 20:49:13 10.0.0.5 [0] | Training Device=xla:8/0 Step=40 Loss=2.50000 Rate=18.24 GlobalRate=18.24",
        "[xla:0](40) Loss=2.50000 Rate=18.24 GlobalRate=18.24 Time=Thu Jun 11 20:49:13 2020",
        "[xla:0](40)\tLoss=2.500\tRate=18.24\tGlobalRate=18.24",
        "[xla:0](40) Loss=2.50000 ",
        ".| Training Device=xla:1 Epoch=1 Step=40 Learning_Rate=1e-05 Loss=2.50000 Throughput=8.76 Time=2023-09-30",
        "INFO:torchprime: Epoch: 1, step: 40, loss: 2.5000, trace time: 12.50 ms",
        "Epoch: 0.2500, step: 40, loss: 2.5000, grad_norm: 1.2500, lr: 1.00e-04, trace time: 12.50 ms",
    ],
)
def test_a_step_line_gives_step_and_loss_and_no_time_of_its_own_making(line: str) -> None:
    steps = script(line).steps
    assert steps.numbers() == [40]
    assert steps.get(40, "loss") == 2.5
    assert steps.get(40, "step_seconds") is None


def test_torchprime_states_its_global_batch() -> None:
    lines = "[t][__main__][INFO] -     Global batch size: 64", "Epoch: 1, step: 40, loss: 2.5000, trace time: 12.50 ms"
    assert script(*lines).stated["batch.global_batch"].value == 64


def test_what_rates_are_is_told() -> None:
    assert any("samples a second" in remark.text for remark in script(training(0, 2.5)).remarks)


def test_trace_time_and_the_rest_of_a_step_are_its_time() -> None:
    line = "Step: 3, loss: 0.5000, trace time: 40.00 ms, step time: 210.00 ms"
    assert script(line).steps.get(3, "step_seconds") == 0.25


def test_processes_that_print_the_same_step_are_one_step() -> None:
    reading = script(training(0, 2.5, device="xla:0/0"), training(0, 2.25, device="xla:0/1"), training(20, 2.0))
    assert reading.steps.numbers() == [0, 20]
    assert reading.steps.restarts == 0


def test_lines_that_processes_wrote_into_each_other_are_both_read() -> None:
    assert script(training(0, 2.5) + training(20, 2.0)).steps.numbers() == [0, 20]


def test_steps_go_on_over_epochs() -> None:
    reading = script(*(training(n, 2.0) for n in (0, 20, 40)), *(training(n, 1.0, epoch=2) for n in (0, 20)))
    assert reading.steps.numbers() == [0, 20, 40, 60, 80]
    assert reading.steps.restarts == 0
    assert any("epoch" in remark.text for remark in reading.remarks)


def test_a_loss_of_nan_is_divergence() -> None:
    assert script(training(0, 2.5), training(20, math.nan)).diverged is True


def test_validation_lines_are_no_steps() -> None:
    assert scan([b"[xla:0](40) Val Loss=2.5\n| Test Device=xla:0/0 Step=0 Epoch=1\n"], [TorchXlaScript]) == []


def loop(*lines: str) -> list[Reading]:
    return scan(["\n".join(lines).encode()], [reader("jax_loop")])


def test_a_json_line_with_units_is_a_step() -> None:
    (reading,) = loop('{"step": 3, "loss": 2.5, "step_time_ms": 125.0, "tokens_per_second": 1000, "grad_norm": 0.5}')
    assert reading.steps.get(3, "step_seconds") == 0.125
    assert reading.steps.get(3, "tokens_per_second") == 1000
    assert reading.steps.get(3, "loss") == 2.5


def test_a_nan_that_python_wrote_is_divergence() -> None:
    (reading,) = loop('{"step": 3, "loss": NaN, "step_seconds": 0.5}')
    assert reading.diverged is True


@pytest.mark.parametrize(
    "line",
    [
        '{"step": 3, "loss": 2.5, "step_time": 0.5}',
        '{"step": "3", "step_seconds": 0.5}',
        '{"step": true, "step_seconds": 0.5}',
        '{"epoch": 3, "step_seconds": 0.5}',
        '{"step": 3, "_step": 3, "step_seconds": 0.5}',
        'eval: {"step": 3, "step_seconds": 0.5}',
        '[Validation 2] {"step": 3, "step_seconds": 0.5}',
        '{"step": 3, "step_seconds": 0.5',
        '{"step": 3, "step_seconds": "0.5"}',
    ],
)
def test_what_leaves_room_for_a_guess_is_no_step(line: str) -> None:
    assert loop(line) == []
