"""What an account says, in sentences: GiB with the unit named, and a chip by its ordinal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from receipts.base.units import amount, signed_percent
from receipts.metrics.chip_pressure import Pressure
from receipts.metrics.chips import TITLES, Account, Chip, Metric, Phase

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
