"""# C114 other_program

*Why.* Where equal settings compile to different programs, some axis changed that neither receipt states.

*Rejected.* As open: no axis changed, and `compile.program_digest` differs, as it does where a layer was frozen, a check
compiled in, or a buffer donated. Two programs are no repeats of one configuration, however alike their numbers.

*Accepted.* One axis changed and so did the program; or the digests agree.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import COMPARABLE, I, Offense, PairCase, rule


@rule("C114", "other_program", I, on="pair", question=COMPARABLE)
def other_program(pair: PairCase) -> Iterator[Offense]:
    """Programs that differ although no axis did."""
    a, b = pair.values("compile.program_digest")
    if not pair.difference.changed and a is not None and b is not None and a != b:
        yield Offense(
            at="compile.program_digest",
            found=f"{a[:16]} on A, {b[:16]} on B",
            expected="one program, since no stated axis changed",
            do="look for the setting that the receipts do not carry: environment, autotuning, imported files",
        )
