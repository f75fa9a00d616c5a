"""Whether a log stops far before the last step that it plans, without a word of why.

A job that its scheduler, a host out of memory or a full disk killed in silence leaves such a log; so does one that was
copied while it ran, and an excerpt. Which it was, only a person knows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from receipts.ingest.evidence.read import FileEvidence
from receipts.ingest.evidence.stream import Source
from receipts.ingest.series import StepSeries

# Step and plan in the words of the step lines of Megatron, nanotron, llm.c, modded-nanogpt, Composer; tqdm's bars.
_OF: Final = re.compile(
    rb"(?i)(?:\b(?:step|iter|iteration|batch)\b ?[:=]? {0,8}|\| {0,8})(\d{1,12}) ?/ {0,8}(\d{1,12})(?=[]:|,(\s]|$)"
)
# What heads the log of the Hugging Face Trainer, torchtitan and nanotron.
_PLAN: Final = re.compile(rb"(?:Total optimization steps = |\btotal steps |\btrain_steps: )(\d[\d,]{0,15})\b")
# A run that ended as it was to, or was stopped on purpose, in the words of frameworks.
_DONE: Final = re.compile(
    rb"(?i)after training is done|exiting program|training (?:is |has )?(?:complete|finish|done|ended)"
    rb"|finished training|train_runtime|\.fit` stopped|total average iteration time|wandb: +(?:run summary|.{0,9}view)"
    rb"|total training time|training time: |early.?stopp|peak memory consumption|process group destroyed"
)
_ENOUGH: Final = 0.98


def stops_short(files: Sequence[FileEvidence], steps: StepSeries | None) -> FileEvidence | None:
    """The log that stops far before the last step that it plans; None where none does, or one says why it ends."""
    file = steps.track.file if steps is not None else next(filter(_trains, files), None)
    if file is None or not _short(Source(file.path, file.name), steps):
        return None
    return None if any(_DONE.search(Source(item.path, item.name).tail) for item in files) else file


def _short(source: Source, steps: StepSeries | None) -> bool:
    plan = _PLAN.search(source.head)
    if steps is None:
        # The Trainer's records name no step. It says when it has ended.
        return plan is not None
    last, near = steps.numbers[-1], 2 * steps.stride
    # A bar is ahead of the last record by less than one more; bars of other loops are anywhere.
    of = [match for match in _OF.finditer(source.tail) if last <= int(match[1]) <= min(last + near, int(match[2]))]
    if of:
        last, planned = int(of[-1][1]), int(of[-1][2])
    else:
        planned = int(plan[1].replace(b",", b"")) if plan else 0
    return last + near < _ENOUGH * planned


def _trains(file: FileEvidence) -> bool:
    return any(reading.trains for reading in file.readings)
