"""A heat map of chips in a terminal: within its width, and readable without colour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from receipts.publish.pictures.colours import PAPER, Colour
from receipts.publish.pictures.heat import WORST, Heat

_SHADES: Final = " ░▒▓█"
_FALLEN, _RISEN = "▼", "▲"
_LEADS, _THIN, _DOUBLED = "*", "!", "="
_MISSING: Final = "--"
_PERCENT: Final = "percent of the chip's limit"
_CELLS: Final = {"gib": "GiB a chip", "percent": _PERCENT, "tight": _PERCENT, "shade": "a shade a chip"}
_BETWEEN: Final = 4  # columns between two planes that stand side by side


def lines(heat: Heat, *, width: int, colour: bool) -> list[str]:
    """The map and its legend, no line wider than ``width`` columns; ``colour`` adds a background to each cell."""
    style = _Style(heat, width, colour)
    rows: list[str] = []
    blocks = [_block(heat, plane, style) for plane in range(heat.layout.planes)]
    for band in _beside(blocks, width):
        rows += [line.rstrip() for line in band]
        rows.append("")
    return [*rows, *_joined(_legend(heat, style), width)]


class _Style:
    """What one cell holds, as width allows: GiB, else percent of the limit, else those without a shade, else a shade.

    ``size`` is the width of a cell's text, ``step`` that of the whole cell, ``columns`` how many stand in a line.
    """

    def __init__(self, heat: Heat, width: int, colour: bool) -> None:
        self.colour = colour
        rows = _rows(heat)
        bare = [f"{heat.layout.row_word} {row}" for _, row in rows]
        longest = max(map(len, bare), default=0)
        spans = [_span(heat.layout.chips(plane, row)) for plane, row in rows]
        named = [f"{name.ljust(longest)}  {span}" for name, span in zip(bare, spans, strict=True)]
        digits = max((len(heat.text(chip)) for chip in heat.layout.places), default=1)
        percent = [("percent", 2, 5), ("tight", 2, 3)] if _percents(heat) else []
        kinds = [("gib", digits, digits + 3), *percent, ("shade", 1, 2)]
        choices = [(names, *kind) for kind in kinds for names in (named, bare)]
        choices.sort(key=lambda choice: choice[1] in ("tight", "shade"))  # numbers with a shade before anything else
        self.names, self.kind, self.size, self.step = choices[-1]
        for names, kind, size, step in choices:
            if heat.layout.columns * step + max(map(len, names), default=0) + 2 <= width:
                self.names, self.kind, self.size, self.step = names, kind, size, step
                break
        self.label = max(map(len, self.names), default=0)
        self.columns = max(1, min(heat.layout.columns, (width - self.label - 2) // self.step))


def _rows(heat: Heat) -> list[tuple[int, int]]:
    return [(plane, row) for plane in range(heat.layout.planes) for row in range(heat.layout.rows)]


def _span(chips: Sequence[int]) -> str:
    if not chips:
        return ""
    return f"{chips[0]}–{chips[-1]}" if len(chips) > 1 else str(chips[0])


def _percents(heat: Heat) -> bool:
    limits = heat.limits or {}
    return heat.worse != "either" and bool(limits) and all(limits.get(chip) for chip in heat.values)


def _block(heat: Heat, plane: int, style: _Style) -> list[str]:
    """One plane: a line for each row, folded where a row is wider than the terminal."""
    rows = [f"z {plane}"] if heat.layout.planes > 1 else []
    for row in range(heat.layout.rows):
        chips = heat.layout.chips(plane, row)
        name = style.names[plane * heat.layout.rows + row]
        for start in range(0, len(chips), style.columns):
            cells = "".join(_cell(heat, chip, style) for chip in chips[start : start + style.columns])
            rows.append(f"{(name if start == 0 else '').ljust(style.label)}  {cells}")
    return rows


def _beside(blocks: Sequence[Sequence[str]], width: int) -> Iterator[list[str]]:
    """Planes side by side, as many as the width holds."""
    size = max(_visible(line) for block in blocks for line in block)
    fit = max(1, (width + _BETWEEN) // (size + _BETWEEN))
    for start in range(0, len(blocks), fit):
        band = blocks[start : start + fit]
        yield [
            (" " * _BETWEEN).join(part + " " * (size - _visible(part)) for part in parts)
            for parts in zip_longest(*band, fillvalue="")
        ]


def _visible(line: str) -> int:
    """Columns that a line takes: what colours it takes none."""
    count, inside = 0, False
    for char in line:
        if char == "\x1b":
            inside = True
        elif inside:
            inside = char != "m"
        else:
            count += 1
    return count


def _cell(heat: Heat, chip: int, style: _Style) -> str:
    mark = " " if chip in heat.missing else _mark(heat, chip)
    colour = heat.colour(chip)
    shade = _MISSING[0] if chip in heat.missing else _shade(heat, chip)
    if style.kind == "shade":
        return _painted(f"{'·' if shade == ' ' else shade}{mark}", colour, style)
    text = _MISSING if chip in heat.missing else heat.text(chip) if style.kind == "gib" else _percent(heat, chip)
    text = text.rjust(style.size)
    if style.kind == "tight":
        return _painted(f"{text}{mark}", colour, style)
    plain = chip in heat.missing or (style.colour and colour is not None)
    return _painted(f"{' ' if plain else shade}{text}{mark}", colour, style) + " "


def _percent(heat: Heat, chip: int) -> str:
    value = heat.values.get(chip)
    if value is None:
        return "~"
    return str(min(99, round(100 * value / (heat.limits or {})[chip])))


def _mark(heat: Heat, chip: int) -> str:
    if chip in heat.doubled:
        return _DOUBLED
    if chip in heat.leaders:
        return _LEADS
    return _THIN if chip in heat.thin else " "


def _shade(heat: Heat, chip: int) -> str:
    share = heat.share(chip)
    if share is None:
        return "~"
    if heat.worse == "either":
        return " " if abs(share) < 0.1 else _RISEN if heat.values[chip] > 0 else _FALLEN
    return _SHADES[min(len(_SHADES) - 1, int(share * len(_SHADES)))]


def _painted(text: str, colour: Colour | None, style: _Style) -> str:
    if not style.colour or colour is None:
        return text
    ink = 231 if colour.ink == PAPER else 16
    return f"\x1b[48;5;{_cube(colour)};38;5;{ink}m{text}\x1b[0m"


def _cube(colour: Colour) -> int:
    """The nearest of the 216 colours that a terminal of 256 has."""
    red, green, blue = (0 if part < 48 else 1 if part < 115 else (part - 35) // 40 for part in colour)
    return 16 + 36 * red + 6 * green + blue


def _legend(heat: Heat, style: _Style) -> Iterator[str]:
    low, high = heat.scale
    first, last = (f"{heat.amount(end)} GiB" for end in ((high, low) if heat.worse == "lower" else (low, high)))
    bar = _bar(heat, style) if style.colour else "▼ fell, ▲ rose" if heat.worse == "either" else _SHADES
    yield f"scale: {first} {bar} {last}"
    yield f"cells: {_CELLS[style.kind]}"
    unstated = {chip for chip in heat.layout.places if chip not in heat.values} - heat.missing
    marks = [
        (heat.leaders - heat.doubled, f"{_LEADS} {WORST[heat.worse]}"),
        (heat.thin - heat.leaders - heat.doubled, f"{_THIN} less headroom than the lane keeps"),
        (heat.doubled, f"{_DOUBLED} two rows"),
        (heat.missing, f"{_MISSING} no row"),
        (unstated, "~ not stated"),
    ]
    yield from (words for chips, words in marks if chips)


def _joined(parts: Iterable[str], width: int) -> list[str]:
    """Parts in as few lines as hold them."""
    rows: list[str] = []
    for part in parts:
        if rows and _visible(rows[-1]) + 3 + _visible(part) <= width:
            rows[-1] += f" · {part}"
        else:
            rows.append(part)
    return rows


def _bar(heat: Heat, style: _Style) -> str:
    shares = [step / 8 for step in range(9)]
    if heat.worse == "either":
        shares = [2 * share - 1 if heat.relief == "down" else 1 - 2 * share for share in shares]
    return "".join(_painted(" ", heat.at(share), style) for share in shares)
