"""Losses and gradient norms of a receipt, out of a series of steps."""

from __future__ import annotations

import math
from array import array
from typing import Final

from receipts.ingest.draft import ReceiptDraft, Where
from receipts.ingest.series import StepSeries

_SOURCE: Final = "steps"
MAX_LOSSES: Final = 20_000


def state_losses(draft: ReceiptDraft, steps: StepSeries, where: Where) -> None:
    """State the losses of the steps, thinned where there are very many, and whether all are finite."""
    losses = steps.column("loss")
    known = array("L", (row for row, value in enumerate(losses) if value is not None))
    if not known:
        return
    finite = array("L", (row for row in known if math.isfinite(losses[row] or 0.0)))
    draft.put("measurement.loss.finite", len(finite) == len(known), where, _SOURCE)
    for name, row in (("first", known[0]), ("last", known[-1])):
        value = losses[row]
        if value is not None and math.isfinite(value):
            draft.put(f"measurement.loss.{name}", value, where, _SOURCE)
    if len(finite) > MAX_LOSSES:
        every = math.ceil(len(finite) / MAX_LOSSES)
        draft.tell("note", f"of {len(finite):,} losses every {every}th is kept", where)
        finite = finite[::every]
    finite = array("L", (row for row in finite if steps.numbers[row] >= 0))
    if finite:
        draft.put("measurement.loss.steps", [steps.numbers[row] for row in finite], where, _SOURCE)
        draft.put("measurement.loss.values", [losses[row] for row in finite], where, _SOURCE)


def state_norms(draft: ReceiptDraft, steps: StepSeries, where: Where) -> None:
    """State the first, the last and the largest gradient norm, and whether all are finite."""
    known = [value for value in steps.column("grad_norm") if value is not None]
    finite = [value for value in known if math.isfinite(value)]
    if not known:
        return
    draft.put("measurement.gradient_norm.finite", len(finite) == len(known), where, _SOURCE)
    for name, value in (("first", known[0]), ("last", known[-1])):
        if math.isfinite(value):
            draft.put(f"measurement.gradient_norm.{name}", value, where, _SOURCE)
    if finite:
        draft.put("measurement.gradient_norm.largest", max(finite), where, _SOURCE)
