"""# R301 unwitnessed_path

*Why.* Arguments say what was asked for. A fused-attention lane ran unfused for a week because another cuDNN came first
on the loader's path, and neither throughput nor memory showed it at a short sequence.

*Rejected.* On a lane that wants evidence of level `kernels`: an argument dump and nothing else. A witnessed path that
leaves out the attention. Evidence without the digest of its file. Evidence that observed CUDA graphs, of which
`path.witnessed` says nothing, where the receipt says who was to capture them. The lane `unlisted`, on which no path can
be witnessed.

*Accepted.* Every leaf that the lane's `witness` names is in `path.witnessed`, and some evidence of the lane's level has
the digest of the file that it was read from. What a witness launch saw counts as well, if R308 accepts that witness. As
W: a launch that failed before its first window closed has no path to show.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import ALL, PATH, Case, I, Offense, Topic, W, rule
from receipts.judging.verdict import NOTHING
from receipts.judging.witness import LEVELS, level
from receipts.receipt.names import WITNESSED

_GRAPHS = "cuda_graphs"


@rule("R301", "unwitnessed_path", I, question=PATH, taints=(ALL,), about=Topic.EVIDENCE)
def unwitnessed_path(case: Case) -> Iterator[Offense]:
    """Leaves that the lane wants seen and nobody saw, and evidence below the lane's level."""
    if case.lane.never_witnessed:
        yield Offense(
            at="run.lane",
            found=f"lane {case.get('run.lane')}, judged as {case.lane.name}",
            expected="a lane that says what its path is and what shows it",
            do="name a declared lane (see: receipts lanes), or declare this one in a lane file",
        )
        return
    excuse = case.excuse(WITNESSED)
    missing = [name for name in (*case.lane.witness, *_observed(case)) if not _seen(case, name)]
    best = level(case.parsed)
    low = LEVELS.index(best) < LEVELS.index(case.lane.evidence)
    if excuse and (missing or low):
        found = f"nothing shows {', '.join(missing) or f'it by evidence of level {case.lane.evidence}'}"
        yield Offense(WITNESSED, found, NOTHING + excuse, "none can: its path stays unwitnessed", level=W)
        return
    if missing:
        yield Offense(
            at=f"{WITNESSED}.{missing[0]}" if len(missing) == 1 else WITNESSED,
            found=f"nothing shows {', '.join(missing)}",
            expected=f"what lane {case.lane.name} wants witnessed: {', '.join((*case.lane.witness, *_observed(case)))}",
            do="show it with a log, profile or compiled program: "
            "receipts submit run.json --evidence FILE; or "
            "profile the same configuration in a launch that names this one in run.witness_for",
        )
    if low:
        yield Offense(
            at="evidence",
            found=f"evidence of level {best}",
            expected=f"level {case.lane.evidence} for lane {case.lane.name}, from a file with its SHA-256",
            do="docs/evidence.md names the switch that writes one; levels, the weakest first: intent, backend, kernels",
        )


def _observed(case: Case) -> tuple[str, ...]:
    """CUDA graphs, where listed evidence has seen any and the receipt says who was to capture them.

    A profile without them is no statement, so that no lane asks for one.
    """
    listed = (name for item in case.receipt.evidence or () for name in item.observed or ())
    seen = case.get("compile.cuda_graph_implementation") is not None
    return (_GRAPHS,) if seen and any(name.startswith(f"{_GRAPHS}.") for name in listed) else ()


def _seen(case: Case, name: str) -> bool:
    # Read from the model: an empty map of fallbacks is a statement, and has no leaf of its own.
    path = case.receipt.path
    witnessed = path.witnessed if path is not None else None
    return getattr(witnessed, name, None) is not None
