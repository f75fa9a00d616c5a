"""What a rule is, and how rules are loaded.

A rule is a file in ``validators/rules/``: its docstring is its page, and one decorated function judges. Rules are
loaded by path, as Alembic loads versions; nothing imports a rule. A rule that does not load, or that raises, is an
error (exit 4) and never a pass.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import datetime
from functools import cached_property
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple

from receipts.axes import Difference
from receipts.errors import NotFound, RuleError, near
from receipts.lane import Lane
from receipts.metrics import Launch, Metric
from receipts.receipt import Parsed
from receipts.value import dataclass
from receipts.verdict import Assessment, Comparison, Finding, Level, Question, Taint
from receipts.witness import Lent, lend, names

E, I, W = Level.ERROR, Level.OPEN, Level.SHOWN  # noqa: E741 — the letters are the design's own
COMPARABLE, PATH, EFFECT, NONE = Question.COMPARABLE, Question.PATH, Question.EFFECT, Question.NONE
ALL, RATE, MFU, MEMORY = Taint.ALL, Taint.RATE, Taint.MFU, Taint.MEMORY

RuleSubject = Literal["receipt", "pair", "claim", "statement"]
_CODE = re.compile(r"^[A-Z]\d{3}$")
_NAME = re.compile(r"^[a-z][a-z0-9_]*$")
_ATTRIBUTE = "__receipts_rule__"


class Offence(NamedTuple):
    """What a rule found. ``at`` is a path in the receipt; ``level`` overrides the rule's own where it says so.

    ``unjudged``: what the rule needs is not known, which its `needs` cannot say where it stands in another receipt.
    """

    at: str
    found: str
    expected: str
    do: str
    level: Level | None = None
    side: Literal["a", "b"] | None = None
    unjudged: bool = False


class EarlierFailure(NamedTuple):
    """A launch that failed before the judged one started, and that has its signature. Times are in UTC."""

    id: str
    outcome: str
    phase: str | None
    class_: str | None
    started: datetime


class Shape(NamedTuple):
    """A shape of a lane that launches reached, for the envelope; days and hosts are None where nobody counted them."""

    chips: int | None
    sequence_length: int | None
    micro_batch: int | None
    depth: int | None
    launches: int
    days: int | None = None
    hosts: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What the caller fetched for the rules: values from a store, never a handle to one.

    ``superseded`` maps a receipt's id to its successor (empty when retracted) and the reason. ``shapes`` are those
    that launches of the receipt's lane sustained. ``failures`` are earlier failures of the same signature.
    ``witnesses`` are receipts that stand and name one of the judged launches in ``run.witness_for``, ``witnessed``
    those that one of the judged names there. ``exact_memory`` names the memory metrics on which the store's equal
    launches always agree, and ``chip_spread`` is how far one chip's live peak lies apart in two of them, as a share.
    """

    superseded: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    shapes: tuple[Shape, ...] = ()
    failures: tuple[EarlierFailure, ...] = ()
    witnesses: tuple[Parsed, ...] = ()
    witnessed: tuple[Parsed, ...] = ()
    sigma: float | None = None
    sigma_df: float | None = None
    largest_spread: float | None = None
    exact_memory: frozenset[str] = frozenset()
    chip_spread: float | None = None

    @classmethod
    def among(cls, receipts: Iterable[Parsed]) -> Facts:
        """What documents say of each other where no store is asked: one may supersede another, or witness it."""
        every = tuple(receipts)
        superseded: dict[str, tuple[str, str]] = {}
        for item in every:
            said = item.receipt.run.supersedes
            for other in every if said else ():
                if said and other.id != item.id and said.target in (other.id, other.receipt.run.launch):
                    superseded[other.id] = (item.id, said.reason)
        return cls(superseded=superseded).beside(every)

    def beside(self, receipts: Iterable[Parsed]) -> Facts:
        """These facts, and which of some receipts witness one another; one that is superseded witnesses nothing."""
        every = tuple(receipts)
        naming = [one for one in every if one.receipt.run.witness_for is not None]
        if not naming:
            return self
        links = [(one, other) for one in naming for other in every if names(one, other)]
        witnesses = {one.id: one for one, _ in links if one.id not in self.superseded}
        witnessed = {other.id: other for _, other in links}
        return replace(
            self,
            witnesses=tuple({item.id: item for item in (*self.witnesses, *witnesses.values())}.values()),
            witnessed=tuple({item.id: item for item in (*self.witnessed, *witnessed.values())}.values()),
        )


