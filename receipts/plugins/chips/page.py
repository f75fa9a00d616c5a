"""Memory by physical chip over the topology: of one launch, or what B changed against A.

In a terminal it is a heat map within the width, its scale in shades and without color.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from receipts.axes.lineage import ran_on
from receipts.base.untrusted_text import plain
from receipts.metrics import chip_pressure as words
from receipts.metrics.chip_pressure import middle, pressure, pressure_json
from receipts.metrics.chips import METRICS, PHASES, TITLES, account, account_json
from receipts.plugins.chips.topology import WORST, ChipLayout, Heat, chip_picture, layout
from receipts.publish.page import Figure, Page, Section, sections_of

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.metrics.chips import Account, Metric, Phase
    from receipts.receipt import Parsed


_SHADES: Final = " ░▒▓█"
_LEADS, _THIN, _DOUBLED = "*", "!", "="
_MISSING: Final = "--"
_CELLS: Final = {"gib": "GiB a chip", "percent": "percent of the chip's limit", "shade": "a shade a chip"}


def lines(heat: Heat, width: int) -> list[str]:
    """The map and its legend, no line wider than ``width`` columns.

    A cell holds GiB with a shade where they fit, else percent of the chip's limit, else the shade.
    """
    layout = heat.layout
    rows = [(plane, row) for plane in range(layout.planes) for row in range(layout.rows)]
    bare = [f"{layout.row_word} {row}" for _, row in rows]
    longest = max(map(len, bare), default=0)
    spans = [layout.chips(*at) for at in rows]
    ranges = [f"{span[0]}–{span[-1]}" if len(span) > 1 else "".join(map(str, span)) for span in spans]
    named = [f"{name.ljust(longest)}  {chips}" for name, chips in zip(bare, ranges, strict=True)]
    digits = max((len(heat.text(chip)) for chip in layout.places), default=1)
    limits = heat.limits or {}
    has_percents = heat.worse != "either" and bool(limits) and all(limits.get(chip) for chip in heat.values)
    sizes = {"gib": digits + 3, **({"percent": 3} if has_percents else {}), "shade": 2}
    choices = [(kind, names, max(map(len, names), default=0)) for kind in sizes for names in (named, bare)]
    fitting = (choice for choice in choices if layout.columns * sizes[choice[0]] + choice[2] + 2 <= width)
    kind, names, label = next(fitting, choices[-1])
    fold = max(1, min(layout.columns, (width - label - 2) // sizes[kind]))
    shown: list[str] = []
    for name, (plane, row) in zip(names, rows, strict=True):
        if layout.planes > 1 and row == 0:
            shown += [*([""] if plane else []), f"z {plane}"]
        chips = layout.chips(plane, row)
        for start in range(0, len(chips), fold):
            cells = "".join(_cell(heat, chip, kind, digits) for chip in chips[start : start + fold])
            shown.append(f"{('' if start else name).ljust(label)}  {cells}".rstrip())
    return [*shown, "", *_joined(_legend(heat, kind), width)]


def _cell(heat: Heat, chip: int, kind: str, digits: int) -> str:
    missing = chip in heat.missing
    marks = ((heat.doubled, _DOUBLED), (heat.leaders, _LEADS), (heat.thin, _THIN))
    mark = " " if missing else next((mark for chips, mark in marks if chip in chips), " ")
    shade = _shade(heat, chip)
    if kind == "shade":
        return f"{_MISSING[0] if missing else '·' if shade == ' ' else shade}{mark}"
    if kind == "percent":
        value, limit = heat.values.get(chip), (heat.limits or {}).get(chip)
        percent = str(min(99, round(100 * value / limit))) if value is not None and limit else "~"
        return f"{(_MISSING if missing else percent).rjust(2)}{mark}"
    return f"{' ' if missing else shade}{(_MISSING if missing else heat.text(chip)).rjust(digits)}{mark} "


def _shade(heat: Heat, chip: int) -> str:
    share = heat.share(chip)
    if share is None:
        return "~"
    if heat.worse == "either":
        return " " if abs(share) < 0.1 else "▲" if heat.values[chip] > 0 else "▼"
    return _SHADES[min(len(_SHADES) - 1, int(share * len(_SHADES)))]


def _legend(heat: Heat, kind: str) -> Iterator[str]:
    low, high = heat.scale
    first, last = (f"{heat.amount(end)} GiB" for end in ((high, low) if heat.worse == "lower" else (low, high)))
    yield f"scale: {first} {'▼ fell, ▲ rose' if heat.worse == 'either' else _SHADES} {last}"
    yield f"cells: {_CELLS[kind]}"
    marks = (
        (heat.leaders - heat.doubled, f"{_LEADS} {WORST[heat.worse]}"),
        (heat.thin - heat.leaders - heat.doubled, f"{_THIN} less headroom than the lane keeps"),
        (heat.doubled, f"{_DOUBLED} two rows"),
        (heat.missing, f"{_MISSING} no row"),
        (heat.unstated, "~ not stated"),
    )
    yield from (words for chips, words in marks if chips)


def _joined(parts: Iterable[str], width: int) -> list[str]:
    """Parts in as few lines as hold them."""
    rows: list[str] = []
    for part in parts:
        if rows and len(rows[-1]) + 3 + len(part) <= width:
            rows[-1] += f" · {part}"
        else:
            rows.append(part)
    return rows


NAME = 80


class ChipMap(NamedTuple):
    """A map with its page and its values; ``heat`` is None where no chip states the figure."""

    heat: Heat | None
    page: Page
    data: dict[str, Any]
    known: bool


def arrangement(parsed: Parsed, stated: int | None, chips: Sequence[int]) -> ChipLayout:
    """The arrangement of a receipt's chips, of which ``stated`` took part."""
    hardware = parsed.receipt.hardware
    names = ("hosts", "physical", "accelerator")
    return layout(chips, count=stated, **{name: getattr(hardware, name, None) for name in names})


