"""# R307 asked_not_dispatched

*Why.* A switch that does nothing is still written into the table. CUDA graphs were credited for weeks while a scope
without an implementation captured none; `quantization=fp8` left every matmul in bf16, and the log said nothing.

*Rejected.* FP8 asked for and bf16 matmuls seen; a graph implementation named and no graph replayed; recompute asked for
and none applied; overlap asked for and none seen.

*Accepted.* What was asked for was seen, or nothing was asked for. Overlap on one chip has nothing to overlap.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.route import ANYTHING, dtypes, parts
from receipts.rule import ALL, PATH, Case, E, Offence, rule

_DTYPE, _DTYPE_SEEN = "numerics.compute_dtype", "path.witnessed.compute_dtype"
_GRAPHS, _GRAPHS_SEEN = "compile.cuda_graph_implementation", "path.witnessed.cuda_graphs"
_RECOMPUTE, _RECOMPUTE_SEEN = "numerics.recompute", "numerics.recompute_applied"
_OVERLAP, _OVERLAP_SEEN = "path.intended.overlap", "path.witnessed.overlap"
_NARROW = frozenset({"fp8", "fp6", "fp4", "int8"})


def _asked(case: Case, path: str) -> bool:
    value = case.get(path)
    return value is not None and bool(parts(value) - ANYTHING)


def _overlaps(case: Case) -> bool:
    return case.get("hardware.chips") != 1 and _asked(case, _OVERLAP)


def _needs(case: Case) -> Iterator[str]:
    yield from (_DTYPE, _GRAPHS, _RECOMPUTE)
    if dtypes(case.get(_DTYPE) or "") & _NARROW:
        yield _DTYPE_SEEN
    if _asked(case, _GRAPHS):
        yield _GRAPHS_SEEN
    if _asked(case, _RECOMPUTE):
        yield _RECOMPUTE_SEEN
    if _overlaps(case):
        yield _OVERLAP_SEEN
    elif _OVERLAP_SEEN in case.stated and case.get("hardware.chips") != 1:
        yield _OVERLAP


@rule("R307", "asked_not_dispatched", E, question=PATH, taints=(ALL,), needs=_needs, of_configuration=True)
def asked_not_dispatched(case: Case) -> Iterator[Offence]:
    """Switches that were asked for, and that evidence shows not to have acted."""
    lost = (dtypes(case.get(_DTYPE) or "") & _NARROW) - dtypes(case.get(_DTYPE_SEEN) or "")
    if lost and _DTYPE_SEEN in case.stated:
        yield _offence(_DTYPE_SEEN, f"matmuls in {case.get(_DTYPE_SEEN)}", f"{case.get(_DTYPE)}, as asked")
    if _asked(case, _GRAPHS) and case.get(_GRAPHS_SEEN) is False:
        yield _offence(_GRAPHS_SEEN, "no graph was captured and replayed", f"graphs by {case.get(_GRAPHS)}, as asked")
    applied = case.get(_RECOMPUTE_SEEN)
    if _asked(case, _RECOMPUTE) and applied is not None and not parts(applied):
        yield _offence(_RECOMPUTE_SEEN, f"recompute {applied}", f"{case.get(_RECOMPUTE)}, as asked")
    if _overlaps(case) and _OVERLAP_SEEN in case.stated:
        missing = parts(case.get(_OVERLAP)) - ANYTHING - parts(case.get(_OVERLAP_SEEN))
        if missing:
            yield _offence(_OVERLAP_SEEN, f"overlap {case.get(_OVERLAP_SEEN)}", f"{case.get(_OVERLAP)}, as asked")


def _offence(at: str, found: str, expected: str) -> Offence:
    return Offence(
        at=at,
        found=found,
        expected=expected,
        do="find what switched it off, or stop asking for it; the number belongs to what ran",
    )
