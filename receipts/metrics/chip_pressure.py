"""Whether memory pressure fell, or moved to another chip: B against A, chip by chip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from receipts.metrics.chips import PHASES, Account
from receipts.stats.distributions import median

Kind = Literal["fell", "moved", "rose", "same", "unknown"]
Figure = Literal["used", "peak", "pool"]
Source = Literal["exact", "store", "launches", "assumed"]
ASSUMED: Final = 0.01  # the smallest effect that matters, where no two equal launches show how far chips lie apart


class Margin(NamedTuple):
    """The share by which a chip's figure must change to have changed.

    It is the largest difference of one chip's figure between equal launches: of the store's A/A pairs (``exact`` where
    they always agree), of the launches compared, whichever is larger; ``assumed`` where there are none.
    """

    share: float
    source: Source

    def below(self, one: float, other: float) -> bool:
        """Whether one figure is below another by more than this share of the larger."""
        return other - one > self.share * other * (1 + 1e-9)  # the pair that gave the share does not change

    def __str__(self) -> str:
        words = {
            "exact": "any change counts, as equal launches of this lane agree to the byte",
            "store": f"what counts is more than {self.share:.2%}, by which equal launches differ on a chip",
            "launches": f"what counts is more than {self.share:.2%}, by which launches of one side differ on a chip",
            "assumed": f"what counts is more than {self.share:.0%}, as no two equal launches show how far chips differ",
        }
        return words[self.source]


class Pressure(NamedTuple):
    """What became of the highest figure. ``a`` and ``b`` are each chip's, in bytes, over ``phases``.

    ``fell`` and ``rose``: the highest figure of all chips did, by more than the margin. ``moved``: another chip leads,
    the old leader fell and the new one rose, each by more than the margin; where the highest figure fell as well, it
    fell by less than the old leader was relieved. ``same``: neither. ``unknown``: ``why`` says what is missing.
    """

    kind: Kind
    metric: Figure
    why: str
    margin: Margin
    phases: tuple[str, ...] = ()
    a: Mapping[int, float] = {}
    b: Mapping[int, float] = {}
    leaders_a: tuple[int, ...] = ()
    leaders_b: tuple[int, ...] = ()

    @property
    def relieved(self) -> int | None:
        """The old leader of a move."""
        return self.leaders_a[0] if self.kind == "moved" else None

    @property
    def burdened(self) -> int | None:
        """The new leader of a move."""
        return self.leaders_b[0] if self.kind == "moved" else None

    @property
    def highest(self) -> tuple[float, float]:
        """The highest figure of A and of B, in bytes. Raises ValueError if it is unknown."""
        return max(self.a.values()), max(self.b.values())


def pressure(
    a: Sequence[Account],
    b: Sequence[Account],
    *,
    metric: Figure = "peak",
    phase: str | None = None,
    spread: float | None = None,
) -> Pressure:
    """What became of the highest figure of launches of A in launches of B; of several launches, each chip's median.

    ``phase`` looks at one phase, else at all that every launch states. ``spread`` is the largest difference of one
    chip's figure between equal launches that the store has shown, as a share; None if it has shown none.
    """
    wanted = [
        name
        for name in PHASES
        if phase in (None, name)
        and all((row := one.get(name)) is not None and row.ranking(metric) is not None for one in (*a, *b))
    ]
    rows_a, rows_b = ([one.by_chip(metric, wanted) for one in side] for side in (a, b))
    margin = _margin((rows_a, rows_b), spread)
    why = _unknown(a, b, wanted, (*rows_a, *rows_b), phase)
    if why:
        return Pressure("unknown", metric, why, margin, tuple(wanted))
    one, other = middle(rows_a), middle(rows_b)
    leaders_a, leaders_b = _leaders(one), _leaders(other)
    same = Pressure("same", metric, "", margin, tuple(wanted), one, other, leaders_a, leaders_b)
    for old in leaders_a:
        for new in (chip for chip in leaders_b if chip not in leaders_a):
            if margin.below(other[old], one[old]) and margin.below(one[new], other[new]):
                return same._replace(kind="moved", leaders_a=_first(old, leaders_a), leaders_b=_first(new, leaders_b))
    before, after = same.highest
    if margin.below(after, before):
        return same._replace(kind="fell")
    return same._replace(kind="rose") if margin.below(before, after) else same


def _unknown(
    a: Sequence[Account],
    b: Sequence[Account],
    wanted: Sequence[str],
    rows: Sequence[Mapping[int, int]],
    phase: str | None,
) -> str:
    """Why nothing can be said; empty if something can."""
    for side, accounts in (("A", a), ("B", b)):
        if not all(accounts):
            return f"{side} has no row a chip"
    if not wanted:
        return f"phase {phase} is not on both sides" if phase else "no phase is on both sides"
    for side, accounts in (("A", a), ("B", b)):
        for one in accounts:
            torn = next(
                (ranking for name in wanted if (ranking := one.get(name)) is not None and not ranking.whole), None
            )
            if torn is not None:
                return f"{side} lacks a chip, or has one twice, in phase {torn.name}"
    if len({frozenset(row) for row in rows}) > 1:
        return "the sides have different chips"
    return ""


def _margin(sides: Sequence[Sequence[Mapping[int, int]]], spread: float | None) -> Margin:
    own = largest_difference(sides)
    if own is None and spread is None:
        return Margin(ASSUMED, "assumed")
    if spread is not None and spread >= (own or 0.0):
        return Margin(spread, "exact" if spread == 0.0 else "store")
    return Margin(own or 0.0, "launches")


def largest_difference(groups: Sequence[Sequence[Mapping[int, int]]]) -> float | None:
    """The largest difference of one chip's figure between launches of one group, as a share of the larger.

    Each launch is a map from chip to bytes. None if no group has two launches with one and the same chips.
    """
    shares = [
        (max(values) - min(values)) / max(values) if max(values) > 0 else 0.0
        for group in groups
        if len(group) > 1 and len({frozenset(row) for row in group}) == 1
        for chip in group[0]
        for values in [[row[chip] for row in group]]
    ]
    return max(shares, default=None)


def middle(rows: Sequence[Mapping[int, int]]) -> dict[int, float]:
    """Each chip's median over launches, in bytes; of chips that all of them have."""
    return {chip: median([float(row[chip]) for row in rows]) for chip in rows[0] if all(chip in row for row in rows)}


def _leaders(values: Mapping[int, float]) -> tuple[int, ...]:
    highest = max(values.values())
    return tuple(chip for chip, value in values.items() if value == highest)


def _first(chip: int, leaders: Sequence[int]) -> tuple[int, ...]:
    return (chip, *(other for other in leaders if other != chip))


def pressure_json(result: Pressure) -> dict[str, Any]:
    """It as JSON values, amounts in bytes."""
    return {
        "pressure": result.kind,
        "why": result.why,
        "metric": result.metric,
        "phases": list(result.phases),
        "leaders_a": list(result.leaders_a),
        "leaders_b": list(result.leaders_b),
        "highest_a_bytes": result.highest[0] if result.a else None,
        "highest_b_bytes": result.highest[1] if result.b else None,
        "margin": result.margin.share,
        "margin_source": result.margin.source,
        "chips": [{"chip": chip, "a_bytes": result.a[chip], "b_bytes": result.b[chip]} for chip in result.a],
    }
