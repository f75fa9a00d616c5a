"""Pages of a plan: whether it fits by estimate, what fills its fullest chip, and whether it is known to work.

A bar shows a chip's memory part by part, as a picture and in the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from receipts.base.units import counted, decimal_bytes, signed_percent
from receipts.estimate.surface import SurfaceName
from receipts.publish import svg
from receipts.publish.page import Figure, Mark, Page, Section, State, Table, lines_of, named_rows, sections_of, table_of
from receipts.publish.svg import FAINT, INK, LINE, PAPER, SMALL, Canvas, category, ink_on
from receipts.publish.text import amount
from receipts.questions.fit import MemoryEstimate, compared, growth

if TYPE_CHECKING:
    from receipts.questions.fit import Calibration
    from receipts.questions.ladder import Rung
    from receipts.questions.preflight import PreflightAnswer, PreflightEvidence, Ranked
    from receipts.receipt import Parsed

# Signs of a terminal without colour: neighbours differ in ink, and each is beside its surface in the legend.
SIGNS = "█▓▒░▚▞▤▥▦▧▨▩◆◇◈"
_WIDTH, _ROW, _EDGE = 720.0, 16.0, 20.0
_BAR, _TOP, _BETWEEN = 34.0, 64.0, 86.0  # a bar, where the first one is, and from one to the next
_MIN_SHARE = 0.08  # of the bar: narrower parts have their name in the legend only


@dataclass(frozen=True, slots=True)
class BarPart:
    """One surface of a bar, in bytes. ``colour`` is its place among categories, the same in every bar."""

    name: str
    bytes: float
    colour: int


@dataclass(frozen=True, slots=True)
class Bar:
    """One estimate. ``budget`` and ``measured`` are marks in bytes, or None."""

    title: str
    parts: tuple[BarPart, ...]
    budget: float | None = None
    measured: float | None = None

    @property
    def total(self) -> float:
        """Bytes of all parts."""
        return sum(part.bytes for part in self.parts)

    @property
    def reach(self) -> float:
        """The largest of the bar and its marks."""
        return max(self.total, self.budget or 0.0, self.measured or 0.0)


def cells(bar: Bar, width: int, reach: float | None = None) -> list[tuple[str, int]]:
    """Signs with their number of cells, left to right: each part's share of ``width`` at a scale of ``reach`` bytes.

    Ends are rounded and not lengths, so that the parts together are as long as their sum.
    """
    scale = width / (reach or bar.reach or 1.0)
    spans, start, sum_ = [], 0, 0.0
    for part in bar.parts:
        sum_ += part.bytes
        end = round(sum_ * scale)
        if end > start:
            spans.append((SIGNS[part.colour % len(SIGNS)], end - start))
        start = max(start, end)
    return spans


def text_bar(bar: Bar, width: int, reach: float | None = None) -> list[str]:
    """The bar in signs, and under it the places of budget (``│``) and measured peak (``▲``), a line each."""
    scale = width / (reach or bar.reach or 1.0)
    lines = ["".join(sign * count for sign, count in cells(bar, width, reach))]
    for value, name, sign in ((bar.budget, "budget", "│"), (bar.measured, "measured", "▲")):
        if value:
            at = min(width, round(value * scale))
            lines.append(f"{name} {sign}".rjust(at + 1) if at > len(name) else f"{sign.rjust(at + 1)} {name}")
    return lines


def geometry(bars: Sequence[Bar], *, name: str, title: str, alt: str) -> str:
    """SVG of one or more bars on one scale, with a legend that gives every surface its bytes."""
    names = list({part.name: part for bar in bars for part in bar.parts if part.bytes > 0}.values())
    height = _TOP + _BETWEEN * len(bars) + 8 + _ROW * (len(names) + 1) + 16

    def paint(canvas: Canvas) -> None:
        canvas.label(_EDGE, 22.0, title, bold=True)
        reach = max(bar.reach for bar in bars) or 1.0
        scale = (_WIDTH - 2 * _EDGE) / reach
        for index, bar in enumerate(bars):
            top = _TOP + _BETWEEN * index
            canvas.label(_EDGE, top - 10, f"{bar.title}: {amount(bar.total)}")
            x = _EDGE
            for part in bar.parts:
                length = part.bytes * scale
                if length <= 0:
                    continue
                colour = category(part.colour)
                canvas.boxes([(x, top, length, _BAR)], fill=colour, edge=PAPER)
                if part.bytes >= _MIN_SHARE * reach:
                    text = amount(part.bytes, like=reach).partition(" ")[0]
                    canvas.label(x + length / 2, top + _BAR / 2, text, ha="center", colour=ink_on(colour))
                x += length
            for value, name, shift in ((bar.budget, "budget", 12.0), (bar.measured, "measured", 24.0)):
                if value:
                    at = _EDGE + value * scale
                    canvas.boxes([(at - 0.75, top - 4, 1.5, _BAR + 8)], fill=INK)
                    end = "right" if at > _WIDTH * 0.8 else "left"
                    canvas.label(at, top + _BAR + shift, f"{name} {amount(value)}", size=SMALL, colour=FAINT, ha=end)
        top = _TOP + _BETWEEN * len(bars) + 8
        canvas.line([(_EDGE, top - 6), (_WIDTH - _EDGE, top - 6)], colour=LINE, width=0.8)
        for row, part in enumerate(names):
            y = top + _ROW * (row + 0.6)
            canvas.boxes([(_EDGE, y - 4.5, 9, 9)], fill=category(part.colour))
            canvas.label(_EDGE + 16, y, part.name)
            for column, bar in enumerate(bars):
                held = sum(other.bytes for other in bar.parts if other.name == part.name)
                canvas.label(_EDGE + 330 + 110 * column, y, amount(held, like=bar.total), ha="right")

    return svg.inline_svg(paint, name=name, width=_WIDTH, height=height, title=title, alt=alt)


_ORDER = {name: index for index, name in enumerate(SurfaceName)}
_MAX_SHOWN, _MAX_PAIRS = 8, 4  # changes that are shown; --json has them all


def page(estimates: Sequence[MemoryEstimate], compiled: Section | None, *, calibrated: bool) -> Page:
    """One estimate, or two side by side; the compiler's answer below."""
    sections = list(_two(*estimates) if len(estimates) == 2 else _one(estimates[0], calibrated=calibrated))
    if compiled is not None:
        sections.append(compiled)
    names = ("A ", "B ") if len(estimates) == 2 else ("",)
    lines = [(f"{name}{item.name} · {item.lane}: {answer(item)}",) for name, item in zip(names, estimates, strict=True)]
    return Page("Memory", lines[0], facts=tuple(("", line) for line in lines[1:]), sections=sections_of(*sections))


