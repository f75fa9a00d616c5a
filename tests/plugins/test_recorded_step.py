"""The text of a step that the recorder keeps is known to the reader as the step of a launch."""

from __future__ import annotations

from receipts.emit.sight import jax_step
from receipts.readers.xla import hlo


def test_the_recorder_and_the_reader_have_one_mark_of_a_step() -> None:
    assert jax_step.RECORDED == hlo.RECORDED
