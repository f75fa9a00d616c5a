"""Published logs of MLPerf: each becomes a receipt that holds what the log holds, as an independent parser reads it."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from receipts.base.errors import UsageError
from receipts.judging.comparison import compare
from receipts.judging.judge import judge_receipt
from receipts.judging.verdict import Level
from receipts.plugins.exchange.published import PublishedLog, find_logs, import_logs
from receipts.receipt import Document, Parsed, parse
from rule_cases import rulebook
from tests.support.thorough import unless_thorough

CASES = Path(__file__).resolve().parents[4] / "shared/cases/published/mlperf-training-v4.1-llm.tar.xz"
SYSTEM = {
    "submitter": "Acme",
    "number_of_nodes": "2",
    "accelerators_per_node": "8",
    "accelerator_model_name": "NVIDIA H200-SXM5-141GB",
    "framework": "NVIDIA NeMo Framework Release 24.09",
    "other_software_stack": {"cuda_version": "12.6.1", "JAX": "0.4.35"},
}


def record(key: str, value: Any = None, at: int = 0, **metadata: Any) -> str:
    body = {"namespace": "", "time_ms": 1_700_000_000_000 + at, "event_type": "POINT_IN_TIME", "key": key}
    return "0: :::MLLOG " + json.dumps({**body, "value": value, "metadata": {"lineno": 3, **metadata}}) + "\n"


def head(benchmark: str = "llama2_70b_lora", batch: int = 8, seed: int = 7, **settings: Any) -> str:
    rows = {"submission_benchmark": benchmark, "submission_division": "closed", "submission_platform": "2xH200"}
    rows |= {"seed": seed, "global_batch_size": batch, **settings}
    return record("init_start") + "".join(record(key, value, 10) for key, value in rows.items())


def blocks(name: str, unit: int, seconds: float = 2.0) -> str:
    """Twelve blocks of six steps, each with one printed mean, whose records count by ``name`` in ``unit`` a step."""
    text, now = record("run_start", at=1_000), 1_000
    for block in range(12):
        count = {"samples_count": block * 6 * 8}
        text += record("block_start", at=now, **count)
        now += int(6_000 * seconds)
        text += record(
            "tracked_stats", {"train_step_time": seconds + block / 64}, now, **{name: (block + 1) * 6 * unit}
        )
        text += record("block_stop", at=now, samples_count=(block + 1) * 48)
        text += record("eval_start", at=now, samples_count=(block + 1) * 48)
        now += 500
        text += record("eval_accuracy", 0.93, now, samples_count=(block + 1) * 48)
    return text + record("run_stop", at=now, status="success")


def repository(root: Path, logs: dict[str, str], system: dict[str, Any] | None = None) -> Path:
    for name, text in logs.items():
        path = root / "training_results_v5.0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        described = path.parents[3] / "systems" / f"{path.parents[1].name}.json"
        described.parent.mkdir(exist_ok=True)
        described.write_text(json.dumps(SYSTEM | (system or {})), encoding="utf-8")
    return root / "training_results_v5.0"


def imported(root: Path, **patterns: str) -> list[PublishedLog]:
    return list(import_logs(find_logs(root, **patterns)))


def receipt(item: PublishedLog) -> Parsed:
    assert item.raw is not None, item.problems
    return parse(Document(item.raw, item.place.name))


def one(tmp_path: Path, text: str, system: dict[str, Any] | None = None) -> Parsed:
    (item,) = imported(repository(tmp_path, {"Acme/results/box/llama2_70b_lora/result_0.txt": text}, system))
    return receipt(item)


@pytest.mark.parametrize(("name", "unit"), [("step", 1), ("step", 8), ("samples_count", 8)])
def test_a_mean_is_over_as_many_steps_as_the_clock_says_whatever_its_record_counts(
    tmp_path: Path, name: str, unit: int
) -> None:
    stated = one(tmp_path, head() + blocks(name, unit)).stated
    assert tuple(stated["measurement.interval_means_seconds"]) == tuple(2 + block / 64 for block in range(12))
    assert tuple(stated["measurement.interval_steps"]) == (6,) * 12
    assert "measurement.step_durations_seconds" not in stated


def test_a_time_of_every_step_is_kept_digit_for_digit(tmp_path: Path) -> None:
    times = [5.112707138061523 + step / 7 for step in range(20)]
    text, now = head("gpt3", 16, max_sequence_length=2048) + record("run_start", at=1_000), 1_000
    text += record("block_start", at=now, first_epoch_num=0, epoch_count=20 * 16 * 2048)
    for step, seconds in enumerate(times, 1):
        now += int(seconds * 1_000)
        text += record("tracked_stats", {"train_step_timing in s": seconds}, now, step=step * 16 * 2048)
        text += record("tracked_stats", {"validation_step_timing in s": 0.1}, now, step=step * 16 * 2048)
    stated = one(tmp_path, text + record("run_stop", at=now, status="success")).stated
    assert tuple(stated["measurement.step_durations_seconds"]) == tuple(times)
    assert "measurement.interval_steps" not in stated
    assert stated["measurement.tokens_per_step"] == 16 * 2048


def test_a_block_that_prints_no_time_has_that_of_its_records_evaluation_and_all(tmp_path: Path) -> None:
    text = head("gpt3", 16, max_sequence_length=2048) + record("run_start", at=1_000)
    for block in range(12):
        first, span = block * 4 * 16 * 2048, 4 * 16 * 2048
        text += record("block_start", at=1_000 + block * 8_000, first_epoch_num=first, epoch_count=span)
        text += record("block_stop", at=9_000 + block * 8_000, first_epoch_num=first)
        text += record("eval_accuracy", 2.7, 9_000 + block * 8_000, epoch_num=first + span)
    stated = one(tmp_path, text + record("run_stop", at=97_000, status="success")).stated
    assert tuple(stated["measurement.interval_means_seconds"]) == (2.0,) * 12
    assert tuple(stated["measurement.interval_steps"]) == (4,) * 12
    assert stated["measurement.region"] == "block with its evaluation"


def test_a_block_that_says_its_length_begins_where_the_one_before_ended(tmp_path: Path) -> None:
    text, now = head("flux1", 16) + record("run_start", at=1_000), 1_000
    for block in range(12):
        text += record("block_start", at=now, samples_count=64, step=block * 4)
        for step in (1, 2, 3):
            at = now + step * 2_000
            text += record("tracked_stats", {"train_loss": 1.5}, at, samples_count=(block * 4 + step) * 16)
        now += 8_000
        text += record("tracked_stats", {"train_step_time": 2.0}, now, samples_count=64)
        text += record("block_stop", at=now, samples_count=64, step=block * 4 + 4)
        text += record("eval_start", at=now, samples_count=(block + 1) * 64)
        now += 500
        text += record("eval_stop", at=now, samples_count=(block + 1) * 64)
    stated = one(tmp_path, text + record("run_stop", at=now, status="success")).stated
    assert set(stated["measurement.step_durations_seconds"]) == {2.0}


def test_steps_say_what_samples_that_count_a_block_do_not(tmp_path: Path) -> None:
    text, now = head("flux1", 16) + record("run_start", at=1_000), 1_000
    for block in range(12):
        text += record("block_start", at=now, samples_count=64, step=block * 4)
        now += 8_000
        text += record("block_stop", at=now, samples_count=64, step=block * 4 + 4)
        now += 500
        text += record("eval_stop", at=now, samples_count=(block + 1) * 64, step=block * 4 + 4)
    stated = one(tmp_path, text + record("run_stop", at=now, status="success")).stated
    assert tuple(stated["measurement.interval_means_seconds"]) == (2.0,) * 12
    assert tuple(stated["measurement.interval_steps"]) == (4,) * 12


def test_a_block_that_begins_at_a_count_of_steps_is_not_longer_for_it(tmp_path: Path) -> None:
    text, now = head() + record("run_start", at=1_000), 1_000
    for block in range(12):
        now += 12_000
        text += record("block_stop", at=now, samples_count=(block + 1) * 48)
        text += record("block_start", at=now, samples_count=(block + 1) * 6)
    stated = one(tmp_path, text + record("run_stop", at=now, status="success")).stated
    assert tuple(stated["measurement.interval_steps"]) == (6,) * 12


def test_an_epoch_that_is_printed_as_a_step_is_no_step(tmp_path: Path) -> None:
    text, now = head("resnet", 3_264) + record("run_start", at=1_000), 1_000
    for block in range(9):
        text += record("block_start", at=now, first_epoch_num=block * 4, epoch_count=4)
        for epoch in range(block * 4, block * 4 + 4):
            now += 22_680
            text += record("tracked_stats", {"throughput": 56_490.0}, now, step=epoch)
        text += record("block_stop", at=now, first_epoch_num=block * 4)
    stated = one(tmp_path, text + record("run_stop", at=now, status="success")).stated
    assert stated["measurement.stated.step_seconds"] == pytest.approx(3_264 / 56_490)
    assert "measurement.step_durations_seconds" not in stated


def test_a_mean_over_a_block_of_one_step_beside_that_step_is_not_another(tmp_path: Path) -> None:
    text, now = head("deepseekv3_671b", 16) + record("run_start", at=1_000), 1_000
    for block in range(20):
        text += record("block_start", at=now, samples_count=16, step=block)
        now += 39_122
        text += record("tracked_stats", {"train_step_time": 39.0625 + block / 64}, now, samples_count=(block + 1) * 16)
        text += record("tracked_stats", {"train_step_time": 39.5}, now + 10, samples_count=16)
        text += record("block_stop", at=now + 10, samples_count=16, step=block + 1)
        now += 1_330
        text += record("eval_stop", at=now, samples_count=(block + 1) * 16, step=block + 1)
    stated = one(tmp_path, text + record("run_stop", at=now, status="success")).stated
    assert tuple(stated["measurement.step_durations_seconds"]) == tuple(39.0625 + block / 64 for block in range(20))


def test_steps_that_log_a_loss_are_not_the_steps_of_a_launch(tmp_path: Path) -> None:
    """A step in ten logs a loss, and takes longer for it; means over a block count the block's own samples."""
    text, now = head(batch=64) + record("run_start", at=1_000), 1_000
    for block in range(24):
        count = {"samples_count": 384, "step": block * 6}
        text += record("block_start", at=now, **count)
        for step in range(block * 6 + 1, block * 6 + 7):
            now += 150 if step % 10 else 180
            if step % 10 == 0:
                stats = {"train_step_time": 0.18, "reduced_train_loss": 12.0}
                text += record("tracked_stats", stats, now, samples_count=64 * step)
        text += record("tracked_stats", {"train_step_time": 0.15}, now, samples_count=384)
        text += record("block_stop", at=now, samples_count=384, step=block * 6 + 6)
        text += record("eval_start", at=now, samples_count=(block + 1) * 384)
        now += 410
        text += record("eval_stop", at=now, samples_count=(block + 1) * 384)
    stated = one(tmp_path, text + record("run_stop", at=now, status="success")).stated
    assert sum(stated["measurement.interval_steps"]) == 24 * 6
    spent = zip(stated["measurement.interval_means_seconds"], stated["measurement.interval_steps"], strict=True)
    assert sum(mean * steps for mean, steps in spent) == pytest.approx(24 * 6 * 0.15 + 14 * 0.03)
    assert list(stated["measurement.loss.steps"])[:2] == [10, 20]