def answer(item: MemoryEstimate) -> str:
    """The one-sentence answer."""
    assumed = f", on {counted(len(item.assumed), 'assumption')}" if item.assumed else ""
    if item.missing:
        return f"too little is stated to say; state {', '.join(item.missing)}"
    if item.budget is None:
        why = "state hardware.accelerator, or a chip's bytes_limit"
        if item.accelerator is not None:
            why = f"what {item.accelerator!r} lets a launch hold is not known; state a chip's bytes_limit"
        return f"{amount(item.total_bytes)}{assumed}; no budget: {why}"
    left = item.headroom_bytes or 0.0
    share = abs(left) / item.budget.bytes
    total = f"{amount(item.total_bytes)} of {amount(item.budget.bytes)}"
    if item.fits is None and not item.uncounted:
        return (
            f"unknown: {total}, from {amount(item.least_bytes)} to {amount(item.most_bytes)} by the compiler and what "
            f"is not stated; state it, ask with --aot, or launch{assumed}"
        )
    if item.fits is None:
        parts = "part has" if len(item.uncounted) == 1 else "parts have"
        return f"unknown: {len(item.uncounted)} {parts} no formula of its own; counted as listed, {total}{assumed}"
    if not item.fits:
        return f"does not fit: {total}, {amount(-left)} too much{assumed}"
    tight = f", less than the {100 * item.headroom_wanted:.0f} % that the lane keeps free" if item.tight else ""
    return f"fits: {total}, {amount(left)} ({100 * share:.1f} %) left{tight}{assumed}"


