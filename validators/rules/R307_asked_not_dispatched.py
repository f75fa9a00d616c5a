"""# R307 asked_not_dispatched

*Why.* A switch that does nothing is still written into the table. CUDA graphs were credited for weeks while a scope
without an implementation captured none; `quantization=fp8` left every matmul in bf16, and the log said nothing.

*Rejected.* FP8 asked for and bf16 matmuls seen; a graph implementation named and no graph replayed; recompute asked for
and none applied; overlap asked for and none seen.

Where kernels of their own show one of several overlaps (Transformer Engine's for tensor parallelism), nobody looked for
the others: the question is open. A path counter below its expected number of calls, or above an expected number of
zero, leaves the question open: the launch contradicts its own witness. Counters are optional.

*Accepted.* What was asked for was seen, by whatever name (`ub_tp_comm_overlap` is `tp_comm`), or nothing was asked for.
Overlap on one chip has nothing to overlap with. A launch that failed is expected to have counted only as far as it
came.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import ALL, PATH, Case, E, I, Offense, W, rule
from receipts.judging.verdict import Level
from receipts.receipt.document import UNFAILED
from receipts.receipt.names import ANYTHING, OVERLAPS_OF_KERNELS, dtypes, parts

_DTYPE, _DTYPE_SEEN = "numerics.compute_dtype", "path.witnessed.compute_dtype"
_GRAPHS, _GRAPHS_SEEN = "compile.cuda_graph_implementation", "path.witnessed.cuda_graphs"
_RECOMPUTE, _RECOMPUTE_SEEN = "numerics.recompute", "numerics.recompute_applied"
_OVERLAP, _OVERLAP_SEEN = "path.intended.overlap", "path.witnessed.overlap"
_CHIPS = "hardware.chips"
_NARROW = frozenset({"fp8", "fp6", "fp4", "int8"})


def _is_requested(case: Case, path: str) -> bool:
    value = case.get(path)
    return value is not None and bool(parts(value) - ANYTHING)


def _overlaps(case: Case) -> bool:
    return _several(case) and _is_requested(case, _OVERLAP)


def _several(case: Case) -> bool:
    return (case.get(_CHIPS) or 1) > 1


def _needs(case: Case) -> Iterator[str]:
    yield from (_DTYPE, _GRAPHS, _RECOMPUTE)
    if dtypes(case.get(_DTYPE) or "") & _NARROW:
        yield _DTYPE_SEEN
    if _is_requested(case, _GRAPHS):
        yield _GRAPHS_SEEN
    if _is_requested(case, _RECOMPUTE):
        yield _RECOMPUTE_SEEN
    if _is_requested(case, _OVERLAP):
        yield _CHIPS
    if _overlaps(case):
        yield _OVERLAP_SEEN
    elif _OVERLAP_SEEN in case.stated and case.get(_CHIPS) != 1:
        yield _OVERLAP


@rule("R307", "asked_not_dispatched", E, question=PATH, taints=(ALL,), needs=_needs)
def asked_not_dispatched(case: Case) -> Iterator[Offense]:
    """Requested switches that evidence shows to have had no effect."""
    lost = (dtypes(case.get(_DTYPE) or "") & _NARROW) - dtypes(case.get(_DTYPE_SEEN) or "")
    if lost and _DTYPE_SEEN in case.stated:
        yield _offense(_DTYPE_SEEN, f"matmuls in {case.get(_DTYPE_SEEN)}", f"{case.get(_DTYPE)}, as asked")
    if _is_requested(case, _GRAPHS) and case.get(_GRAPHS_SEEN) is False:
        yield _offense(_GRAPHS_SEEN, "no graph was captured and replayed", f"graphs by {case.get(_GRAPHS)}, as asked")
    applied = case.get(_RECOMPUTE_SEEN)
    if _is_requested(case, _RECOMPUTE) and applied is not None and parts(applied) and _computed_once(case):
        yield _offense(_RECOMPUTE_SEEN, f"{applied}, and a trace whose backward pass computes nothing again", applied)
    if _is_requested(case, _RECOMPUTE) and applied is not None and not parts(applied):
        yield _offense(_RECOMPUTE_SEEN, f"recompute {applied}", f"{case.get(_RECOMPUTE)}, as asked")
    if _overlaps(case) and _OVERLAP_SEEN in case.stated:
        open_question = I if case.lane.prints(_OVERLAP_SEEN) else W
        yield from _overlap(parts(case.get(_OVERLAP)) - ANYTHING, parts(case.get(_OVERLAP_SEEN)), open_question)
    yield from _counters(case)


def _computed_once(case: Case) -> bool:
    """Whether traces that were read show no recomputation, and none shows any; another stage's layers may have it."""
    if (case.get("parallelism.pipeline") or 1) > 1:
        return False
    counts = [row.observed or {} for row in case.receipt.evidence or ()]
    return any(row.get("recompute.none") for row in counts) and not any(
        row.get("recompute.checkpoint") for row in counts
    )


def _overlap(asked: frozenset[str], seen: frozenset[str], unseen: Level) -> Iterator[Offense]:
    if missing := asked - seen:
        found = f"overlap {'+'.join(sorted(seen)) or 'none'}, and no {', '.join(sorted(missing))}"
        offense = _offense(_OVERLAP_SEEN, found, f"{'+'.join(sorted(asked))}, as asked")
        looked_for = not seen or not seen <= OVERLAPS_OF_KERNELS or missing & OVERLAPS_OF_KERNELS
        yield (offense if looked_for else offense._replace(level=unseen, do="show the other overlap, too"))


def _counters(case: Case) -> Iterator[Offense]:
    """Open and no error: a receipt without its counters would be accepted."""
    measurement = case.receipt.measurement
    for index, counter in enumerate((measurement.path_counters or ()) if measurement else ()):
        wanted, count = counter.expected, counter.count
        too_few = wanted is not None and count < wanted and case.receipt.run.outcome in UNFAILED
        if too_few or (wanted == 0 and count > 0):
            yield Offense(
                at=f"measurement.path_counters[{index}].count",
                found=f"{counter.name} counted {count:,}",
                expected=f"{wanted:,}{_of(counter.steps, counter.layers)}",
                do="find which calls took another route, and correct path.witnessed or the count that is expected",
                level=I,
            )


def _of(steps: int | None, layers: int | None) -> str:
    return f": {steps:,} steps × {layers:,} layers" if steps is not None and layers is not None else ""


def _offense(at: str, found: str, expected: str) -> Offense:
    return Offense(
        at=at,
        found=found,
        expected=expected,
        do="find what switched it off, or stop requesting it; the number belongs to the path that ran",
    )
