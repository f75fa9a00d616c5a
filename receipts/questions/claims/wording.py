"""The wording of a claim: effects that its interval supports, and the honest footnote that can be printed under it.

Wordings are rounded outward, so that the interval lies inside each. The footnote is the claim's basis in a paragraph.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from receipts.axes.inputs import ends_of
from receipts.base.units import change
from receipts.judging.bound import Bound
from receipts.judging.claim import Claim
from receipts.judging.verdict import ClaimVerdict, Comparison, Level, MetricResult
from receipts.metrics import METRICS

if TYPE_CHECKING:
    from receipts.axes import Member
    from receipts.store import Decision


_DIGITS = 3  # of a change in percent and of a factor
_VALUE_DIGITS = 4
_MAX_BAND = 0.10  # a band beyond which nobody calls two numbers equivalent


def wordings(claim: Claim, low: float, high: float) -> Iterator[str]:
    """Effects for ``claim`` that hold where the number lies in ``low`` to ``high``, the strongest one-sided first.

    The numbers are of what the claim's own effect bounds: an improvement, the metric's ratio, or its value.
    """
    bound = claim.bound
    metric = METRICS.get(claim.metric_name)
    if bound is None or metric is None or not 0.0 < low <= high < math.inf:
        return
    if claim.kind == "equivalence":
        band = max(high, 1.0 / low) - 1.0
        if band <= _MAX_BAND:
            yield f"within ±{_up(band * 100.0):g} %"
        return
    if bound.of == "value":
        unit = {"tokens/s": "tok/s", "seconds": "s"}.get(metric.unit, metric.shown_unit or metric.unit)
        scale = 1.0 if metric.unit == "seconds" else metric.scale
        ends = _down(low * scale, _VALUE_DIGITS), _up(high * scale, _VALUE_DIGITS)
        least, most = (f"{end:.10g} {unit}".rstrip() for end in ends)
    elif bound.of == "improvement" and metric.better == "lower":
        least, most = f"{_down(low):g}", f"{_up(high):g}"
    else:
        least, most = _signed(_down((low - 1.0) * 100.0)), _signed(_up((high - 1.0) * 100.0))
    upward, downward = _directions(bound, low, high)
    if upward:
        yield f"at least {least}"
    if downward:
        yield f"at most {most}"
    if least != most:
        yield f"between {least} and {most}"


def _directions(bound: Bound, low: float, high: float) -> tuple[bool, bool]:
    """Whether *at least* and *at most* say something: the claim's own direction, else the side of 1 that was shown."""
    if math.isinf(bound.high):
        return bound.of == "value" or low > 1.0, False
    if bound.low == 0.0:
        return False, bound.of == "value" or high < 1.0
    return bound.of != "value" and low > 1.0, bound.of != "value" and high < 1.0


def _signed(percent: float) -> str:
    return f"{'−' if percent < 0 else '+'}{abs(percent):g} %"


def _down(number: float, digits: int = _DIGITS) -> float:
    place = 0.1  # of the last of so many digits
    if number != 0.0:
        place = 10.0 ** (math.floor(math.log10(abs(number))) - digits + 1)
    return round(math.floor(number / place) * place, 12)


def _up(number: float, digits: int = _DIGITS) -> float:
    return -_down(-number, digits)


MAX_NAMED = 6
SHORT_ID = 12


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
        f"Decided on {item.receipt[:SHORT_ID]}: {item.decision}, {item.reason.rstrip('.')}." for item in last.values()
    ]
    rules = f"rule set {verdict.rules[:SHORT_ID]}, judge {verdict.judge}"
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
    moved = _moves(item for axis in comparison.difference.changed for item in axis.members)
    lines.append(f"Changed: {moved or 'nothing: the two are repeats of one configuration'}.")
    lines += [f"Not counted: {axis}, {why}." for axis, why in comparison.uncounted]
    lines += [f"Waived: {axis}, {why}." for axis, why in comparison.waivers]
    if comparison.study:
        lines.append(f"Study {comparison.study}: its axes count as one.")
    if comparison.difference.unknown:
        lines.append(f"Unknown: {', '.join(item.axis for item in comparison.difference.unknown)}.")
    for what, members in (("Derived", comparison.difference.derived), ("Where they ran", comparison.difference.blocks)):
        if members:
            lines.append(f"{what}: {_moves(members)}.")
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
        stated = "" if result.stated_ratio is None else f" {change(result.stated_ratio, 2)} as stated,"
        return f"{metric.title}:{stated} without an interval ({sizes}; {effect.why})."
    return (
        f"{metric.title}: {change(effect.ratio, 2)}, 95 % interval {change(effect.low, 2)} to {change(effect.high, 2)} "
        f"({sizes}; {effect.why})."
    )


def _moves(members: Iterable[Member]) -> str:
    return "; ".join(f"{item.path} {' → '.join(ends_of(item))}" for item in members)


def _named(label: str, ids: tuple[str, ...]) -> str:
    named = "" if ids and label == ids[0][:SHORT_ID] else f"{label} "
    return f"{named}({_ids(ids)})"


def _ids(ids: tuple[str, ...]) -> str:
    more = f" and {len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else ""
    return ", ".join(item[:SHORT_ID] for item in ids[:MAX_NAMED]) + more
