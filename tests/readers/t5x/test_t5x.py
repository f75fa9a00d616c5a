"""CLU's logging writer, as T5X and others use it."""

from __future__ import annotations

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.t5x.log import T5X

PREFIX = "I0303 04:05:06.070809 139636568140672 logging_writer.py:48] "


def log(*records: str) -> Reading:
    (reading,) = scan(["\n".join(PREFIX + record for record in records).encode()], [T5X])
    return reading


RECORD = (
    "[250] collection=train accuracy=0.5, learning_rate=0.01, loss=4000, loss_per_nonpadding_target_token=4.25, "
    "timing/seconds=10, timing/seqs=3200, timing/seqs_per_second=320, timing/steps_per_second=5, "
    "timing/target_tokens_per_second=65536, timing/target_tokens_per_second_per_core=8192, timing/uptime=42"
)


def test_a_record_is_a_mean_over_the_steps_since_the_last_one() -> None:
    steps = log(RECORD).steps
    assert steps.numbers() == [250]
    assert steps.get(250, "step_seconds") == 0.2
    assert steps.get(250, "tokens_per_second") == 65536
    assert steps.get(250, "global_batch") == 64
    assert steps.interval == 50


@pytest.mark.parametrize("prefix", ["INFO:absl:", "", "(worker-0) "])
def test_a_record_is_read_under_any_handler_of_the_log(prefix: str) -> None:
    other = f"{prefix}[Hyperparameters] collection=train {{'learning_rate': 0.1}}"
    (found,) = scan([f"{other}\n{prefix}{RECORD}\n".encode()], [T5X])
    assert found.steps.numbers() == [250]


def test_the_loss_is_a_tokens_and_not_the_batchs_sum() -> None:
    assert log(RECORD).steps.get(250, "loss") == 4.25


def test_devices_are_told_and_not_called_chips() -> None:
    reading = log(RECORD)
    assert "hardware.chips" not in reading.stated
    assert reading.steps.get(250, "tokens_per_second_per_chip") is None
    assert any("8 JAX devices" in remark.text for remark in reading.remarks)


def test_compilation_is_summed_over_collections() -> None:
    reading = log(
        "[0] collection=train timing/compilation_seconds=40.5",
        "[0] collection=inference_eval timing/compilation_seconds=2.25",
    )
    assert reading.compile.seconds == 42.75
    assert len(reading.steps) == 0


def test_evaluations_are_no_steps() -> None:
    reading = log(RECORD, "[250] collection=training_eval/c4 loss_per_all_target_tokens=4.5, timing/steps_per_second=9")
    assert reading.steps.get(250, "step_seconds") == 0.2
    assert len(reading.steps) == 1


def test_plain_clu_records_have_a_rate_and_no_interval() -> None:
    reading = log("[300] steps_per_sec=8, train_loss=2.5, uptime=60")
    assert reading.steps.get(300, "step_seconds") == 0.125
    assert reading.steps.interval is None


def test_a_loss_of_nan_is_divergence() -> None:
    assert log(RECORD.replace("token=4.25", "token=nan")).diverged is True


def test_two_records_on_one_line_are_both_read() -> None:
    assert log(f"{RECORD} {PREFIX}{RECORD.replace('[250]', '[300]')}").steps.numbers() == [250, 300]


@pytest.mark.parametrize("text", ["[1] collection=train ", "[1] a=b", "[1] timing/steps_per_second=0", "[] x=1"])
def test_a_record_without_a_figure_is_no_step(text: str) -> None:
    assert scan([(PREFIX + text).encode()], [T5X]) == []
