"""What ran when: the spans of a trace, as a reader of traces hands them to the plugin that makes an extract of them.

A plugin that offers the service ``spans`` is asked for `EXTRACT`, the name under which the store keeps what it makes,
for ``host_kind(name)``, what a span of the host is to it (empty: nothing), and for ``extract(trace)``, the bytes to
keep. Without such a plugin no span is collected. Times are whole nanoseconds: at today's time a double holds
microseconds to a quarter.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from receipts.base.plugins import services

# Some 50 bytes each; a trace of a gigabyte holds about two million operators.
MAX_SPANS: Final = 4_000_000
_BUCKETS: Final = 4096
_LAST: Final = 1 << 52  # microseconds: a century
_EXACT: Final = 1e9  # microseconds: below it a double holds far less than a nanosecond


class Names:
    """Texts by their numbers, in the order in which they came."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text."""
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return number


@dataclass(slots=True)
class Activities:
    """What one device did, a column each. ``lane`` is a stream or a thread.

    ``chain`` is a number of `SpanTrace.chains`, the operators that launched it; ``launched`` when the host did, or
    -1. ``kind`` is one letter: (k)ernel, memcp(y), mem(s)et, a whole (g)raph, (o)perators of the host, or an operation
    of (x)la, whose chain is what its program says of it.
    """

    begin: array[int] = field(default_factory=lambda: array("q"))
    end: array[int] = field(default_factory=lambda: array("q"))
    lane: array[int] = field(default_factory=lambda: array("q"))
    name: array[int] = field(default_factory=lambda: array("i"))
    chain: array[int] = field(default_factory=lambda: array("i"))
    launched: array[int] = field(default_factory=lambda: array("q"))
    kind: bytearray = field(default_factory=bytearray)

    def add(self, begin: int, end: int, lane: int, name: int, chain: int, launched: int, kind: str) -> None:
        """One more."""
        self.begin.append(begin)
        self.end.append(max(begin, end))
        self.lane.append(lane)
        self.name.append(name)
        self.chain.append(chain)
        self.launched.append(launched)
        self.kind.append(ord(kind))

    def __len__(self) -> int:
        return len(self.begin)


@dataclass(slots=True)
class SpanTrace:
    """The spans of one file. ``marks`` are steps: number, begin and end on the host.

    ``device_marks`` are those of one device; ``tiled`` says that it made them itself, on its own clock. A chain is the
    number of the chain around it (0: none) and a name. ``host`` are spans with what the plugin calls them. ``facts``
    say where, on what, and how it was traced.
    """

    producer: str
    names: Names = field(default_factory=Names)
    chains: list[tuple[int, int]] = field(default_factory=lambda: [(0, -1)])
    devices: dict[str, Activities] = field(default_factory=dict)
    marks: list[tuple[int, int, int]] = field(default_factory=list)
    device_marks: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)
    tiled: bool = False
    host: list[tuple[str, int, int]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    broken: str = ""
    lost: int = 0


@dataclass(frozen=True, slots=True)
class SpanService:
    """What the plugin offers."""

    name: str
    host_kind: Callable[[str], str]
    extract: Callable[[SpanTrace], bytes | None]


def span_service() -> SpanService | None:
    """The plugin that makes extracts of traces; None where none is installed."""
    for module in services("spans"):
        return SpanService(module.EXTRACT, module.host_kind, module.extract)
    return None


def nanoseconds(value: Any) -> int | None:
    """Microseconds, as a number or a text, in whole nanoseconds; None for what is no time."""
    if type(value) is int:
        return value * 1000 if abs(value) < _LAST else None
    if value is None:
        return None
    if type(value) is str:
        whole, _, part = value.partition(".")
        if len(whole) < 20 and whole.isdecimal() and len(part) < 4 and (part.isdecimal() or not part):
            number = int(whole + part.ljust(3, "0"))
            return number if number < _LAST * 1000 else None
    elif type(value) is float and abs(value) < _EXACT:
        number = round(value * 1000)
        if abs(value * 1000 - number) < 0.4:
            return number
    try:
        exact = value if isinstance(value, Decimal) else Decimal(str(value))
        # Half a nanosecond comes from writers that print doubles.
        return round(exact * 1000) if exact.is_finite() and abs(exact) < _LAST else None
    except (InvalidOperation, ValueError):
        return None


def in_order(column: Sequence[int], key: Callable[[int], Any]) -> Iterator[int]:
    """The rows of a column from the least value on, those of one value by ``key``.

    They are laid into buckets first: a list of all rows would take ten times the memory of the column.
    """
    if not column:
        return
    low, high = min(column), max(column)
    width = max(1, -(-(high - low + 1) // min(_BUCKETS, len(column))))
    starts = array("q", bytes(8 * (-(-(high - low + 1) // width) + 1)))
    for value in column:
        starts[(value - low) // width + 1] += 1
    for at in range(1, len(starts)):
        starts[at] += starts[at - 1]
    places, rows = array("q", starts), array("i", bytes(4 * len(column)))
    for row, value in enumerate(column):
        bucket = (value - low) // width
        rows[places[bucket]] = row
        places[bucket] += 1
    for at in range(len(starts) - 1):
        yield from sorted(rows[starts[at] : starts[at + 1]], key=lambda row: (column[row], key(row)))