@dataclass(frozen=True)
class Case:
    """What a rule on one receipt sees: what it states, and what its witnesses lend of the path."""

    launch: Launch
    lane: Lane
    facts: Facts | None = None

    @cached_property
    def lent(self) -> Lent:
        """What the witnesses that stand lend to this launch; `receipts.witness` says which of them do."""
        known = self.facts
        standing = [item for item in known.witnesses if item.id not in known.superseded] if known is not None else ()
        return lend(self.launch.parsed, standing, self.lane)

    @cached_property
    def parsed(self) -> Parsed:
        """The receipt with what is lent to it. Id and bytes are its own."""
        return self.lent.parsed

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


@dataclass(frozen=True)
class Pair:
    """What a rule on a comparison sees: the first launch of each side, the difference, and the metric asked for.

    ``counted`` are the axes that count once derived, indifferent, waived and studied axes are taken out.
    """

    a: Case
    b: Case
    difference: Difference
    counted: tuple[str, ...]
    metric: Metric
    lane: Lane
    facts: Facts | None = None
    findings_a: tuple[Finding, ...] = ()
    findings_b: tuple[Finding, ...] = ()
    held_by_context: bool = False
    study: str | None = None
    waived: Mapping[str, str] = field(default_factory=dict)
    group_a: tuple[Launch, ...] = ()
    group_b: tuple[Launch, ...] = ()
    kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)  # effects by the names of metrics

    @property
    def sides(self) -> tuple[tuple[Literal["a", "b"], Case], ...]:
        """Both sides with their letters."""
        return (("a", self.a), ("b", self.b))

    def values(self, path: str) -> tuple[Any, Any]:
        """The stated values at a path, on A and on B."""
        return self.a.get(path), self.b.get(path)


