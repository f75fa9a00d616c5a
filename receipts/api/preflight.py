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
    from receipts.questions.preflight import PreflightAnswer, next_rung
    from receipts.questions.preflight import preflight as look

    parsed = _plan(plan)
    lane = rulebook.lanes.of(parsed.receipt.run.lane)

    def ask(other: Parsed) -> PreflightAnswer:
        return look(other, lane, store)

    answer = ask(parsed)
    rung = None
    if answer.status not in ("worked", "likely") and not answer.missing:
        rung = next_rung(parsed, lane, ask, answer)
    document = {**answer.as_data(), "lane": lane.name, "next": rung.as_data() if rung else None}
    return Listed(document, [document], lambda: page(parsed, answer, rung), answer.code)


def _plan(plan: Any) -> Parsed:
    from receipts.questions.plan import parse_plan, plan_of
    from receipts.receipt import Document

    if isinstance(plan, bytes):
        return parse_plan(Document(plan, "the plan"))
    if isinstance(plan, dict):
        return plan_of(plan, "the plan")
    parsed: Parsed = getattr(plan, "parsed", plan)
    return parsed
