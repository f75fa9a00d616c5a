"""# K107 unreceipted

*Why.* A figure is written once in a note, and then it lives on in a README, a plan, a changelog and an article, after
the note took it back. A number that names its receipt is checked wherever it is quoted; one that does not is a rumour.

*Rejected.* "Fused heads give +13.3 % tok/s" with nothing that says which two launches were compared.

*Accepted.* `[+13.3 % tok/s](receipt:81aa..3f9c)`, `[289 TFLOP/s](receipt:3f9c)`, `[twice as fast](claim:fused-heads)`;
or a statement below `<!-- receipts: ignore quoted from the vendor's page -->`, with the reason why it needs none.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import NONE, Offense, StatementCase, W, rule


@rule("K107", "unreceipted", W, on="statement", question=NONE)
def unreceipted(case: StatementCase) -> Iterator[Offense]:
    """A statement with neither receipt, claim, nor a reason to have none."""
    if case.receipts or case.claim or case.ignored:
        return
    yield Offense(
        at=case.place,
        found=f"“{case.text}” links to no receipt",
        expected="a link to the receipts that it was taken from",
        do=f"write [{case.text}](receipt:ID), or (receipt:BASELINE..CANDIDATE) for a difference",
    )
