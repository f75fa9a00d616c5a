"""What a rule is: the decorator that declares one, the case that it sees, its topic, and the offense that it reports.

A rule is a file in ``validators/rules/``: its docstring is its page, and one decorated function judges. It imports
what it needs from here. A case is a receipt with what its witnesses lend, a comparison, a claim, or a statement in
prose. The engine treats all findings on one topic alike, whichever rule reported them. `receipts.judging.rulebook`
loads rules, and `receipts.judging.judge` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from receipts.axes import Difference
from receipts.axes.lane import Grade, Lane
from receipts.judging.facts import UNKNOWN_STANDING, Facts, ShapeStanding
from receipts.judging.grade import Graded, graded, renumbered
from receipts.judging.verdict import Assessment, Comparison, Finding, LeftOut, Level, Lost, Question
from receipts.judging.witness import BorrowedLeaves, lend, names
from receipts.metrics import Launch, Metric
from receipts.metrics.registry import Taint
from receipts.receipt import Parsed, Role
from receipts.receipt.document import UNFAILED
from receipts.receipt.leaves import find_leaf, path_of
from receipts.receipt.measurement import BEFORE_STEPS, SEEN_IN_STEPS

if TYPE_CHECKING:
    from receipts.judging.claim import Claim
    from receipts.stats.equivalence import Effect


class Topic(StrEnum):
    """The topics that some part of the engine asks for. Most rules have none."""

    AXES = "axes"  # the settings that changed: a comparison names them once, ahead of all else
    UNKNOWN = "unknown"  # settings that are not stated: they are listed together
    SIDES = "sides"  # quotes what rules find on the receipt of one side
    EFFECT = "effect"  # judges the computed effect itself, and so does not take its name away
    STALLS = "stalls"  # typical step and throughput part: the first line names both
    LAYOUT = "layout"  # a layout that no launch can have, read from a plan as well
    EVIDENCE = "evidence"  # the evidence of the path that a lane asks for
    WITNESS = "witness"  # why a path stays open although a launch witnesses it: shown even where it weighs nothing
    INCIDENT = "incident"  # changes which system a number belongs to; on the effect, steps that do not settle
    FAILURE = "failure"  # earlier launches that failed alike
    RECEIPTS = "receipts"  # receipts that a claim does not have: nothing speaks against it, nothing for it
    TARGET = "target"  # where a claim has to hold: what a retest at its target settles
    STALENESS = "staleness"  # what supports a claim has changed since: it is stale, whatever else it is


# What the person who starts a launch decides about it and its measurement.
SETTINGS: Final = (Role.AXIS, Role.REGIME, Role.WORK)


@dataclass(frozen=True)
class Case:
    """What a rule on one receipt sees: what it states, and what its witnesses lend of the path."""

    launch: Launch
    lane: Lane
    facts: Facts | None = None

    @cached_property
    def borrowed(self) -> BorrowedLeaves:
        """What the witnesses that stand lend to this launch; `receipts.judging.witness` says which of them do."""
        known = self.facts
        if known is None:
            return lend(self.launch.parsed, (), self.lane)
        standing = [item for item in known.witnesses if item.id not in known.superseded]
        return lend(self.launch.parsed, standing, self.lane, known.varied, known.strangers, known.sides)

    @cached_property
    def parsed(self) -> Parsed:
        """The receipt with what is lent to it. Id and bytes are its own."""
        return self.borrowed.parsed

    @cached_property
    def graded(self) -> Graded:
        """What the receipt's word rests on, and why no more."""
        kept = self.facts.kept if self.facts is not None else ()
        return graded(self.launch.parsed, self.parsed, self.lane, kept, self.renumbered)

    @cached_property
    def renumbered(self) -> str:
        """A measured number that an earlier receipt of this launch had otherwise, with both; empty if there is none."""
        known = self.facts.replaced if self.facts is not None else {}
        kept = self.facts.kept if self.facts is not None else ()
        return renumbered(self.launch.parsed, known.get(self.launch.parsed.id, ()), kept)

    @property
    def witnessed(self) -> Parsed | None:
        """The launch that this one says it witnesses, where the caller found it."""
        known = self.facts.witnessed if self.facts is not None else ()
        return next((item for item in known if names(self.launch.parsed, item)), None)

    @cached_property
    def stated(self) -> Mapping[str, Any]:
        """Stated leaves by path, and lent ones."""
        return self.parsed.stated

    @cached_property
    def receipt(self) -> Any:
        """The receipt's model, with what is lent to it."""
        return self.parsed.receipt

    @cached_property
    def get(self) -> Callable[[str], Any]:
        """The stated value at a path, or None: ``case.get(path)``. Rules ask some four hundred times a receipt."""
        return self.stated.get

    def excuse(self, *paths: str) -> str:
        """Why none of some facts can be shown: no source of the lane prints them, or the launch ended before."""
        if not any(map(self.lane.prints, paths)):
            return f"no source of lane {self.lane.name} prints it"
        failure = self.receipt.failure
        if self.receipt.run.outcome in UNFAILED or failure is None or failure.phase not in BEFORE_STEPS:
            return ""
        early = all(path.startswith(SEEN_IN_STEPS) for path in paths)
        return f"a launch that failed in {failure.phase} shows none" if early else ""