def test_the_time_of_each_32nd_step_is_no_mean_over_32(tmp_path: Path) -> None:
    """Round v6.0 prints single steps: some are longer than the clock allows for a mean."""
    text, now, count = head("gpt_oss_20b", 24) + record("run_start", at=1_000), 1_000, 0
    for block in range(3):
        text += record("block_start", at=now, samples_count=12_288, step=block * 512)
        for at in range(16):
            now, count = now + 17_940, count + 32 * 24
            seconds = 17.940 / 32 * (1 + (at % 5 - 2) / 500)
            stats = {"train_step_time": seconds, "reduced_train_loss": 3.5}
            text += record("tracked_stats", stats, now, samples_count=count)
        text += record("block_stop", at=now, samples_count=12_288, step=block * 512 + 512)
        text += record("eval_start", at=now, samples_count=count, step=block * 512 + 512)
        now += 7_000
        text += record("eval_stop", at=now, samples_count=count, step=block * 512 + 512)
    stated = one(tmp_path, text + record("run_stop", at=now, status="success")).stated
    assert stated["measurement.timer"] == "mllog time_ms"
    assert set(stated["measurement.interval_means_seconds"]) == {17.940 / 32}


def test_blocks_by_epochs_are_as_long_as_they_say(tmp_path: Path) -> None:
    text, now = head("unet3d", 56) + record("run_start", at=1_000), 1_000
    for block in range(12):
        text += record("block_start", at=now, first_epoch_num=max(168, block * 3_360), epoch_count=3_360)
        now += 6_000
        text += record("tracked_stats", {"throughput": 560.0}, now, step=max(1, block * 20))
        text += record("block_stop", at=now, first_epoch_num=max(168, block * 3_360), epoch_count=3_360)
    stated = one(tmp_path, text + record("run_stop", at=now, status="success")).stated
    assert tuple(stated["measurement.interval_steps"]) == (60,) * 12


