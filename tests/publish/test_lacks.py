"""What a verdict lacks is a thing: a fact by its leaf, an open offense by what would settle it."""

from __future__ import annotations

import pytest

from receipts.judging.verdict import Finding, Level, Question
from receipts.publish.offenses import lack_name

STEPS = "measurement.step_durations_seconds"


def _open(name: str, at: str, *, unjudged: bool = False) -> Finding:
    return Finding("R999", name, Level.OPEN, Question.EFFECT, (), at, "found", "expected", "do", unjudged=unjudged)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (_open("summary_only", STEPS), "step times"),
        (_open("unsteady", STEPS), "steady steps"),
        (_open("too_few_steps", STEPS), "enough steps"),
        (_open("impossible_time", "run.started"), "devices of launches that started together"),
        (_open("unwitnessed_path", "path.witnessed.gemm"), "witness of gemm"),
        (_open("left_path", "path.witnessed.fallbacks", unjudged=True), "witness of fallbacks"),
        (_open("odd_batch", "batch.micro_batch", unjudged=True), "micro batch"),
        (_open("odd_batch", "batch.micro_batch"), "what settles odd batch"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_what_is_missing_is_a_thing_and_no_offense(item: Finding, text: str) -> None:
    assert lack_name(item) == text