@dataclass(frozen=True)
class PairCase:
    """What a rule on a comparison sees: the first launch of each side, the difference, and the metric asked for.

    ``counted`` are the axes that count once derived, indifferent, waived and studied axes are taken out; ``uncounted``
    gives the reason for each but the waived. ``lost`` are launches of the sides that are not samples of the metric; the
    groups are those that count, and ``witnesses`` the ids of the receipts that lend to them. ``metric`` is the one that
    answers: the one that was ``asked`` for, or another of its kind where some launch lacks that.
    """

    a: Case
    b: Case
    difference: Difference
    counted: tuple[str, ...]
    metric: Metric
    asked: Metric
    lane: Lane
    facts: Facts | None = None
    findings_a: tuple[Finding, ...] = ()
    findings_b: tuple[Finding, ...] = ()
    sparing: Collection[str] = ()  # codes of the rules whose offense does not spoil the metric
    context: str | None = None  # that both sides name
    varied: frozenset[str] = frozenset()  # leaves that were seen with two values under it
    study: str | None = None
    regimes: Collection[str] = ()  # leaves of the regime that differ on purpose, as the study says
    waived: Mapping[str, str] = field(default_factory=dict)
    group_a: tuple[Launch, ...] = ()
    group_b: tuple[Launch, ...] = ()
    lost: tuple[Lost, ...] = ()
    grade: Grade = "typed"
    uncounted: Mapping[str, str] = field(default_factory=dict)
    witnesses: tuple[str, ...] = ()
    pooled: bool = False  # all sessions of both sides count, as somebody asked
    left_out: tuple[LeftOut, ...] = ()  # stored launches that were not asked for
    effects: dict[str, Effect] = field(default_factory=dict, compare=False, repr=False)  # by the names of metrics

    @property
    def sides(self) -> tuple[tuple[Literal["a", "b"], Case], ...]:
        """Both sides with their letters."""
        return (("a", self.a), ("b", self.b))

    def holds(self, *paths: str) -> bool:
        """Whether inputs or one context hold leaves that neither side states: settings with one value known there.

        How a launch ended, what was seen of it and what shows it are not settings.
        """
        apart = self.difference
        if not self.silent(*paths) or not all(
            (leaf := find_leaf(path)) is not None and leaf.role in SETTINGS for path in paths
        ):
            return False
        # Equal inputs hold a setting; how a program measures itself is one of its own.
        return all(
            (apart.one_program and path.startswith("measurement.")) or path_of(path) in apart.held_by_inputs
            for path in paths
        ) or (self.context is not None and self.varied.isdisjoint(map(path_of, paths)))

    def silent(self, *paths: str) -> bool:
        """Whether neither side states any of these leaves, and both are of one program and inputs, or one context."""
        stated = any(side.parsed.flat.states(path) for path in paths for _, side in self.sides)
        return (self.context is not None or self.difference.one_program) and not stated

    @property
    def nameless(self) -> bool:
        """Whether neither side kept steps and the metric is read of them: no effect is named, and nothing accepted."""
        return self.metric.summary in ("step", "rate") and not (self.a.launch.series or self.b.launch.series)

    def values(self, path: str) -> tuple[Any, Any]:
        """The stated values at a path, on A and on B."""
        return self.a.get(path), self.b.get(path)


