"""The verdict on a claim: whether its receipts carry the sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from receipts.judging.verdict import EXIT, Comparison, Finding, Level

ClaimStatus = Literal["supported", "refuted", "unproven", "stale"]


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the receipts say of the number that a claim names, before any rule: *holds*, *fails*, or *open*.

    ``low`` to ``high`` is the interval that was held against the claim, of the improvement, the metric's ratio or its
    value; none where the data carry none. ``grade`` says how often a ceiling was reached, or what an MFU is based on.
    """

    state: Literal["holds", "fails", "open"]
    why: str
    low: float | None = None
    high: float | None = None
    grade: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """The answer to *may this sentence be published?*

    ``otherwise`` is the status that it would have were it not stale. ``findings`` are the claim's own; those on its
    receipts stand in ``comparison``, or in ``about`` where nothing was compared. ``would_hold`` are effects with which
    the claim would be supported, where its own is not.
    """

    claim: str
    text: str
    kind: str
    metric: str
    effect: str | None
    status: ClaimStatus
    otherwise: ClaimStatus
    assessment: Assessment
    baseline: tuple[str, ...]
    candidate: tuple[str, ...]
    lanes: tuple[str, ...]
    target: str | None
    at_target: bool | None
    findings: tuple[Finding, ...]
    about: tuple[Finding, ...]
    comparison: Comparison | None
    rules: str
    judge: str
    would_hold: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Of a command that answers with it: supported 0, refuted 1, unproven and stale 3."""
        return EXIT[self.status]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not supported, each in a sentence; none where it is."""
        if self.status == "supported":
            return ()
        reasons = [f"{item.code} {item.found}" for item in self.findings if item.level is not Level.SHOWN]
        if self.comparison is not None and self.comparison.status == "rejected":
            errors = (item for item in self.comparison.findings if item.level is Level.ERROR)
            reasons += [f"{item.code} {item.found}" for item in errors if item.on_pair]
        if self.assessment.state != "holds":
            reasons.append(self.assessment.why)
        return tuple(dict.fromkeys(reasons))

    def last_line(self) -> str:
        """Claim and status."""
        also = f" (otherwise {self.otherwise})" if self.otherwise != self.status else ""
        return f"{self.status}: {self.claim}{also}"
