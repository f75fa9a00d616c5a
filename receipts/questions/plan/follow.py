"""What follows from changed leaves of a plan: data degree, accumulation, and a shard degree that was the whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from receipts.base.errors import Problem
from receipts.ingest.leaves import at, parts

MAPS: Final = ("wheels", "flags", "patches", "features")
DEGREES: Final = tuple(f"parallelism.{name}" for name in ("tensor", "pipeline", "context", "expert"))
CHIPS: Final = "hardware.chips"
_EXPERT: Final = "parallelism.expert"
_DATA, _SHARD, _REPLICATE = "parallelism.data", "parallelism.shard", "parallelism.replicate"
_MICRO, _GLOBAL, _ACCUMULATION = "batch.micro_batch", "batch.global_batch", "batch.accumulation"


def follow(
    tree: dict[str, Any], old: Mapping[str, Any], wanted: Mapping[str, Any], convention: str = "none"
) -> Iterator[Problem]:
    """Derive again what follows from chips, degrees and batches; drop what cannot be derived, report contradictions."""
    if any(path in wanted for path in (CHIPS, *DEGREES)):
        yield from _data(tree, old, wanted, convention)
    yield from _accumulation(tree, old, wanted)


def _data(
    tree: dict[str, Any], old: Mapping[str, Any], wanted: Mapping[str, Any], convention: str
) -> Iterator[Problem]:
    chips, data = at(tree, CHIPS), old.get(_DATA)
    if chips is None:
        return
    ways = _ways_left(tree, old, chips, convention)
    if not ways and _DATA not in wanted:
        degrees = ", ".join(f"{path.partition('.')[2]} {at(tree, path) or 1}" for path in DEGREES)
        yield Problem(CHIPS, f"{chips} chips cannot be divided by {degrees}", "choose degrees that divide the chips")
        return
    new = next(iter(ways)) if len(ways) == 1 else None
    if data is not None and _DATA not in wanted:
        put(tree, _DATA, new)
    if _SHARD in old and _SHARD not in wanted:
        replicate = at(tree, _REPLICATE) or 1
        whole_of = {old[_SHARD], old[_SHARD] * (old.get(_REPLICATE) or 1)}
        put(tree, _SHARD, new // replicate if new and data in whole_of and new % replicate == 0 else None)


def _ways_left(tree: Mapping[str, Any], old: Mapping[str, Any], chips: int, convention: str) -> set[int]:
    """Data degrees that the chips leave over, in each convention that may hold and that the old degrees keep."""
    ways = set()
    for name in ("expert_in_data", "expert_in_world") if convention == "none" else (convention,):
        folded = name == "expert_in_data"
        counted = [path for path in DEGREES if not (folded and path == _EXPERT)]
        before = after = 1
        for path in counted:
            before *= old.get(path) or 1
            after *= at(tree, path) or 1
        kept = old.get(_DATA) is None or old.get(CHIPS) is None or before * old[_DATA] == old[CHIPS]
        if kept and chips % after == 0 and not (folded and _torn(tree, chips)):
            ways.add(chips // after)
    return ways


def _torn(tree: Mapping[str, Any], chips: int) -> bool:
    """Whether expert groups, where they are cut from the ranks of a stage, do not divide these."""
    expert = at(tree, _EXPERT) or 1
    inside = expert * (at(tree, "parallelism.expert_tensor") or at(tree, "parallelism.tensor") or 1)
    stage = chips // (at(tree, "parallelism.pipeline") or 1)
    return expert > 1 and stage % inside != 0


def _accumulation(tree: dict[str, Any], old: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[Problem]:
    if _ACCUMULATION in wanted or not any(path in wanted for path in (_MICRO, _GLOBAL, CHIPS, _DATA, *DEGREES)):
        return
    micro, whole = at(tree, _MICRO), at(tree, _GLOBAL)
    ranks = _ranks(tree, old)
    if micro is None or whole is None or ranks is None:
        put(tree, _ACCUMULATION, None)
        return
    if whole % (micro * ranks):
        yield Problem(
            _GLOBAL,
            f"{whole} is no multiple of micro batch {micro} over {ranks} data ranks",
            f"choose a micro batch that divides {whole} / {ranks}, or another global batch",
        )
    elif _ACCUMULATION in old:
        put(tree, _ACCUMULATION, whole // (micro * ranks))


def _ranks(tree: Mapping[str, Any], old: Mapping[str, Any]) -> int | None:
    """Ranks that read sequences of their own, as the old batches say, at the new data degree; None where unknown."""
    data, was = at(tree, _DATA), old.get(_DATA)
    whole, micro, steps = (old.get(path) for path in (_GLOBAL, _MICRO, _ACCUMULATION))
    if whole and micro and steps and whole % (micro * steps) == 0:
        before = int(whole) // int(micro * steps)
        if data == was and all(at(tree, path) == old.get(path) for path in (CHIPS, *DEGREES)):
            return before
        return before * int(data) // int(was) if data and was and before * data % was == 0 else None
    accounted = data is not None and whole and micro and whole % (micro * (was or data)) == 0
    return int(data) if accounted else None


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    """Set a leaf, or take it out where the value is None; keys of open maps may hold dots."""
    *sections, last = parts(path)
    node = tree
    for key in sections:
        if key not in node and value is None:
            return
        node = node.setdefault(key, {})
    if value is None:
        node.pop(last, None)
    else:
        node[last] = list(value) if isinstance(value, tuple) else value