@dataclass(frozen=True)
class ClaimCase:
    """What a rule on a claim sees: the claim, its receipts, and what they say of its number.

    ``missing`` are the words that name no receipt, each as side and reason. ``envelope`` is where the claimed shape
    lies in the lane's envelope, ``at_target`` whether it was shown where it is to hold (None if neither claim nor
    lane names a target), ``earlier`` the status that it had when it was last judged, ``lost`` the receipts (id,
    successor, reason) that it stood on then and that no longer stand, and ``now`` the status that it has by every rule
    but that of age.
    """

    claim: Claim
    baseline: tuple[Launch, ...]
    candidate: tuple[Launch, ...]
    comparison: Comparison | None
    assessment: Assessment
    lane: Lane
    facts: Facts | None = None
    missing: tuple[tuple[str, str], ...] = ()
    envelope: ShapeStanding = UNKNOWN_STANDING
    target: str | None = None
    at_target: bool | None = None
    earlier: str | None = None
    lost: tuple[tuple[str, str, str], ...] = ()
    now: str | None = None

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Launches of both sides."""
        return (*self.baseline, *self.candidate)


class StatementCase(NamedTuple):
    """What a rule on a performance statement in prose sees: its words, where they stand, and what they link to.

    ``receipts`` are ids as written, ``claim`` a claim's id, ``ignored`` the reason of an ignore comment. ``lanes`` are
    those of the receipts of the numbers on ``metric`` that the page puts in one order with it, its own among them.
    """

    text: str
    place: str
    receipts: tuple[str, ...] = ()
    claim: str = ""
    ignored: str = ""
    metric: str = ""
    lanes: tuple[str, ...] = ()


E, I, W = Level.ERROR, Level.OPEN, Level.SHOWN  # noqa: E741 — the letters are the design's own
COMPARABLE, PATH, EFFECT, NONE = Question.COMPARABLE, Question.PATH, Question.EFFECT, Question.NONE
ALL, RATE, MFU, MEMORY, LOSS, GOODPUT = Taint.ALL, Taint.RATE, Taint.MFU, Taint.MEMORY, Taint.LOSS, Taint.GOODPUT

RuleSubject = Literal["receipt", "pair", "claim", "statement"]
ANYWHERE = ("",)  # wherever a rule finds something
DECLARED = "__receipts_rule__"  # the attribute by which a decorated function carries its `Rule`


class Offense(NamedTuple):
    """What a rule found. ``at`` is a path in the receipt; ``level`` and ``question`` override the rule's own.

    ``unjudged``: what the rule needs is not known, which its `needs` cannot say if it belongs to another receipt.
    """

    at: str
    found: str
    expected: str
    do: str
    level: Level | None = None
    side: Literal["a", "b"] | None = None
    unjudged: bool = False
    question: Question | None = None


Needs = tuple[str, ...] | Callable[[Case], Iterable[str]]
Judge = Callable[[Any], Iterator[Offense]]


@dataclass(frozen=True)
class Rule:
    """One rule, with what its file declares of it; `rule` says what each means."""

    code: str
    name: str
    level: Level
    subject: RuleSubject
    question: Question
    taints: tuple[Taint, ...]
    needs: Needs
    applies: Callable[[Any], bool]
    uses_facts: bool
    judge: Judge
    of_configuration: bool = False
    about: Topic | None = None
    asks_store: bool = False
    reads_others: tuple[str, ...] = ()
    amortized: str = ""
    spares: tuple[str, ...] = ()
    page: str = ""
    path: Path | None = None

    @property
    def why(self) -> str:
        """The first sentence of the page's *Why*; empty if it has none."""
        import re  # a list of rules alone needs it

        match = re.search(
            r"\*Why\.\*\s+(.*?[.!?])(?=\s+[A-Z*`]|\s*$)", self.page.partition("*Rejected.*")[0], re.DOTALL
        )
        return " ".join(match.group(1).split()) if match else ""

    def missing(self, case: Case) -> tuple[str, ...]:
        """Needs that neither the receipt nor a witness of it states, and that exist for its lane."""
        wanted = self.needs(case) if callable(self.needs) else self.needs
        flat, unstated = case.parsed.flat, []
        states = flat.states
        for need in wanted:
            if need in flat.leaves or states(need):
                continue
            options = need.split("|")
            if not any(map(states, options)) and all(map(case.lane.applies, options)):
                unstated.append(need)
        return tuple(unstated)


