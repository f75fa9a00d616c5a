"""Losses and gradient norms of a receipt, out of a series of steps."""

from __future__ import annotations

import math
from array import array
from typing import Final

from receipts.ingest.draft import ReceiptDraft
from receipts.ingest.series import StepSeries

_SOURCE: Final = "steps"
MAX_LOSSES: Final = 20_000


def state_losses(draft: ReceiptDraft, steps: StepSeries) -> None:
    """State the losses of the steps, thinned where there are very many, and whether all are finite."""
    _ends(draft, steps, "loss", "loss")
    losses = steps.columns["loss"]
    finite = array(
        "L", (row for row, value in enumerate(losses) if steps.at("loss", row) is not None and math.isfinite(value))
    )
    if len(finite) > MAX_LOSSES:
        every = math.ceil(len(finite) / MAX_LOSSES)
        draft.tell("note", f"of {len(finite):,} losses every {every}th is kept", steps.where)
        finite = finite[::every]
    if finite := array("L", (row for row in finite if steps.numbers[row] >= 0)):
        draft.put("measurement.loss.steps", [steps.numbers[row] for row in finite], steps.where, _SOURCE)
        draft.put("measurement.loss.values", [losses[row] for row in finite], steps.where, _SOURCE)


def state_norms(draft: ReceiptDraft, steps: StepSeries) -> None:
    """State the first, the last and the largest gradient norm, and whether all are finite."""
    _ends(draft, steps, "grad_norm", "gradient_norm")
    if finite := [value for value in steps.known("grad_norm") if math.isfinite(value)]:
        draft.put("measurement.gradient_norm.largest", max(finite), steps.where, _SOURCE)


def _ends(draft: ReceiptDraft, steps: StepSeries, name: str, section: str) -> None:
    """State whether all values are finite, and the first and the last where these are."""
    if known := steps.known(name):
        draft.put(f"measurement.{section}.finite", all(map(math.isfinite, known)), steps.where, _SOURCE)
        for leaf, value in (("first", known[0]), ("last", known[-1])):
            if math.isfinite(value):
                draft.put(f"measurement.{section}.{leaf}", value, steps.where, _SOURCE)
