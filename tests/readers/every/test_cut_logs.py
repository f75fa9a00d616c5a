"""A log that breaks off does not show how its launch ended."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from receipts.ingest.assembly import assemble
from receipts.ingest.draft import Options
from receipts.ingest.evidence import read

LOG = "".join(
    f"[titan] 2026-03-02 09:00:{step:02d},000 - root - INFO - step: {step:2d}  loss: {9 - step / 10:.4f}  "
    f"memory: 31.50GiB(39.90%)  tps: 6,4{step:02d}  tflops: 323.97  mfu: 32.76%\n"
    for step in range(1, 60)
)


def _outcome(path: Path, **stated: str) -> tuple[object, list[str]]:
    result = assemble([read(path)], Options(settings={f"run.{key}": value for key, value in stated.items()}))
    return result.tree["run"].get("outcome"), [problem.at for problem in result.problems]


@pytest.mark.parametrize(("end", "outcome"), [("", "unknown"), ("[titan] - root - INFO - Training completed\n", "ok")])
def test_a_whole_log_ends_well_where_it_says_so(end: str, outcome: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log.gz"
    path.write_bytes(gzip.compress((LOG + end).encode()))
    assert _outcome(path) == (outcome, [])


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_how_a_damaged_log_ended_is_unknown_unless_a_person_states_it(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log.gz"
    raw = bytearray(gzip.compress(LOG.encode()))
    if damage == "flipped":
        raw[-6] ^= 1  # of the checksum
    path.write_bytes(raw if damage == "flipped" else raw[:-40])
    assert _outcome(path) == ("unknown", [])
    assert _outcome(path, outcome="ok") == ("ok", [])


_SILENT = {
    "megatron": (
        " [2026-03-02 09:00:{step:02d}] iteration {step:8d}/    5000 | consumed samples: {step:12d} | "
        "elapsed time per iteration (ms): 801.2 | global batch size: 64 | lm loss: 9.1E+00 |\n"
    ),
    "llm.c": (
        "step {step:4d}/5000 | loss 9.1 (+nanz)| norm 1.0 (+nanz)| lr 1.0e-04 | "
        "801.2 ms | 31.0% bf16 MFU | 81920 tok/s\n"
    ),
    "torchtitan": LOG.splitlines(keepends=True)[0].replace("step:  1", "step: {step:2d}"),
}
_HEADS = {
    "torchtitan": "[titan] 2026-03-02 08:59:59,000 - root - INFO - Trainer is initialized with total steps 5000\n"
}


@pytest.mark.parametrize("framework", _SILENT)
def test_how_a_log_ended_that_stops_before_its_plan_in_silence_is_unknown(framework: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(_HEADS.get(framework, "") + "".join(_SILENT[framework].format(step=step) for step in range(1, 41)))
    assert _outcome(path) == ("unknown", [])
    assert _outcome(path, exit_code=0)[0] == "ok"


@pytest.mark.parametrize(
    ("last", "end"),
    [
        (5000, ""),
        (40, "[exiting program at iteration 40] datetime: 2026-03-02 09:00:41\n"),
        (40, "Training completed\n"),
    ],
)
def test_a_log_that_reaches_its_plan_or_says_that_it_stops_ends_well(last: int, end: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    line = _SILENT["megatron"].replace("{step:02d}", "00")
    path.write_text("".join(line.format(step=step) for step in range(last - 30, last + 1)) + end)
    assert _outcome(path) == ("ok", [])


def test_a_finished_bar_of_a_data_set_is_no_plan(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(LOG.replace("[titan]", "x") + "Map: 100%|##########| 1000/1000 [00:01<00:00, 900.00 examples/s]\n")
    assert _outcome(path) == ("unknown", [])


_RECORD = "{'loss': 2.5, 'grad_norm': 1.2, 'learning_rate': 4.9e-05, 'epoch': 0.01}\n"
_SUMMARY = "{'train_runtime': 98.5, 'train_steps_per_second': 5.076, 'train_loss': 2.745, 'epoch': 0.2}\n"


@pytest.mark.parametrize(("end", "outcome"), [("", "unknown"), (_SUMMARY, "ok")])
def test_a_trainer_that_names_no_step_says_when_it_has_ended(end: str, outcome: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(f"***** Running training *****\n  Total optimization steps = 5,000\n{_RECORD * 3}{end}")
    assert _outcome(path)[0] == outcome
