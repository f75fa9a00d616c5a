"""Verdicts on a receipt, a comparison and a claim, as values and as JSON-able data; kept apart from receipts.

A finding says where, what was found, what was expected and what to do. A receipt's status, a comparison's three answers
and a claim's status follow from findings and effect alone, here, and nowhere else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal

from receipts.axes.lane import Grade
from receipts.metrics.registry import MetricReading, Taint

if TYPE_CHECKING:
    from receipts.axes import Difference
    from receipts.stats.equivalence import Effect


class Level(StrEnum):
    """How much an offense weighs."""

    ERROR = "E"  # rejects or invalidates
    OPEN = "I"  # leaves the question open
    SHOWN = "W"  # is shown


class Question(StrEnum):
    """Which of the three questions a rule speaks to."""

    COMPARABLE = "comparable"
    PATH = "path"
    EFFECT = "effect"
    NONE = "none"


Subject = Literal["a", "b", "pair", "receipt", "claim"]
STATE = "state "  # what to do about a fact that a rule needs: this, and the leaves that it may be read from
NOTHING = "nothing: "  # what is expected where a fact cannot be shown: this, and why
DIGEST = re.compile("[0-9a-f]{40,64}")


@dataclass(frozen=True, slots=True)
class ProofLeaf:
    """A stated leaf that a finding rests on, with the id of the receipt that states it."""

    receipt: str
    path: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One offense, or one question that could not be judged. ``at`` is a path in the receipt.

    ``proof`` are the leaves of an error: with the required keys they give the finding; without any one they do not.
    """

    code: str
    name: str
    level: Level
    question: Question
    taints: tuple[Taint, ...]
    at: str
    found: str
    expected: str
    do: str
    subject: Subject = "receipt"
    receipt: str | None = None
    unjudged: bool = False
    waived: str | None = None
    proof: tuple[ProofLeaf, ...] = ()

    @property
    def lacks(self) -> tuple[str, ...]:
        """The leaves of which any one would let the rule judge; None if that is not a leaf of the receipt."""
        paths = tuple(self.do.removeprefix(STATE).split(" or "))
        return paths if self.unjudged and self.at == paths[0] else ()

    @property
    def excused(self) -> bool:
        """Whether a fact is missing that cannot be shown: it is neither asked for nor proven."""
        return self.expected.startswith(NOTHING)

    @property
    def on_pair(self) -> bool:
        """Whether a rule on comparisons reports it, also where it speaks of one side. Their codes begin with C."""
        return self.code.startswith("C")

    @property
    def unmeasured(self) -> bool:
        """Whether it says that the numbers were not measured, which spoils none of them and all that rests on them."""
        return self.level is Level.ERROR and self.question is Question.EFFECT and not self.taints

    def spoils(self, taint: Taint) -> bool:
        """Whether a metric of that kind is spoilt by this offense."""
        return Taint.ALL in self.taints or taint in self.taints


Status = Literal["valid", "open", "invalid"]
PathAnswer = Literal["witnessed", "unwitnessed", "left"]
Comparable = Literal["yes", "unknown", "no"]
Decision = Literal["accepted", "rejected", "inconclusive"]
# What an effect may be used for: its setting earned it; it happened, and why is not shown; somebody wrote it down.
Standing = Literal["attributed", "unattributed", "as stated"]
EXIT: Mapping[str, int] = {
    "supported": 0,
    "refuted": 1,
    "unproven": 3,
    "stale": 3,
    "valid": 0,
    "open": 3,
    "invalid": 1,
    "accepted": 0,
    "rejected": 1,
    "inconclusive": 3,
}


@dataclass(frozen=True, slots=True)
class ReceiptVerdict:
    """What the rules say of one receipt, under one rule set."""

    receipt: str
    label: str | None
    status: Status
    path: PathAnswer
    tainted: tuple[Taint, ...]
    findings: tuple[Finding, ...]
    lane: str
    rules: str
    judge: str
    witnesses: tuple[str, ...] = ()  # ids of the launches that witness its path, R308 holding of them
    grade: Grade = "typed"
    grade_why: str = ""  # what it lacks for the next one

    @property
    def exit_code(self) -> int:
        """Of a command that answers with it: invalid 1, open 3, valid 0."""
        return EXIT[self.status]


def receipt_status(findings: Iterable[Finding]) -> Status:
    """``invalid`` by any error; ``open`` while path, steps, or a fact that a rule needs is not evidenced."""
    levels = {item.level for item in findings}
    if Level.ERROR in levels:
        return "invalid"
    return "open" if Level.OPEN in levels else "valid"


