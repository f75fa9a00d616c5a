"""Composer's console: the metrics below a batch's head are one step."""

from __future__ import annotations

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.loops.loop import reader


def batch(number: int, *metrics: str, epoch: str = "", prefix: str = "") -> str:
    rows = [f"{epoch}[batch={number}/4800]:", f"\t Train time/batch: {number - 1}"]
    rows += [f"\t Train time/sample: {(number - 1) * 256}", *(f"\t Train {metric}" for metric in metrics)]
    return "".join(f"{prefix}{row}\n" for row in rows)


def read(text: str) -> Reading:
    (found,) = scan([text.encode()], [reader("composer")])
    return found


FIGURES = (
    "loss/train/total: 2.5000",
    "l2_norm/grad/global: 0.7500",
    "throughput/batches_per_sec: 0.2500",
    "throughput/tokens_per_sec: 131072.0000",
    "throughput/device/tokens_per_sec: 16384.0000",
    "throughput/device/flops_per_sec: 412500000000000.0000",
    "throughput/device/mfu: 0.4170",
    "memory/peak_allocated_mem: 44.5000",
    "trainer/device_train_microbatch_size: 16",
)


@pytest.mark.parametrize("prefix", ["", "[rank0]: ", "\x1b[36m(pid=12)\x1b[0m "])
@pytest.mark.parametrize("epoch", ["", "[epoch=1/2]"])
def test_metrics_of_a_batch_are_one_step_in_units_of_the_system(epoch: str, prefix: str) -> None:
    found = read("".join(batch(n, *FIGURES, epoch=epoch, prefix=prefix) for n in (11, 12)))
    assert found.steps.numbers() == [11, 12]
    values = {name: found.steps.get(12, name) for name in ("loss", "grad_norm", "step_seconds", "mfu", "global_batch")}
    assert values == {"loss": 2.5, "grad_norm": 0.75, "step_seconds": 4.0, "mfu": 0.417, "global_batch": 256}
    assert found.steps.get(12, "tokens_per_second_per_chip") == 16384.0
    assert found.steps.get(12, "tflops_per_second_per_chip") == 412.5
    assert [row.peak_bytes for row in found.memory] == [44_500_000_000]
    assert found.stated["batch.micro_batch"].value == 16


def test_metrics_of_an_evaluation_are_no_step() -> None:
    evaluation = "[Eval batch=1/20] Eval on eval data:\n\t Eval metrics/eval/LanguageCrossEntropy: 3.0\n"
    found = read(batch(7, "loss/train/total: 2.5") + evaluation)
    assert (found.steps.numbers(), found.steps.get(7, "loss")) == ([7], 2.5)


def test_a_batch_without_a_loss_is_none() -> None:
    assert scan([batch(3, "throughput/batches_per_sec: 0.25").encode()], [reader("composer")]) == []


def test_a_loss_that_is_not_a_number_is_divergence() -> None:
    found = read(batch(1, "loss/train/total: 2.5") + batch(2, "loss/train/total: nan"))
    assert found.diverged is True


def test_rates_are_averages_and_no_step_has_a_time_of_its_own() -> None:
    found = read("".join(batch(n, *FIGURES) for n in range(1, 9)))
    assert found.steps.interval == 100
    assert "unless set otherwise" in found.remarks[-1].text