def test_blocks_that_count_steps_as_epochs_are_as_long_as_their_evaluations_say(tmp_path: Path) -> None:
    """Gaudi's BERT: a block's end is named by where the next one begins, and evaluations count samples."""
    text, now = head("bert", 448) + record("run_start", at=1_000), 1_000
    for block in range(12):
        text += record("block_start", at=now, first_epoch_num=block * 335, epoch_count=335)
        now += 33_500
        text += record("block_stop", at=now, first_epoch_num=block * 335 + 335)
    for block in range(10):
        text += record("eval_accuracy", 0.6, 1_000 + 33_500 * block, epoch_num=(block + 1) * 335 * 448)
    stated = one(tmp_path, text + record("run_stop", at=now, status="success")).stated
    assert tuple(stated["measurement.interval_steps"]) == (335,) * 12
    assert set(stated["measurement.interval_means_seconds"]) == {0.1}


def test_a_block_that_counts_steps_beside_an_epoch_has_them(tmp_path: Path) -> None:
    """Stable Diffusion's reference: blocks of a hundred steps within epoch 0, each with a record of its loss."""
    text, now = head("stable_diffusion", 512) + record("run_start", at=1_000), 1_000
    for step in range(0, 1_200, 100):
        text += record("block_start", "training_step", now, epoch_count=1, first_epoch_num=0, step_num=step)
        now += 20_000
        text += record("loss", 1.5 - step / 1_000, now, step_num=step + 100)
        text += record("block_stop", "training_step", now, first_epoch_num=0, step_num=step + 100)
        now += 10
    for step in (0, 10):
        text += record("block_start", "validation_step", now, epoch_count=5, first_epoch_num=4, step_num=step)
        text += record("block_stop", "validation_step", now, first_epoch_num=4, step_num=step)
    stated = one(tmp_path, text + record("run_stop", at=now, status="success")).stated
    assert tuple(stated["measurement.interval_steps"]) == (100,) * 12
    assert set(stated["measurement.interval_means_seconds"]) == {0.2}
    assert tuple(stated["measurement.loss.steps"])[:2] == (100, 200)
    assert tuple(stated["measurement.loss.values"])[:2] == (1.5, 1.4)


