"""The batch that ran, by the samples a run consumed, against the one that arguments and step lines name."""

from __future__ import annotations

from pathlib import Path

from receipts.ingest.assembly import Ingested, assemble
from receipts.ingest.evidence import read


def _ingest(folder: Path, *, asked: int, printed: int, each: int = 64, skipped: int = 0, first: int = 1) -> Ingested:
    lines = [
        "------------------------ arguments ------------------------",
        f"  global_batch_size ............................... {asked}",
        "  seq_length ...................................... 4096",
        "-------------------- end of arguments ---------------------",
    ]
    for step in range(first, first + 30):
        lines.append(
            f" iteration {step:8d}/     500 | consumed samples: {step * each:12d} | elapsed time per iteration (ms): "
            f"{2000 + step % 3}.0 | learning rate: 3.0E-04 | global batch size: {printed:5d} | lm loss: 9.{step}E+00 | "
            f"grad norm: 1.000 | number of skipped iterations: {skipped:3d} | number of nan iterations:   0 |"
        )
    log = folder / "run.log"
    log.write_text("\n".join(lines) + "\n")
    return assemble([read(log)])


def test_a_batch_that_only_the_arguments_name_is_not_the_one_that_ran(tmp_path: Path) -> None:
    shown = _ingest(tmp_path, asked=128, printed=64)
    assert shown.tree["batch"]["global_batch"] == 64
    assert any(item.path == "batch.global_batch" for item in shown.contradictions)


def test_consumed_samples_stand_above_a_printed_batch(tmp_path: Path) -> None:
    for first in (1, 40):
        shown = _ingest(tmp_path, asked=128, printed=128, first=first)
        assert shown.tree["batch"]["global_batch"] == 64
        assert shown.tree["measurement"]["tokens_per_step"] == 64 * 4096
        assert any(item.path == "batch.global_batch" for item in shown.contradictions)


def test_a_batch_that_ran_as_asked_contradicts_nothing(tmp_path: Path) -> None:
    shown = _ingest(tmp_path, asked=64, printed=64, first=40)
    assert shown.tree["batch"]["global_batch"] == 64
    assert not shown.contradictions


def test_a_run_that_skips_every_update_has_no_ordinary_step(tmp_path: Path) -> None:
    flags = _ingest(tmp_path, asked=64, printed=64, skipped=1).tree["measurement"]["step_flags"]
    assert flags["warmup"] == list(range(30))