def path_answer(findings: Iterable[Finding]) -> PathAnswer:
    """``left`` by any error on the path, ``unwitnessed`` by an open question on it or a fact that cannot be shown."""
    on_path = [item for item in findings if item.question is Question.PATH]
    levels = {item.level for item in on_path}
    if Level.ERROR in levels:
        return "left"
    return "unwitnessed" if Level.OPEN in levels or any(item.excused for item in on_path) else "witnessed"


def tainted(findings: Iterable[Finding]) -> tuple[Taint, ...]:
    """Kinds of metric that some error spoils, in the order of `Taint`."""
    spoilt = {taint for item in findings if item.level is Level.ERROR for taint in item.taints}
    return tuple(taint for taint in Taint if taint in spoilt and taint is not Taint.NONE)


def undecided(findings: Iterable[Finding]) -> tuple[Taint, ...]:
    """Kinds of metric that open questions are about, in the order of `Taint`; `all` where a number was not measured."""
    return undecided_by((item.level, item.question, item.taints) for item in findings)


def undecided_by(findings: Iterable[tuple[str, str, Collection[str]]]) -> tuple[Taint, ...]:
    """The same by level, question and taints of each finding."""
    kinds: set[str] = set()
    for level, question, taints in findings:
        if level == Level.OPEN and question != Question.NONE:
            kinds.update(taints if taints and question != Question.PATH else (Taint.ALL,))
        elif level == Level.ERROR and question == Question.EFFECT and not taints:
            kinds.add(Taint.ALL)
    return tuple(taint for taint in Taint if taint in kinds and taint is not Taint.NONE)


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One metric of a comparison. ``stated_ratio`` is B over A as stated, where no effect can be given.

    The values of ``a`` and ``b`` are the effect's own estimates, whose quotient is its ratio; ``middle_a`` and
    ``middle_b`` are the plain medians of the launches.
    """

    metric: str
    unit: str
    a: MetricReading
    b: MetricReading
    effect: Effect
    stated_ratio: float | None
    middle_a: float | None = None
    middle_b: float | None = None

    @property
    def ratio(self) -> float | None:
        """B over A: what the interval is around where there is one, else as stated."""
        return self.effect.ratio if self.effect.ratio is not None else self.stated_ratio


@dataclass(frozen=True, slots=True)
class Lost:
    """A launch of a side that is not a sample of the metric, left out. ``why``: codes of rules, or how it ended."""

    side: Literal["a", "b"]
    receipt: str
    why: tuple[str, ...]


ANOTHER_SESSION = "another session"  # why a launch does not count whose session has no launch of the other side


OF_THIS_SESSION: Final = "of this session"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Stored launches of a side's configuration that were not asked for: how many, and which: *of other sessions*."""

    side: Literal["a", "b"]
    count: int
    which: str