def test_the_rate_of_a_block_that_the_end_cut_short_is_not_the_launchs(tmp_path: Path) -> None:
    """RetinaNet: its last epoch is stopped by an evaluation beside it, and still prints a rate."""
    text = head("ssd", 256) + record("run_start", at=1_000)
    for epoch in (1, 2, 3):
        text += record("tracked_stats", {"throughput": 128.0}, epoch * 700_000, step=epoch)
        text += record("eval_start", at=epoch * 700_000, epoch_num=epoch)
        text += record("eval_stop", at=epoch * 700_000 + 30_000, epoch_num=epoch)
    text += record("run_stop", at=2_133_000, status="success")
    stated = one(tmp_path, text + record("tracked_stats", {"throughput": 199.0}, 2_133_000, step=4)).stated
    assert stated["measurement.stated.step_seconds"] == 2.0


def test_a_rate_that_only_follows_the_end_is_the_launchs(tmp_path: Path) -> None:
    text = head("dlrm_dcnv2", 512) + record("run_start", at=1_000) + record("run_stop", at=9_000, status="success")
    stated = one(tmp_path, text + record("tracked_stats", {"throughput": 1024.0}, 9_000, step=0.7)).stated
    assert stated["measurement.stated.step_seconds"] == 0.5


def test_dimensions_that_records_state_are_the_models(tmp_path: Path) -> None:
    sizes = {"num_layers": 96, "num_heads": 64, "hidden_size": 12288, "ffn_hidden_size": 49152}
    stated = one(tmp_path, head("gpt3", 8, **sizes) + blocks("step", 1)).stated
    assert [stated[f"model.{name}"] for name in ("depth", "heads", "hidden", "ffn")] == list(sizes.values())


