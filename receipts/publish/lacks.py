"""What a verdict lacks, in words: by the leaf that a rule asks for, else by the name of the rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from receipts.judging.verdict import Finding, Level, Question
from receipts.publish.findings import Grouped, actions, entries, on_sides, warning
from receipts.publish.page import Cell, Section, Table, table_of
from receipts.publish.readings import leaf
from receipts.publish.words import words
from receipts.receipt.leaves import find_leaf

MOST_NAMED: Final = 3
_WITNESSED: Final = "path.witnessed."


def called(item: Finding) -> str:
    """What a finding lacks: a fact, or what would settle the offense."""
    say = words("leaves")
    settles = None if item.unjudged else say.named("offense").get(item.name)
    if settles is not None:
        return settles
    if item.unjudged or item.at in say.named("leaf") or item.at.startswith(_WITNESSED):
        return named(item.at)
    return say("settles", offense=item.name.replace("_", " "))


def named(at: str) -> str:
    """A leaf in words."""
    say = words("leaves")
    name = say.named("leaf").get(at) or leaf(at).replace("_", " ")
    return say("witness", leaf=name) if at.startswith(_WITNESSED) and at not in say.named("leaf") else name


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that is missing: its name, the rules that wait for it, and what to do about it."""

    name: str
    codes: tuple[str, ...]
    actions: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.codes)})"


def weighed(groups: Grouped) -> list[Lack]:
    """Everything that is missing, by weight: what keeps a question of the verdict open, then what most rules need."""
    items: dict[str, list[Finding]] = {}
    for group in groups.at(Level.OPEN):
        items.setdefault(called(group[0]), []).extend(group)
    known = {item.code for group in items.values() for item in group}
    for at, group in groups.waiting.items():
        rest = [item for item in group if item.code not in known]
        if rest:
            items.setdefault(named(at), []).extend(rest)
    ordered = sorted(items.items(), key=lambda item: _weight(item[1]))
    return [Lack(name, tuple(dict.fromkeys(item.code for item in group)), _advice(group)) for name, group in ordered]


def _advice(group: Sequence[Finding]) -> tuple[str, ...]:
    """What to do: what a rule says that judged, where one did; else to state the fact, and what that is."""
    if judged := [item for item in group if not item.unjudged]:
        return tuple(actions(judged))
    fact = find_leaf(group[0].at)
    return tuple(f"{text}: {fact.description}" if fact is not None else text for text in actions(group))


def _weight(group: Sequence[Finding]) -> tuple[bool, bool, int]:
    """Open questions of the verdict in the order of their codes; other findings; facts, those that most rules need."""
    on_question = any(item.question is not Question.NONE and not item.unjudged for item in group)
    facts = all(item.unjudged for item in group)
    return not on_question, facts, -len({item.code for item in group}) if facts else 0


def sentence(missing: Sequence[Lack], source: str) -> str:
    """What keeps a receipt from being valid: the weightiest, and the command that lists the rest."""
    say = words("receipt")
    first = ", ".join(map(str, missing[:MOST_NAMED]))
    if len(missing) <= MOST_NAMED:
        return say("keeps", n=len(missing), first=first)
    return say("keeps_more", n=len(missing), first=first, source=source)


def table(missing: Sequence[Lack]) -> Table:
    """All of it, by weight, with what to do."""
    rows = ((item.name, ", ".join(item.codes), "; ".join(item.actions)) for item in missing)
    return table_of(words("receipt")("missing"), "missing | rules ^1 | what to do", rows)


def details(shown: Sequence[Sequence[Finding]], findings: Iterable[Finding], *, sides: bool = False) -> list[Section]:
    """Findings that decide nothing, in a line each; and, folded, all that rejects nothing in full."""
    say = words("receipt")
    others = entries((item for item in findings if item.level is not Level.ERROR), sides=sides)
    return [
        Section("warnings", say("warnings"), points=tuple(map(warning, shown))),
        Section("findings", say("findings"), entries=others, fold=say("findings_fold", n=len(others))),
    ]


def remedies(groups: Sequence[Sequence[Finding]]) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    """Each open question by what it lacks, with all that would answer it."""
    by_rule: dict[str, list[Finding]] = {}
    for group in groups:
        by_rule.setdefault(group[0].code, []).extend(group)
    for code, items in by_rule.items():
        yield f"{called(items[0])} ({code}{on_sides(items)})", tuple((text,) for text in actions(items))
