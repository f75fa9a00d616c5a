"""A heat map of chips in a terminal: within its width, its scale in shades and no color."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from receipts.publish.pictures.heat import WORST, Heat

_SHADES: Final = " ░▒▓█"
_LEADS, _THIN, _DOUBLED = "*", "!", "="
_MISSING: Final = "--"
_CELLS: Final = {"gib": "GiB a chip", "percent": "percent of the chip's limit", "shade": "a shade a chip"}


def lines(heat: Heat, *, width: int) -> list[str]:
    """The map and its legend, no line wider than ``width`` columns.

    A cell holds GiB with a shade where they fit, else percent of the chip's limit, else the shade.
    """
    layout = heat.layout
    rows = [(plane, row) for plane in range(layout.planes) for row in range(layout.rows)]
    bare = [f"{layout.row_word} {row}" for _, row in rows]
    longest = max(map(len, bare), default=0)
    named = [f"{name.ljust(longest)}  {_span(layout.chips(*at))}" for name, at in zip(bare, rows, strict=True)]
    digits = max((len(heat.text(chip)) for chip in layout.places), default=1)
    sizes = {"gib": digits + 3, **({"percent": 3} if _has_percents(heat) else {}), "shade": 2}
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


def _span(chips: list[int]) -> str:
    return f"{chips[0]}–{chips[-1]}" if len(chips) > 1 else "".join(map(str, chips))


def _has_percents(heat: Heat) -> bool:
    limits = heat.limits or {}
    return heat.worse != "either" and bool(limits) and all(limits.get(chip) for chip in heat.values)


def _cell(heat: Heat, chip: int, kind: str, digits: int) -> str:
    missing = chip in heat.missing
    mark = " " if missing else _mark(heat, chip)
    shade = _shade(heat, chip)
    if kind == "shade":
        return f"{_MISSING[0] if missing else '·' if shade == ' ' else shade}{mark}"
    if kind == "percent":
        return f"{(_MISSING if missing else _percent(heat, chip)).rjust(2)}{mark}"
    return f"{' ' if missing else shade}{(_MISSING if missing else heat.text(chip)).rjust(digits)}{mark} "


def _percent(heat: Heat, chip: int) -> str:
    value = heat.values.get(chip)
    return "~" if value is None else str(min(99, round(100 * value / (heat.limits or {})[chip])))


def _mark(heat: Heat, chip: int) -> str:
    marks = ((heat.doubled, _DOUBLED), (heat.leaders, _LEADS), (heat.thin, _THIN))
    return next((mark for chips, mark in marks if chip in chips), " ")


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
    unstated = {chip for chip in heat.layout.places if chip not in heat.values} - heat.missing
    marks = (
        (heat.leaders - heat.doubled, f"{_LEADS} {WORST[heat.worse]}"),
        (heat.thin - heat.leaders - heat.doubled, f"{_THIN} less headroom than the lane keeps"),
        (heat.doubled, f"{_DOUBLED} two rows"),
        (heat.missing, f"{_MISSING} no row"),
        (unstated, "~ not stated"),
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