def one(parsed: Parsed, lane: Lane, phase: str | None, wanted: Metric | None) -> ChipMap:
    """The chips of one launch in a phase, unless it is named the one in which the figure is worst."""
    whole = account(parsed)
    metric = wanted or _stated([whole], phase)
    chosen = whole.get(phase) if phase else whole.worst(metric)
    drawn = chosen if chosen is not None and chosen.ranking(metric) is not None else None
    lineage = str(ran_on(parsed, lane) or "")
    shown = {"metric": metric, "phase": drawn.name if drawn is not None else None, "lineage": lineage or None}
    data = {"id": parsed.id, "name": parsed.name, **shown, **account_json(whole)}
    if drawn is None:
        # What is not there, and what is.
        where = f" in phase {phase}" if phase else ""
        known = [(item.name, name) for item in whole.phases for name in METRICS if item.ranking(name) is not None]
        stated = "; ".join(f"--phase {at} --metric {name}" for at, name in known)
        record = "record bytes_used, bytes_limit and peak_bytes on every chip (see: receipts rules R401)"
        lead = (words.aggregate(whole), f"stated: {stated}" if stated else record)
        headline = f"{parsed.name}: no chip states its {TITLES[metric]}{where}"
        return ChipMap(None, Page(parsed.name, (headline,), lead=tuple(filter(None, lead))), data, known=False)
    heat = _heat(parsed, whole, drawn, metric, lane)
    sentences = [words.brief(item) for item in whole.phases if item is not drawn]
    sentences += [words.aggregate(whole), f"lineage {lineage}" if lineage else ""]
    return ChipMap(heat, _page(heat, words.sentence(drawn), sentences), data, known=True)


