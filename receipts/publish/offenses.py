"""Findings of rules as items of a page, and what a verdict lacks, in words.

One offense is one item, and the facts that rules lack are one item together. A lack is named by the leaf that a rule
asks for, else by the name of the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from receipts.axes.inputs import leaf
from receipts.base.units import counted
from receipts.judging.findings import Grouped, grouped, on_sides
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Finding, Level, Question
from receipts.publish.page import Cell, Entry, Link, Section, Table, marked, table_of
from receipts.publish.text import words
from receipts.receipt.leaves import find_leaf


def entries(findings: Iterable[Finding], *, sides: bool = False) -> tuple[Entry, ...]:
    """Every finding as an item, by weight. With ``sides`` each names its side, once if it is on both."""
    groups = grouped(findings)
    waiting = (missing(groups.waiting, sides=sides),) if groups.waiting else ()
    judged, shown = ([entry(group, sides=sides) for group in part] for part in (groups.judged, groups.shown))
    return (*judged, *waiting, *shown)


def entry(group: Sequence[Finding], *, sides: bool = False) -> Entry:
    """One offense: code and name, where it is and what it is, what is expected, what to do; each once."""
    first = group[0]
    title = (
        marked(first.level.value),
        " ",
        Link(f"{first.code} {first.name}", f"rule-{first.code}"),
        on_sides(group) if sides else "",
    )
    facts: list[tuple[str, Cell]]
    expected = list(dict.fromkeys(item.expected for item in group))
    if len(expected) == 1:
        facts = [*(("", (place,)) for place in places(group)), ("expected", (first.expected,))]
    else:
        lines = dict.fromkeys(f"{item.at}: {item.found}; expected {item.expected}" for item in group)
        facts = [("", (line,)) for line in lines]
    return Entry(
        f"finding-{first.code}-{first.level.value}", title, (*facts, *(("→", (text,)) for text in actions(group)))
    )


def warning(group: Sequence[Finding]) -> tuple[str, tuple[Cell, ...]]:
    """A finding that decides nothing, in a line."""
    first = group[0]
    return f"{first.code} {first.name}{on_sides(group)}", tuple((place,) for place in places(group))


def missing(waiting: Mapping[str, Sequence[Finding]], *, sides: bool) -> Entry:
    """The facts that rules wait for, as one item: a bare receipt lacks dozens."""
    parts = []  # each fact with the rules that wait for it
    for at, group in waiting.items():
        codes = ", ".join(dict.fromkeys(item.code for item in group))
        parts.append(f"{at} ({codes}{on_sides(group) if sides else ''})")
    title = (marked("I"), " unjudged, for facts that are not stated")
    advice = "state them; receipts rules CODE says what each is needed for"
    return Entry("finding-unjudged", title, (("", (", ".join(parts),)), ("→", (advice,))))


def places(findings: Sequence[Finding]) -> list[str]:
    """Where a group is and what it is there, each once."""
    return list(dict.fromkeys(f"{item.at}: {item.found}" for item in findings))


def actions(items: Sequence[Finding]) -> list[str]:
    """What to do about findings of one rule, each once; one action on several leaves names them together."""
    shapes: dict[str, list[str]] = {}
    for item in items:
        shape = item.do.replace(item.at, "\0", 1)
        places = shapes.setdefault(shape, [])
        if item.at not in places:
            places.append(item.at)
    return [shape.replace("\0", ", ".join(places), 1) for shape, places in shapes.items()]


MAX_NAMED: Final = 3
_WITNESSED: Final = "path.witnessed."


def lack_name(item: Finding) -> str:
    """What a finding lacks: a fact, or what would settle the offense."""
    say = words("leaves")
    known = item.unjudged or item.at in say.named("leaf") or item.at.startswith(_WITNESSED)
    if item.unjudged or (known and item.name not in say.named("offense")):
        return leaf_in_words(item.at)
    return _settling(item.name)


def _settling(offense: str) -> str:
    say = words("leaves")
    return say.named("offense").get(offense) or say("settles", offense=offense.replace("_", " "))


def waits_for(codes: Sequence[str], rules: RuleSet) -> str:
    """What rules wait for whose findings are not at hand: the first by name, the others by their number."""
    known = words("leaves").named("rule")
    names = [f"{known.get(name) or _settling(name)} ({code})" for code in codes if (name := rules.get(code).name)]
    more = f" and {counted(len(names) - MAX_NAMED, 'more fact')}" if len(names) > MAX_NAMED else ""
    return f"{', '.join(names[:MAX_NAMED])}{more}"


def leaf_in_words(at: str) -> str:
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


def weighed_lacks(groups: Grouped) -> list[Lack]:
    """Everything that is missing, by weight: what keeps a question of the verdict open, then what most rules need."""
    items: dict[str, list[Finding]] = {}
    for group in groups.at(Level.OPEN):
        items.setdefault(lack_name(group[0]), []).extend(group)
    known = {item.code for group in items.values() for item in group}
    for at, group in groups.waiting.items():
        rest = [item for item in group if item.code not in known]
        if rest:
            items.setdefault(leaf_in_words(at), []).extend(rest)
    ordered = sorted(items.items(), key=lambda item: _lack_weight(item[1]))
    return [Lack(name, tuple(dict.fromkeys(item.code for item in group)), _advice(group)) for name, group in ordered]


def _advice(group: Sequence[Finding]) -> tuple[str, ...]:
    """What to do: what a rule says that judged, where one did; else to state the fact, and what that is."""
    if judged := [item for item in group if not item.unjudged]:
        return tuple(actions(judged))
    fact = find_leaf(group[0].at)
    return tuple(f"{text}: {fact.description}" if fact is not None else text for text in actions(group))


def _lack_weight(group: Sequence[Finding]) -> tuple[bool, bool, int]:
    """Open questions of the verdict in the order of their codes; other findings; facts, those that most rules need."""
    on_question = any(item.question is not Question.NONE and not item.unjudged for item in group)
    facts = all(item.unjudged for item in group)
    return not on_question, facts, -len({item.code for item in group}) if facts else 0


def lacks_sentence(missing: Sequence[Lack], source: str) -> str:
    """What keeps a receipt from being valid: the weightiest, and the command that lists the rest."""
    say = words("receipt")
    first = ", ".join(map(str, missing[:MAX_NAMED]))
    if len(missing) <= MAX_NAMED:
        return say("keeps", n=len(missing), first=first)
    return say("keeps_more", n=len(missing), first=first, source=source)


def lacks_table(missing: Sequence[Lack]) -> Table:
    """All of it, by weight, with what to do."""
    rows = ((item.name, ", ".join(item.codes), "; ".join(item.actions)) for item in missing)
    return table_of(words("receipt")("missing"), "missing | rules ^1 | what to do", rows)


def finding_sections(
    shown: Sequence[Sequence[Finding]], findings: Iterable[Finding], *, sides: bool = False
) -> list[Section]:
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
        yield f"{lack_name(items[0])} ({code}{on_sides(items)})", tuple((text,) for text in actions(items))
