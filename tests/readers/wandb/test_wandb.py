"""Weights & Biases: the run's own file, what lies beside it, and what its page exports."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

from receipts.ingest.evidence import read
from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan

SAMPLE = Path(__file__).parent / "samples" / "wandb_run.wandb.gz"


def one(path: Path) -> Reading:
    (found,) = read(path).readings
    assert found.source == "wandb"
    return found


def written(folder: Path, name: str, text: str) -> Reading:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return one(path)


def test_a_runs_file_that_wandb_wrote_is_read() -> None:
    found = one(SAMPLE)
    assert found.steps.numbers() == [1, 2, 3, 4, 5, 6]
    assert found.steps.get(4, "loss") == 7.0
    assert found.steps.get(4, "step_seconds") == 0.41
    assert found.steps.get(4, "mfu") == 0.4025
    assert found.not_steady == {1: "compile"}


def test_a_record_over_several_blocks_is_whole() -> None:
    # Step 3 holds a text of 34,000 letters, which goes over the first block's end.
    assert one(SAMPLE).steps.get(3, "loss") == 7.5


def test_levanters_history_is_known_by_its_gigaflops(tmp_path: Path) -> None:
    rates = {"duration": 2.5, "tokens_per_second": 8e5, "gflops_per_second": 4e6, "mfu": 41.5}
    record = {"_timestamp": 1.7e9, "train/loss": 3.5, "grad/norm/total": 0.75}
    record |= {f"throughput/{name}": rate for name, rate in rates.items()}
    found = written(tmp_path, "history.jsonl", "".join(json.dumps({"_step": step} | record) + "\n" for step in (7, 8)))
    fields = ("step_seconds", "tokens_per_second", "mfu", "loss", "grad_norm")
    assert [found.steps.get(8, field) for field in fields] == [2.5, 8e5, 0.415, 3.5, 0.75]


def test_a_nan_in_the_history_is_divergence() -> None:
    found = one(SAMPLE)
    assert math.isnan(found.steps.get(6, "loss") or 0.0)
    assert found.diverged is True


def test_the_runs_record_states_configuration_and_its_end() -> None:
    found = one(SAMPLE)
    values = {path: item.value for path, item in found.stated.items()}
    assert values["parallelism.tensor"] == 2
    assert values["parallelism.shard"] == 4
    assert values["batch.sequence_length"] == 2048
    assert values["run.started"] == "2026-09-21T14:13:20Z"
    assert values["run.exit_code"] == 0
    assert found.complete is True


def test_the_highest_memory_and_its_step_are_kept() -> None:
    (row,) = one(SAMPLE).memory
    assert (row.step, row.peak_reserved_bytes) == (4, 62.25 * 2**30)


def test_a_file_of_a_run_that_died_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = gzip.decompress(SAMPLE.read_bytes())
    path = tmp_path / "run-x.wandb"
    path.write_bytes(whole[:-200])
    found = one(path)
    assert found.steps.numbers()[:5] == [1, 2, 3, 4, 5]
    assert found.complete is False
    assert {remark.kind for remark in found.remarks} >= {"broken", "missing"}


def test_a_spoilt_record_is_left_out_and_the_rest_read(tmp_path: Path) -> None:
    whole = bytearray(gzip.decompress(SAMPLE.read_bytes()))
    at = whole.index(b"loss_metrics/global_avg_loss", whole.index(b'"_runtime"') if b'"_runtime"' in whole else 0)
    whole[at] ^= 1
    path = tmp_path / "run-x.wandb"
    path.write_bytes(bytes(whole))
    found = one(path)
    assert found.steps.numbers() == [2, 3, 4, 5, 6]
    assert any("checksum" in remark.text for remark in found.remarks)


def test_a_file_that_ends_with_a_block_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "run-x.wandb"
    path.write_bytes(gzip.decompress(SAMPLE.read_bytes())[: 32768 - 3])
    assert one(path).steps.numbers() == [1, 2]


ROW = {"_step": 0, "_runtime": 1.5, "_timestamp": 1.79e9}


def history(count: int = 4, **names: str) -> list[dict[str, object]]:
    return [
        {**ROW, "_step": step, "lm loss": 4.0 - step / 2, "iteration-time": 0.5, "throughput": 300.0 + step, **names}
        for step in range(1, count + 1)
    ]


def test_an_exported_history_of_json_lines_is_read(tmp_path: Path) -> None:
    found = written(tmp_path, "history.jsonl", "\n".join(json.dumps(row) for row in history()))
    assert found.steps.numbers() == [1, 2, 3, 4]
    assert found.steps.get(3, "tflops_per_second_per_chip") == 303.0


def test_an_exported_list_is_read(tmp_path: Path) -> None:
    assert written(tmp_path, "history.json", json.dumps(history())).steps.get(2, "loss") == 3.0


def test_an_exported_table_is_read(tmp_path: Path) -> None:
    lines = [",_step,_runtime,_timestamp,lm loss,iteration-time", "0,1,1.5,1.79e9,3.5,0.5", "1,2,2.0,1.79e9,NaN,"]
    found = written(tmp_path, "history.csv", "\n".join(lines))
    assert found.steps.get(1, "loss") == 3.5
    assert math.isnan(found.steps.get(2, "loss") or 0.0)
    assert found.steps.get(2, "step_seconds") is None


def test_a_charts_table_of_one_run_is_read(tmp_path: Path) -> None:
    head = '"Step","run a - lm loss","run a - lm loss__MIN","run a - lm loss__MAX"'
    assert written(tmp_path, "chart.csv", f"{head}\n3,2.5,2.5,2.5\n").steps.get(3, "loss") == 2.5


def test_a_charts_table_of_two_runs_is_not_mixed(tmp_path: Path) -> None:
    head = '"Step","run a - lm loss","run a - lm loss__MIN","run b - lm loss","run b - lm loss__MIN"'
    found = written(tmp_path, "chart.csv", f"{head}\n3,2.5,2.5,9.5,9.5\n")
    assert found.steps.get(3, "loss") == 2.5
    assert next(remark.kind for remark in found.remarks) == "contradiction"


def test_the_programs_own_step_counts_and_not_the_trackers(tmp_path: Path) -> None:
    rows = [
        {
            **ROW,
            "_step": at,
            "train/global_step": at * 50,
            "train/loss": 3.0,
            "train/epoch": 0.1,
            "train/learning_rate": 1e-4,
        }
        for at in (1, 2, 3)
    ]
    found = written(tmp_path, "history.jsonl", "\n".join(json.dumps(row) for row in rows))
    assert found.steps.numbers() == [50, 100, 150]
    assert found.steps.interval == 50


def test_rows_without_a_step_are_told(tmp_path: Path) -> None:
    rows = [*history(2), {"_timestamp": 1.79e9, "lm loss": 1.0}]
    found = written(tmp_path, "history.jsonl", "\n".join(json.dumps(row) for row in rows))
    assert any("1 rows name no step" in remark.text for remark in found.remarks)


def test_a_summary_states_last_figures_and_has_no_steps(tmp_path: Path) -> None:
    summary = {**history(1)[0], "_step": 90, "_wandb": {"runtime": 12}}
    found = written(tmp_path, "wandb-summary.json", json.dumps(summary))
    assert len(found.steps) == 0
    assert found.stated["measurement.stated.statistic"].value == "last"
    assert found.stated["measurement.stated.step_seconds"].value == 0.5
    assert found.stated["measurement.loss.last"].value == 3.5


def test_a_runs_configuration_is_read(tmp_path: Path) -> None:
    text = (
        "_wandb:\n  value:\n    python_version: 3.11\nper_device_train_batch_size:\n  desc: null\n  value: 4\n"
        "learning_rate:\n  value: 0.0002\nbf16:\n  value: true\nhidden_size:\n  value: 2048\n"
    )
    values = {path: item.value for path, item in written(tmp_path, "config.yaml", text).stated.items()}
    assert values == {
        "batch.micro_batch": 4,
        "numerics.learning_rate": 0.0002,
        "numerics.compute_dtype": "bf16",
        "model.hidden": 2048,
    }


def test_a_configuration_of_aliases_upon_aliases_is_bounded(tmp_path: Path) -> None:
    levels = ["_wandb: {}", "l0: &l0 [x, x]"]
    levels += [f"l{n}: &l{n} {{a: *l{n - 1}, b: *l{n - 1}, c: *l{n - 1}}}" for n in range(1, 40)]
    assert written(tmp_path, "config.yaml", "\n".join(levels)).stated == {}


def test_metadata_name_the_machine(tmp_path: Path) -> None:
    metadata = {
        "os": "Linux",
        "python": "CPython 3.12.4",
        "startedAt": "2026-05-06T07:08:09.5Z",
        "program": "train.py",
        "executable": "/usr/bin/python",
        "host": "node-b",
        "gpu": "NVIDIA H100 80GB HBM3",
        "gpu_count": 8,
        "cudaVersion": "12.6",
    }
    values = {
        p: item.value for p, item in written(tmp_path, "wandb-metadata.json", json.dumps(metadata)).stated.items()
    }
    assert values["platform.python"] == "3.12.4"
    assert values["platform.cuda"] == "12.6"
    assert values["run.host"] == "node-b"
    assert values["run.started"] == "2026-05-06T07:08:09.5Z"
    assert str(values["hardware.accelerator"]).startswith("h100")
    # GPUs of the first host are not the chips that took part.
    assert "hardware.chips" not in values


SUMMARY = """wandb: Run history:
wandb:        train/loss █▅▁
wandb: Run summary:
wandb:       train/epoch 1
wandb: train/global_step 300
wandb:   train/grad_norm 0.5
wandb:        train/loss {}
wandb:
"""


def test_the_summary_that_a_run_prints_tells_its_last_loss_and_two_that_differ_tell_none() -> None:
    (reading,) = scan([SUMMARY.format(1.25).encode()])
    stated = {path: claim.value for path, claim in reading.stated.items()}
    assert stated == {"measurement.loss.last": 1.25, "measurement.gradient_norm.last": 0.5}
    (again,) = scan([(SUMMARY.format(1.25) * 2).encode()])
    assert again.stated.keys() == reading.stated.keys()
    (several,) = scan([(SUMMARY.format(1.25) + SUMMARY.format(1.5)).encode()])
    assert not several.stated
    assert "several runs" in several.remarks[0].text
