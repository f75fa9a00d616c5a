"""# R413 late_retry

*Why.* Stepping down is a search for a shape that starts; it ends when the first step after step 0 has compiled. A run
that shrinks itself later measures two configurations and reports them as one, and nothing stops it from shrinking
further.

*Rejected.* An attempt after a failure in `steady`; an attempt after a compile at step 500, which is not startup any
more.

*Accepted.* Attempts after a failure at startup, in the first compile, or in the compile window behind step 0 (step 1
at the latest, counted from where the launch began). A failure in `steady` that ends in `stop`: the frontier is
recorded. Where nothing says when it failed the question stays open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from receipts.judging.rule import NONE, Case, E, I, Offense, failed, rule

LAST_STEP = 1  # the first step behind step 0
_PHASE, _STEP = "failure.phase", "failure.step"


def needs(case: Case) -> Iterable[str]:
    """When it failed, where something was tried afterward."""
    if _tried(case):
        yield _PHASE


@rule("R413", "late_retry", E, question=NONE, needs=needs, applies=failed)
def late_retry(case: Case) -> Iterator[Offense]:
    """The phase and the step of the failure, where attempts followed it."""
    tried = _tried(case)
    if not tried:
        return
    phase, step = case.get(_PHASE), case.get(_STEP)
    later = step is not None and step - (case.get("run.start_step") or 0) > LAST_STEP
    if phase == "unknown" and not later:
        yield _offense(_PHASE, "unknown", f"{tried} after it", unjudged=True)
    elif phase == "steady":
        yield _offense(_PHASE, f"steady{f', step {step}' if step is not None else ''}", f"{tried} after it")
    elif later:
        yield _offense(_STEP, f"step {step}", f"{tried} after it")


def _offense(at: str, found: str, tried: str, *, unjudged: bool = False) -> Offense:
    return Offense(
        at=at,
        found=f"{found}, and {tried}",
        expected="attempts at start-up or in the first compile window behind step 0 alone",
        do="stop and record the frontier, and launch the smaller shape as a launch of its own",
        level=I if unjudged else None,
        unjudged=unjudged,
    )


def _tried(case: Case) -> str:
    """What was tried after the failure, `stop` apart, which tries nothing."""
    failure = case.receipt.failure
    return ", ".join(item.rung for item in (failure.ladder or ()) if item.rung != "stop") if failure is not None else ""
