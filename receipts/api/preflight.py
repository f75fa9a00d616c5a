"""What is known of a plan before it is paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from receipts.api.listed import Listed

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.receipt import Parsed
    from receipts.store import Store


def preflight(store: Store | None, rulebook: Rulebook, plan: Any) -> Listed:
    """The answer of ``receipts preflight``, of a plan's bytes, mapping or receipt. Raises InputError."""
    from receipts.publish.preflight import page
    from receipts.questions.preflight import answered

    parsed = _plan(plan)
    known = answered(parsed, rulebook.lanes.of(parsed.receipt.run.lane), store)
    document = known.as_data()
    return Listed(document, [document], lambda: page(parsed, known.answer, known.rung), known.answer.code)


def _plan(plan: Any) -> Parsed:
    from receipts.questions.plan import parse_plan, plan_of
    from receipts.receipt import Document

    if isinstance(plan, bytes):
        return parse_plan(Document(plan, "the plan"))
    if isinstance(plan, dict):
        return plan_of(plan, "the plan")
    parsed: Parsed = getattr(plan, "parsed", plan)
    return parsed