def test_place_system_and_records_say_what_ran(tmp_path: Path) -> None:
    disclosed = {"tensor_parallelism": 4, "context_parallelism": 2, "lowest_numerical_precision_in_linear": "fp8"}
    dlpal = ":::DLPAL img:5 12 2 node[1-2] 'big cluster' DGXH200_2x8x4xtp4pp1cp2\n"
    stated = one(tmp_path, dlpal + head(micro_batch_size=1, **disclosed) + blocks("step", 1)).stated
    assert stated["run.context"] == "mlperf-training-v5.0/Acme/box/llama2_70b_lora"
    assert (stated["run.lane"], stated["run.outcome"]) == ("mlperf-closed", "ok")
    assert (stated["hardware.chips"], stated["hardware.hosts"], stated["platform.cuda"]) == (16, 2, "12.6.1")
    assert (stated["parallelism.tensor"], stated["parallelism.context"], stated["batch.micro_batch"]) == (4, 2, 1)
    assert stated["features.lowest_numerical_precision_in_linear"] == "fp8"
    assert (stated["features.image"], stated["run.host"]) == ("img:5", "node[1-2]")
    assert stated["notes.configuration"] == "DGXH200_2x8x4xtp4pp1cp2"
    assert stated["path.intended.framework"] == "nemo"
    assert str(stated["run.started"]).startswith("2023-11-14T22:13:20")


def test_of_a_launch_that_was_started_again_the_last_attempt_stands(tmp_path: Path) -> None:
    first = head() + blocks("step", 1)
    later = (head() + blocks("step", 1, seconds=4.0)).replace('"time_ms": 1700000', '"time_ms": 1700001')
    given_up, cut = (text[: text.index('"run_stop"')].rpartition("\n")[0] + "\n" for text in (first, later))
    stated = one(tmp_path / "again", given_up + later).stated
    assert list(stated["measurement.interval_means_seconds"]) == [4.0 + block / 64 for block in range(12)]
    assert [one(tmp_path / "ends", first + text).stated["run.outcome"] for text in (later, cut)] == ["ok", "unknown"]


def test_a_log_that_stops_in_its_run_is_no_success(tmp_path: Path) -> None:
    whole = head() + blocks("step", 1)
    assert one(tmp_path, whole.rpartition("0: :::MLLOG")[0]).receipt.run.outcome == "unknown"


def test_a_run_that_says_its_stop_shows_how_it_ended(tmp_path: Path) -> None:
    stated = one(tmp_path, head() + blocks("step", 1)).stated
    assert stated["run.outcome"] == "ok"
    assert not any("how the launch ended" in remark for remark in stated.get("notes.ingest.remarks", ()))


def test_a_setting_that_was_added_a_day_later_does_not_move_the_end(tmp_path: Path) -> None:
    text, late = head() + blocks("step", 1), record("seed", 9876, 86_400_000)
    plain, patched = one(tmp_path / "a", text).stated, one(tmp_path / "b", late + text).stated
    assert (patched["run.started"], patched["run.finished"]) == (plain["run.started"], plain["run.finished"])


def test_a_record_that_two_handlers_wrote_is_one(tmp_path: Path) -> None:
    lines = (head() + blocks("step", 1)).splitlines(keepends=True)
    twice = "".join(f"{line}{line.removeprefix('0: ')}" for line in lines)
    once, again = (one(tmp_path / name, text).stated for name, text in (("a", "".join(lines)), ("b", twice)))
    own = [path for path in once if path.startswith(("measurement.", "numerics.", "batch."))]
    assert {path: again.get(path) for path in own} == {path: once[path] for path in own}


@pytest.mark.parametrize("text", ["\0" * 200 + head(), ":::MLLOG {'init_start': 1}\n:::MLLOG []\n" + '"init_start"\n'])
def test_a_log_of_which_no_record_can_be_read_is_no_launch(tmp_path: Path, text: str) -> None:
    (item,) = imported(repository(tmp_path, {"Acme/results/box/bench/result_0.txt": text}))
    assert item.raw is None
    assert "no record with a time_ms" in str(item.problems[0])


@pytest.mark.parametrize("description", [None, "", "[]", '{"accelerator_model_name": '])
def test_without_a_description_the_platform_stands_and_that_is_remarked(
    tmp_path: Path, description: str | None
) -> None:
    root = repository(tmp_path, {"Acme/results/box/bench/result_0.txt": head() + blocks("step", 1)})
    (file,) = root.glob("*/systems/*.json")
    file.write_text(description) if description is not None else file.unlink()
    (item,) = imported(root)
    stated = receipt(item).stated
    assert (stated["hardware.accelerator"], stated.get("hardware.chips")) == ("2xH200", None)
    assert any("systems/box.json" in remark for remark in stated["notes.ingest.remarks"])


