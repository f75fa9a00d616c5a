"""# R125 recompute_hidden

*Why.* Recomputation costs a third of the arithmetic and saves most of the activations. A receipt that says `none` while
its own trace computes the forward pass twice explains a slow step by something else, and a small peak by nothing at
all. It is the mirror of R307: there a switch was asked for and did nothing, here one that is stated off did something.

*Rejected.* `numerics.recompute: none`, and the backward pass of the launch, or of its witness, computes parts of the
forward pass again. `path.intended.overlap: none` on several chips, and communication that was overlapped.

*Accepted.* Evidence shows none, or nobody looked. Recomputation that is stated, by whatever policy, and was seen: a
trace shows that checkpoints ran and not by which policy. A trace that was read counts whatever is stated beside it. A
launch with CUDA graphs, whose trace shows no operators to tell by. R302 judges graphs and number types that are stated
off and were seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.axes.effective import OFF, canonical
from receipts.judging.rule import ALL, PATH, Case, E, I, Offense, rule
from receipts.receipt.names import parts

# What is stated, what evidence shows of it, and what to call it.
_HIDDEN = (
    ("numerics.recompute", "numerics.recompute_applied", "recomputation"),
    ("path.intended.overlap", "path.witnessed.overlap", "overlap"),
)


# What a trace counts where its backward pass computes parts of the forward pass again.
_COUNTED = "recompute.checkpoint"


def _seen(case: Case) -> Iterator[tuple[str, str, str]]:
    for stated, seen, name in _HIDDEN:
        if case.get(seen) is not None and parts(case.get(seen)):
            yield stated, seen, name
        elif name == "recomputation" and _traced(case) is not None:
            yield stated, str(_traced(case)), name


def _traced(case: Case) -> str | None:
    """The place of a trace that shows recomputation."""
    rows = enumerate(case.receipt.evidence or ())
    shown = (at for at, row in rows if (row.observed or {}).get(_COUNTED))
    return next((f"evidence[{at}].observed.{_COUNTED}" for at in shown), None)


def _needs(case: Case) -> Iterator[str]:
    yield from (stated for stated, _, _ in _seen(case))


@rule("R125", "recompute_hidden", E, question=PATH, taints=(ALL,), needs=_needs)
def recompute_hidden(case: Case) -> Iterator[Offense]:
    """Switches that the receipt states off, and that evidence shows on."""
    for stated, seen, name in _seen(case):
        if _off(case, stated):
            yield Offense(
                at=seen,
                found=f"{name} {case.get(seen)}" if case.get(seen) != 1 else f"{name}, which the trace shows",
                expected=f"{case.get(stated)}, as {stated} says",
                do=f"state the {name} that ran, or find what turned it on; the number belongs to what ran",
            )
    for refused in case.borrowed.refused:
        for stated, seen, name in _HIDDEN:
            shown = refused.witness.stated.get(seen)
            if case.get(seen) is None and shown is not None and parts(shown) and _off(case, stated):
                yield Offense(
                    at=seen,
                    found=f"{refused.witness.id[:12]} saw {name} {shown}, and witnesses nothing: {refused.why}",
                    expected=f"{case.get(stated)}, as {stated} says, or a witness of this configuration",
                    do="state what the witness states, so that it counts, or witness the launch again",
                    level=I,
                    unjudged=True,
                )


def _off(case: Case, stated: str) -> bool:
    return case.get(stated) is not None and canonical(case.get(stated)) == OFF
