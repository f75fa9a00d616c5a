"""Published results side by side: the spread of each submission, what two differ in, and how far apart they are.

A submission is what shares one context: a system and a benchmark of one round. Its launches differ in their seeds.
The pages show the spread of each submission, the pairs one axis apart, and two submissions axis by axis.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, groupby
from statistics import fmean, median, stdev

from receipts.axes.difference import Difference, difference_under
from receipts.axes.lane import Lane
from receipts.axes.replicates import distinct_steps
from receipts.base.text import plain
from receipts.metrics import Launch
from receipts.publish.page import Page, Section, Table, table_of
from receipts.receipt import Parsed
from receipts.receipt.accelerators import find_accelerator
from receipts.stats import effect as effects
from receipts.stats.equivalence import Effect

MIN_LAUNCHES = 3  # launches of a side whose own spread gives an interval


@dataclass(frozen=True)
class SubmissionSpread:
    """Launches of one submission, and the step time of each in seconds; those without one are counted only."""

    context: str
    launches: tuple[Parsed, ...]
    seconds: tuple[float, ...]

    @property
    def like(self) -> Parsed:
        """The launch that represents the others: their settings are the same."""
        return self.launches[0]

    @property
    def benchmark(self) -> str:
        """The benchmark's name; empty where no launch states it."""
        return str(self.like.stated.get("model.name", ""))

    @property
    def accelerator(self) -> str:
        """The registry's key of its accelerator, else its name as stated."""
        name = str(self.like.stated.get("hardware.accelerator", ""))
        machine = find_accelerator(name)
        return machine.key if machine is not None else name or "~"

    @cached_property
    def location(self) -> float | None:
        """The median launch, in seconds a step."""
        return median(self.seconds) if self.seconds else None

    @cached_property
    def spread(self) -> float | None:
        """The standard deviation of launches over their mean; None for fewer than two."""
        return stdev(self.seconds) / fmean(self.seconds) if len(self.seconds) > 1 else None


@dataclass(frozen=True)
class SubmissionPair:
    """Two submissions of one benchmark: what differs between them, and the effect of B's launches against A's."""

    a: SubmissionSpread
    b: SubmissionSpread
    apart: Difference
    effect: Effect | None

    @property
    def one_axis(self) -> bool:
        """Whether one stated axis differs, and each is stated by both or by neither."""
        return len(self.apart.changed) == 1 and not self.lopsided

    @property
    def lopsided(self) -> tuple[str, ...]:
        """Axes that one of the two states and the other does not: each may be the one that differs."""
        return tuple(sorted({item.axis for item in self.apart.unknown if item.missing != "both"}))


def submissions(launches: Iterable[Parsed], lane: Lane) -> list[SubmissionSpread]:
    """Launches by submission, in the order of benchmark, accelerator, size and name; a copy counts once."""
    groups: defaultdict[str, list[Parsed]] = defaultdict(list)
    seen: set[object] = set()
    for parsed in launches:
        run = parsed.receipt.run
        names = {run.launch, *distinct_steps(parsed)}
        if run.outcome != "ok" or names & seen:
            continue
        seen |= names
        groups[run.context or run.label or parsed.id].append(parsed)
    listed = [
        SubmissionSpread(
            context,
            tuple(group),
            tuple(time for parsed in group if (time := Launch(parsed, lane).step_seconds) is not None),
        )
        for context, group in groups.items()
    ]

    def order(item: SubmissionSpread) -> tuple[str, str, int, str]:
        return item.benchmark, item.accelerator, int(item.like.stated.get("hardware.chips") or 0), item.context

    return sorted(listed, key=order)


def pairs(listed: Sequence[SubmissionSpread], lane: Lane) -> Iterator[SubmissionPair]:
    """Every two submissions of one benchmark, those that differ in the fewest axes first."""
    compared = [
        pair_of(a, b, lane)
        for a, b in combinations(listed, 2)
        if a.benchmark == b.benchmark and a.accelerator == b.accelerator
    ]
    yield from sorted(compared, key=lambda item: (len(item.lopsided) + len(item.apart.changed), item.a.context))


