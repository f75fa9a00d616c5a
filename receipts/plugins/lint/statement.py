"""What a page states: a number about speed, memory or fit, with its place and what it means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from receipts.stats.rounding import Interval

Kind = Literal["reading", "change", "ratio", "fit"]
# `better` and `worse` say of a rate that it rose, and of a time or of memory that it fell.
Direction = Literal["up", "down", "better", "worse", "equal", "level", "none"]
# What the words before a number leave open: `at least`, `at most`, `up to`. With `about` its rounding is wider.
Bound = Literal["", "least", "most", "reach", "about"]
# Below no change a bound is one above it of the size: `at least −3 %` is at most 3 % down.
MIRRORED: Final[dict[Bound, Bound]] = {"least": "most", "most": "least"}

# A linked number of which the sentence names no metric that a receipt has.
UNNAMED: Final = "unnamed"


@dataclass(frozen=True, slots=True)
class NamedReceipt:
    """A receipt or claim that a page names beside a number.

    ``receipts`` holds one id (a reading) or two (baseline, candidate); ``claim`` is empty unless a claim is named.
    """

    target: str
    receipts: tuple[str, ...] = ()
    claim: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """A number about speed, memory or fit, with what it means and where it stands.

    ``reading`` is a value in ``unit``; ``change`` two values (before, after), or one that was added or saved;
    ``ratio`` a factor (unit ``×``) or a percentage (unit ``%``); ``fit`` says that a shape fits, or does not (its
    value, where it has one, is the shape's number or the limit). ``halves`` are half the last printed digit of each
    value, in the same unit; ``bound`` says which side of the values is open. ``contradiction`` is what the figures
    beside it give instead.

    ``start`` and ``end`` count the characters of the readable text, or of cell ``cell`` of a row. The page fills in the
    rest: ``line`` and ``column`` count from 1, ``order`` names what ranks its MFU (`receipts.plugins.lint.ranking`),
    and ``about`` has the words that name its lane.
    """

    start: int
    end: int
    kind: Kind
    metric: str
    values: tuple[float, ...] = ()
    unit: str = ""
    direction: Direction = "none"
    halves: tuple[float, ...] = field(default=(), repr=False)
    bound: Bound = ""
    contradiction: str = ""
    cell: int = 0
    link: NamedReceipt | None = None
    order: str = ""
    about: str = field(default="", repr=False)
    ignored: str = ""
    text: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """Each value with its rounding, in the printed unit."""
        return tuple(Interval.around(*one) for one in zip(self.values, self.halves, strict=True))

    @property
    def place(self) -> str:
        """``file:line:column``."""
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class PageRemark:
    """A note on the page itself: an ignore without a reason, or a link to no number."""

    file: str
    line: int
    column: int
    text: str
    do: str
