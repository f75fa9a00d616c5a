"""# R108 experts_torn

*Why.* An expert lives on one expert-parallel rank, or on whole tensor groups of them. Where experts do not divide,
some ranks hold one more than others, and every step waits for those.

*Rejected.* 16 experts over an expert degree of 6.

*Accepted.* 16 experts over 4. An expert degree of one. An expert degree on a model without experts has no effect, and
R110 shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from receipts.judging.rule import Case, Offense, layout_rule

EXPERT, EXPERTS = "parallelism.expert", "model.experts"


def needs(case: Case) -> Iterable[str]:
    """The expert degree, and the experts where it is above one."""
    yield EXPERT
    if (case.get(EXPERT) or 1) > 1:
        yield EXPERTS


@layout_rule("R108", "experts_torn", needs)
def experts_torn(case: Case) -> Iterator[Offense]:
    """Experts against the expert degree."""
    degree, experts = case.get(EXPERT) or 1, case.get(EXPERTS) or 0
    if experts % degree:
        yield Offense(
            at=EXPERTS,
            found=f"{experts} experts over an expert degree of {degree}",
            expected=f"a multiple of {degree}",
            do="choose an expert degree that divides the experts",
        )
