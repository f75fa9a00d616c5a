"""The wall time of steps by the clock of a log's lines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ingest_evidence import at
from receipts.ingest.assembly import Ingested, assemble
from receipts.ingest.draft import Options
from receipts.ingest.evidence import read

WALLS, STEPS = "measurement.step_wall_seconds", "measurement.step_durations_seconds"
START = datetime(2026, 3, 2, 9, tzinfo=UTC)


def megatron(ends: Sequence[float], step: float, *, part: str = ".%f", between: dict[int, str] | None = None) -> str:
    """Iterations of ``step`` seconds whose lines are printed ``ends`` seconds after the start."""
    lines = []
    for number, end in enumerate(ends, 1):
        lines += [f" {(between or {}).get(number, '')}"] if number in (between or {}) else []
        date = (START + timedelta(seconds=end)).strftime(f"%Y-%m-%d %H:%M:%S{part}")
        lines.append(
            f" [{date}] iteration {number:8d}/ 500 | consumed samples: {8 * number:8d} | elapsed time per iteration "
            f"(ms): {1e3 * step:.1f} | learning rate: 1.0E-05 | global batch size: 8 | lm loss: 2.5E+00 | "
            "grad norm: 1.0 |"
        )
    return "\n".join(lines) + "\n"


def ingested(folder: Path, text: str) -> Ingested:
    path = folder / "train.log"
    path.write_text(text, encoding="utf-8")
    return assemble([read(path)], Options())


def test_what_lies_between_two_records_is_in_the_wall_time(tmp_path: Path) -> None:
    """Steps of a fifth of a second, and 40 ms more between them."""
    found = ingested(tmp_path, megatron([0.24 * number for number in range(1, 41)], 0.2))
    assert at(found, STEPS) == [0.2] * 40
    assert at(found, WALLS) == [0.2] + [0.24] * 39


def test_an_evaluation_or_a_checkpoint_that_a_line_tells_is_no_wall_time_of_a_step(tmp_path: Path) -> None:
    ends = [0.2 * number + (30.0 if number > 20 else 0.0) for number in range(1, 41)]
    for line in ("validation loss at iteration 20 | lm loss value: 2.5E+00 |", "saving checkpoint at iteration 20"):
        assert at(ingested(tmp_path, megatron(ends, 0.2, between={21: line})), WALLS) == [0.2] * 40
    assert max(at(ingested(tmp_path, megatron(ends, 0.2)), WALLS)) == 30.2


def test_a_clock_of_whole_seconds_tells_the_wall_time_of_an_hour_and_not_of_a_minute(tmp_path: Path) -> None:
    whole = {"part": ""}
    assert at(ingested(tmp_path, megatron([2.5 * number for number in range(40)], 2.5, **whole)), WALLS) is None
    walls = at(ingested(tmp_path, megatron([2.5 * number for number in range(400)], 2.5, **whole)), WALLS)
    assert sum(walls) / 400 == pytest.approx(2.5, rel=0.001)


def test_a_clock_that_is_quicker_than_the_steps_tells_nothing(tmp_path: Path) -> None:
    assert at(ingested(tmp_path, megatron([0.1 * number for number in range(40)], 0.2)), WALLS) is None
