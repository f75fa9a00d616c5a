"""The page of an explanation: both differences, the table that adds up, and what it must not say.

The table is drawn as a waterfall as well: A, what each class adds or takes, what is not in the traces, and B, at most
ten bars. What is within noise is grey; the way a bar went is that of its sign, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from receipts.base.units import counted
from receipts.plugins.why.difference import Difference, Line
from receipts.plugins.why.explanation import Explanation, shares_of, steps_of
from receipts.plugins.why.profile import WAIT, Profile
from receipts.plugins.why.refusals import RECORD
from receipts.publish import svg
from receipts.publish.page import Cell, Figure, Mark, Page, Section, Table, sections_of, table_of
from receipts.publish.svg import (
    BELOW,
    FAINT,
    LINE,
    MARKS,
    WIDTH,
    Canvas,
    Panel,
    Scale,
    below,
    cut,
    nice,
    tick_label,
)
from receipts.publish.text import words

if TYPE_CHECKING:
    from receipts.plugins.why.difference import Difference
    from receipts.plugins.why.explanation import Explanation

say = words("why")

MAX_KERNELS: Final = 12
_ORDER: Final = {"unexpected": 0, "moved": 1, "consistent": 1, "noise": 2}


def explanation_page(item: Explanation) -> Page:
    """The whole page."""
    table = item.shown
    refused = tuple((one.what, ((one.do,),)) for one in item.refusals if item.anyway or not item.nothing)
    sections = [Section("refused", "Why this is not explained", points=refused)]
    drawn = waterfall(item)
    if table is not None and drawn is not None:
        warning = () if item.status == "explained" else (say("anyway"),)
        figure = Figure("why", (say("picture"),), lambda name: picture(drawn, name))
        sections.append(Section("table", say("section"), warning, tables=(_table(item, table),), figures=(figure,)))
        title, fold = "Kernels and operators that changed", "the kernels behind the lines"
        sections.append(Section("kernels", title, tables=(_kernels(table),), fold=fold))
    facts = tuple(_facts(item))
    return Page(f"{item.a} → {item.b}", _headline(item), facts=facts, sections=sections_of(*sections))


def _headline(item: Explanation) -> Cell:
    if item.nothing:
        return (Mark("shown", "NOTHING TO EXPLAIN"), f"  {item.nothing}")
    if item.refusals:
        return (Mark("no", "REFUSED"), f"  {item.refusals[0].what}")
    moved = [line for line in item.table.lines if line.standing != "noise"] if item.table else []
    moved.sort(key=lambda line: (_ORDER[line.standing], -abs(line.change)))
    if not moved:
        return (Mark("open", "EXPLAINED"), "  no class moved beyond the noise of the traces")
    largest = ", ".join(f"{line.name} {_signed(line.change)}" for line in moved[:3])
    measured = say("whole_spans") if item.span else "the step times are not measured"
    if item.measured is not None and not item.span:
        a, b = item.measured
        measured = f"B is {abs(float(b / a) - 1):.1%} {'slower' if b > a else 'faster'}".replace("%", " %")
    return (Mark("yes", "EXPLAINED"), f"  {measured}: {largest} ms")


def _facts(item: Explanation) -> Iterator[tuple[str, Cell]]:
    if item.measured is not None:
        a, b = item.measured
        yield "measured", (f"{_ms(a)} → {_ms(b)} ms a step ({_signed(b - a)} ±{_ms(item.noise)})",)
    table = item.shown
    if table is not None:
        counts = [steps_of(side, table.ranks) for side in item.sides]
        steps = " + ".join(str(kept) if kept == whole else f"{kept} of {whole}" for kept, whole in counts)
        share = "" if not table.a else f", {float(table.b / table.a) - 1:+.1%}".replace("%", " %")
        of, count = ("traced span", "") if item.span else ("step", f"; {steps} steps")
        yield "traced", (f"{_ms(table.a)} → {_ms(table.b)} ms a {of} ({_signed(table.change)}{share}){count}",)
        profiles = _profiles(item, table)
        world = f" of {size}" if (size := _world(profiles)) > 1 else ""
        producers = "/".join(sorted({profile.producer for profile in profiles}))
        launches = " + ".join(counted(len(side), "launch", "launches") for side in item.sides)
        yield "from", (f"{', '.join(table.ranks)}{world}, {producers}, {launches}",)
    yield "changed", (", ".join(item.axes) or "no axis",)


def _profiles(item: Explanation, table: Difference) -> list[Profile]:
    return [own for side in item.sides for launch in side for rank in table.ranks for own in launch.profiles[rank]]


def _world(profiles: Sequence[Profile]) -> int:
    """How many ranks the traced jobs had; 1 where no trace says."""
    sizes = (profile.facts.get("world") for profile in profiles)
    return max((size for size in sizes if isinstance(size, int)), default=1)


def _table(item: Explanation, table: Difference) -> Table:
    lines = sorted(table.lines, key=lambda line: (_ORDER[line.standing], -abs(line.change)))
    shown = [line for line in lines if line.standing != "noise"]
    quiet = [line for line in lines if line.standing == "noise"]
    # The largest of them are shown, so that nobody takes a fold for nothing.
    rows = [
        (line.name, _ms(line.a), _ms(line.b), _signed(line.change), _reading(line)) for line in (*shown, *quiet[:5])
    ]
    if rest := quiet[5:]:
        a, b = (sum((getattr(line, side) for line in rest), Fraction(0)) for side in ("a", "b"))
        rows.append((f"{len(rest)} more", _ms(a), _ms(b), _signed(b - a), "within noise"))
    rows.append(("traced difference", _ms(table.a), _ms(table.b), _signed(table.change), "= sum, exact"))
    if item.measured is not None and item.residual is not None:
        a, b = item.measured
        rows.append(("not in the traces", "", "", _signed(item.residual), "measured less traced"))
        rows.append(("measured difference", _ms(a), _ms(b), _signed(b - a), f"±{_ms(item.noise)}"))
    return table_of("", "class | #A [ms] | #B [ms] | #change [ms] | what it says", rows, tuple(_notes(item, table)))


def _reading(line: Line) -> str:
    note = f"; {line.note}" if line.note else ""
    if line.standing == "noise":
        return f"within noise (±{_ms(line.noise)})" if abs(line.change) <= line.noise else "too small to say"
    if line.standing == "consistent":
        return f"consistent with {line.axis}{note}"
    if line.standing == "unexpected":
        return f"UNEXPECTED: no changed axis moves it{note}"
    return f"moved; no axis to hold it against{note}"


def _notes(item: Explanation, table: Difference) -> Iterator[str]:
    if item.span:
        yield say("span")
    if table.common is not None:
        yield say("common", ratio=table.common)
    for axis in table.still:
        yield say("still", axis=axis)
    if not table.paired:
        yield say("one_trace", record=RECORD)
    profiles = _profiles(item, table)
    if (world := _world(profiles)) > len(table.ranks):
        yield say("some_ranks", traced=len(table.ranks), world=world)
    elif world > 1 and WAIT not in {line.name for line in table.lines}:
        yield say("unpaired")
    if any(table.slowest):
        yield say("slowest", a=table.slowest[0], b=table.slowest[1])
    asides = [step.aside for profile in profiles for step in profile.steps]
    for why in ("long", "compiles"):
        if count := asides.count(why):
            yield say(why, count=counted(count, "step"))
    for letter, side, at in zip("AB", item.sides, (0, 1), strict=True):
        share, own = shares_of(side), item.measured[at] if item.measured is not None and not item.span else Fraction(0)
        slower = say("slower", ratio=float((table.a, table.b)[at] / own)) if own > 0 else ""
        values = {"op": share["operator"], "name": share["name"], "other": share["other"]}
        yield say("classed", side=letter, slower=slower, **values).replace("%", " %")


def _kernels(table: Difference) -> Table:
    rows = sorted(
        (
            (line.name, name or f"others of {line.name}", a, b)
            for line in table.lines
            for name, a, b in line.rows
            if a != b
        ),
        key=lambda row: (-abs(row[3] - row[2]), row[1]),
    )
    return table_of(
        "",
        "kernel or operator… | class ^1 | #A [ms] ^2 | #B [ms] ^2 | #change [ms]",
        [(name, of, _ms(a), _ms(b), _signed(b - a)) for of, name, a, b in rows[:MAX_KERNELS]],
        (f"{len(rows) - MAX_KERNELS} more changed.",) if len(rows) > MAX_KERNELS else (),
    )


def _ms(value: Fraction) -> str:
    return f"{float(value) / 1e6:,.3f}"


def _signed(value: Fraction) -> str:
    return f"{float(value) / 1e6:+,.3f}".replace("-", "−")


MAX_LINES: Final = 6
_LEFT, _RIGHT, _TOP, _ROW, _NAME, _BAR = 16.0, 92.0, 6.0, 34.0, 16.0, 12.0
_UP, _DOWN, _WHOLE, _NOISE = MARKS[1].light, MARKS[0].light, MARKS[5].light, LINE
Bar = tuple[str, float, float, str]  # what it is, from where to where in ms, its colour


class Waterfall(NamedTuple):
    """The table of a difference as bars, in milliseconds a step."""

    a: str
    b: str
    bars: list[Bar]


def waterfall(item: Explanation) -> Waterfall | None:
    """The bars from the measured step of A to that of B, or between the traced ones; None where no table is shown."""
    if (table := item.shown) is None:
        return None
    lines = sorted(table.lines, key=lambda line: (line.standing == "noise", -abs(line.change)))
    shown, rest = lines[:MAX_LINES], lines[MAX_LINES:]
    parts = [(line.name, float(line.change), line.standing == "noise") for line in shown if line.change]
    if rest:
        parts.append((f"{len(rest)} more", float(sum(line.change for line in rest)), True))
    begin, end = (float(value) for value in (not item.span and item.measured) or (table.a, table.b))
    if item.residual is not None:
        parts.append(("not in the traces", float(item.residual), True))
    bars: list[Bar] = [("A", 0.0, begin / 1e6, _WHOLE)]
    now = begin / 1e6
    for name, change, quiet in parts:
        bars.append((name, now, now + change / 1e6, _NOISE if quiet else _UP if change > 0 else _DOWN))
        now += change / 1e6
    return Waterfall(item.a, item.b, [*bars, ("B", 0.0, end / 1e6, _WHOLE)])


def picture(drawn: Waterfall, name: str = "why") -> str:
    """The SVG element."""
    bars = drawn.bars
    alt = "; ".join(f"{what} {amount(what, start, stop)}" for what, start, stop, _ in bars)
    height = _TOP + _ROW * len(bars) + BELOW
    title = f"Where the step's time went: {drawn.a} → {drawn.b}"
    return svg.inline_svg(partial(_paint, bars), name=name, width=WIDTH, height=height, title=title, alt=alt)


def amount(what: str, start: float, stop: float) -> str:
    """The time of a bar, or by how much it moves the step."""
    return f"{stop:,.3f} ms" if what in "AB" else f"{stop - start:+,.3f} ms".replace("-", "−")


def _paint(bars: list[Bar], canvas: Canvas) -> None:
    ends = [end for what, start, stop, _ in bars[1:-1] for end in (start, stop)] or [0.0]
    # Of long steps with a small difference the whole is cut, and the axis says where it begins.
    low = 0.0 if min(ends) < 4 * (max(ends) - min(ends)) else min(ends) - (max(ends) - min(ends))
    high = max(*ends, bars[0][2], bars[-1][2])
    marks = nice(low, high, 6)
    low = marks[0]
    x = Scale(low, high + (high - low) * 0.02 + 1e-9)
    plot = Panel(_LEFT, _TOP, WIDTH - _LEFT - _RIGHT, canvas.height - _TOP - BELOW, x, Scale(0.0, 1.0))
    for at, (what, start, stop, colour) in enumerate(bars):
        top = _TOP + at * _ROW + _NAME
        left, right = sorted(plot.at(max(value, low), 0.0)[0] for value in (start, stop))
        canvas.label(4.0, top - 8.0, cut(what, WIDTH - 110.0), bold=what in "AB")
        canvas.label(WIDTH - 4.0, top - 8.0, amount(what, start, stop), ha="right", bold=True)
        canvas.boxes([(left, top, max(1.0, right - left), _BAR)], fill=colour)
        if at < len(bars) - 1:
            canvas.uprights([(plot.at(max(stop, low), 0.0)[0], top + _BAR, top + _ROW)], colour=FAINT, dash=(2, 2))
    canvas.line([(plot.left, plot.bottom), (plot.right, plot.bottom)], colour=FAINT, width=1.0)
    below(canvas, plot, [(mark, tick_label(mark)) for mark in marks if mark <= x.high], "ms a step")
