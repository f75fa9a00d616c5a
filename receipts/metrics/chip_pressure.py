"""Memory pressure: whether it fell, or moved to another chip, B against A, and what an account says in sentences.

Sentences have GiB with the unit named, and a chip by its ordinal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from receipts.base.units import amount, signed_percent
from receipts.metrics.chips import PHASES, TITLES, Account, Chip, Metric, Phase
from receipts.stats.distributions import median

Kind = Literal["fell", "moved", "rose", "same", "unknown"]
Figure = Literal["used", "peak", "pool"]
Source = Literal["exact", "store", "launches", "assumed"]
ASSUMED: Final = 0.01  # the smallest effect that matters, where no two equal launches show how far chips lie apart


class Margin(NamedTuple):
    """The share by which a chip's figure must change to have changed.

    It is the largest difference of one chip's figure between equal launches: of the store's A/A pairs (``exact`` where
    they always agree), of the launches compared, whichever is larger; ``assumed`` where there are none.
    """

    share: float
    source: Source

    def below(self, one: float, other: float) -> bool:
        """Whether one figure is below another by more than this share of the larger."""
        return other - one > self.share * other * (1 + 1e-9)  # the pair that gave the share does not change

    def __str__(self) -> str:
        words = {
            "exact": "any change counts, as equal launches of this lane agree to the byte",
            "store": f"what counts is more than {self.share:.2%}, by which equal launches differ on a chip",
            "launches": f"what counts is more than {self.share:.2%}, by which launches of one side differ on a chip",
            "assumed": f"what counts is more than {self.share:.0%}, as no two equal launches show how far chips differ",
        }
        return words[self.source]


class Pressure(NamedTuple):
    """What became of the highest figure. ``a`` and ``b`` are each chip's, in bytes, over ``phases``.

    ``fell`` and ``rose``: the highest figure of all chips did, by more than the margin. ``moved``: another chip leads,
    the old leader fell and the new one rose, each by more than the margin; where the highest figure fell as well, it
    fell by less than the old leader was relieved. ``same``: neither. ``unknown``: ``why`` says what is missing.
    """

    kind: Kind
    metric: Figure
    why: str
    margin: Margin
    phases: tuple[str, ...] = ()
    a: Mapping[int, float] = {}
    b: Mapping[int, float] = {}
    leaders_a: tuple[int, ...] = ()
    leaders_b: tuple[int, ...] = ()

    @property
    def relieved(self) -> int | None:
        """The old leader of a move."""
        return self.leaders_a[0] if self.kind == "moved" else None

    @property
    def burdened(self) -> int | None:
        """The new leader of a move."""
        return self.leaders_b[0] if self.kind == "moved" else None

    @property
    def highest(self) -> tuple[float, float]:
        """The highest figure of A and of B, in bytes. Raises ValueError if it is unknown."""
        return max(self.a.values()), max(self.b.values())


def pressure(
    a: Sequence[Account],
    b: Sequence[Account],
    *,
    metric: Figure = "peak",
    phase: str | None = None,
    spread: float | None = None,
) -> Pressure:
    """What became of the highest figure of launches of A in launches of B; of several launches, each chip's median.

    ``phase`` looks at one phase, else at all that every launch states. ``spread`` is the largest difference of one
    chip's figure between equal launches that the store has shown, as a share; None if it has shown none.
    """
    wanted = [
        name
        for name in PHASES
        if phase in (None, name)
        and all((row := one.get(name)) is not None and row.ranking(metric) is not None for one in (*a, *b))
    ]
    rows_a, rows_b = ([one.by_chip(metric, wanted) for one in side] for side in (a, b))
    margin = _margin((rows_a, rows_b), spread)
    why = _unknown(a, b, wanted, (*rows_a, *rows_b), phase)
    if why:
        return Pressure("unknown", metric, why, margin, tuple(wanted))
    one, other = middle(rows_a), middle(rows_b)
    leaders_a, leaders_b = _leaders(one), _leaders(other)
    same = Pressure("same", metric, "", margin, tuple(wanted), one, other, leaders_a, leaders_b)
    for old in leaders_a:
        for new in (chip for chip in leaders_b if chip not in leaders_a):
            if margin.below(other[old], one[old]) and margin.below(one[new], other[new]):
                return same._replace(kind="moved", leaders_a=_first(old, leaders_a), leaders_b=_first(new, leaders_b))
    before, after = same.highest
    if margin.below(after, before):
        return same._replace(kind="fell")
    return same._replace(kind="rose") if margin.below(before, after) else same


def _unknown(
    a: Sequence[Account],
    b: Sequence[Account],
    wanted: Sequence[str],
    rows: Sequence[Mapping[int, int]],
    phase: str | None,
) -> str:
    """Why nothing can be said; empty if something can."""
    for side, accounts in (("A", a), ("B", b)):
        if not all(accounts):
            return f"{side} has no row a chip"
    if not wanted:
        return f"phase {phase} is not on both sides" if phase else "no phase is on both sides"
    for side, accounts in (("A", a), ("B", b)):
        for one in accounts:
            torn = next(
                (ranking for name in wanted if (ranking := one.get(name)) is not None and not ranking.whole), None
            )
            if torn is not None:
                return f"{side} lacks a chip, or has one twice, in phase {torn.name}"
    if len({frozenset(row) for row in rows}) > 1:
        return "the sides have different chips"
    return ""


def _margin(sides: Sequence[Sequence[Mapping[int, int]]], spread: float | None) -> Margin:
    own = largest_difference(sides)
    if own is None and spread is None:
        return Margin(ASSUMED, "assumed")
    if spread is not None and spread >= (own or 0.0):
        return Margin(spread, "exact" if spread == 0.0 else "store")
    return Margin(own or 0.0, "launches")


def largest_difference(groups: Sequence[Sequence[Mapping[int, int]]]) -> float | None:
    """The largest difference of one chip's figure between launches of one group, as a share of the larger.

    Each launch is a map from chip to bytes. None if no group has two launches with one and the same chips.
    """
    shares = [
        (max(values) - min(values)) / max(values) if max(values) > 0 else 0.0
        for group in groups
        if len(group) > 1 and len({frozenset(row) for row in group}) == 1
        for chip in group[0]
        for values in [[row[chip] for row in group]]
    ]
    return max(shares, default=None)


def middle(rows: Sequence[Mapping[int, int]]) -> dict[int, float]:
    """Each chip's median over launches, in bytes; of chips that all of them have."""
    return {chip: median([float(row[chip]) for row in rows]) for chip in rows[0] if all(chip in row for row in rows)}