def _one(item: MemoryEstimate, *, calibrated: bool) -> Iterator[Section]:
    if item.surfaces:
        title = "On the fullest chip"
        yield Section("surfaces", title, tables=(_surfaces(item, title),), figures=(_figure([item]),))
        yield from _breakdown(item)
        total, budget = item.total_bytes, None if item.uncounted else item.budget
        rows = (
            (
                *(each.axis, each.change, f"−{amount(each.saved, total)}", amount(each.total, total)),
                "~" if budget is None else "yes" if each.total <= budget.bytes else "no",
            )
            for each in (*item.shrinks[:_MAX_SHOWN], *item.pairs[:_MAX_PAIRS])
        )
        table = table_of("", "axis | change | #saves | #then | fits", rows, empty="no single change does")
        yield Section("shrinks", "What shrinks it", tables=(table,))
    if calibrated:
        yield Section("calibration", "Calibration", (calibration_says(item.calibration, item.lane),))
    assumed = (f"{each.path}: {each.value} ({each.because})" for each in item.assumed)
    yield Section("assumed", "Assumed", points=lines_of(assumed))
    yield Section("uncounted", "Without a formula of its own", points=lines_of(item.uncounted))


def _surfaces(item: MemoryEstimate, title: str) -> Table:
    total = item.total_bytes or 1.0
    rows = (
        (
            SIGNS[_ORDER[each.name]],
            each.name.value,
            amount(each.peak_bytes, total),
            f"{100 * (each.peak_bytes / total):.1f} %",
            amount(each.bytes, total) if each.bytes > 1.001 * each.peak_bytes else "",
            each.scales,
        )
        for each in item.surfaces
        if each.bytes >= 1
    )
    header = " | surface | #at the peak | #share | #at its own | !scales with ^1"
    after = []
    if item.dominant is not None:
        at = f"at {item.moment}" + (f" on stage {item.stage} of {item.stages}" if item.stages > 1 else "")
        after.append(f"dominant: {item.dominant.name.value} ({100 * (item.dominant.peak_bytes / total):.0f} %), {at}")
    if item.budget is not None:
        physical = item.budget.physical
        beside = f"; {amount(physical)} are physical, which is no budget" if physical else ""
        after.append(f"budget: {amount(item.budget.bytes)}, {item.budget.source}{beside}")
    if item.measured is not None and item.delta is not None:
        kind = "pool" if item.measured.pool else "live"
        chip = "" if item.measured.chip is None else f" on chip {item.measured.chip}"
        against = f"estimated {amount(compared(item))}, {signed_percent(item.delta)}"
        after.append(f"measured: {amount(item.measured.bytes)} {kind}{chip}; {against}")
    return table_of(title, header, rows, tuple(after))


