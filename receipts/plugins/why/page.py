"""The page of an explanation: the measured and the traced difference, the table that adds up, and what it must not say."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from receipts.base.units import counted
from receipts.plugins.why.difference import Difference, Line
from receipts.plugins.why.explanation import Explanation, kept_of, shares_of, traced_of
from receipts.publish.page import Cell, Mark, Page, Section, Table, sections_of, table_of

MAX_KERNELS: Final = 12
_ORDER: Final = {"unexpected": 0, "moved": 1, "consistent": 1, "noise": 2}


def explanation_page(item: Explanation) -> Page:
    """The whole page."""
    table = item.shown
    sections = [
        Section(
            "refused",
            "Why this is not explained",
            points=tuple((refusal.what, ((refusal.do,),)) for refusal in item.refusals),
        ),
    ]
    if table is not None:
        sections.append(
            Section(
                "table",
                "Where the step's time went",
                tables=(_table(item, table),),
                sentences=tuple(_notes(item, table)),
            )
        )
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
        return (Mark("shown", "nothing to explain"), f"  {item.nothing}")
    if item.refusals:
        return (Mark("no", "refused"), f"  {item.refusals[0].what}")
    moved = [line for line in item.table.lines if line.standing != "noise"] if item.table else []
    moved.sort(key=lambda line: (_ORDER[line.standing], -abs(line.change)))
    if not moved:
        return (Mark("open", "explained"), "  no class moved beyond the noise of the traces")
    largest = ", ".join(f"{line.name} {_signed(line.change)}" for line in moved[:3])
    return (Mark("yes", "explained"), f"  {_measured(item)}: {largest} ms")


def _measured(item: Explanation) -> str:
    if item.measured is None:
        return "the step times are not measured"
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
        yield "traced", (f"{_ms(table.a)} → {_ms(table.b)} ms a step ({_signed(table.change)}{share}); {steps} steps",)
        yield "from", (_where(item, table),)
    yield "changed", (", ".join(item.axes) or "no axis",)


def _steps(side: tuple, table: Difference) -> str:  # type: ignore[type-arg]  # of traced launches
    kept, whole = kept_of(side, table.ranks), traced_of(side, table.ranks)
    return str(kept) if kept == whole else f"{kept} of {whole}"


def _where(item: Explanation, table: Difference) -> str:
    profiles = [
        profile for side in item.sides for launch in side for rank in table.ranks for profile in launch.profiles[rank]
    ]
    producers = "/".join(sorted({profile.producer for profile in profiles}))
    worlds = {profile.facts.get("world") for profile in profiles if isinstance(profile.facts.get("world"), int)}
    of = f" of {max(worlds)}" if worlds and max(worlds) > 1 else ""
    return f"{', '.join(table.ranks)}{of}, {producers}, {' + '.join(counted(len(side), 'launch', 'launches') for side in item.sides)}"


def _table(item: Explanation, table: Difference) -> Table:
    lines = sorted(table.lines, key=lambda line: (_ORDER[line.standing], -abs(line.change)))
    shown = [line for line in lines if line.standing != "noise"]
    quiet = [line for line in lines if line.standing == "noise"]
    # The largest of them are shown, so that nobody takes a fold for nothing.
    rows = [_row(line, table) for line in (*shown, *quiet[:5])]
    if rest := quiet[5:]:
        a, b = (sum((getattr(line, side) for line in rest), Fraction(0)) for side in ("a", "b"))
        rows.append((f"{len(rest)} more", _ms(a), _ms(b), _signed(b - a), "within noise"))
    rows.append(("traced difference", _ms(table.a), _ms(table.b), _signed(table.change), "= sum, exact"))
    if item.measured is not None and item.residual is not None:
        a, b = item.measured
        rows.append(("not in the traces", "", "", _signed(item.residual), "measured less traced"))
        rows.append(("measured difference", _ms(a), _ms(b), _signed(b - a), f"±{_ms(item.noise)}"))
    return table_of("", "class | #A [ms] | #B [ms] | #change [ms] | what it says…", rows)


def _row(line: Line, table: Difference) -> tuple[str, str, str, str, str]:
    return line.name, _ms(line.a), _ms(line.b), _signed(line.change), _says(line, table)


def _says(line: Line, table: Difference) -> str:
    note = f"; {line.note}" if line.note else ""
    if line.standing == "noise":
        return f"within noise (±{_ms(line.noise)})" if abs(line.change) <= line.noise else "too small to say"
    moved = "" if table.paired else "moved in these two traces; "
    if line.standing == "consistent":
        return f"{moved}consistent with {line.axis}{note}"
    if line.standing == "unexpected":
        return f"UNEXPECTED: {moved}no changed axis moves it{note}"
    return f"{moved or 'moved; '}no axis to hold it against{note}"


def _notes(item: Explanation, table: Difference) -> Iterator[str]:
    if item.status != "explained":
        yield "This table was refused, and is shown because --anyway asked for it: do not quote it."
    if table.common is not None:
        yield f"Nearly all computing classes moved by x{table.common:.3f}: clock, power or contention comes before any cause."
    for axis in table.still:
        yield f"No line of {axis} moved."
    if not table.paired:
        yield "One traced launch on a side: steps of one launch are no sample of launches, so no line is a finding. Trace two a side: receipts record --why"
    profiles = [
        profile for side in item.sides for launch in side for rank in table.ranks for profile in launch.profiles[rank]
    ]
    worlds = [profile.facts.get("world") for profile in profiles if isinstance(profile.facts.get("world"), int)]
    if worlds and max(worlds) > len(table.ranks):
        yield f"{len(table.ranks)} of {max(worlds)} ranks: waiting and transfer are not separable in communication."
    if any(table.slowest):
        yield f"The slowest rank: A {table.slowest[0]}, B {table.slowest[1]}."
    asides = [step.aside for profile in profiles for step in profile.steps if step.aside]
    for why, what in (("long", "longer than 1.25 medians"), ("compiles", "with a compile")):
        if count := asides.count(why):
            yield f"{counted(count, 'step')} {what} set aside."
    for letter, side in zip("AB", item.sides, strict=True):
        share = shares_of(side)
        own = ", ".join(f"by {name} {value:.0%}" for name, value in share.items() if name != "other")
        yield f"{letter}: classed {own}, other {share['other']:.0%}{_slower(item, letter, table)}.".replace("%", " %")


def _slower(item: Explanation, letter: str, table: Difference) -> str:
    if item.measured is None:
        return ""
    own, seen = (item.measured[0], table.a) if letter == "A" else (item.measured[1], table.b)
    return f"; traced x{float(seen / own):.2f} of the measured step" if own else ""


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
