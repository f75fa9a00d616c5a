"""The honest footnote of a claim: its basis, in a paragraph that can be printed under it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from receipts.axes import in_words
from receipts.judging.claim_verdict import ClaimVerdict
from receipts.judging.verdict import Comparison, Level, MetricResult
from receipts.metrics import METRICS

if TYPE_CHECKING:
    from receipts.store import Decision

FEW = 6
SHORT = 12


def footnote(verdict: ClaimVerdict, decisions: Sequence[Decision] = ()) -> str:
    """Every difference and waiver, sample sizes, the interval, decisions, and the rule set: one sentence a line."""
    lines = [f"{verdict.status.capitalize()}: {verdict.text.rstrip('.')}."]
    lines += _pair(verdict, verdict.comparison) if verdict.comparison is not None else _alone(verdict)
    if verdict.target is not None:
        where = "Shown" if verdict.at_target else "Not shown"
        lines.append(f"{where} at its target, {verdict.target}.")
    weighty = [item for item in verdict.findings if item.level is not Level.SHOWN]
    lines += [f"{item.code} {item.name}: {item.found}." for item in weighty]
    last = {item.receipt: item for item in decisions}
    lines += [
        f"Decided on {item.receipt[:SHORT]}: {item.decision}, {item.reason.rstrip('.')}." for item in last.values()
    ]
    rules = f"rule set {verdict.rules[:SHORT]}, judge {verdict.judge}"
    lines.append(f"Judged by {rules}, lane {', '.join(verdict.lanes) or 'unlisted'}.")
    return "\n".join(lines)


def _pair(verdict: ClaimVerdict, comparison: Comparison) -> list[str]:
    lines = [
        f"Baseline {_named(comparison.label_a, comparison.a)}; candidate {_named(comparison.label_b, comparison.b)}.",
        f"Comparable {comparison.comparable}, path {comparison.path}, effect {comparison.effect}.",
    ]
    result = comparison.headline
    if result is not None:
        lines.append(_effect(result))
    lines.append(f"Changed: {_changed(comparison)}.")
    lines += [f"Not counted: {axis}, {why}." for axis, why in comparison.uncounted]
    lines += [f"Waived: {axis}, {why}." for axis, why in comparison.waivers]
    if comparison.study:
        lines.append(f"Study {comparison.study}: its axes count as one.")
    if comparison.difference.unknown:
        lines.append(f"Unknown: {', '.join(item.axis for item in comparison.difference.unknown)}.")
    for what, members in (("Derived", comparison.difference.derived), ("Where they ran", comparison.difference.blocks)):
        if members:
            lines.append(f"{what}: {'; '.join(_member(item.path, item.a, item.b) for item in members)}.")
    if comparison.difference.held:
        lines.append(f"{len(comparison.difference.held)} leaves are stated on neither side and held by one context.")
    return lines


def _alone(verdict: ClaimVerdict) -> list[str]:
    if verdict.kind == "arithmetic":
        return [f"{verdict.assessment.why}."]
    if not verdict.candidate:
        return ["It cites no receipt."]
    count = len(verdict.candidate)
    lines = [f"Receipt{'s' if count > 1 else ''} {_ids(verdict.candidate)}; {count} launch{'es' if count > 1 else ''}."]
    lines.append(f"{verdict.assessment.why[:1].upper()}{verdict.assessment.why[1:]}.")
    if verdict.assessment.grade and verdict.assessment.grade not in verdict.assessment.why:
        lines.append(f"Basis: {verdict.assessment.grade}.")
    return lines


def _effect(result: MetricResult) -> str:
    metric, effect = METRICS[result.metric], result.effect
    sizes = f"{result.a.launches} and {result.b.launches} launches"
    if effect.low is None or effect.high is None or effect.ratio is None:
        change = "" if result.stated_ratio is None else f" {_percent(result.stated_ratio)} as stated,"
        return f"{metric.title}:{change} without an interval ({sizes}; {effect.why})."
    return (
        f"{metric.title}: {_percent(effect.ratio)}, 95 % interval {_percent(effect.low)} to {_percent(effect.high)} "
        f"({sizes}; {effect.why})."
    )


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.2f} %"


def _changed(comparison: Comparison) -> str:
    if not comparison.difference.changed:
        return "nothing: the two are repeats of one configuration"
    members = (item for change in comparison.difference.changed for item in change.members)
    return "; ".join(_member(item.path, item.a, item.b) for item in members)


def _member(path: str, a: Any, b: Any) -> str:
    before, after = ("not stated" if value is None else in_words(value) for value in (a, b))
    return f"{path} {before} → {after}"


def _named(label: str, ids: tuple[str, ...]) -> str:
    named = "" if ids and label == ids[0][:SHORT] else f"{label} "
    return f"{named}({_ids(ids)})"


def _ids(ids: tuple[str, ...]) -> str:
    more = f" and {len(ids) - FEW} more" if len(ids) > FEW else ""
    return ", ".join(item[:SHORT] for item in ids[:FEW]) + more