def _leaders(values: Mapping[int, float]) -> tuple[int, ...]:
    highest = max(values.values())
    return tuple(chip for chip, value in values.items() if value == highest)


def _first(chip: int, leaders: Sequence[int]) -> tuple[int, ...]:
    return (chip, *(other for other in leaders if other != chip))


def pressure_json(result: Pressure) -> dict[str, Any]:
    """It as JSON values, amounts in bytes."""
    return {
        "pressure": result.kind,
        "why": result.why,
        "metric": result.metric,
        "phases": list(result.phases),
        "leaders_a": list(result.leaders_a),
        "leaders_b": list(result.leaders_b),
        "highest_a_bytes": result.highest[0] if result.a else None,
        "highest_b_bytes": result.highest[1] if result.b else None,
        "margin": result.margin.share,
        "margin_source": result.margin.source,
        "chips": [{"chip": chip, "a_bytes": result.a[chip], "b_bytes": result.b[chip]} for chip in result.a],
    }


_MAX_RUNS = 8  # runs of ordinals that a sentence names
_OVER = {"max": "the highest of them", "mean": "their mean", "sum": "their sum", "rank0": "rank 0's"}


def ordinals(chips: Iterable[int]) -> str:
    """``chip 3``, ``chips 0 to 7 and 9``: ordinals in their order, runs of three and more drawn together."""
    ordered = sorted(set(chips))
    runs: list[list[int]] = []
    for chip in ordered:
        if runs and chip == runs[-1][-1] + 1:
            runs[-1].append(chip)
        else:
            runs.append([chip])
    parts: list[str] = []
    for run in runs[:_MAX_RUNS]:
        parts += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run)
    left = sum(map(len, runs[_MAX_RUNS:]))
    if left:
        parts.append(f"{left} more")
    listed = " and ".join((", ".join(parts[:-1]), parts[-1])) if len(parts) > 1 else parts[0]
    return f"chip{'s' if len(ordered) > 1 else ''} {listed}"


def leader(phase: Phase, metric: Metric = "peak") -> str:
    """Which chip leads, and how far it lies above the median of all; empty if no chip states the figure."""
    ranking = phase.ranking(metric)
    if ranking is None:
        return ""
    held = f"{amount(ranking.highest)} {TITLES[metric]}"
    if ranking.chips == 1:
        return f"chip {ranking.leaders[0]} has {held}"
    if len(ranking.leaders) == ranking.chips:
        return f"all {ranking.chips} chips have {held}"
    verb = "leads" if len(ranking.leaders) == 1 else "lead"
    above = f", {100 * ranking.skew:.1f} % above the median chip" if ranking.skew else ""
    least = f"least {amount(ranking.lowest)} on chip {ranking.lowest_chip}"
    return f"{ordinals(ranking.leaders)} {verb} with {held}{above}; {least}"


def earlier(phase: Phase) -> str:
    """Which chips peaked earlier; empty if no step is stated, or on a lone chip."""
    moment = phase.moment
    if moment is None or moment.stated < 2:
        return ""
    of = "all" if moment.stated == len(phase.chips) else f"the {moment.stated} that state it"
    if moment.together:
        return f"{of} peak at step {moment.step:,}"
    verb = "peaks" if len(moment.chips) == 1 else "peak"
    return f"{ordinals(moment.chips)} {verb} first, at step {moment.step:,}, and the last at step {moment.last_step:,}"


def headroom(item: Chip | None) -> str:
    """What the tightest chip keeps; empty if no chip states both its limit and its live peak."""
    if item is None or item.headroom is None or item.limit is None or item.left is None:
        return ""
    if item.headroom < 0:
        return f"chip {item.chip} is {amount(-item.headroom)} above its limit of {amount(item.limit)}"
    share = f"{100 * item.left:.1f} % of its {amount(item.limit)}"
    return f"least headroom {amount(item.headroom)} on chip {item.chip}, {share}"


