"""# R412 ladder_disorder

*Why.* Compile windows are dear, and whoever turns the knob that is easiest to type pays for a sequence of bad
instincts. A ladder is walked in its order, or says why not, so that the next failure need not be guessed at.

*Rejected.* On a lane whose ladder is device batch, sequence length, features, topology, stop: topology first, and no
reason; sequence length, and then the device batch again; a rung that the ladder has not.

*Accepted.* Device batch twice, then sequence length. A rung that is skipped with its reason: "the first rung that
reduces the active pressure" is one, where weights alone do not fit and no smaller batch would help.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.rule import NONE, Case, E, Offence, rule


def applies(case: Case) -> bool:
    """Nothing is tried after a launch that ended well."""
    return bool(case.get("run.outcome") != "ok")


@rule("R412", "ladder_disorder", E, question=NONE, applies=applies)
def ladder_disorder(case: Case) -> Iterator[Offence]:
    """Each attempt against the one before it, in the order of the lane's ladder."""
    failure, ladder = case.receipt.failure, case.lane.ladder
    reached = -1
    for number, attempt in enumerate((failure.ladder or ()) if failure is not None else ()):
        at = f"failure.ladder[{number}]"
        if attempt.rung not in ladder:
            yield Offence(f"{at}.rung", attempt.rung, f"one of {', '.join(ladder)}", "name the rung as the lane does")
            continue
        place = ladder.index(attempt.rung)
        if attempt.reason is None and not reached <= place <= reached + 1:
            passed = ", ".join(ladder[reached + 1 : place])
            after = ladder[reached] if reached >= 0 else "the failure"
            yield Offence(
                at=f"{at}.reason",
                found=f"{attempt.rung} after {after}{f', past {passed}' if passed else ''}, without a reason",
                expected=f"{ladder[min(reached + 1, len(ladder) - 1)]}, or a reason",
                do="state why, such as: the first rung that reduces the active pressure",
            )
        reached = place
