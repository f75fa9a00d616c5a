"""# R412 ladder_disorder

*Why.* A compile costs minutes, and whoever changes what is easiest to type pays for many of them. A ladder is walked in
its order, or the receipt says why not, so that the reason of the next failure does not have to be guessed.

*Rejected.* On a lane whose ladder is device batch, sequence length, features, topology, stop: topology first, without a
reason; sequence length, and then the device batch again; a rung that the ladder does not have.

*Accepted.* Device batch twice, then sequence length. A rung that is skipped with its reason: "the first rung that
reduces the active pressure" is one, where weights alone do not fit and no smaller batch would help.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import NONE, Case, E, Offense, failed, rule


@rule("R412", "ladder_disorder", E, question=NONE, applies=failed)
def ladder_disorder(case: Case) -> Iterator[Offense]:
    """Each attempt against the one before it, in the order of the lane's ladder."""
    failure, ladder = case.receipt.failure, case.lane.ladder
    reached = -1
    for number, attempt in enumerate((failure.ladder or ()) if failure is not None else ()):
        at = f"failure.ladder[{number}]"
        if attempt.rung not in ladder:
            yield Offense(f"{at}.rung", attempt.rung, f"one of {', '.join(ladder)}", "name the rung as the lane does")
            continue
        place = ladder.index(attempt.rung)
        if attempt.reason is None and not reached <= place <= reached + 1:
            passed = ", ".join(ladder[reached + 1 : place])
            after = ladder[reached] if reached >= 0 else "the failure"
            yield Offense(
                at=f"{at}.reason",
                found=f"{attempt.rung} after {after}{f', past {passed}' if passed else ''}, without a reason",
                expected=f"{ladder[min(reached + 1, len(ladder) - 1)]}, or a reason",
                do="state why, such as: the first rung that reduces the active pressure",
            )
        reached = place