def runs_model(case: Case) -> bool:
    """Whether a launch runs a model's steps: a microbenchmark of a kernel or a block has no layout and no batch."""
    return bool(case.receipt.run.kind != "microbench")


def ended_well(case: Case) -> bool:
    """Whether a launch ended well. One that failed has no steady window; after one that did not, nothing is tried."""
    return case.receipt.run.outcome in UNFAILED


def failed(case: Case) -> bool:
    """Whether a launch failed."""
    return not ended_well(case)


def rule(
    code: str,
    name: str,
    level: Level,
    *,
    on: RuleSubject = "receipt",
    question: Question = COMPARABLE,
    taints: tuple[Taint, ...] = (),
    needs: Needs = (),
    applies: Callable[[Any], bool] = lambda _case: True,
    facts: bool = False,
    of_configuration: bool = False,
    about: Topic | None = None,
    asks_store: bool = False,
    reads_others: tuple[str, ...] = (),
    amortized: str = "",
    spares: tuple[str, ...] = (),
) -> Callable[[Judge], Judge]:
    """Declare the decorated generator function as the rule of this file, and what the engine has to know of it.

    ``needs`` are leaf paths (``a|b`` for any of them) without which an E rule cannot judge.
    ``applies`` may read required keys alone (kind, outcome, provenance, lane): what can be dropped from a receipt
    must never make a rule disappear. A rule ``of_configuration`` is shown a receipt that states nothing else (see
    `receipts.axes.replicates`), and is asked once for all launches of that configuration.

    ``about`` is what it speaks of, where the engine treats such findings alike. A rule that ``asks_store`` reads of the
    facts only what the store knows of its lane, which changes from launch to launch: its findings weigh nothing, and
    reports leave them out. ``reads_others`` are the beginnings of the leaves at which it finds what other launches
    show, so that a stored finding there may no longer hold. ``amortized`` is what its error answers to *compile
    amortized?*, which its open finding leaves open. ``spares`` are metrics of its taints that it does not spoil.
    """

    def declare(judge: Judge) -> Judge:
        declared = (of_configuration, about, asks_store, reads_others, amortized, spares)
        declared_rule = Rule(code, name, level, on, question, taints, needs, applies, facts, judge, *declared)
        setattr(judge, DECLARED, declared_rule)
        return judge

    return declare


def layout_rule(code: str, name: str, needs: Needs) -> Callable[[Judge], Judge]:
    """The `rule` of an error in how the model is laid out: it reads the configuration alone, and spoils everything."""
    return rule(
        code, name, E, taints=(ALL,), needs=needs, applies=runs_model, of_configuration=True, about=Topic.LAYOUT
    )
