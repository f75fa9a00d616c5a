"""# R110 idle_switch

*Why.* A switch that cannot act is read as one that did: sequence parallelism at tensor 1, a graph scope without an
implementation, an FP8 recipe over bf16. Comparisons use its effective value, which is off, and this rule says so. A
switch that could act and was seen not to is judged by R302 or R307.

*Rejected.* `sequence: true` at tensor 1. An FP8 recipe with a compute type of bf16.

*Accepted.* Sequence parallelism at tensor 2. A switch that is typed as off, and is.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.axes.effective import OFF, axis_leaves, effective, in_words, intended
from receipts.axes.switches import OF_STATE
from receipts.judging.rule import NONE, Case, Offense, W, rule

TYPED_OFF = (0, 1, "", "none", "off", "false", "0")
# What a degree says when it acts on nothing: one.
DEGREES = ("parallelism.expert", "parallelism.expert_tensor")


@rule("R110", "idle_switch", W, question=NONE, of_configuration=True)
def idle_switch(case: Case) -> Iterator[Offense]:
    """Each switch that is typed as on and whose effective value is off."""
    acting, effective_values = intended(case.parsed), effective(case.parsed)
    for leaf in axis_leaves():
        value = acting.get(leaf.path)
        if (value != OFF and not (value == 1 and leaf.path in DEGREES)) or leaf.path in OF_STATE:
            continue  # a width is no switch
        typed_at = leaf.path.replace("path.", "path.intended.", 1) if leaf.path.startswith("path.") else leaf.path
        if effective_values.get(leaf.path) != value:
            continue  # evidence shows what was not asked for: compiled regions in place of one graph
        typed = case.get(typed_at)
        if typed is not None and _on(typed):
            yield Offense(
                at=typed_at,
                found=f"{in_words(typed)} is asked for and cannot act",
                expected="a switch that acts, or none",
                do="leave it out, or turn on what it depends on",
            )


def _on(typed: object) -> bool:
    if isinstance(typed, bool | list):
        return bool(typed)
    return (typed.lower() if isinstance(typed, str) else typed) not in TYPED_OFF