def _breakdown(item: MemoryEstimate) -> Iterator[Section]:
    """Parameters by family, and the scratch of one expert block, from one rank's tokens and from all that send."""
    rows = ((each.name, each.owner.value, amount(each.bytes), each.cut) for each in item.families)
    table = table_of("", "tensors | owner | #bytes | cut", rows, empty="nothing")
    yield Section("parameters", "Parameters on that chip", tables=(table,))
    scratch = item.routing
    if scratch is None:
        return
    one, ways = scratch.one_source, scratch.sources
    columns = [("tokens of one rank", one)] + [(f"of all {ways} expert ranks", scratch)] * (ways > 1)
    parts = (("counts", "counts"), ("receive", "receive"), ("combine", "combine"), ("together", "total"))
    buffers = ((title, *(decimal_bytes(getattr(each, name)) for _, each in columns)) for title, name in parts)
    sends = f"; each of {ways} expert ranks sends its rows, so receive and combine are held {ways} times" * (ways > 1)
    note = f"{scratch.capacity:,} rows an expert from each rank, {scratch.local_experts:,} local experts{sends}"
    table = table_of("", " | #".join(["buffer", *(title for title, _ in columns)]), buffers, after=(note,))
    yield Section("routing", "Routing scratch of one expert block", tables=(table,))


def calibration_says(record: Calibration | None, lane: str) -> str:
    """What the lane's own peaks say of its estimates."""
    if record is None:
        return f"no calibration: fewer than three measured configurations of {lane} in the store"
    return (
        f"× {record.factor:.3f} for {lane}, from {record.launches} launches of {record.groups} configurations; the "
        f"next one is expected between × {record.low:.3f} and × {record.high:.3f} (90 %); each estimated from the "
        f"others, the worst is {100 * record.left_out:.1f} % off, the middle one {100 * record.left_out_median:.1f} %"
    )


def _two(a: MemoryEstimate, b: MemoryEstimate) -> Iterator[Section]:
    if a.missing or b.missing:
        return
    like = max(a.total_bytes or 0.0, b.total_bytes or 0.0)
    rows = [_side_by_side(item.name.value, item.a, item.b, like) for item in growth(a, b)]
    rows += [_side_by_side("estimated live peak", a.live_bytes, b.live_bytes, like)]
    if a.measured is not None or b.measured is not None:
        left, right = (item.measured.bytes if item.measured is not None else None for item in (a, b))
        rows += [_side_by_side("measured peak", left, right, like)]
    table = table_of("", "surface | #A | #B | #B − A", rows, empty="none: the two are alike")
    yield Section("growth", "Which bucket grows", tables=(table,), figures=(_figure([a, b]),))
    beside = {(each.path, each.value) for each in a.assumed} ^ {(each.path, each.value) for each in b.assumed}
    points = lines_of(f"{path} = {value}" for path, value in sorted(beside))
    yield Section("assumed", "Assumed in one of them only", points=points)


def _side_by_side(name: str, a: float | None, b: float | None, like: float) -> tuple[str, ...]:
    """A row of the table of growth; a side that has no such figure is ``~``."""
    apart = "~" if a is None or b is None else f"{'−' if b < a else '+'}{amount(abs(b - a), like)}"
    return name, amount(a, like), amount(b, like), apart


def _figure(estimates: Sequence[MemoryEstimate]) -> Figure:
    bars = [
        Bar(
            item.name,
            tuple(BarPart(each.name.value, each.peak_bytes, _ORDER[each.name]) for each in item.surfaces),
            item.budget_bytes,
            item.measured.bytes if item.measured else None,
        )
        for item in estimates
    ]
    title = f"Memory of {' and '.join(item.name for item in estimates)}"

    def draw(name: str) -> str:
        return geometry(bars, name=name, title=title, alt="; ".join(map(answer, estimates)))

    def lines(width: int) -> Iterator[str]:
        reach = max(bar.reach for bar in bars)
        for bar in bars:
            yield from text_bar(bar, width - 2, reach)

    return Figure("memory", (title,), draw, text=lines)


def picture(estimates: Sequence[MemoryEstimate]) -> str | None:
    """The bars as an SVG element; None where there is nothing to draw."""
    return _figure(estimates).draw("memory") if all(item.surfaces for item in estimates) else None


STATES: Final[dict[str, tuple[State, str]]] = {
    "worked": ("yes", "known to work"),
    "likely": ("yes", "likely to work"),
    "unknown": ("open", "unknown"),
    "predicted": ("no", "predicted to fail"),
    "failed": ("no", "known to fail"),
}


