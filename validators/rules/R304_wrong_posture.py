"""# R304 wrong_posture

*Why.* A compile posture belongs to the lane's contract. torch.compile on XLA splits the step into programs of its own;
around Transformer Engine modules it breaks their fusion and silences the log that would show it.

*Rejected.* `whole_graph` on the Megatron lane; `regional` there with a region that is not a fused helper of the
framework; `xla_lazy` where the contract is one compiled step.

*Accepted.* A permitted posture; `regional` on the Megatron lane whose regions are Megatron's own fused helpers. A
microbenchmark has no hot path, and is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from receipts.judging.rule import ALL, PATH, Case, E, I, Offense, rule, runs_model
from receipts.receipt.names import anything_witnessed, parts

_ASKED, _SEEN, _REGIONS = "compile.posture", "path.witnessed.posture", "compile.regions"


def _posture(case: Case) -> tuple[str, str | None]:
    """Where the posture is stated, and which it is: the witnessed one where there is one."""
    return (_SEEN, case.get(_SEEN)) if _SEEN in case.stated else (_ASKED, case.get(_ASKED))


def _permits(case: Case, posture: str) -> bool:
    seen = parts(posture)  # files that disagree are stated together, and each posture is asked for
    if not seen.isdisjoint(case.lane.forbidden_postures):
        return False
    return not case.lane.postures or seen <= set(case.lane.postures)


def _needs(case: Case) -> Iterator[str]:
    if not case.lane.postures and not case.lane.forbidden_postures:
        return
    yield _ASKED
    if "posture" in case.lane.witness and anything_witnessed(case.parsed):
        yield _SEEN
    posture = _posture(case)[1]
    if posture == "regional" and not _permits(case, posture) and case.lane.compile_exceptions:
        yield _REGIONS


@rule("R304", "wrong_posture", E, question=PATH, taints=(ALL,), needs=_needs, applies=runs_model, of_configuration=True)
def wrong_posture(case: Case) -> Iterator[Offense]:
    """The posture that ran, where the lane does not permit it and no exception covers its regions."""
    at, posture = _posture(case)
    if posture is None or _permits(case, posture):
        return
    shown = posture
    if posture == "regional" and case.lane.compile_exceptions:
        strange = [name for name in case.get(_REGIONS) or () if not _excepted(case, name)]
        if case.get(_REGIONS) == []:
            yield _unnamed()
        if not strange:
            return
        at, shown = _REGIONS, f"regional, over {', '.join(strange)}"
    permitted = ", ".join(case.lane.postures) or "another posture"
    reasons = [
        case.lane.forbidden_postures[name] for name in sorted(parts(posture)) if name in case.lane.forbidden_postures
    ]
    reason = "; ".join(reasons) or "its contract knows no other"
    yield Offense(
        at=at,
        found=shown,
        expected=f"{permitted} on lane {case.lane.name}: {reason}",
        do="run in a posture that the lane permits, or name the lane that this posture belongs to",
    )


def _unnamed() -> Offense:
    return Offense(
        at=_REGIONS,
        found="regional, and no region is named",
        expected="the regions that are compiled",
        do=f"state {_REGIONS}",
        level=I,
        unjudged=True,
    )


def _excepted(case: Case, region: str) -> bool:
    return any(fnmatchcase(region.lower(), pattern.lower()) for pattern in case.lane.compile_exceptions)