def test_a_copy_under_another_system_is_the_same_launch(tmp_path: Path) -> None:
    text = head() + blocks("step", 1)
    other = text.replace('"2xH200"', '"2xH200-POWER"').replace("0: :::MLLOG", " 0: :::MLLOG")
    logs = {"Acme/results/a/bench/result_0.txt": text, "Acme/results/b/bench/result_0.txt": other}
    first, second = imported(repository(tmp_path, logs))
    assert (first.copy_of, second.copy_of) == ("", "Acme/results/a/bench/result_0.txt")
    assert receipt(first).receipt.run.launch == receipt(second).receipt.run.launch


def test_launches_with_other_seeds_are_replicates(tmp_path: Path) -> None:
    logs = {
        f"Acme/results/a/b/result_{seed}.txt": head(seed=seed) + blocks("step", 1, 2 + seed / 256) for seed in (1, 2)
    }
    first, second = (receipt(item).stated for item in imported(repository(tmp_path, logs)))
    assert (first["numerics.seed"], second["numerics.seed"]) == (1, 2)
    assert first["run.launch"] != second["run.launch"]


def test_a_platform_that_the_description_contradicts_is_a_finding(tmp_path: Path) -> None:
    text = (head() + blocks("step", 1)).replace("2xH200", "tpu-v5p")
    root = repository(tmp_path, {"G/results/tri/gpt3/result_0.txt": text}, {"accelerator_model_name": "TPU-trillium"})
    (item,) = imported(root)
    assert [(found.path, found.stands[:12]) for found in item.contradictions] == [
        ("hardware.accelerator", "accelerator_")
    ]
    assert receipt(item).stated["hardware.accelerator"] == "TPU-trillium"
    assert "tpu-v5p" in item.contradictions[0].what


def test_patterns_choose_and_power_meters_are_no_launches(tmp_path: Path) -> None:
    text = head() + blocks("step", 1)
    logs = {f"{who}/results/box/{what}/result_0.txt": text for who in ("A", "B") for what in ("bert", "gpt3")}
    root = repository(tmp_path, logs | {"A/results/box/bert/power/result_0/node_0.txt": record("power_reading", 3)})
    assert [place.name for place in find_logs(root, submitter="b", benchmark="g*")] == [
        "B/results/box/gpt3/result_0.txt"
    ]
    assert len(find_logs(root)) == 4
    below = find_logs(root / "A" / "results" / "box" / "bert")
    assert (below[0].submitter, below[0].round) == ("A", "v5.0")
    with pytest.raises(UsageError, match="none of 4 logs fits"):
        find_logs(root, system="other")


# The oracle: forty lines that share nothing with the readers.
def records(text: str) -> Iterator[dict[str, Any]]:
    for match in re.finditer(r":::MLLOG (\{.*\})", text):
        with suppress(ValueError):  # of interleaved ranks
            yield json.loads(match[1])


def printed(text: str) -> tuple[set[float], set[int]]:
    times, clocks = set(), set()
    for found in records(text):
        clocks.add(found["time_ms"])
        if found["key"] == "tracked_stats":
            times |= {value for name, value in found["value"].items() if "step_tim" in name and "valid" not in name}
    return times, clocks


def found_again(text: str, parsed: Parsed) -> None:
    """Every time of the receipt is printed, or the difference of two clocks over whole steps; so are its settings."""
    times, clocks = printed(text)
    measurement = parsed.receipt.measurement
    assert measurement is not None
    assert set(measurement.step_durations_seconds or ()) <= times
    if not set(means := measurement.interval_means_seconds or ()) <= times:
        spans = [
            round(mean * steps * 1_000) for mean, steps in zip(means, measurement.interval_steps or (), strict=True)
        ]
        assert all(any(clock + span in clocks for clock in clocks) for span in spans)
    values = {found["key"]: found["value"] for found in records(text)}
    for key, path in (("seed", "numerics.seed"), ("global_batch_size", "batch.global_batch")):
        assert parsed.stated[path] == values[key]
    first, last = min(clocks) / 1e3, max(clocks) / 1e3
    run = parsed.receipt.run
    assert run.finished is not None
    assert (run.started.timestamp(), run.finished.timestamp()) == pytest.approx((first, last), abs=1e-3)


