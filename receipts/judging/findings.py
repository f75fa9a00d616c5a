"""Findings put together by rule, those that decide a verdict, and the proof of one.

The proof of a finding is a minimal set of stated leaves that, with the required keys, still gives the finding. Leaves
are left out one after another, so rules declare nothing, and the proof includes what effective values depend on. The
proof of an error on a pair takes leaves of both sides and of their witnesses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import groupby
from typing import Any, Final, NamedTuple

from receipts import metrics
from receipts.axes.inputs import leaf
from receipts.base.errors import UsageError
from receipts.judging.facts import Facts
from receipts.judging.rule import Case, PairCase, Rule, Topic
from receipts.judging.rulebook import Rulebook, RuleSet
from receipts.judging.verdict import Comparison, Finding, Level, ProofLeaf, Question
from receipts.metrics import Launch
from receipts.receipt import Parsed
from receipts.receipt.leaf import Section
from receipts.receipt.leaves import find_leaf, path_of

SHOWN_HELD = 12  # settings that are named one by one
MAX_EXPECTED = 60
_ORDER = {Level.ERROR: 0, Level.OPEN: 1, Level.SHOWN: 2}


@dataclass(frozen=True, slots=True)
class Grouped:
    """Findings put together: those of one rule, wherever they are, and those that wait for one missing fact.

    ``judged`` decide, ``shown`` decide nothing.
    """

    judged: tuple[tuple[Finding, ...], ...]
    waiting: Mapping[str, tuple[Finding, ...]]
    shown: tuple[tuple[Finding, ...], ...] = ()

    def at(self, level: Level) -> tuple[tuple[Finding, ...], ...]:
        """The judged groups of one level."""
        return tuple(group for group in self.judged if group[0].level is level)


def grouped(findings: Iterable[Finding]) -> Grouped:
    """Group findings by level, those on a question of the verdict before the others, each in the order of codes."""
    judged: dict[tuple[str, ...], list[Finding]] = {}
    waiting: dict[str, list[Finding]] = {}
    for item in findings:
        if item.unjudged:
            waiting.setdefault(item.at, []).append(item)
        else:
            judged.setdefault((item.code, item.level.value), []).append(item)

    def weight(group: Sequence[Finding]) -> tuple[int, bool, str]:
        return _ORDER[group[0].level], group[0].question is Question.NONE, group[0].code

    ordered = sorted(judged.values(), key=weight)
    deciding = [tuple(group) for group in ordered if group[0].level is not Level.SHOWN]
    shown = [tuple(group) for group in ordered if group[0].level is Level.SHOWN]
    return Grouped(tuple(deciding), {at: tuple(group) for at, group in waiting.items()}, tuple(shown))


def worth_reading(verdict: Comparison, rules: RuleSet) -> list[Finding]:
    """The findings on the pair, and of the sides what those do not already quote."""
    pair = [item for item in verdict.findings if item.on_pair]
    quoted = {(item.subject, item.at) for item in pair if item.code in rules.about(Topic.SIDES)}
    unknown = rules.about(Topic.UNKNOWN)
    listed = len({item.at for item in pair if item.code in unknown}) <= SHOWN_HELD
    shown = (*rules.about(Topic.WITNESS), *rules.about(Topic.INCIDENT))  # what a side ran on, though it decides nothing
    sides = [
        item
        for item in verdict.findings
        if item not in pair
        and (item.subject, item.at) not in quoted
        and not (item.unjudged and item.question is Question.COMPARABLE)
        and (item.level is not Level.SHOWN or item.code in shown)
    ]
    return [item for item in pair if listed or item.code not in unknown] + sides


def decides(item: Finding, verdict: Comparison, rules: RuleSet) -> bool:
    """Whether a finding has a part in this verdict: on the pair, on a path, or on a side where it spoils this metric.

    An offense that spoils only another metric of a side is not a reason.
    """
    if item.waived is not None or item.question is Question.NONE:
        return False
    if item.on_pair or item.question is Question.PATH:
        return True
    spoils = not item.taints or item.spoils(metrics.get(verdict.metric).taint)
    return spoils and item.code not in rules.sparing(verdict.metric)


def refusing(verdict: Comparison, rules: RuleSet) -> list[Finding]:
    """The errors that reject a comparison, the first the one to name: on the pair, on a side's path, then what spoils a
    side, and last the pair's rule that quotes it. An error on the effect alone rejects nothing.
    """
    quoting = rules.about(Topic.SIDES)
    quoted = {(item.subject, item.at) for item in verdict.findings if item.code in quoting}
    errors = (item for item in verdict.findings if item.level is Level.ERROR and decides(item, verdict, rules))
    rejecting = [
        item
        for item in errors
        if item.question is Question.PATH
        or (item.question is not Question.EFFECT if item.on_pair else (item.subject, item.at) in quoted)
    ]
    return sorted(
        rejecting, key=lambda item: (item.code in quoting, not item.on_pair, item.question is not Question.PATH)
    )


def on_sides(findings: Sequence[Finding]) -> str:
    """`` on A``, `` on B``, `` on A and B``, or nothing for a finding on the pair."""
    sides = sorted({item.subject.upper() for item in findings if item.subject in ("a", "b")})
    return f" on {' and '.join(sides)}" if sides else ""


def reason(item: Finding) -> str:
    """One finding in one sentence: what is there, and what was expected if that is short."""
    expected = f", expected {item.expected}" if item.expected and len(item.expected) <= MAX_EXPECTED else ""
    name = leaf(item.at)
    return f"{item.found if item.found.startswith(name) else f'{name}: {item.found}'}{expected}"


class Refusal(NamedTuple):
    """A rule that rejects a comparison, on which sides (` on A and B`; empty for the pair), its finding and remedy."""

    code: str
    name: str
    sides: str
    found: str
    do: str


def refusals(verdict: Comparison, rules: RuleSet) -> list[Refusal]:
    """The rules that reject a comparison, each once, the one to name first: the reason is the same on every page.

    A pair's rule that quotes a side says nothing more where the side's own rule is named.
    """
    errors = refusing(verdict, rules)
    quoting = rules.about(Topic.SIDES)
    named = {item.at for item in errors if item.code not in quoting}
    refused: dict[str, Refusal] = {}
    for item in errors:
        if item.code in refused or (item.code in quoting and item.at in named):
            continue
        same = [other for other in errors if (other.code, other.found) == (item.code, item.found)]
        refused[item.code] = Refusal(item.code, item.name, on_sides(same), reason(item), item.do)
    return list(refused.values())


def several_axes(verdict: Comparison, rules: RuleSet) -> bool:
    """Whether a comparison is rejected since several axes changed: then they are its reason, and no other."""
    return len(verdict.counted) > 1 and any(item.code in rules.about(Topic.AXES) for item in refusing(verdict, rules))


Stands = Callable[[Collection[ProofLeaf]], bool]
MAX_SINGLE_LEAVES: Final = 8  # leaves that are tried one by one, where not all of them can be left out
MAX_TRIED_AGAIN: Final = 64
_ROW: Final = re.compile(r"\[\d+\]")
_WHOLE: Final = ("measurement.step_flags",)  # a map that is one leaf


def proved(case: Case, findings: Iterable[Finding], rules: RuleSet) -> tuple[Finding, ...]:
    """Findings on one receipt, its errors with their proofs: of its own leaves, and of its witnesses'."""
    return tuple(
        replace(item, proof=_of_receipt(case, rules.get(item.code), item)) if item.level is Level.ERROR else item
        for item in findings
    )


