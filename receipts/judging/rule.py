"""What a rule is: the decorator that declares one, and the offense that it reports.

A rule is a file in ``validators/rules/``: its docstring is its page, and one decorated function judges. It imports
what it needs from here. `receipts.judging.rulebook` loads rules, and `receipts.judging.judge` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from receipts.judging.case import Case as Case
from receipts.judging.case import ClaimCase as ClaimCase
from receipts.judging.case import PairCase as PairCase
from receipts.judging.case import StatementCase as StatementCase
from receipts.judging.facts import (
    Facts as Facts,  # some rules ask the receipts of a comparison for the facts themselves
)
from receipts.judging.topic import Topic as Topic
from receipts.judging.verdict import Level, Question
from receipts.metrics.registry import Taint

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


def _always(_case: Any) -> bool:
    return True


def runs_model(case: Case) -> bool:
    """Whether a launch runs a model's steps: a microbenchmark of a kernel or a block has no layout and no batch."""
    return bool(case.receipt.run.kind != "microbench")


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
