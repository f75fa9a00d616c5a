"""``receipts noise``: how much equal launches vary, lane by lane, and whether that can be trusted."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from receipts.cli.session import Session
from receipts.cli.verb import Answer, verb

if TYPE_CHECKING:
    from receipts.questions.noise import LaneNoise
    from receipts.stats.noise import SelfCheck


@verb("noise")
@click.option("--lane", metavar="LANE", help="One lane only.")
def command(session: Session, lane: str | None) -> Answer:
    """Show how much identical launches vary (the noise floor), and check the statistics on them.

    Examples:
      receipts noise
      receipts noise --lane nvidia-megatron --json

    σ is the standard deviation of a launch's log step time, pooled over launches of one configuration. δ is the
    smallest effect that matters: people choose it, and noise does not change it. ~ means that too little is stored.
    Exit codes: 0 a floor was measured, 1 the self-check failed, 2 wrong call, 3 nothing measured yet.
    """
    from receipts.publish.noise import page
    from receipts.questions.noise import survey
    from receipts.stats.noise import combined_checks

    lanes = session.rulebook.lanes
    if lane is not None:
        lanes.get(lane)
    floors = survey(session.store, lanes, lane)
    check = combined_checks([item.check for item in floors])
    alarm = check.alarm or any(item.check.alarm for item in floors)
    return Answer(
        lambda: {"classes": [_data(item) for item in floors], "self_check": _check(check)},
        lambda: page(floors, check),
        1 if alarm else 0 if any(item.floor.sigma is not None for item in floors) else 3,
    )


def _data(item: LaneNoise) -> dict[str, Any]:
    """One class as JSON: shape and floor unfolded, what the data do not carry as null."""
    from receipts.publish.noise import missing

    return {
        **asdict(item.shape),
        "stored": item.stored,
        **asdict(item.floor),
        "declared_sigma": item.declared,
        "delta": item.delta,
        "delta_source": item.delta_source,
        "self_check": _check(item.check),
        "missing": missing(item),
    }


def _check(check: SelfCheck) -> dict[str, Any]:
    return {**check._asdict(), "share": check.share}
