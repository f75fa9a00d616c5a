"""# R411 vague_failure

*Why.* "Did not fit" is not a frontier. What did not fit, in which phase, at which shape, under which wheels: whoever
reads it later must not pay for the same compile again.

*Rejected.* Outcome `oom` without phase, class, message, shape (micro batch, sequence, depth) or wheels; a run-time
failure that does not say on which chip. Where neither a pattern of blocks nor family `dense` is stated, the question
stays open: attention, Mamba, expert and recurrent blocks press memory in different ways.

*Accepted.* All of it is stated. A compile-time plan has no chip; a host that ran out of memory has none either. Few
messages name their phase: where it is stated as `unknown`, the question is left open.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import COMPARABLE, Case, E, I, Offense, rule
from receipts.judging.verdict import Level

_ABOUT = {
    "failure.phase": "startup, compile, first_window or steady",
    "failure.class": "what kind of failure it was",
    "failure.message": "the message, shortened",
    "batch.micro_batch": "the shape that did not fit",
    "batch.sequence_length": "the shape that did not fit",
    "model.depth": "the shape that did not fit",
}
_ON_A_CHIP = (
    *("program_load", "runtime_alloc", "fragmentation", "oversized_request"),
    *("foreign_process", "outside_allocator", "capacity"),
)


def _out_of_memory(case: Case) -> bool:
    return bool(case.get("run.outcome") == "oom")


@rule("R411", "vague_failure", E, question=COMPARABLE, applies=_out_of_memory)
def vague_failure(case: Case) -> Iterator[Offense]:
    """What a reader of the frontier would miss."""
    for path, expected in _ABOUT.items():
        if case.get(path) is None:
            yield _offense(path, "not stated", expected)
        elif case.get(path) == "unknown":
            yield _offense(path, "unknown", expected, I)
    if case.get("model.pattern") is None and case.get("model.family") != "dense":
        yield _offense("model.pattern", "not stated", "the pattern of blocks, or family dense", I)
    if not any(path.startswith("wheels.") and path != "wheels.complete" for path in case.stated):
        yield _offense("wheels", "not stated", "the lineage under which it did not fit")
    kind = case.get("failure.class")
    if kind == "not_oom":
        yield _offense("failure.class", "not_oom, where the outcome is oom", "a class of memory failure")
    if kind in _ON_A_CHIP and case.get("failure.chip") is None:
        yield _offense("failure.chip", f"{kind} without a chip", "the physical chip that ran out")


def _offense(at: str, found: str, expected: str, level: Level | None = None) -> Offense:
    do = f"state {at}, from the log of the failed launch"
    return Offense(at=at, found=found, expected=expected, do=do, level=level)
