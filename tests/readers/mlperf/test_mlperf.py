"""MLPerf's records: steps from samples, time from the records' clock, settings, and the machine's description."""

from __future__ import annotations

import json
from typing import Any

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import DEFECT, scan
from receipts.readers.mlperf.log import Mlperf


def record(key: str, value: Any = None, at: int = 0, **metadata: Any) -> str:
    body = {"namespace": "", "time_ms": 1_700_000_000_000 + at, "event_type": "POINT_IN_TIME", "key": key}
    return ":::MLLOG " + json.dumps({**body, "value": value, "metadata": {"file": "a.py", **metadata}}) + "\n"


def read(text: str) -> Reading:
    (found,) = scan([text.encode()], [Mlperf])
    return found


RUN = [
    record("submission_benchmark", "llama2_70b_lora"),
    record("seed", 11),
    record("global_batch_size", 8),
    record("gradient_accumulation_steps", 2),
    record("opt_base_learning_rate", 0.0005),
    record("lora_rank", 16),
    record("run_start", at=1_000),
    record("block_start", at=1_000, samples_count=0),
    record("train_loss", 2.0, at=31_000, samples_count=80),
    record("train_loss", 1.5, at=51_000, samples_count=160),
    record("tracked_stats", {"throughput": 4.0}, at=51_000, step=160),
    record("block_stop", at=51_000, samples_count=160),
    record("eval_start", at=51_000, samples_count=160),
    record("eval_accuracy", 0.94, at=90_000, samples_count=160),
    record("block_start", at=91_000, samples_count=160),
    record("train_loss", 1.25, at=111_000, samples_count=240),
    record("run_stop", at=112_000, status="success"),
]


@pytest.mark.parametrize("prefix", ["", "0: ", " 0: ", "node1: "])
def test_losses_stand_at_the_step_of_their_samples(prefix: str) -> None:
    found = read("".join(prefix + row for row in RUN))
    assert found.steps.numbers() == [10, 20, 30]
    assert found.steps.column("loss") == [2.0, 1.5, 1.25]
    assert (found.diverged, found.ended, found.steps.interval) == (False, True, 10)


def test_a_steps_time_is_that_between_losses_of_a_block() -> None:
    found = read("".join(RUN))
    assert found.steps.column("step_seconds") == pytest.approx([3.0, 2.0, 2.0])
    assert found.not_steady == {10: "warmup"}


def test_the_throughput_of_the_last_block_is_a_mean_where_no_series_follows() -> None:
    stated = read(
        "".join(row for row in RUN if "_loss" not in row and "block" not in row and "run_st" not in row)
    ).stated
    assert stated["measurement.stated.step_seconds"].value == 2.0
    assert stated["measurement.stated.statistic"].value == "mean"


def test_settings() -> None:
    values = {path: leaf.value for path, leaf in read("".join(RUN)).stated.items()}
    assert (values["batch.global_batch"], values["batch.accumulation"], values["numerics.seed"]) == (8, 2, 11)
    assert (values["numerics.adapters.kind"], values["numerics.adapters.rank"]) == ("lora", 16)
    assert values["model.name"] == "llama2_70b_lora"


def test_counts_of_steps_stay_what_they_are() -> None:
    text = record("global_batch_size", 64)
    text += "".join(
        record("tracked_stats", {"throughput": 8.0, "loss": 1.0 / step}, at=step * 1000, step=step)
        for step in (25, 50, 75)
    )
    found = read(text)
    assert found.steps.numbers() == [25, 50, 75]
    assert found.steps.get(50, "loss") == 0.02


def test_gpt3_counts_tokens() -> None:
    text = record("submission_benchmark", "gpt3") + record("global_batch_size", 1536)
    text += record("max_sequence_length", 2048)
    text += record("train_loss", 3.0, samples_count=1536 * 2048 * 5)
    assert read(text).steps.numbers() == [5]


def test_the_machine_is_read_from_its_description() -> None:
    system = {
        "number_of_nodes": "2",
        "accelerators_per_node": "8",
        "accelerator_model_name": "NVIDIA H200",
        "other_software_stack": {"cuda_version": "12.6.1", "nccl_version": "2.22.3", "cudnn_version": ""},
    }
    text = "+ echo ':::SYSJSON " + json.dumps(system) + "'\n:::SYSJSON " + json.dumps(system) + "\n" + RUN[0]
    values = {path: leaf.value for path, leaf in read(text).stated.items()}
    assert (values["hardware.hosts"], values["hardware.chips"]) == (2, 16)
    assert (values["platform.cuda"], values["platform.nccl"]) == ("12.6.1", "2.22.3")
    assert "platform.cudnn" not in values


@pytest.mark.parametrize(
    ("stack", "path", "value"),
    [
        ([{"cuda_version": "12.6"}, {"nccl_version": "2.22.3"}], "platform.nccl", "2.22.3"),
        (["Vendor Stack 1.16"], "features.software_stack", "Vendor Stack 1.16"),
        ("Vendor Stack 1.16", "features.software_stack", "Vendor Stack 1.16"),
        ({"amdgpu_kernel_driver": "6.12"}, "platform.driver", "6.12"),
        ("", "wheels.torch", "2.10.0+rocm7.2"),
    ],
)
def test_a_software_stack_is_a_table_a_list_or_a_text(stack: Any, path: str, value: str) -> None:
    system = {"number_of_nodes": "1", "framework": "PyTorch 2.10.0+rocm7.2, ROCm 7.2", "other_software_stack": stack}
    assert read(":::SYSJSON " + json.dumps(system) + "\n" + RUN[0]).stated[path].value == value


def test_a_run_that_missed_its_target_says_so() -> None:
    found = read(record("run_stop", status="aborted"))
    assert found.ended
    assert "aborted" in found.remarks[0].text


def test_two_records_on_a_line_are_two() -> None:
    text = record("global_batch_size", 4).rstrip() + record("train_loss", 1.0, samples_count=40)
    assert read(text).steps.numbers() == [10]


@pytest.mark.parametrize(
    "text",
    [
        ":::MLLOG {",
        ":::MLLOG " + "{" * 5000,
        ":::MLLOG [1, 2]",
        ':::MLLOG {"key": "train_loss", "value": 1e999, "metadata": {"samples_count": ' + "9" * 100 + "}}",
        ':::MLLOG {"key": 7, "value": {}, "metadata": 3, "time_ms": "x"}',
        ":::MLLOG " * 3000,
        ':::SYSJSON {"number_of_nodes": -1, "accelerators_per_node": [], "other_software_stack": 3}',
    ],
)
def test_a_broken_record_stops_no_reading(text: str) -> None:
    (reading,) = scan([text.encode() + b"\n", record("train_loss", 1.0, samples_count=40).encode()], [Mlperf])
    assert not any(DEFECT in remark.text for remark in reading.remarks)
    assert reading.steps.numbers()[-1] == 40


def test_a_record_that_a_document_abridged_has_its_samples_beside_the_key() -> None:
    text = ':::MLLOG {"key": "global_batch_size", "value": 8}\n'
    text += ':::MLLOG {"key": "train_loss", "value": 1.25, "samples_count": 160, "lr": 0.0002}\n'
    steps = read(text).steps
    assert (steps.numbers(), steps.get(20, "loss"), steps.get(20, "step_seconds")) == ([20], 1.25, None)