def _of_receipt(case: Case, rule: Rule, finding: Finding) -> tuple[ProofLeaf, ...]:
    facts, own = case.facts, case.launch.parsed
    others = (*facts.witnesses, *facts.witnessed) if facts is not None else ()
    less = Reducer()
    contributing = {*case.borrowed.by.values(), *(item.witness for item in case.borrowed.contradictions)}
    tells = [
        own,
        *(item for item in others if own.receipt.run.witness_for or item.id in contributing),
    ]

    def stands(leaves: Collection[ProofLeaf]) -> bool:
        known = facts
        if facts is not None:
            witnesses, witnessed = (
                tuple(less(item, leaves) for item in some) for some in (facts.witnesses, facts.witnessed)
            )
            known = replace(facts, witnesses=witnesses, witnessed=witnessed)
        fewer = Case(Launch(less(own, leaves), case.lane), case.lane, known)
        return rule.applies(fewer) and any(
            (offense.level or rule.level) is Level.ERROR and same_place(offense.at, finding.at)
            for offense in rule.judge(fewer)
        )

    return minimal(stated_by(tells), stands)


def stated_by(receipts: Iterable[Parsed]) -> list[ProofLeaf]:
    """Stated leaves of receipts, required keys apart."""
    return [ProofLeaf(item.id, path) for item in receipts for path in item.stated if not is_required(path)]


