"""Where chips stand on the physical topology, for pictures of them.

A torus is drawn by its coordinates. The runtime numbers chips with the first coordinate fastest: libtpu 0.0.52
(`jax.experimental.topologies`) gives chip ``x + X·(y + Y·z)`` for v6e slices from 2x4 to 16x16 and for v5p slices up to
4x4x4, whatever chips a host has. Elsewhere, and where the shape is not known, a row is a host, whose chips have
consecutive ordinals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Final, NamedTuple

from receipts.metrics.chips.account import MOST_NAMED
from receipts.receipt.accelerators import find_accelerator

_SHAPE: Final = re.compile(r"\d{1,6}(?:\s*[x×*]\s*\d{1,6}){0,2}", re.IGNORECASE)
_ROW: Final = 8  # chips in a row where nothing says how they stand; 16 beyond 64 of them


class ChipPlace(NamedTuple):
    """A plane, a row of it, and a column, each from 0."""

    plane: int
    row: int
    column: int


class ChipLayout(NamedTuple):
    """Places of chips by ordinal, on ``planes`` of ``rows`` by ``columns``; some places may be empty.

    ``row_word`` names a row (``y 0``, ``host 0``), ``says`` is what the picture tells of the arrangement.
    """

    planes: int
    rows: int
    columns: int
    places: Mapping[int, ChipPlace]
    row_word: str
    note: str

    def chips(self, plane: int, row: int) -> list[int]:
        """Ordinals of one row, in the order of columns."""
        row_chips = [(place.column, chip) for chip, place in self.places.items() if place[:2] == (plane, row)]
        return [chip for _, chip in sorted(row_chips)]


def layout(
    chips: Sequence[int],
    *,
    count: int | None = None,
    hosts: int | None = None,
    physical: str | None = None,
    accelerator: str | None = None,
) -> ChipLayout:
    """Places for the ordinals given, of which ``count`` took part; ``physical`` is a shape such as ``4x4x4``.

    A shape that does not hold ``count`` chips, or ordinals that have gaps, are drawn in the order of ordinals.
    """
    named = range(min(count or 0, MOST_NAMED)) if all(chip < (count or 0) for chip in chips) else ()
    ordered = sorted({*chips, *named})
    shape = _shape(physical)
    if len(ordered) == 1:
        return _rows(ordered, 1, "row", "one chip")
    whole = ordered == list(range(len(ordered)))
    if whole and len(shape) > 1 and prod(shape) == len(ordered):
        return _torus(ordered, shape) if _is_torus(accelerator) else _nested(ordered, shape, hosts)
    if hosts and len(ordered) % hosts == 0:
        note = f"a row a host: {hosts} × {len(ordered) // hosts} chips" if hosts > 1 else "one host"
        return _rows(ordered, len(ordered) // hosts, "host", note)
    note = "how chips stand is not stated: rows in the order of their ordinals"
    if len(shape) > 1:
        note = f"the shape {physical} does not hold these {len(ordered)} chips: rows in the order of their ordinals"
    return _rows(ordered, min(len(ordered), _ROW if len(ordered) <= 64 else 2 * _ROW), "row", note)


def _shape(physical: str | None) -> tuple[int, ...]:
    text = (physical or "").strip()
    return tuple(int(part) for part in re.findall(r"\d+", text)) if _SHAPE.fullmatch(text) else ()


def _is_torus(accelerator: str | None) -> bool:
    known = find_accelerator(accelerator)
    return known is not None and "torus" in known.fabric


def _torus(ordered: Sequence[int], shape: Sequence[int]) -> ChipLayout:
    x, y, z = (*shape, 1)[:3]
    places = {chip: ChipPlace(chip // (x * y), chip // x % y, chip % x) for chip in ordered}
    planes = ", a plane for each z" if z > 1 else ""
    return ChipLayout(z, y, x, places, "y", f"{'x'.join(map(str, shape))} torus: x to the right, y down{planes}")


def _nested(ordered: Sequence[int], shape: Sequence[int], hosts: int | None) -> ChipLayout:
    columns = shape[-1]
    rows = len(ordered) // columns
    word = "host" if rows == hosts else "row"
    note = f"a row a host: {rows} × {columns} chips" if word == "host" else f"{'x'.join(map(str, shape))}, row by row"
    return _rows(ordered, columns, word, note)


def _rows(ordered: Sequence[int], columns: int, word: str, note: str) -> ChipLayout:
    # A host of very many chips is folded, or no page would hold it.
    if columns > 2 * _ROW:
        columns, word = 2 * _ROW, "row"
    columns = max(1, columns)
    places = {chip: ChipPlace(0, index // columns, index % columns) for index, chip in enumerate(ordered)}
    return ChipLayout(1, -(-len(ordered) // columns), columns, places, word, note)
