"""The page of an explanation: both differences, the table that adds up, and what it must not say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from receipts.base.units import counted
from receipts.plugins.why.collectives import WAIT
from receipts.plugins.why.difference import Difference, Line, TracedLaunch
from receipts.plugins.why.explanation import Explanation, kept_of, shares_of, traced_of
from receipts.plugins.why.picture import picture, waterfall
from receipts.plugins.why.profile import Profile
from receipts.plugins.why.refusals import RECORD
from receipts.publish.page import Cell, Figure, Mark, Page, Section, Table, sections_of, table_of
from receipts.publish.text import words

say = words("why")

MAX_KERNELS: Final = 12
_ORDER: Final = {"unexpected": 0, "moved": 1, "consistent": 1, "noise": 2}


def explanation_page(item: Explanation) -> Page:
    """The whole page."""
    table = item.shown
    sections = [
        Section(
            "refused",
            "Why this is not explained",
            points=tuple(
                (refusal.what, ((refusal.do,),)) for refusal in item.refusals if item.anyway or not item.nothing
            ),
        ),
    ]
    drawn = waterfall(item)
    if table is not None and drawn is not None:
        warning = () if item.status == "explained" else (say("anyway"),)
        figure = Figure("why", (say("picture"),), lambda name: picture(drawn, name))
        sections.append(Section("table", say("section"), warning, tables=(_table(item, table),), figures=(figure,)))
        kernels = _kernels(table)
        sections.append(
            Section(
                "kernels", "Kernels and operators that changed", tables=(kernels,), fold="the kernels behind the lines"
            )
        )
    return Page(
        title=f"{item.a} → {item.b}",
        headline=_headline(item),
        facts=tuple(_facts(item)),
        sections=sections_of(*sections),
    )


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
    return (Mark("yes", "EXPLAINED"), f"  {_measured(item)}: {largest} ms")


def _measured(item: Explanation) -> str:
    if item.measured is None or item.span:
        return say("whole_spans") if item.span else "the step times are not measured"
    a, b = item.measured
    word = "slower" if b > a else "faster"
    return f"B is {abs(float(b / a) - 1):.1%} {word}".replace("%", " %")


def _facts(item: Explanation) -> Iterator[tuple[str, Cell]]:
    if item.measured is not None:
        a, b = item.measured
        yield "measured", (f"{_ms(a)} → {_ms(b)} ms a step ({_signed(b - a)} ±{_ms(item.noise)})",)
    table = item.shown
    if table is not None:
        steps = " + ".join(_steps(side, table) for side in item.sides)
        share = "" if not table.a else f", {float(table.b / table.a) - 1:+.1%}".replace("%", " %")
        of, count = ("traced span", "") if item.span else ("step", f"; {steps} steps")
        yield "traced", (f"{_ms(table.a)} → {_ms(table.b)} ms a {of} ({_signed(table.change)}{share}){count}",)
        yield "from", (_where(item, table),)
    yield "changed", (", ".join(item.axes) or "no axis",)


def _steps(side: Sequence[TracedLaunch], table: Difference) -> str:
    kept, whole = kept_of(side, table.ranks), traced_of(side, table.ranks)
    return str(kept) if kept == whole else f"{kept} of {whole}"


def _profiles(item: Explanation, table: Difference) -> list[Profile]:
    return [own for side in item.sides for launch in side for rank in table.ranks for own in launch.profiles[rank]]


def _world(profiles: Sequence[Profile]) -> int:
    """How many ranks the traced jobs had; 1 where no trace says."""
    sizes = (profile.facts.get("world") for profile in profiles)
    return max((size for size in sizes if isinstance(size, int)), default=1)


def _where(item: Explanation, table: Difference) -> str:
    profiles = _profiles(item, table)
    producers = "/".join(sorted({profile.producer for profile in profiles}))
    of = f" of {world}" if (world := _world(profiles)) > 1 else ""
    launches = " + ".join(counted(len(side), "launch", "launches") for side in item.sides)
    return f"{', '.join(table.ranks)}{of}, {producers}, {launches}"


def _table(item: Explanation, table: Difference) -> Table:
    lines = sorted(table.lines, key=lambda line: (_ORDER[line.standing], -abs(line.change)))
    shown = [line for line in lines if line.standing != "noise"]
    quiet = [line for line in lines if line.standing == "noise"]
    # The largest of them are shown, so that nobody takes a fold for nothing.
    rows = [_row(line) for line in (*shown, *quiet[:5])]
    if rest := quiet[5:]:
        a, b = (sum((getattr(line, side) for line in rest), Fraction(0)) for side in ("a", "b"))
        rows.append((f"{len(rest)} more", _ms(a), _ms(b), _signed(b - a), "within noise"))
    rows.append(("traced difference", _ms(table.a), _ms(table.b), _signed(table.change), "= sum, exact"))
    if item.measured is not None and item.residual is not None:
        a, b = item.measured
        rows.append(("not in the traces", "", "", _signed(item.residual), "measured less traced"))
        rows.append(("measured difference", _ms(a), _ms(b), _signed(b - a), f"±{_ms(item.noise)}"))
    return table_of("", "class | #A [ms] | #B [ms] | #change [ms] | what it says", rows, tuple(_notes(item, table)))


def _row(line: Line) -> tuple[str, str, str, str, str]:
    return line.name, _ms(line.a), _ms(line.b), _signed(line.change), _reading(line)


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
