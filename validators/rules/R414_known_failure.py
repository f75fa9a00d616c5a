"""# R414 known_failure

*Why.* A compile of twenty minutes that ends out of memory was paid for once already. This launch paid again: its code,
hardware, model, parallelism, batch and features were those of a launch that had failed.

*Rejected.* A launch whose signature an earlier launch had, and failed with (out of memory, a crash, a hang).

*Accepted.* Another signature; a failure that started later, or was superseded; memory that another process held; a
store that was not asked. Wheels are not part of the signature: a launch under others may be tried on purpose, and
`receipts preflight` tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import NONE, Case, Offense, Topic, W, rule


@rule("R414", "known_failure", W, question=NONE, facts=True, about=Topic.FAILURE, asks_store=True)
def known_failure(case: Case) -> Iterator[Offense]:
    """The newest earlier failure of this signature."""
    earlier = case.facts.failures if case.facts is not None else ()
    if not earlier:
        return
    last = earlier[0]
    kind = " in ".join(item for item in (last.class_ or last.outcome, last.phase) if item)
    times = f", {len(earlier)} launches in all" if len(earlier) > 1 else ""
    yield Offense(
        at="run.launch",
        found=f"{last.id[:12]} of {last.started:%Y-%m-%d} failed with this signature ({kind}){times}",
        expected="a signature that has not failed",
        do="ask before the launch: receipts preflight PLAN --next FILE",
    )