def is_required(path: str) -> bool:
    """Whether every receipt states a leaf. What is required of a row is stated only where there is that row."""
    leaf = find_leaf(path)
    return leaf is not None and leaf.required and (path == "schema_version" or path.count(".") == 1) and "[" not in path


def same_place(one: str, other: str) -> bool:
    """Whether two findings stand at one place, whichever rows of a list are left."""
    return _ROW.sub("[]", one) == _ROW.sub("[]", other)


def minimal(leaves: Sequence[ProofLeaf], stands: Stands) -> tuple[ProofLeaf, ...]:
    """Leaves of which none can be left out: whole receipts and sections are tried first, then halves, then each."""
    kept = list(leaves)
    if not _stands(stands, kept):
        return ()

    def prune(part: Sequence[ProofLeaf]) -> None:
        nonlocal kept
        without = _without(kept, part)
        if _stands(stands, without):
            kept = without
        elif len(part) > 1:
            size = len(part) // 2 if len(part) > MAX_SINGLE_LEAVES else 1
            for start in range(0, len(part), size):
                prune(part[start : start + size])

    for sections in (False, True):
        parts = groupby(kept, key=lambda leaf: (leaf.receipt, leaf.path.partition(".")[0] if sections else ""))
        for part in [list(part) for _, part in parts]:
            without = _without(kept, part)
            kept = without if _stands(stands, without) else kept
    prune(list(kept))
    # An offense may come back when more is left out: only a pass that changes nothing shows that each leaf is needed.
    # Not so what a witness lends, which takes every axis of two launches to show, and grows with what is stated.
    before: list[ProofLeaf] = []
    while kept != before and len(kept) <= MAX_TRIED_AGAIN:
        before = list(kept)
        for each in before:
            prune([each])
    return tuple(kept)


def _without(leaves: Iterable[ProofLeaf], part: Iterable[ProofLeaf]) -> list[ProofLeaf]:
    gone = set(part)
    return [leaf for leaf in leaves if leaf not in gone]


def _stands(stands: Stands, leaves: Collection[ProofLeaf]) -> bool:
    """Whether so few leaves still give the finding; launches that no longer form one side are not compared."""
    try:
        return stands(frozenset(leaves))
    except UsageError:
        return False


class Reducer:
    """Leaves leaves out of receipts, and keeps the last results of each: a trial is about one receipt of several."""

    def __init__(self) -> None:
        self._trials: dict[str, dict[frozenset[str], Parsed]] = {}

    def __call__(self, parsed: Parsed, leaves: Collection[ProofLeaf]) -> Parsed:
        """The receipt with its required keys and its own among these leaves; it keeps its id."""
        paths = frozenset(leaf.path for leaf in leaves if leaf.receipt == parsed.id)
        trials = self._trials.setdefault(parsed.id, {})
        if paths not in trials:
            if len(trials) >= MAX_SINGLE_LEAVES:
                del trials[next(iter(trials))]
            inside = frozenset[str]().union(*map(_above, paths))
            receipt = _section(parsed.receipt, "", paths, inside)
            trials[paths] = replace(parsed, receipt=receipt)
        else:
            trials[paths] = trials.pop(paths)  # the newest is the last to go
        return trials[paths]


@lru_cache(maxsize=4096)
def _above(path: str) -> frozenset[str]:
    """A path, and those of the sections and rows around it."""
    return frozenset((path, *(path[: place.start()] for place in re.finditer(r"[.\[]", path))))


