"""The page of a comparison: the answer in one line, what changed, the effect, what is missing; the rest is folded.

Built once from the verdict; the terminal and Markdown render it. The answer uses words that need no glossary, and never
the numbers of a rejected pair: they do not mean what they seem to mean. Below it these numbers are shown as they were
measured or stated, without the name of an effect.

A gate is a JUnit report as well: one test, which passes only where the gate holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal
from xml.etree import ElementTree

from receipts import metrics
from receipts.axes import Member
from receipts.axes.inputs import ends_of, leaf
from receipts.base import units
from receipts.judging.findings import SHOWN_HELD, decides, grouped, refusals, several_axes, worth_reading
from receipts.judging.rule import Topic
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Comparison, Level, MetricResult
from receipts.publish import offenses
from receipts.publish.offenses import entry
from receipts.publish.page import Cell, Code, Page, Section, marked, points_of, sections_of, table_of
from receipts.publish.readings import STATED, both, effect_word, ends, mixed, named, number, signed
from receipts.publish.text import words
from receipts.publish.verdict import decisions

if TYPE_CHECKING:
    from receipts.store import Decision

say = words("compare")

MAX_MOVED = 3
MAX_MISSING = 3


def answer_line(verdict: Comparison, rules: RuleSet) -> Cell:
    """Status and reason: the effect of an accepted pair, why a pair is rejected, what an undecided one lacks."""
    build = {"accepted": _accepted, "rejected": _rejected, "inconclusive": _undecided}[verdict.status]
    parted = "" if verdict.status == "rejected" else "".join(f" · {text}" for text in stalls(verdict, rules))
    asked = "".join(f"; {text}" for text in (say("pooled") if verdict.pooled else "", verdict.not_asked) if text)
    return (marked(verdict.status, say(verdict.status)), f"  {build(verdict, rules)}{parted}{asked}")


def stalls(verdict: Comparison, rules: RuleSet) -> list[str]:
    """Typical step and throughput, where they part."""
    codes = rules.about(Topic.STALLS)
    return [item.found for item in verdict.findings if item.code in codes and item.level is Level.SHOWN]


def bridge_command(verdict: Comparison, rules: RuleSet) -> str:
    """The command that leads on where several settings changed; empty elsewhere.

    No chain makes sides equal that do not both state a setting.
    """
    several = any(item.code in rules.about(Topic.AXES) and item.level is Level.ERROR for item in verdict.findings)
    if not several or verdict.difference.unknown:
        return ""
    return f"receipts bridge {verdict.a[0][:12]} {verdict.b[0][:12]}"


def _accepted(verdict: Comparison, _rules: RuleSet) -> str:
    result = verdict.headline
    if result is None or result.ratio is None:
        return verdict.effect
    metric = metrics.get(result.metric)
    design = result.effect.design
    in_order = say(design, n=result.effect.sessions) if design in ("turns", "paired", "sessions", "blocked") else ""
    launches = say("launches", a=len(verdict.a), b=len(verdict.b), design=in_order)
    low, high = result.effect.low, result.effect.high
    ends = {"low": _bare(low), "high": _bare(high)} if low is not None and high is not None else None
    moved = _moved(verdict) or say("repeats")
    word = effect_word(result)  # faster or slower of a rate, higher or lower of all else but a time
    if metric.summary == "step":
        word = "shorter" if (result.ratio or 1.0) < 1.0 else "longer"
    if result.effect.kind == "equivalent":
        delta = f"{result.effect.delta * 100:g} %"
        within = say("within", **ends) if ends else ""
        return say("equivalent", delta=delta, change=change(result), within=within, moved=moved, launches=launches)
    return say(
        "rate" if metric.summary == "rate" else "other",
        metric=metric.title,
        change=f"{abs(result.ratio - 1) * 100:.1f} %",
        word=word,
        interval=say("interval", **ends) if ends else "",
        moved=moved,
        launches=launches,
    )


def _rejected(verdict: Comparison, rules: RuleSet) -> str:
    if several_axes(verdict, rules):
        sentence = say("several_axes", count=len(verdict.counted), moved=_moved(verdict))
        command = bridge_command(verdict, rules)
        return f"{sentence} · {say('next', command=command)}" if command else sentence
    for item in refusals(verdict, rules):
        name = f"{item.name.replace('_', ' ')} ({item.code})"
        return say("offense", name=name, sides=item.sides, found=item.found)
    return say("left")


def _undecided(verdict: Comparison, rules: RuleSet) -> str:
    result = verdict.headline
    if result is None or result.ratio is None:
        first = say("no_number")
    else:
        stated = result.a.source in STATED or result.b.source in STATED
        first = say("stated" if stated else "measured", change=change(result))
    texts = missing(verdict, rules)
    if not texts:
        return f"{first}; {say('effect_open', kind=verdict.effect)}"
    kept = texts[:MAX_MISSING]
    if len(texts) > MAX_MISSING:
        kept.append(say("more_lacks", n=len(texts) - MAX_MISSING))
    return f"{first}; {say('lacks', missing=', '.join(kept))}"


def missing(verdict: Comparison, rules: RuleSet) -> list[str]:
    """What would decide an open comparison, each with its rule: settings, evidence, launches."""
    unknown = rules.about(Topic.UNKNOWN)
    texts = []
    paths = [item.path for gap in verdict.difference.unknown for item in gap.members]
    if paths:
        texts.append(say("unknown_settings", n=len(paths), first=leaf(paths[0])))
    findings = (item for item in worth_reading(verdict, rules) if item.code not in unknown)
    groups = grouped(item for item in findings if decides(item, verdict, rules))
    result = verdict.headline
    if result is not None and result.effect.needed and not groups.at(Level.OPEN):
        texts.append(say("needed", n=result.effect.needed))
    return texts + [str(item) for item in offenses.weighed_lacks(groups)]


def change(result: MetricResult) -> str:
    """The change of the headline, to a tenth of a percent."""
    return units.change(result.ratio or 1.0)


def _bare(ratio: float) -> str:
    return f"{abs(ratio - 1) * 100:.1f}" if ratio >= 1 else f"−{abs(ratio - 1) * 100:.1f}"


def _moved(verdict: Comparison) -> str:
    """The settings that count, with both values; a few of many."""
    counted = set(verdict.counted)
    changes = [item for item in verdict.difference.changed if item.axis in counted]
    members = [member for item in changes for member in item.members]
    shown = [_move(member, alone=len(members) == 1) for member in members[:MAX_MOVED]]
    return ", ".join([*shown, "…"] if len(members) > MAX_MOVED else shown)


def _move(member: Member, *, alone: bool) -> str:
    a, b = ends_of(member)
    if alone:
        # Two words speak for themselves, as in sdpa_math → sdpa_flash; numbers and switches do not.
        named = all("_" in text and not text[0].isdigit() for text in (a, b))
        return f"{a} → {b}" if named else f"{leaf(member.path)} {a} → {b}"
    return f"{leaf(member.path)} {a}→{b}"


MAX_UNSTATED: Final = 8  # settings of which no side states one


def page(
    verdict: Comparison,
    rules: RuleSet,
    decided: Sequence[Decision] = (),
    memory: Sequence[str] = (),
    envelope: Mapping[str, str] = MappingProxyType({}),
    deciding: str = "",
    reproduced: Mapping[str, str] = MappingProxyType({}),
    regimes: Sequence[tuple[str, str, str]] = (),
) -> Page:
    """The whole page. ``memory`` are sentences on memory by chip, ``envelope`` is the place of each side's shape.

    ``regimes`` are what the sides say of how they were measured: its name, then the value of either.
    ``deciding`` is the command that would decide an inconclusive pair, ``reproduced`` who else came to a side's value.
    """
    bridge = bridge_command(verdict, rules)
    steps = ((bridge, say("bridge")), (deciding, say("decides")))
    regime = table_of(say("regime"), "leaf | A | B", ((Code(name), a, b) for name, a, b in regimes))
    return Page(
        title=f"{verdict.label_a} → {verdict.label_b}",
        headline=answer_line(verdict, rules),
        facts=(*_facts(verdict), *(("", (f"{side} {who}",)) for side, who in reproduced.items())),
        next=tuple(step for step in steps if step[0]),
        sections=sections_of(
            _changed(verdict),
            *_unknown(verdict),
            _effects(verdict),
            *_findings(verdict, rules),
            _held(verdict),
            _middles(verdict),
            Section("regime", say("regime"), tables=(regime,), fold=say("regime_fold")),
            Section("memory", say("memory"), tuple(memory), fold=say("memory_fold")),
            Section("envelope", say("envelope"), points=points_of(envelope.items()), fold=say("envelope_fold")),
            decisions(decided),
        ),
        foot=(("", (verdict.last_line(),)),),
    )


def _facts(verdict: Comparison) -> Iterator[tuple[str, tuple[str, ...]]]:
    for letter, label, ids in (("A", verdict.label_a, verdict.a), ("B", verdict.label_b, verdict.b)):
        more = say("more_launches", n=len(ids) - 1) if len(ids) > 1 else ""
        yield letter, (say("side", label=label, id=ids[0][:12], more=more),)
    about = [say("about", lanes=", ".join(verdict.lanes), metric=verdict.metric, grade=verdict.grade)]
    about += [f"study {verdict.study}"] if verdict.study else []
    yield "", (" · ".join(about),)
    if verdict.owed:
        yield "", (verdict.owed,)
    if verdict.witnesses:
        yield "", (say("witnessed", ids=", ".join(item[:12] for item in verdict.witnesses)),)


def _changed(verdict: Comparison) -> Section:
    uncounted, waived = dict(verdict.uncounted), dict(verdict.waivers)
    rows: list[tuple[Code | str, ...]] = []
    reasons: dict[str, str] = {}
    for change in verdict.difference.changed:
        mark = say("counts")
        if change.axis in uncounted:
            # The reason is below the table: it would be the widest column, row for row.
            mark, _, why = uncounted[change.axis].partition(": ")
            reasons |= {mark: why} if why else {}
        if change.axis in waived:
            mark = say("waived", reason=waived[change.axis])
        if len(change.members) > 1:
            mark = say("of_axis", mark=mark, axis=change.axis)
        rows += [_member(member, mark) for member in change.members]
    rows += [_member(item, say("derived")) for item in verdict.difference.derived]
    rows += [_member(item, say("block")) for item in verdict.difference.blocks]
    table = table_of(
        say("changed"),
        "setting | A | B | counts?",
        rows,
        tuple(f"{mark}: {why}" for mark, why in reasons.items()),
        say("no_known_axis" if verdict.difference.unknown else "no_axis"),
    )
    return Section("changed", say("changed"), tables=(table,))


def _member(item: Member, mark: str) -> tuple[Code | str, ...]:
    return Code(item.path), *ends_of(item), mark


def _unknown(verdict: Comparison) -> Iterator[Section]:
    """Settings that are not stated as they must be, by the side that states them; many of no side are folded."""
    groups: dict[str, list[str]] = {}
    for gap in verdict.difference.unknown:
        groups.setdefault(say(gap.missing), []).extend(item.path for item in gap.members)
    points = {name: (name, ((", ".join(paths),),)) for name, paths in groups.items()}
    both = groups.get(say("both"), [])
    folded = points.pop(say("both")) if len(both) > MAX_UNSTATED else None
    yield Section("unknown", say("unknown"), points=tuple(points.values()))
    if folded is not None:
        yield Section("unstated", say("unstated"), points=(folded,), fold=say("unstated_fold", n=len(both)))


def _effects(verdict: Comparison) -> Section:
    """The numbers; below them what they are, which are stated, how the effect was judged, when a compile pays."""
    header = "metric | #A | #B | #change | 95 % interval ^1 | effect"
    rejected = verdict.status == "rejected"
    rows = (
        (
            named(metrics.get(item.metric)),
            *both(item),
            signed(item.ratio),
            ends(item.effect.low, item.effect.high),
            say("refused") if rejected else effect_word(item),
        )
        for item in verdict.results
    )
    after: list[str] = []
    if (result := verdict.headline) is not None:
        numbers = [
            say("number_of", side=letter, text=side.text, unsteady=say("unsteady") if side.source == "unsteady" else "")
            for letter, side in (("A", result.a), ("B", result.b))
            if side.value is not None and side.source in ("steps", "unsteady") and side.text
        ]
        after += ["; ".join(numbers)] if numbers else []
    after += [say("as_stated")] if mixed(verdict) else []
    after += [result.effect.why] if result is not None and result.effect.why else []
    after += [paid] if (paid := payback(verdict)) else []
    return Section("effect", say("effect"), tables=(table_of(say("effect"), header, rows, tuple(after)),))


def payback(verdict: Comparison) -> str:
    """The steps after which a longer compile has paid for itself; empty where the question does not arise."""
    by_name: dict[str, MetricResult] = {item.metric: item for item in verdict.results}
    step, built = by_name.get("step_seconds"), by_name.get("compile_seconds")
    if step is None or built is None or verdict.comparable == "no":
        return ""
    if None in (step.a.value, step.b.value, built.a.value, built.b.value):
        return ""
    saved = (step.a.value or 0) - (step.b.value or 0)
    cost = (built.b.value or 0) - (built.a.value or 0)
    if cost <= 0:
        return ""
    if step.effect.kind in ("unproven", "ambiguous"):
        return say("pays_unknown", cost=cost, kind=step.effect.kind)
    if saved <= 0:
        return say("pays_never", cost=cost)
    return say("pays", cost=cost, saved=saved * 1e3, steps=cost / saved)


def _middles(verdict: Comparison) -> Section:
    """The plain medians of the launches, which no drift was taken out of, with their own quotient."""
    rows = [
        (named(metrics.get(item.metric)), *(number(metrics.get(item.metric), value) for value in (a, b)), signed(b / a))
        for item in verdict.results
        if item.effect.ratio is not None and (a := item.middle_a) and (b := item.middle_b)
        if max(len(verdict.a), len(verdict.b)) > 1
    ]
    table = table_of(say("middles"), "metric | #A | #B | #B over A", rows)
    return Section("middles", say("middles"), tables=(table,), fold=say("middles_fold"))


def _held(verdict: Comparison) -> Section:
    difference = verdict.difference
    sentences = [say("equal", names=_names(difference.equal))]
    if difference.held_by_inputs:
        sentences.append(say("by_inputs", names=_names(difference.held_by_inputs)))
    if difference.left_out:
        sentences.append(say("left_out", names="; ".join(f"{item.key} ({item.role})" for item in difference.left_out)))
    if difference.held:
        sentences.append(say("context", names=_names(difference.held)))
    if difference.not_applicable:
        sentences.append(say("not_applicable", names=_names(difference.not_applicable)))
    count = len(difference.equal) + len(difference.held) + len(difference.held_by_inputs)
    return Section("held", say("held"), tuple(sentences), fold=say("held_fold", n=count))


def _names(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:SHOWN_HELD])
    more = len(paths) - SHOWN_HELD
    return (say("and_more", names=shown, n=more) if more > 0 else shown) or say("nothing")


def _findings(verdict: Comparison, rules: RuleSet) -> Iterator[Section]:
    """What decides against the pair, what would decide it, and what has no part in it, behind a fold."""
    findings = worth_reading(verdict, rules)
    groups = grouped(findings)
    part = grouped(item for item in findings if decides(item, verdict, rules))
    title = say("errors" if verdict.status == "rejected" else "against")
    against = []
    for group in part.at(Level.ERROR):
        whole = entry(group, sides=True)
        # Of settings that changed only the remedy: they are listed as changed.
        listed = group[0].code in rules.about(Topic.AXES) and group[0].on_pair
        against.append(replace(whole, facts=whole.facts[-1:]) if listed else whole)
    yield Section("errors", title, entries=tuple(against))
    opened = part.at(Level.OPEN) if verdict.status != "rejected" else ()
    yield Section("missing", say("missing"), points=tuple(offenses.remedies(opened)))
    beside = [item for item in findings if item.level is Level.ERROR and not decides(item, verdict, rules)]
    others = tuple(entry(group, sides=True) for group in grouped(beside).judged)
    yield Section("beside", say("beside"), entries=others, fold=say("beside_fold", n=len(others)))
    yield from offenses.finding_sections(groups.shown, findings, sides=True)


def gate_report(verdict: Comparison, required: str, answer: Literal["holds", "fails", "open"], why: str) -> str:
    """The report's XML. A gate that cannot tell is an error of its own, so that no CI system counts it as passed."""
    failed, undecided = int(answer == "fails"), int(answer == "open")
    counts = {"tests": "1", "failures": str(failed), "errors": str(undecided), "skipped": "0"}
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "receipts", **counts})
    name = f"{verdict.label_b} {required} than {verdict.label_a} on {verdict.metric}"
    case = ElementTree.SubElement(suite, "testcase", {"classname": "receipts.compare", "name": _in_xml(name)})
    if answer != "holds":
        tag, kind = ("failure", "not met") if failed else ("error", "undecided")
        problem = ElementTree.SubElement(case, tag, {"type": kind, "message": _in_xml(why)})
        problem.text = _in_xml(verdict.last_line())
    else:
        ElementTree.SubElement(case, "system-out").text = _in_xml(f"{why}\n{verdict.last_line()}")
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _in_xml(text: str) -> str:
    """Without what XML cannot hold."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)
