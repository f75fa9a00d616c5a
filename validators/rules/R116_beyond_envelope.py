"""# R116 beyond_envelope

*Why.* One good launch at a larger shape is a peak and no ceiling. What stands beyond everything that the lane
sustained repeatedly may be right, and the next launch may fail.

*Rejected.* A sequence length of 8,192 on eight chips, in a lane that held 4,096 there twice and 8,192 once.

*Accepted.* A shape that two launches of the lane held, on as many chips or fewer. Where no store is asked the place is
`unknown`; whether inside, at, beyond or unknown, `show` always tells it.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.envelope import envelope
from receipts.rule import NONE, Case, Offence, W, rule


@rule("R116", "beyond_envelope", W, question=NONE, facts=True)
def beyond_envelope(case: Case) -> Iterator[Offence]:
    """A shape that no ceiling of the lane holds."""
    if envelope(case) != "beyond":
        return
    yield Offence(
        at="batch.sequence_length",
        found="beyond: {chips} chips, sequence length {length}, micro batch {micro}, depth {depth}".format(
            chips=case.get("hardware.chips"),
            length=case.get("batch.sequence_length"),
            micro=case.get("batch.micro_batch"),
            depth=case.get("model.depth"),
        ),
        expected="a shape that two launches of this lane sustained",
        do="launch it again; a second one that holds makes it a ceiling",
    )