def changed(
    sides: Sequence[Sequence[Parsed]], phase: str | None, wanted: Metric | None, spread: float | None
) -> ChipMap:
    """B less A on every chip, of several launches each chip's median; ``spread`` is that of equal launches."""
    accounts = [[account(item) for item in side] for side in sides]
    metric = wanted or _stated([item for side in accounts for item in side], phase)
    figure = "peak" if metric == "headroom" else metric
    result = pressure(*accounts, metric=figure, phase=phase, spread=spread if figure == "peak" else None)
    data: dict[str, Any] = {"metric": metric, "change": pressure_json(result)}
    for name, side, of in zip(("a", "b"), sides, accounts, strict=True):
        data[name] = [{"id": item.id, **account_json(whole)} for item, whole in zip(side, of, strict=True)]
    known = result.kind != "unknown"
    notes = (words.change(result), *((str(result.margin),) if known else ()))
    if not result.a:
        return ChipMap(None, Page("Change", (notes[0],), lead=notes[1:]), data, known)
    before, after = (middle([item.by_chip(metric, result.phases) for item in side]) for side in accounts)
    values = {chip: after[chip] - before[chip] for chip in before if chip in after}
    most = max(map(abs, values.values()), default=0.0)
    limits = [item for side in accounts for of_phase in side[0].phases for item in of_phase.chips]
    several = "least of its phases" if metric == "headroom" else "highest of its phases"
    where = result.phases[0] if len(result.phases) == 1 else several
    heat = Heat(
        layout=arrangement(sides[0][0], accounts[0][0].stated, list(before)),
        values=values,
        title=f"Change of {TITLES[metric]} by chip, {where}, in GiB",
        about=f"A {_about(sides[0][0])} → B {_about(sides[1][0])}",
        note=notes,
        worse="either",
        relief="up" if metric == "headroom" else "down",
        limits={item.chip: float(item.limit) for item in limits if item.limit is not None},
        leaders=frozenset(chip for chip, value in values.items() if most and abs(value) == most),
    )
    return ChipMap(heat, _page(heat, notes[0], notes[1:]), data, known)


def _stated(accounts: Sequence[Account], phase: str | None) -> Metric:
    """The first of live peak, pool peak and in use that every launch states; live peak if none is."""
    names: tuple[Metric, ...] = ("peak", "pool", "used")
    phases = (phase,) if phase else PHASES
    return next((name for name in names if all(item.by_chip(name, phases) for item in accounts)), "peak")


def _heat(parsed: Parsed, whole: Account, phase: Phase, metric: Metric, lane: Lane) -> Heat:
    ranking = phase.ranking(metric)
    assert ranking is not None  # the caller looked
    worst = ranking.lowest if metric == "headroom" else ranking.highest
    alike = ranking.lowest == ranking.highest
    values = {item.chip: float(value) for item in phase.chips if (value := item.read(metric)) is not None}
    return Heat(
        layout=arrangement(parsed, whole.stated, [item.chip for item in phase.chips] + list(phase.missing)),
        values=values,
        title=f"{TITLES[metric].capitalize()} by chip, {phase.name}, in GiB",
        about=_about(parsed),
        note=tuple(filter(None, (*words.phase_facts(phase), words.aggregate(whole)))),
        worse="lower" if metric == "headroom" else "higher",
        limits={item.chip: float(item.limit) for item in phase.chips if item.limit is not None},
        leaders=frozenset(chip for chip, value in values.items() if value == worst and not alike),
        missing=frozenset(phase.missing),
        doubled=frozenset(phase.doubled),
        thin=frozenset(item.chip for item in phase.chips if item.left is not None and item.left < lane.headroom),
    )


def _about(parsed: Parsed) -> str:
    hardware = parsed.receipt.hardware
    count = hardware.chips if hardware and hardware.chips is not None else "?"
    machine = hardware.accelerator if hardware and hardware.accelerator else "accelerator not stated"
    called = f"{plain(parsed.name, NAME)} · " if not parsed.id.startswith(parsed.name) else ""
    return f"{called}{parsed.id[:12]} · {count} × {plain(machine)}"


def _page(heat: Heat, answer: str, sentences: Sequence[str]) -> Page:
    figure = Figure("chips", (heat.title,), partial(chip_picture, heat), text=partial(lines, heat))
    shown = Section("map", heat.title, sentences=(heat.about, heat.layout.note), figures=(figure,))
    rest = Section("phases", "", tuple(filter(None, sentences)))
    return Page(heat.title, (answer,), sections=sections_of(shown, rest))