def pair_of(a: SubmissionSpread, b: SubmissionSpread, lane: Lane) -> SubmissionPair:
    """What differs between two submissions; their effect where both have launches enough."""
    enough = min(len(a.seconds), len(b.seconds)) >= MIN_LAUNCHES
    effect = effects.compare(a.seconds, b.seconds, better="lower") if enough else None
    return SubmissionPair(a, b, difference_under(lane, a.like, b.like), effect)


MAX_AXES = 6
MAX_PAIRS = 40
MAX_TEXT = 80


def spreads_page(listed: Sequence[SubmissionSpread], compared: Sequence[SubmissionPair]) -> Page:
    """All submissions, and the pairs that are nearest to each other."""
    intro = "Published, not yours. Step time is the median launch; the spread is that of launches."
    groups = groupby(listed, key=lambda item: (item.benchmark, item.accelerator))
    spreads = [Section("", " on ".join(of), tables=(_spreads(list(group)),)) for of, group in groups]
    single = sum(pair.one_axis for pair in compared)
    about = (
        f"{single} of {len(compared)} pairs on one accelerator are one axis apart, by what both state.",
        "An axis that one side alone states may differ; what neither states is not counted.",
    )
    rows = (
        (pair.a.context, pair.b.context, _effect(pair), _differs(pair), str(len(pair.lopsided)))
        for pair in compared[:MAX_PAIRS]
    )
    table = table_of("", "A | B | B over A | differs | #may differ", rows)
    pairs = Section("", "What differs between two submissions", about, tables=(table,))
    return Page("Published results", lead=(intro,), sections=(*spreads, pairs))


def pair_page(pair: SubmissionPair) -> Page:
    """Two submissions, axis by axis."""
    members = (member for change in pair.apart.changed for member in change.members)
    table = table_of("", "axis | A | B", ((item.path, _cell(item.a), _cell(item.b)) for item in members))
    lead = f"against {pair.a.context}: {_effect(pair)}"
    sections = (Section("", "", tables=(table,)), Section("", "", tuple(_verdict(pair))))
    return Page(pair.b.context, lead=(lead,), sections=sections)


def _verdict(pair: SubmissionPair) -> Iterator[str]:
    if pair.lopsided:
        yield f"One side alone states: {', '.join(pair.lopsided)}."
    neither = sorted({item.axis for item in pair.apart.unknown} - set(pair.lopsided))
    if neither:
        yield f"Neither states: {', '.join(neither)}."
    count = len(pair.apart.changed)
    if pair.one_axis:
        axis = pair.apart.axes[0]
        yield f"One stated axis differs, {axis}: the effect is its, or that of an axis which neither states."
    elif not count and not pair.lopsided:
        yield "No stated axis differs: the effect is that of the machines, or of an axis which neither states."
    else:
        yield f"{count} axes differ and {len(pair.lopsided)} may: no axis alone explains the effect."


def _spreads(group: Sequence[SubmissionSpread]) -> Table:
    rows = (
        (
            item.context,
            str(item.like.stated.get("hardware.chips", "~")),
            f"{len(item.seconds)} of {len(item.launches)}",
            str(item.like.stated.get("batch.global_batch", "~")),
            f"{item.location:.4g}" if item.location is not None else "~",
            f"{item.spread:.2%}" if item.spread is not None else "~",
        )
        for item in group
    )
    return table_of("", "submission | #chips | #launches | #global batch | step [s] | #spread", rows)


def _differs(pair: SubmissionPair) -> str:
    axes = pair.apart.axes
    more = f" and {len(axes) - MAX_AXES} more" if len(axes) > MAX_AXES else ""
    return ", ".join(axes[:MAX_AXES]) + more or "nothing that is stated"


def _effect(pair: SubmissionPair) -> str:
    effect = pair.effect
    if effect is None or effect.ratio is None or effect.low is None or effect.high is None:
        return "~ (fewer than three launches on a side)"
    return f"{effect.ratio:.3f} ({effect.low:.3f} to {effect.high:.3f})"


def _cell(value: object) -> str:
    return "not stated" if value is None else plain(value, MAX_TEXT)