def counted_of(side: str, kept: int, lost: Iterable[Lost]) -> str:
    """*A: 3 of 5 launches count; R303 on 2*; empty if none of that side is left out."""
    gone = [item.why for item in lost if item.side == side]
    if not gone:
        return ""
    reasons = Counter(reason for why in gone for reason in why)
    why = ", ".join(f"{reason} on {count}" for reason, count in sorted(reasons.items()))
    return f"{side.upper()}: {kept} of {kept + len(gone)} launches count; {why}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer to *what does the difference between these two numbers mean?*

    ``metric`` answers where a launch lacks the one that was ``asked`` for.
    """

    a: tuple[str, ...]
    b: tuple[str, ...]
    label_a: str
    label_b: str
    metric: str
    asked: str
    lanes: tuple[str, ...]
    comparable: Comparable
    path: PathAnswer
    effect: str
    standing: Standing
    status: Decision
    difference: Difference
    uncounted: tuple[tuple[str, str], ...]  # changed axes that do not count for this metric, each with its reason
    findings: tuple[Finding, ...]
    results: tuple[MetricResult, ...]
    waivers: tuple[tuple[str, str], ...]
    study: str | None
    rules: str
    judge: str
    witnesses: tuple[str, ...] = ()  # ids of the launches that witness a side's path, R308 holding of them
    context: str | None = None  # the base configuration that both sides name
    lost: tuple[Lost, ...] = ()  # launches of the sides that are not samples
    named: tuple[str, ...] = ()  # ids that were named, and stand for their side whatever rules find of them
    grade: Grade = "typed"  # the lowest of all launches of both sides
    left_out: tuple[LeftOut, ...] = ()  # stored launches of both configurations that were not asked for
    pooled: bool = False  # sessions were pooled, as somebody asked

    @property
    def exit_code(self) -> int:
        """Of a command that answers with it: accepted 0, rejected 1, inconclusive 3."""
        return EXIT[self.status]

    @property
    def headline(self) -> MetricResult | None:
        """What it says of the metric that was asked for; None if neither side has it."""
        return next((item for item in self.results if item.metric == self.metric), None)

    @property
    def counted(self) -> tuple[str, ...]:
        """Names of the changed axes that count."""
        left_out = {axis for axis, _ in self.uncounted} | {axis for axis, _ in self.waivers}
        return tuple(axis for axis in self.difference.axes if axis not in left_out)

    @property
    def owed(self) -> str:
        """What the comparison owes to inputs and context, in words; nothing if both sides state all that counts."""
        held, name = len(self.difference.held), self.context or ""
        name = name[:12] if DIGEST.fullmatch(name) else name
        counts = (
            (len(self.difference.held_by_inputs), "held by inputs"),
            (held, f"that no side states, equal by their common base {name}"),
        )
        words = [f"{count} setting{'' if count == 1 else 's'} {by}" for count, by in counts if count]
        words += [self.difference.unread] if self.difference.held_by_inputs and self.difference.unread else []
        return ", ".join(words)

    @property
    def launches_lost(self) -> tuple[str, ...]:
        """How many launches of each side count, where some do not."""
        sides = (("a", self.a), ("b", self.b))
        counted = tuple(words for side, kept in sides if (words := counted_of(side, len(kept), self.lost)))
        return (*counted, self.not_asked) if self.not_asked else counted

    @property
    def not_asked(self) -> str:
        """*not asked for: A 20 of other sessions*; empty if every stored launch was."""
        sides = {item.side: "" for item in self.left_out}
        for item in self.left_out:
            sides[item.side] += f"{', ' if sides[item.side] else ''}{item.count} {item.which}"
        counted = "; ".join(f"{side.upper()} {text}" for side, text in sides.items())
        return f"not asked for: {counted}" if counted else ""

    def last_line(self) -> str:
        """All three answers and the status, and how many launches count: the last line of every rendering.

        An effect that has a word and no cause says so.
        """
        standing = f", {self.standing}" if self.effect != "unproven" and self.standing != "attributed" else ""
        effect = f"effect {self.effect} on {self.metric}{standing}"
        answers = (f"comparable {self.comparable}", f"path {self.path}", effect)
        return f"{self.status}: {' · '.join((*answers, *self.launches_lost))}"


def comparable_answer(findings: Iterable[Finding]) -> Comparable:
    """``no`` by any error on the question, ``unknown`` by any open one, else ``yes``."""
    levels = {item.level for item in findings if item.question is Question.COMPARABLE and item.waived is None}
    if Level.ERROR in levels:
        return "no"
    return "unknown" if Level.OPEN in levels else "yes"


def standing_of(findings: Iterable[Finding], *, stated: bool, clear: bool) -> Standing:
    """``as stated`` where a side's number is ``stated`` or quoted; else whether all is ``clear``."""
    if stated or any(item.unmeasured for item in findings):
        return "as stated"
    return "attributed" if clear else "unattributed"


def decide(comparable: Comparable, path: PathAnswer, effect: str, standing: Standing) -> Decision:
    """``accepted``: comparable, witnessed, and a proven effect that its setting earned.

    ``rejected``: not comparable, or the path was left.
    """
    if comparable == "no" or path == "left":
        return "rejected"
    proven = effect in ("faster", "slower", "equivalent") and standing == "attributed"
    return "accepted" if comparable == "yes" and path == "witnessed" and proven else "inconclusive"


ClaimStatus = Literal["supported", "refuted", "unproven", "stale"]


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the receipts say of the number that a claim names, before any rule: *holds*, *fails*, or *open*.

    ``low`` to ``high`` is the interval that was held against the claim, of the improvement, the metric's ratio or its
    value; None if the data carry none. ``grade`` says how often a ceiling was reached, or what an MFU is based on.
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
        """Why it is not supported, each in a sentence; empty if it is."""
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


VERDICT_VERSION = "1.0"  # of a verdict as JSON


def verdict_to_json(verdict: ReceiptVerdict | Comparison | ClaimVerdict) -> dict[str, Any]:
    """The verdict as JSON-able data; its schema is ``schema/verdict-1.schema.json``."""
    document = asdict(verdict)
    if isinstance(verdict, Comparison):
        document["counted"] = list(verdict.counted)
        document["owed"] = verdict.owed
    if isinstance(verdict, ClaimVerdict):
        document["reasons"] = list(verdict.reasons)
        if verdict.comparison is not None:
            document["comparison"] = verdict_to_json(verdict.comparison)
    return {"schema_version": VERDICT_VERSION, **document}
