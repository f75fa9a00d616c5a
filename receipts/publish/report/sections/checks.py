"""The self-check: how often launches that differ in nothing were told apart, lane by lane and over the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from receipts.publish.page import Section, table_of
from receipts.publish.text import UNKNOWN, number, percent, plain

if TYPE_CHECKING:
    from receipts.publish.report.data import LaneWeek
    from receipts.stats.noise import SelfCheck


@dataclass(frozen=True, slots=True)
class SelfCheckResult:
    """Pairs of equal launches, and how many of their intervals exclude the ratio 1.

    About 5 % should, as often faster as slower; `alarm` says that one side is in excess of what chance gives.
    """

    pairs: int
    excluded_one: int
    faster: int
    slower: int
    alarm: bool

    @property
    def share(self) -> float | None:
        """Share of the pairs that were told apart; None without pairs."""
        return self.excluded_one / self.pairs if self.pairs else None


def checked(check: SelfCheck) -> SelfCheckResult:
    """A self-check as a value of the report."""
    return SelfCheckResult(check.pairs, check.excluded_one, check.faster, check.slower, check.alarm)


def _all(lanes: Sequence[LaneWeek]) -> SelfCheck:
    from receipts.stats.noise import SelfCheck, together

    kept = (lane.noise.check for lane in lanes)
    return together(SelfCheck(item.pairs, item.excluded_one, item.faster, item.slower, item.alarm, "") for item in kept)


def section(lanes: Sequence[LaneWeek]) -> Section | str:
    """Noise floors and the self-check in words."""
    intro = (
        "Launches that differ in nothing (A/A pairs) should be told apart once in twenty times, as often faster as "
        "slower. More often shows a floor that is too small, or a machine that drifts. Nothing here is adjusted."
    )
    header = (
        "lane | σ of a launch [%] | declared σ [%] | #equal launches | largest spread [%] | #A/A pairs"
        " | told apart [%] | #faster | #slower | alarm"
    )
    if not any(lane.noise.launches or lane.noise.declared for lane in lanes):
        return "noise floors"
    table = table_of("Noise floors and A/A pairs by lane", header, map(_cells, lanes))
    return Section("checks", "Noise and self-check", sentences=(intro, _sum(lanes)), tables=(table,))


def _sum(lanes: Sequence[LaneWeek]) -> str:
    total = _all(lanes)
    if not total.pairs:
        return "No two groups of equal launches were read: there is nothing to check against."
    return f"Over all lanes: {total.why}."


def _cells(lane: LaneWeek) -> tuple[str, ...]:
    noise, check = lane.noise, lane.noise.check
    counts = (str(check.faster), str(check.slower), "too many on one side" if check.alarm else "none")
    return (
        plain(lane.name),
        percent(noise.sigma, 2),
        percent(noise.declared, 2),
        number(noise.launches),
        percent(noise.largest_spread, 2),
        number(check.pairs),
        percent(check.share),
        *(counts if check.pairs else (UNKNOWN,) * len(counts)),
    )
