"""Noise floors and the self-check: how often launches that differ in nothing were told apart, lane by lane."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from receipts.axes.lane import Lane
from receipts.publish.page import Section, table_of
from receipts.publish.report.data import Noise
from receipts.publish.text import UNKNOWN, number, percent, plain

if TYPE_CHECKING:
    from receipts.publish.report.data import LaneWeek
    from receipts.publish.report.neighbours import LaunchGroup


def noise(configurations: Iterable[LaunchGroup], lane: Lane) -> Noise:
    """σ of log step time, pooled over configurations of two and more launches that keep their steps."""
    from receipts.stats.noise import largest_spread, pool, self_check

    groups = []
    for configuration in configurations:
        steps = [item.entry.step_seconds for item in configuration.launches if item.kept_steps]
        values = [value for value in steps if value is not None]
        if len(values) > 1:
            groups.append(values)
    sigma, check = pool(groups), self_check(groups)
    return Noise(
        sigma=sigma.value if sigma else None,
        degrees=sigma.df if sigma else None,
        groups=len(groups),
        launches=sum(map(len, groups)),
        largest_spread=largest_spread(groups),
        check=check,
        declared=lane.sigma,
    )


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
    from receipts.stats.noise import together

    total = together(lane.noise.check for lane in lanes)
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