def faults(phase: Phase) -> Iterator[str]:
    """What is wrong with the list of chips."""
    if phase.missing:
        yield f"{ordinals(phase.missing)} {'have' if len(phase.missing) > 1 else 'has'} no row"
    if phase.unnamed:
        yield f"{phase.unnamed} {'more ' if phase.missing else ''}chips have no row, and which is not known"
    if phase.doubled:
        yield f"{ordinals(phase.doubled)} {'are' if len(phase.doubled) > 1 else 'is'} listed twice, read as the larger"
    if phase.strange:
        yield f"{phase.strange} more chips have rows than took part"


def sentence(phase: Phase) -> str:
    """The phase in one sentence."""
    return f"{phase.name}: {'; '.join(phase_facts(phase))}"


def phase_facts(phase: Phase) -> list[str]:
    """What a phase shows: leader, pool leader, who peaked earlier, headroom, and what is wrong with its list."""
    parts = [leader(phase, name) for name in ("peak", "pool")]
    if not any(parts):
        parts = [leader(phase, "used")]
    parts += [earlier(phase), headroom(phase.tightest), *faults(phase)]
    return [part for part in parts if part] or ["no figure"]


def brief(phase: Phase) -> str:
    """The phase in few words: who leads with which live peak, what is left, and what is wrong with its list."""
    ranking = phase.ranking("peak")
    if ranking is None:
        return sentence(phase)
    tightest = phase.tightest
    alike = len(ranking.leaders) == ranking.chips
    parts = [f"{amount(ranking.highest)} live peak on {'every chip' if alike else ordinals(ranking.leaders)}"]
    if tightest is not None and tightest.headroom is not None and tightest.left is not None:
        parts.append(f"least headroom {amount(tightest.headroom)} on chip {tightest.chip}, {100 * tightest.left:.1f} %")
    return f"{phase.name}: {'; '.join((*parts, *faults(phase)))}"


def compared(a: Sequence[Account], b: Sequence[Account], result: Pressure) -> list[str]:
    """Both sides by their fullest launch, and what became of the pressure; nothing if no side has several chips."""
    if not any(len(phase.chips) > 1 for one in (*a, *b) for phase in one.phases):
        return []
    lines = []
    for name, side in (("A", a), ("B", b)):
        ranked = [
            (ranking.highest, phase)
            for one in side
            for phase in reversed(one.phases)
            if (ranking := phase.ranking("peak")) is not None
        ]
        if not ranked:
            lines.append(f"{name}: no chip states its live peak")
            continue
        phase = max(ranked, key=lambda item: item[0])[1]
        parts = (leader(phase), earlier(phase), headroom(phase.tightest), *faults(phase))
        of = f", the fullest of {len(side)} launches" if len(side) > 1 else ""
        lines.append(f"{name} {phase.name}{of}: {'; '.join(part for part in parts if part)}")
    told_why = [str(result.margin)] if result.kind != "unknown" else []
    return [*lines, "; ".join((change(result), *told_why))]


def aggregate(memory: Account) -> str:
    """What the one figure for several chips is; empty if there is none."""
    figure = memory.aggregate
    if figure is None:
        return ""
    kind = {"live": "live memory", "reserved": "the pool", "process": "the process's memory"}.get(figure.kind)
    of = f"{memory.stated} chips" if memory.stated else "chips that are not counted"
    what = f"{_OVER.get(figure.over, 'over what is not stated')}, {kind or 'of which memory is not stated'}"
    if memory.stated == 1:
        return f"one figure, {amount(figure.bytes)}: {kind or 'of which memory is not stated'}"
    return f"one figure for {of}, {amount(figure.bytes)} ({what}): it is no chip's own"


def change(result: Pressure) -> str:
    """Whether pressure fell or moved, with the chips and amounts that say so."""
    if result.kind == "unknown":
        return f"whether pressure fell or moved is unknown: {result.why}"
    before, after = result.highest
    ratio = f" ({signed_percent(after / before - 1)})" if before else ""
    highest = f"highest {TITLES[result.metric]} {amount(before)} to {amount(after)}{ratio}"
    old, new = result.relieved, result.burdened
    if old is not None and new is not None:
        return (
            f"pressure moved: chip {old} fell from {amount(result.a[old])} to {amount(result.b[old])}, chip {new} rose "
            f"from {amount(result.a[new])} to {amount(result.b[new])} and now leads; {highest}"
        )
    leaders, leads = result.leaders_b, ""
    if len(result.a) > 1 and len(leaders) == len(result.b):
        leads = "; all chips are alike"
    elif len(result.a) > 1:
        when = "still" if result.leaders_a == leaders else "now"
        leads = f"; {ordinals(leaders)} {when} lead{'s' if len(leaders) == 1 else ''}"
    words = {"fell": "pressure fell", "rose": "pressure rose", "same": "pressure is the same"}
    return f"{words[result.kind]}: {highest}{leads}"
