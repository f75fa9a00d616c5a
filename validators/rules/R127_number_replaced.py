"""# R127 number_replaced

*Why.* A launch has one receipt that stands, and a later one may replace it: a trace came, a fact was missing. A faster
number under the same launch is no correction that anybody can check: the launch ran once.

*Rejected.* Shown, and graded `typed` (R316): a receipt that replaces an earlier one of its launch whose steps, memory
or losses it states otherwise, or leaves out.

*Accepted.* A receipt that replaces another and adds evidence, flags or facts; the merged parts of further ranks; files
that the store keeps, read again.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import NONE, Case, Offense, W, rule


@rule("R127", "number_replaced", W, question=NONE)
def number_replaced(case: Case) -> Iterator[Offense]:
    """A measured number that an earlier receipt of the launch had otherwise."""
    if case.renumbered:
        yield Offense(
            at="run.supersedes",
            found=f"it changes {case.renumbered}",
            expected="the numbers of the launch that ran, with what is known better beside them",
            do="compare with launches that were made anew, each with its own run.launch",
        )
