"""The clock of a log's lines against the averages that it prints."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from receipts.ingest.assembly import Ingested, assemble
from receipts.ingest.evidence import read

CONFIGURATION = (
    "Trainer is initialized with local batch size 1, global batch size 8, gradient accumulation steps 1, "
    "sequence length 8192, total steps 120 (warmup 2)"
)


def _ingest(folder: Path, *, every: int, faster: float = 1.0, between: str = "") -> Ingested:
    moment, lines = datetime(2026, 11, 25, 9), []

    def say(text: str) -> None:
        stamp = f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d}"
        lines.append(f"[rank0]:[titan] {stamp} - root - INFO - {text}")

    say("Building 1-D device mesh with ['dp_shard'], [8]")
    say(CONFIGURATION)
    for step in range(1, 121):
        moment += timedelta(seconds=1.0 + 0.001 * (step % 3))
        if step % every == 0:
            rate = 8192 * faster
            figures = f"memory: 40.00GiB(50.56%)  tps: {rate:,.0f}  tflops: {rate * 5e-2:.2f}  mfu: {rate * 5e-3:.2f}%"
            say(f"step: {step:2d}  loss: {9 - step / 60:7.4f}  grad_norm: 2.0000  {figures}")
            if between:
                say(between)
    say("Training completed")
    log = folder / "run.log"
    log.write_text("\n".join(lines) + "\n")
    return assemble([read(log)])


def _contradicted(shown: Ingested) -> bool:
    return any("clock of its lines" in item.what for item in shown.contradictions)


def test_averages_that_the_clock_of_their_lines_denies_are_reported(tmp_path: Path) -> None:
    assert _contradicted(_ingest(tmp_path, every=10, faster=2.0))


def test_averages_at_the_pace_of_their_lines_contradict_nothing(tmp_path: Path) -> None:
    assert not _contradicted(_ingest(tmp_path, every=10))


def test_a_word_of_a_checkpoint_behind_every_step_takes_no_time_out_of_the_wall(tmp_path: Path) -> None:
    shown = _ingest(tmp_path, every=1, faster=2.0, between="Saving the checkpoint")
    walls = shown.tree["measurement"]["step_wall_seconds"]
    assert min(walls[1:]) > 0.9


def test_times_that_do_not_fit_between_their_lines_are_left(tmp_path: Path) -> None:
    line = (
        "2026-03-02 06:{0:02d}:00 | INFO | train_inner | epoch 001:    {0}00 / 900 loss=2.5, wps={1}, ups=0, wpb=1585,"
    )
    for words, left in ((52.5, True), (2641.7, False)):
        log = tmp_path / f"{words}.log"
        log.write_text(
            "".join(f"{line.format(at, words)} bsz=8, num_updates={at}00, gnorm=4.1\n" for at in range(1, 8))
        )
        shown = assemble([read(log)])
        assert _contradicted(shown) is left
        assert ("stated" in shown.tree["measurement"]) is not left
