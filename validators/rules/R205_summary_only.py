"""# R205 summary_only

*Why.* A mean over steps that nobody kept cannot be checked for a warm-up, a stall or a trend, and has no spread. Such a
receipt can be stored and shown, but no claim can rest on it.

*Rejected.* 112,152 tokens/s and 2,337 ms a step, and no list of steps.

*Accepted.* The same with every step's duration in order. A failed launch, which carries no rate.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.rule import EFFECT, MFU, RATE, Case, I, Offence, rule


@rule("R205", "summary_only", I, question=EFFECT, taints=(RATE, MFU))
def summary_only(case: Case) -> Iterator[Offence]:
    """No durations on a launch that went well."""
    if case.receipt.run.outcome != "ok" or case.launch.durations:
        return
    leaves = case.parsed.flat.leaves
    stated = [path for path in leaves if path.startswith("measurement.stated.") and not path.endswith("_stated")]
    yield Offence(
        at="measurement.step_durations_seconds",
        found="aggregates alone" if stated else "no step times",
        expected="every step's duration in order",
        do="record the steps; a log that prints each of them will do",
    )