def _section(section: Any, before: str, paths: Collection[str], inside: Collection[str]) -> Any:
    changes = {}
    for name, field in type(section).model_fields.items():
        value = section.__dict__[name]
        if value is not None:
            changes[name] = _part(value, f"{before}{field.alias or name}", paths, inside, required=field.is_required())
    return section.model_copy(update=changes)


def _part(value: Any, path: str, paths: Collection[str], inside: Collection[str], *, required: bool = False) -> Any:
    """What is left of a value; None if nothing is."""
    if path in paths or (required and not isinstance(value, Section)):
        return value
    if not required and path not in inside:
        return None
    if isinstance(value, Section):
        return _section(value, f"{path}.", paths, inside)
    if isinstance(value, Mapping) and path not in _WHOLE:
        entries = {key: _part(entry, f"{path}.{key}", paths, inside) for key, entry in value.items()}
        return {key: entry for key, entry in entries.items() if entry is not None} or None
    if isinstance(value, tuple):
        rows = (_part(row, f"{path}[{number}]", paths, inside) for number, row in enumerate(value))
        return tuple(row for row in rows if row is not None) or None
    return None


Retry = Callable[[Sequence[Parsed], Sequence[Parsed], Rulebook, Facts | None], Comparison]


def proved_pair(comparison: Comparison, pair: PairCase, rulebook: Rulebook, retry: Retry) -> tuple[Finding, ...]:
    """The findings of a comparison, its errors on the pair with their proofs.

    ``retry`` compares reduced receipts under a reduced rulebook and facts.
    """
    facts = pair.facts
    witnesses = facts.witnesses if facts is not None else ()
    sides = [[launch.parsed for launch in group] for group in (pair.group_a, pair.group_b)]
    every = stated_by([*sides[0], *sides[1], *(item for item in witnesses if item.id in comparison.witnesses)])
    moved = {member.path for change in comparison.difference.changed for member in change.members}
    # What a witness lends takes most leaves of two receipts: the proofs of the sides' own findings have them already.
    shown = {leaf for item in (*pair.findings_a, *pair.findings_b) for leaf in item.proof}
    spoilt = {item.code for item in (*pair.findings_a, *pair.findings_b) if item.level is Level.ERROR}
    quoting = rulebook.rules.about(Topic.SIDES)

    moved_leaves = {leaf for leaf in every if path_of(leaf.path) in moved}
    less = Reducer()
    books = {
        item.code: rulebook.of_rules({item.code, *(spoilt if item.code in quoting else ())})
        for item in comparison.findings
    }

    @lru_cache(maxsize=1024)  # several findings of one rule are tried on the same leaves
    def errors(code: str, leaves: frozenset[ProofLeaf], launches: int | None) -> frozenset[tuple[str, str]]:
        a, b = ([less(one, leaves) for one in side[:launches]] for side in sides)
        fewer = facts and replace(facts, witnesses=tuple(less(one, leaves) for one in witnesses))
        items = retry(a, b, books[code], fewer).findings
        return frozenset((item.at, item.found) for item in items if item.code == code and item.level is Level.ERROR)

    @cache
    def needed(code: str) -> int | None:
        """The launches of a side that a trial takes: the first where it alone is found at fault as all are."""
        leaves = frozenset(every)
        return 1 if errors(code, leaves, 1) == errors(code, leaves, None) else None

    def proof(item: Finding) -> tuple[ProofLeaf, ...]:
        launches = needed(item.code)

        def remains(leaves: Collection[ProofLeaf]) -> bool:
            return any(same_place(at, item.at) for at, _ in errors(item.code, frozenset(leaves), launches))

        def parts() -> Iterator[list[ProofLeaf]]:
            likely = [leaf for leaf in every if leaf in moved_leaves or leaf.path.startswith(item.at)]
            yield likely
            wider = shown.union(likely)
            yield [leaf for leaf in every if leaf in wider]
            yield every

        return next(filter(None, (minimal(part, remains) for part in parts())), ())

    return tuple(
        replace(item, proof=proof(item)) if item.level is Level.ERROR and item.on_pair else item
        for item in comparison.findings
    )