@dataclass(frozen=True)
class ClaimCase:
    """What a rule on a claim sees: the claim, its receipts, and what they say of its number.

    ``claim`` is a `receipts.claims.Claim`, which stands above this module. ``missing`` are the words that name no
    receipt, each as side and reason. ``envelope`` is where the claimed shape lies in the lane's envelope, ``at_target``
    whether it was shown where it is to hold (None where neither claim nor lane names a target), ``earlier`` the status
    that it had when it was last judged, ``lost`` the receipts (id, successor, reason) that it stood on then and that no
    longer stand, and ``now`` the status that it has by every rule but that of age.
    """

    claim: Any
    baseline: tuple[Launch, ...]
    candidate: tuple[Launch, ...]
    comparison: Comparison | None
    assessment: Assessment
    lane: Lane
    facts: Facts | None = None
    missing: tuple[tuple[str, str], ...] = ()
    envelope: str = "unknown"
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

    ``receipts`` are ids as written, ``claim`` a claim's id, ``ignored`` the reason of an ignore comment.
    """

    text: str
    place: str
    receipts: tuple[str, ...] = ()
    claim: str = ""
    ignored: str = ""


Needs = tuple[str, ...] | Callable[[Case], Iterable[str]]
Judge = Callable[[Any], Iterator[Offence]]


@dataclass(frozen=True)
class Rule:
    """One rule. ``needs`` are leaf paths (``a|b`` for any of them) without which an E rule cannot judge."""

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
    page: str = ""
    path: Path | None = None
    of_configuration: bool = False

    def missing(self, case: Case) -> tuple[str, ...]:
        """Needs that neither the receipt nor a witness of it states, and that exist for its lane."""
        wanted = self.needs(case) if callable(self.needs) else self.needs
        flat, found = case.parsed.flat, []
        states = flat.states
        for need in wanted:
            if need in flat.leaves or states(need):
                continue
            options = need.split("|")
            if not any(map(states, options)) and all(map(case.lane.applies, options)):
                found.append(need)
        return tuple(found)


def _always(_case: Any) -> bool:
    return True


def rule(
    code: str,
    name: str,
    level: Level,
    *,
    on: RuleSubject = "receipt",
    question: Question = COMPARABLE,
    taints: tuple[Taint, ...] = (),
    needs: Needs = (),
    applies: Callable[[Any], bool] = _always,
    facts: bool = False,
    of_configuration: bool = False,
) -> Callable[[Judge], Judge]:
    """Declare the decorated generator function as the rule of this file.

    ``applies`` may read required keys alone (kind, outcome, provenance, lane): what can be dropped from a receipt
    must never make a rule disappear. A rule ``of_configuration`` is shown a receipt that states nothing else (see
    `receipts.axes.configured`), and is asked once for all launches of that configuration.
    """

    def declare(judge: Judge) -> Judge:
        made = Rule(
            code, name, level, on, question, taints, needs, applies, facts, judge, of_configuration=of_configuration
        )
        setattr(judge, _ATTRIBUTE, made)
        return judge

    return declare


@dataclass(frozen=True)
class RuleSet:
    """Rules in the order of their codes, with the digest that every verdict carries."""

    rules: tuple[Rule, ...]
    digest: str

    @cached_property
    def _by_subject(self) -> dict[str, tuple[Rule, ...]]:
        subjects = dict.fromkeys(item.subject for item in self.rules)
        return {name: tuple(item for item in self.rules if item.subject == name) for name in subjects}

    def on(self, subject: RuleSubject) -> tuple[Rule, ...]:
        """Rules on one kind of subject."""
        return self._by_subject.get(subject, ())

    @cached_property
    def of_configuration(self) -> tuple[Rule, ...]:
        """Rules on a receipt that are shown its configuration alone."""
        return tuple(item for item in self.on("receipt") if item.of_configuration)

    @cached_property
    def of_launch(self) -> tuple[Rule, ...]:
        """Rules on a receipt that are shown all of it."""
        return tuple(item for item in self.on("receipt") if not item.of_configuration)

    def get(self, code: str) -> Rule:
        """The rule of a code or name. Raises NotFound."""
        for item in self.rules:
            if code.upper() == item.code or code.lower() == item.name:
                return item
        names = [name for item in self.rules for name in (item.code, item.name)]
        raise NotFound(f"there is no rule {code!r}; see: receipts rules{near(code, names)}")


def load_file(path: Path) -> Rule:
    """Load one rule by path. Raises RuleError naming the file and what it lacks."""
    loader = SourceFileLoader(f"receipts_rule_{path.stem}", str(path))
    module = ModuleType(loader.name)
    module.__file__ = str(path)
    try:
        loader.exec_module(module)
    except Exception as error:  # a rule is somebody's file: whatever it raises is that file's fault, and said so
        raise RuleError(f"rule {path.name} does not load: {type(error).__name__}: {error}") from error
    found = [value for value in vars(module).values() if hasattr(value, _ATTRIBUTE)]
    if len(found) != 1:
        raise RuleError(f"rule {path.name}: it declares {len(found)} rules; a file holds exactly one")
    made: Rule = getattr(found[0], _ATTRIBUTE)
    page = (module.__doc__ or "").strip()
    if not _CODE.match(made.code) or not _NAME.match(made.name):
        raise RuleError(f"rule {path.name}: {made.code} {made.name} is not a code like R101 with a snake_case name")
    if not page:
        raise RuleError(f"rule {path.name}: it has no page; write its docstring")
    return Rule(**{**vars(made), "page": page, "path": path})


def load(folders: Iterable[Path], data: Iterable[Path] = ()) -> RuleSet:
    """Load every rule below ``folders`` (each holds ``rules/``), and digest them with the ``data`` files.

    The digest covers the rules' code without their pages, lanes and studies: a reworded page changes no verdict.
    """
    rules: dict[str, Rule] = {}
    digest = hashlib.sha256()
    for place in folders:
        for path in sorted((place / "rules").glob("*.py")):
            made = load_file(path)
            if made.code in rules:
                other = rules[made.code].path
                raise RuleError(f"rule {made.code} stands in {other} and in {path}; give one another code")
            rules[made.code] = made
            digest.update(f"{path.name}\0".encode() + code_without_page(path.read_bytes()) + b"\0")
    for path in data:
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    ordered = tuple(rules[code] for code in sorted(rules))
    return RuleSet(ordered, digest.hexdigest())


# To the first three quotes; in runs, since every start reads every rule.
_PAGE = re.compile(rb'\A\s*[rR]?"""(?:[^"\\]++|\\.|"(?!""))*+"""', re.DOTALL)


def code_without_page(source: bytes) -> bytes:
    """A rule's source without its leading docstring."""
    return _PAGE.sub(b"", source, count=1)
