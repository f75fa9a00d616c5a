"""# R116 beyond_envelope

*Why.* One good launch at a larger shape is a peak, not a ceiling. A launch beyond every shape that the lane sustained
repeatedly may be right, and the next launch at that shape may fail.

*Rejected.* A sequence length of 8,192 on eight chips, in a lane that held 4,096 there twice and 8,192 once.

*Accepted.* A shape that the lane sustained *repeatedly*, by two launches, on as many chips or fewer. Three launches on
two days or two hosts make it *validated*. Launches of another model, accelerator or layout, by their axes and not by
their names, say nothing of it. Where no store is asked the answer is `unknown`. `show` and `compare` always
say which it is (inside, at or beyond the envelope, or unknown), and by which ceiling.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.base.units import counted
from receipts.judging.facts import shape_in_words, shape_standing
from receipts.judging.rule import NONE, Case, Offense, W, rule


@rule("R116", "beyond_envelope", W, question=NONE, facts=True, asks_store=True)
def beyond_envelope(case: Case) -> Iterator[Offense]:
    """A shape that no ceiling of the lane holds."""
    if not case.facts or not case.facts.shapes:
        return
    position = shape_standing(case.facts, case.parsed, key=case.launch.settings.shape)
    if position.word != "beyond" or position.ceiling is None:
        return
    yield Offense(
        at="batch.sequence_length",
        found="beyond: {chips}, sequence length {length}, micro batch {micro}, depth {depth}".format(
            chips=counted(case.get("hardware.chips"), "chip"),
            length=case.get("batch.sequence_length"),
            micro=case.get("batch.micro_batch"),
            depth=case.get("model.depth"),
        ),
        expected=f"a shape that this lane sustained repeatedly; the nearest is {shape_in_words(position.ceiling)}",
        do="launch it again: a second that holds makes a repeated ceiling, a third on another day a validated one",
    )
