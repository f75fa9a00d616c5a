"""``noise``: how much identical launches vary, by lane and shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from receipts.api.question import WORD, Param, question

if TYPE_CHECKING:
    from receipts.api.answer import Answer
    from receipts.api.session import Session
    from receipts.questions.noise import LaneNoise
    from receipts.stats.noise import SelfCheck

OneLane = Annotated[str | None, Param(WORD, "One lane only.", ("--lane",), "LANE")]


@question("noise", costly=True, forms=("csv",))
def noise(session: Session, *, lane: OneLane = None) -> Answer:
    """Show how much identical launches vary (the noise floor), and check the statistics on them.

    Examples:
      receipts noise
      receipts noise --lane nvidia-megatron --json

    σ is the standard deviation of a launch's log step time, pooled over launches of one configuration. δ is the
    smallest effect that matters: people choose it, and noise does not change it. ~ means that too little is stored.
    Exit codes: 0 a floor was measured, 1 the self-check failed, 2 wrong call, 3 nothing measured yet.
    """
    from receipts.api.answer import Answer
    from receipts.publish.noise import page
    from receipts.questions.noise import survey
    from receipts.stats.noise import combined_checks

    lanes = session.rulebook.lanes
    if lane is not None:
        lanes.get(lane)
    floors = survey(session.store, lanes, lane)
    check = combined_checks([item.check for item in floors])
    alarm = check.alarm or any(item.check.alarm for item in floors)
    classes = [_noise_data(item) for item in floors]
    return Answer(
        {"classes": classes, "self_check": _self_check(check)},
        lambda: page(floors, check),
        1 if alarm else 0 if any(item.floor.sigma is not None for item in floors) else 3,
        rows=classes,
    )


def _noise_data(item: LaneNoise) -> dict[str, Any]:
    """One class as JSON: shape and floor unfolded, what the data do not carry as null."""
    from dataclasses import asdict

    from receipts.publish.noise import missing

    return {
        **asdict(item.shape),
        "stored": item.stored,
        **asdict(item.floor),
        "declared_sigma": item.declared,
        "delta": item.delta,
        "delta_source": item.delta_source,
        "self_check": _self_check(item.check),
        "missing": missing(item),
    }


def _self_check(check: SelfCheck) -> dict[str, Any]:
    return {**check._asdict(), "share": check.share}
