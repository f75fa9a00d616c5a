"""# R308 stranger_witness

*Why.* A profiled launch is slow on purpose, so its path is used and its time is not. That is worth something only if it
ran what the measured launch ran. A profile at half the micro batch once took another attention kernel than the measured
run, whose shape no longer fitted that kernel.

*Rejected.* A witness with another micro batch, another lane, another cuDNN, or other imported code. One that names
itself. Where an axis is not stated on both sides, or the launch that it names is not known here, the question stays
open.

*Accepted.* Equal axes in what was asked for. Host, steps, window, timer, synchronization and the kind of run are not
axes. Neither are switches that only make a run report more (`NVTE_DEBUG`, `TORCH_LOGS`, `XLA_FLAGS.xla_dump_to`). On
the launch that is named, each witness that is not used is shown with the reason, for example that it was not
measured, or that its evidence is below the lane's level. A witness that another actor submitted is used and shown: it
raises no grade, and contradicts nothing."""

from __future__ import annotations

from collections.abc import Iterator

from receipts.axes import in_words
from receipts.judging.rule import ANYWHERE, PATH, Case, E, I, Offense, Topic, W, rule
from receipts.judging.witness import witness_difference
from receipts.receipt.names import WITNESSED

_NAMED = "run.witness_for"
_DO = "profile the configuration that was measured; until then this launch lends nothing"


@rule("R308", "stranger_witness", E, question=PATH, about=Topic.WITNESS, reads_others=ANYWHERE)
def stranger_witness(case: Case) -> Iterator[Offense]:
    """Axes in which a witness differs from the launch that it names; on that launch, witnesses that are not used."""
    if case.get(_NAMED) is not None:
        yield from _as_witness(case)
    for item in case.borrowed.refused:
        yield Offense(
            at=WITNESSED,
            found=f"witness {item.witness.id[:12]} ({item.witness.name}) is not used: {item.why}",
            expected="a measured launch of the same configuration, with evidence of the lane's level",
            do="profile this configuration in a launch that names this one in run.witness_for",
            level=W,
        )
    for other in case.borrowed.strangers:
        yield Offense(
            at=WITNESSED,
            found=f"witness {other.id[:12]} ({other.name}) was submitted by another actor than this launch",
            expected="a witness from whoever submitted the launch: this one raises no grade and contradicts nothing",
            do="have the launch and its profile submitted by one token or user",
            level=W,
        )


def _as_witness(case: Case) -> Iterator[Offense]:
    own, named = case.launch.parsed, case.get(_NAMED)
    if named in (own.id, own.receipt.run.launch):
        yield _offense(_NAMED, "it names itself", "another launch")
        return
    other = case.witnessed
    if other is None:
        yield Offense(
            at=_NAMED,
            found=f"launch {named} is not known here",
            expected="the receipt of the launch that it witnesses",
            do="give that receipt too, or name the store that holds it with --store",
            level=I,
        )
        return
    difference = witness_difference(own, other, case.lane, case.facts.varied if case.facts is not None else {})
    for change in difference.changed:
        for member in change.members:
            there = f"{in_words(member.b)}, as in {other.id[:12]} ({other.name})"
            yield _offense(_intended_path(member.path), in_words(member.a), there)
    for gap in difference.unknown:
        yield Offense(
            at=_intended_path(gap.members[0].path),
            found=f"{gap.axis} is not stated on {_sides(gap.missing)}",
            expected="every axis as in the launch that it witnesses",
            do=f"state {gap.axis}, or the same run.context on both, which holds settings that neither states",
            level=I,
            unjudged=True,
        )


def _intended_path(path: str) -> str:
    """Where the receipt states what was asked for of an axis of the path."""
    return path.replace("path.", "path.intended.", 1) if path.startswith("path.") else path


def _sides(missing: str) -> str:
    return {"a": "this witness", "b": "the launch that it names"}.get(missing, "either side")


def _offense(at: str, found: str, expected: str) -> Offense:
    return Offense(at=at, found=found, expected=expected, do=_DO)