def _codes(parsed: Parsed, level: Level) -> set[str]:
    lane = rulebook().lanes.of(parsed.receipt.run.lane)
    return {item.code for item in judge_receipt(parsed, lane, rulebook().rules).findings if item.level is level}


def test_what_no_log_prints_is_asked_of_none_and_convicts_where_it_is_stated_wrong(tmp_path: Path) -> None:
    plain = one(tmp_path / "plain", head() + blocks("step", 1))
    assert _codes(plain, Level.ERROR) == set()
    assert _codes(plain, Level.OPEN) <= {"R203", "R301", "R302"}  # its steps, and a log can show its attention
    tree = json.loads(plain.raw)
    tree["run"]["exit_code"] = 1
    assert "R111" in _codes(parse(Document(json.dumps(tree).encode(), "wrong")), Level.ERROR)


def test_what_rests_on_facts_that_no_log_prints_is_not_attributed(tmp_path: Path) -> None:
    a, b = (one(tmp_path / name, head(seed=seed) + blocks("step", 1)) for name, seed in (("a", 1), ("b", 2)))
    verdict = compare([a], [b], rulebook())
    gaps = [item for item in verdict.findings if item.code == "C105"]
    assert {item.level for item in gaps} == {Level.OPEN}
    assert all("measurement.gradient_norm.last" in item.found for item in gaps)
    assert verdict.comparable == "unknown"


def test_every_value_is_one_that_the_log_holds(tmp_path: Path) -> None:
    text = head() + blocks("step", 1)
    found_again(text, one(tmp_path, text))


@pytest.mark.skipif(
    not (CASES.is_file() and unless_thorough(usual=False, thorough=True)), reason="published logs, in `make thorough`"
)
def test_every_published_log_becomes_a_receipt_of_what_it_holds(tmp_path: Path) -> None:
    with tarfile.open(CASES) as archive:
        archive.extractall(tmp_path, filter="data")
    logs = imported(tmp_path)
    assert len(logs) == len(list(tmp_path.rglob("result_*.txt")))
    for item in logs:
        found_again(
            item.place.path.read_text(encoding="utf-8", errors="replace").replace("}:::MLLOG", "}\n:::MLLOG"),
            receipt(item),
        )
    disputed = {item.place.system for item in logs for found in item.contradictions if "accelerator" in found.path}
    assert disputed == {f"cloud-tpu-trillium-{chips}-maxtext" for chips in (512, 1024, 2048, 3072)}
    convicted = {code for item in logs for code in _codes(receipt(item), Level.ERROR)}
    assert not convicted, "a published log was convicted by a word, or for what none prints"
    asked = {code for item in logs for code in _codes(receipt(item), Level.OPEN)}
    assert asked <= {"R201", "R203", "R205", "R301", "R302"}


@pytest.mark.parametrize(("nodes", "watts"), [(2, (0.9 * (6000 + 8000) + 400) / 16), (1, None)])
def test_meters_of_every_node_are_the_energy_of_the_run_and_those_of_some_are_none(
    tmp_path: Path, nodes: int, watts: float | None
) -> None:
    name = "Acme/results/box/llama2_70b_lora/result_0.txt"
    root = repository(tmp_path, {name: head() + blocks("step", 1)})
    folder = (root / name).parent / "power" / "result_0"
    folder.mkdir(parents=True)
    for node in range(nodes):
        text = record("conversion_eff", {"value": 0.9}) + record("power_measurement_start", None, 1_000)
        # The first half takes a third of the second's power: a reading holds from the one before.
        low = 1500.0 if node == 0 else 2000.0
        for second in range(1, 21):
            value = 2 * low if second <= 10 else 6 * low
            text += record("power_reading", {"value": value}, 1_000 + 1_000 * second)
        text += record("power_measurement_stop", None, 21_000) + record("power_reading", {"value": 9e9}, 22_000)
        (folder / f"node_{node}.txt").write_text(text)
    (folder / "sw_0.txt").write_text(record("interconnect_power_est", {"value": 400.0}))
    (item,) = imported(root)
    stated = receipt(item).stated
    if watts is None:
        assert "measurement.energy.watts_per_chip" not in stated
        return
    assert stated["measurement.energy.watts_per_chip"] == pytest.approx(watts)
    assert (stated["measurement.energy.samples"], stated["measurement.energy.seconds"]) == (20, pytest.approx(20))
    assert stated["measurement.energy.meter"] == "node"
