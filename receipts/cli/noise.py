"""``receipts noise``: how far equal launches lie apart, lane by lane, and whether that can be trusted."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from receipts.cli import output
from receipts.cli.session import Session, pass_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from receipts.questions.noise import LaneNoise
    from receipts.stats.noise import SelfCheck

EPILOG = """\b
Examples:
  receipts noise
  receipts noise --lane nvidia-megatron --json

σ is the standard deviation of a launch's log step time, pooled over launches of one configuration. δ is the smallest
effect that matters: people choose it, and noise does not change it. ~ means that too little is stored. Exit codes: 0 a
floor was measured, 1 the self-check failed, 2 wrong call, 3 nothing measured yet."""


@click.command("noise", epilog=EPILOG)
@click.option("--lane", metavar="LANE", help="One lane only.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_session
def command(session: Session, lane: str | None, as_json: bool) -> int:
    """Show how much identical launches vary (the noise floor), and check the statistics on them."""
    from receipts.questions.noise import survey
    from receipts.stats.noise import together

    lanes = session.rulebook.lanes
    if lane is not None:
        lanes.get(lane)
    with session.open_store() as store:
        floors = survey(store, lanes, lane)
    check = together([item.check for item in floors])
    if as_json:
        output.as_json({"classes": [_data(item) for item in floors], "self_check": _check(check)})
    else:
        print_noise(floors, check)
    if check.alarm or any(item.check.alarm for item in floors):
        return 1
    return 0 if any(item.floor.sigma is not None for item in floors) else 3


def _data(item: LaneNoise) -> dict[str, Any]:
    """One class as JSON: shape and floor unfolded, what the data do not carry as null."""
    return {
        **asdict(item.shape),
        "stored": item.stored,
        **asdict(item.floor),
        "declared_sigma": item.declared,
        "delta": item.delta,
        "delta_source": item.delta_source,
        "self_check": _check(item.check),
        "missing": _missing(item),
    }


def _check(check: SelfCheck) -> dict[str, Any]:
    return {**check._asdict(), "share": check.share}


def print_noise(lanes: Sequence[LaneNoise], check: SelfCheck) -> None:
    """The floors as a table, what is missing from them, and the self-check."""
    from receipts.publish import tables

    output.heading("Noise floor")
    output.lines(output.terminal().table(tables.noise(lanes)))
    for item in lanes:
        missing = _missing(item)
        if missing:
            output.wrapped(f"{_name(item)}: {missing}", 2, 4)
    output.heading("Self-check")
    for item in lanes:
        if item.check.pairs:
            output.wrapped(f"{_name(item)}: {item.check.why}", 2, 4)
    output.wrapped(_verdict(check))


def _verdict(check: SelfCheck) -> str:
    if check.share is None:
        return f"not checked yet: {check.why}"
    state = "ALARM" if check.alarm else "no alarm"
    return f"all together: {check.why}: {check.share:.1%}, where 5 % are expected, as often faster as slower; {state}"


def _chips(count: int | None) -> str:
    return "1 chip" if count == 1 else f"{_count(count)} chips"


def _count(value: int | None) -> str:
    return "not stated" if value is None else str(value)


def _name(item: LaneNoise) -> str:
    shape = item.shape
    parts = (shape.lane, shape.accelerator, _chips(shape.chips), f"sequence {_count(shape.sequence_length)}")
    return " · ".join(part for part in parts if part)


def _missing(item: LaneNoise) -> str | None:
    """What would give the number that is not there; None where it is."""
    if item.floor.sigma is not None:
        return None
    if item.floor.launches:
        return "equal launches agree to the last digit: a finer clock, or launches that are no copies, would show σ"
    launches = "1 launch" if item.stored == 1 else f"{item.stored} launches"
    return f"{launches}, none of them repeated: run one configuration twice, with every axis stated, to show σ"