def preflight(plan: Parsed, answer: PreflightAnswer, rung: Rung | None, written: str | None = None) -> Page:
    """The whole preflight; ``written`` names the file that holds the next rung's plan."""
    sections = []
    if answer.by is not None:
        sections.append(Section("known", "Known launch", tables=(named_rows(_known(answer.by, answer)),)))
    if rung is not None:
        title = "Next rung" if answer.status != "unknown" else "Next rung, should it fail"
        notes = [f"written to {written}" if written else "write it with: --next FILE"] * (rung.plan is not None)
        if answer.status in ("failed", "predicted"):
            notes.append("recompute and other axes off the ladder, alone and in pairs: receipts fit PLAN")
        table = named_rows(_next_rung(rung), tuple(notes))
        sections.append(Section("next", title, tables=(table,)))
    facts = (("plan", (f"{plan.name} · lane {plan.receipt.run.lane}",)), ("signature", (answer.signature[:16],)))
    headline = (Mark(*STATES[answer.status]), f": {answer.why}")
    return Page(plan.name, headline, facts=facts, sections=tuple(sections))


def _known(by: PreflightEvidence, answer: PreflightAnswer) -> Iterator[tuple[str, str]]:
    """The launch: when, how it ended, with which bytes and lineage, and where it is unlike the plan."""
    yield "receipt", f"{by.id[:12]}  {by.name}"
    yield "when", f"{by.started:%Y-%m-%d %H:%M} UTC"
    if by.outcome == "ok":
        yield "ended", "ok"
    else:
        phase, chip = by.phase and f"in {by.phase}", None if by.chip is None else f"chip {by.chip}"
        yield "ended", " · ".join(filter(None, (by.outcome, by.class_, phase, chip)))
        sizes = (("requested", by.requested_bytes), ("used", by.used_bytes), ("limit", by.limit_bytes))
        known = ", ".join(f"{word} {amount(size)}" for word, size in sizes if size is not None)
        yield from ((name, text) for name, text in (("bytes", known), ("where", by.operator)) if text)
        if by.blocks:
            yield "blocks", by.blocks
    yield from ((leaf, f"{there} there, {here} here") for leaf, there, here in by.pressures)
    if by.lineage:
        yield "lineage", ", ".join(f"{name} {version}" for name, version in by.lineage)
    yield from (("but", str(item)) for item in by.unlike)
    if answer.worked + answer.failed > 1:
        yield "launches", f"{answer.worked} worked, {answer.failed} failed with this signature"


def _next_rung(rung: Rung) -> Iterator[tuple[str, str]]:
    """What changes, what it is, and why others were skipped."""
    yield "rung", rung.name if rung.plan is not None else "stop: record the frontier, nothing is left to shrink"
    for path, (old, new) in rung.changes.items():
        if old != new and path not in rung.dropped:
            yield path, f"{old} → {'not stated' if new is None else new}"
    if rung.answer is not None:
        yield "it is", f"{rung.answer.status}: {rung.answer.why}"
    yield from (("skipped", f"{item.rung}: {item.why}") for item in rung.skipped)
    if rung.reason is not None and rung.plan is not None:
        yield "reason", rung.reason
    if rung.dropped:
        yield "state anew", ", ".join(rung.dropped)


def ranking(ranked: Sequence[Ranked]) -> Table:
    """Candidates in the order in which to try them, each with the line where it was."""
    rows = (
        (
            *(str(place), str(item.candidate.line), item.answer.status, item.answer.failure_type or "-"),
            item.answer.by.id[:12] if item.answer.by is not None else "-",
            item.candidate.plan.receipt.run.label or "",
        )
        for place, item in enumerate(ranked, start=1)
    )
    return table_of("", "#try | #line | status | failure | receipt | label", rows)
