"""When a run ended, by the times of its lines beside steps that readers know."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest_evidence import at, file, ingested, stepping

STEPS = "".join(f"step: {step}, loss: {9 - step / 9:.4f}, step_time: {20 + step / 99:.4f} s\n" for step in range(1, 41))


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        (f"2026-03-02T09:00:00Z begin\n{STEPS}", None),
        (f"2026-03-02T09:00:00Z begin\n2026-03-02T09:00:03Z a warning\n{STEPS}", None),
        ("2026-03-02T09:00:00Z begin\n", None),
        (f"2026-03-02T09:00:00Z begin\n{STEPS}2026-03-02T09:20:00Z done\n", "2026-03-02T09:20:00Z"),
    ],
    ids=["steps without a time", "two messages before them", "one time", "a time below them"],
)
def test_the_last_message_before_the_steps_is_no_end(tmp_path: Path, text: str, finished: str | None) -> None:
    made = file(tmp_path, stepping([1.0]))
    made.path.write_text(text)
    assert at(ingested(made), "run.finished") == finished
