"""The answer of a comparison in one line, in words that need no glossary.

Numbers of a rejected pair never appear in it: they do not say what they seem to say.
"""

from __future__ import annotations

from receipts import metrics
from receipts.axes import Member
from receipts.base import units
from receipts.judging.rule import Topic
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Comparison, Level, MetricResult
from receipts.publish import lacks
from receipts.publish.findings import decides, grouped, on_sides, reason, refusing, worth_reading
from receipts.publish.page import Cell, marked
from receipts.publish.readings import STATED, effect_word, ends_of, leaf
from receipts.publish.words import words

say = words("compare")

MOST_MOVED = 3
MOST_MISSING = 3


def answer(verdict: Comparison, rules: RuleSet) -> Cell:
    """Status and reason: the effect of an accepted pair, why a pair is rejected, what an undecided one lacks."""
    build = {"accepted": _accepted, "rejected": _rejected, "inconclusive": _undecided}[verdict.status]
    parted = "" if verdict.status == "rejected" else "".join(f" · {text}" for text in stalls(verdict, rules))
    asked = "".join(f"; {text}" for text in (say("pooled") if verdict.pooled else "", verdict.not_asked) if text)
    return (marked(verdict.status, say(verdict.status)), f"  {build(verdict, rules)}{parted}{asked}")


def stalls(verdict: Comparison, rules: RuleSet) -> list[str]:
    """Typical step and throughput, where they part."""
    codes = rules.about(Topic.STALLS)
    return [item.found for item in verdict.findings if item.code in codes and item.level is Level.SHOWN]


def bridge(verdict: Comparison, rules: RuleSet) -> str:
    """The command that leads on where several settings changed; empty elsewhere."""
    if not any(item.code in rules.about(Topic.AXES) and item.level is Level.ERROR for item in verdict.findings):
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
    if result.effect.kind == "equivalent":
        delta = f"{result.effect.delta * 100:g} %"
        within = say("within", **ends) if ends else ""
        return say("equivalent", delta=delta, change=change(result), within=within, moved=moved, launches=launches)
    return say(
        "rate" if metric.summary == "rate" else "other",
        metric=metric.title,
        change=f"{abs(result.ratio - 1) * 100:.1f} %",
        word=_word(result),
        interval=say("interval", **ends) if ends else "",
        moved=moved,
        launches=launches,
    )


def _word(result: MetricResult) -> str:
    """Faster or slower of a rate; a time is shorter or longer; all else is more or less."""
    metric = metrics.get(result.metric)
    if metric.summary == "step":
        return "shorter" if (result.ratio or 1.0) < 1.0 else "longer"
    return effect_word(result)


def _rejected(verdict: Comparison, rules: RuleSet) -> str:
    errors = refusing(verdict, rules)
    axes = [item for item in errors if item.code in rules.about(Topic.AXES)]
    if axes and len(verdict.counted) > 1:
        sentence = say("several_axes", count=len(verdict.counted), moved=_moved(verdict))
        return f"{sentence} · {say('next', command=bridge(verdict, rules))}"
    for item in errors:
        group = [other for other in errors if (other.code, other.found) == (item.code, item.found)]
        name = f"{item.name.replace('_', ' ')} ({item.code})"
        return say("offense", name=name, sides=on_sides(group), found=reason(item))
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
    kept = texts[:MOST_MISSING]
    if len(texts) > MOST_MISSING:
        kept.append(say("more_lacks", n=len(texts) - MOST_MISSING))
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
    return texts + [str(item) for item in lacks.weighed(groups)]


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
    shown = [_move(member, alone=len(members) == 1) for member in members[:MOST_MOVED]]
    return ", ".join([*shown, "…"] if len(members) > MOST_MOVED else shown)


def _move(member: Member, *, alone: bool) -> str:
    a, b = ends_of(member)
    if alone:
        # Two words speak for themselves, as in sdpa_math → sdpa_flash; numbers and switches do not.
        named = all("_" in text and not text[0].isdigit() for text in (a, b))
        return f"{a} → {b}" if named else f"{leaf(member.path)} {a} → {b}"
    return f"{leaf(member.path)} {a}→{b}"
