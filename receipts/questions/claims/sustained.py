"""What a shape has shown: sustained by how many launches, or out of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from receipts.judging.claim_verdict import Assessment
from receipts.judging.envelope import grade as sustained
from receipts.judging.verdict import Finding, Level, PathAnswer
from receipts.metrics import Launch
from receipts.questions.claims.assess import of_value

if TYPE_CHECKING:
    from receipts.judging.claims.claim import Claim
    from receipts.judging.facts import Facts

_SHAPE = ("hardware.chips", "batch.sequence_length", "batch.micro_batch", "model.depth")


def of_ceiling(
    claim: Claim, launches: Sequence[Launch], about: Sequence[Finding], path: PathAnswer, facts: Facts | None
) -> Assessment:
    """How often the shape was sustained.

    *Validated*: by three launches, on two days or two hosts. *Repeated*: by two launches. *Single*: by one.
    """
    good = [launch for launch in launches if _sustained(launch)]
    shapes = {(launch.settings.shape, *(launch.stated.get(path) for path in _SHAPE)) for launch in launches}
    if len(shapes) > 1:
        return Assessment("open", "the launches ran at different shapes; a ceiling is one shape")
    offense = next((item for item in about if item.level is Level.ERROR and item.taints), None)
    if not good or offense is not None:
        reason = f"{offense.code} {offense.at}: {offense.found}" if offense else launches[0].stated["run.outcome"]
        return Assessment("fails", f"no launch sustained it: {reason}", grade="none")
    runs = [launch.parsed.receipt.run for launch in good]
    days = {run.started.date() for run in runs}
    hosts = {run.host for run in runs if run.host is not None}
    grade = sustained(len(good), len(days), len(hosts)).replace("peak", "single")
    why = f"{grade}: {len(good)} launch{'es' if len(good) > 1 else ''}, {len(days)} days, {len(hosts)} hosts"
    if claim.bound is not None:
        value = of_value(claim, good, about, path, facts)
        if value.state != "holds":
            return Assessment(value.state, f"{why}; {value.why}", value.low, value.high, grade)
        why = f"{why}; {value.why}"
    if grade == "single":
        return Assessment("open", why, grade=grade)
    if path != "witnessed":
        return Assessment("open", f"{why}; path {path}", grade=grade)
    return Assessment("holds", why, grade=grade)


def _sustained(launch: Launch) -> bool:
    run = launch.parsed.receipt.run
    return run.outcome == "ok" and run.kind == "training" and run.provenance == "measured" and bool(launch.durations)


def of_misfit(launches: Sequence[Launch], facts: Facts | None) -> Assessment:
    """What does not fit: an out-of-memory receipt at that shape, and nothing of that size or larger that fitted."""
    fitted = [launch for launch in launches if launch.stated["run.outcome"] == "ok"]
    if fitted:
        return Assessment("fails", f"{fitted[0].parsed.name} ended well: it fits")
    ran_out = [launch for launch in launches if launch.stated["run.outcome"] == "oom"]
    if not ran_out:
        return Assessment("open", f"the launch ended {launches[0].stated['run.outcome']}, and not out of memory")
    if facts is None:
        return Assessment("open", "no store was asked whether something of that shape fitted")
    shape: list[Any] = [ran_out[0].stated.get(path) for path in _SHAPE]
    if None in shape:
        missing = ", ".join(path for path, value in zip(_SHAPE, shape, strict=True) if value is None)
        return Assessment("open", f"its shape is not stated: {missing}")
    for other in (item for item in facts.shapes if item.is_of(ran_out[0].settings.shape)):
        if other.chips is None or other.sequence_length is None or other.micro_batch is None or other.depth is None:
            continue
        theirs = (other.sequence_length, other.micro_batch, other.depth)
        larger = all(size >= int(mine) for size, mine in zip(theirs, shape[1:], strict=True))
        if larger and other.chips <= int(shape[0]):
            launched = f"sequence {theirs[0]:,}, micro batch {theirs[1]}, depth {theirs[2]} on {other.chips} chips"
            return Assessment("fails", f"{other.launches} launches fitted at {launched}")
    if any(launch.parsed.receipt.run.provenance != "measured" for launch in ran_out):
        return Assessment("open", "the failure is quoted and not measured")
    return Assessment("holds", f"{len(ran_out)} out-of-memory launches at that shape, and nothing that fitted")
