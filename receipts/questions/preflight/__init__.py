"""Preflight: what a plan is known to do before it is paid for, and what to try where it is known not to fit."""

from __future__ import annotations

from receipts.questions.preflight.answer import CODES, PreflightAnswer, PreflightEvidence, Status
from receipts.questions.preflight.ladder import Rung, Skipped, next_rung
from receipts.questions.preflight.look import PlanAnswer, answered, preflight
from receipts.questions.preflight.rank import CandidatePlan, Ranked, as_lines, candidates, ranked

__all__ = [
    "CODES",
    "CandidatePlan",
    "PlanAnswer",
    "PreflightAnswer",
    "PreflightEvidence",
    "Ranked",
    "Rung",
    "Skipped",
    "Status",
    "answered",
    "as_lines",
    "candidates",
    "next_rung",
    "preflight",
    "ranked",
]
