"""# R113 not_measured

*Why.* An illustrative output was quoted as a log, and a projected 250,000 tokens/s as a result. Such numbers may be
kept and shown; an effect cannot stand on them.

*Rejected.* Provenance `projected` with tokens per second, step times or bytes: numbers that are offered as evidence.

*Accepted.* Provenance `measured`. A projected configuration without numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import EFFECT, Case, E, Offense, rule

NUMBERS = ("measurement.", "memory.chips", "memory.aggregate", "compile.compile_seconds", "evidence[")
# How a number was to be taken is no number.
MANNER = ("measurement.timer", "measurement.synchronisation", "measurement.region", "measurement.window.")


@rule("R113", "not_measured", E, question=EFFECT)
def not_measured(case: Case) -> Iterator[Offense]:
    """Numbers on a receipt whose provenance is not `measured`."""
    provenance = case.receipt.run.provenance
    if provenance == "measured":
        return
    if any(path.startswith(NUMBERS) and not path.startswith(MANNER) for path in case.stated):
        yield Offense(
            at="run.provenance",
            found=f"{provenance} numbers",
            expected="measured",
            do="run it, and submit the receipt of the run",
        )
