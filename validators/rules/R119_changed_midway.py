"""# R119 changed_midway

*Why.* A loss curve or a goodput that was put together from two launches says nothing of either where a wheel, the code
or a flag changed between them. A restart after an upgrade looks like one run that recovered.

*Rejected.* A receipt that joins steps 0 to 499 of a launch with torch 2.9.0 and those from 500 on of one with 2.9.1. As
open, for loss and goodput alone: a launch that was resumed from one that ran other wheels, libraries, code or flags, or
from one that is rejected here. Its rate is its own.

*Accepted.* Two launches of the same wheels, code and flags: a node was lost, and the run went on. What one of them
does not say of itself is open (I). Which devices, ports or ranks a launch was given is not a flag of its configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from receipts.axes.switches import only_tells
from receipts.judging.rule import ANYWHERE, COMPARABLE, GOODPUT, LOSS, PATH, Case, E, I, Offense, rule
from receipts.receipt import Parsed

PARTS, RESUMED = "run.parts", "run.resumed_from"
RUNTIME = tuple(f"platform.{name}" for name in ("cuda", "cudnn", "nccl", "libtpu", "python"))
KINDS = ("wheels.", "code.", "flags.", *RUNTIME)
OF_ONE_START = frozenset({"VISIBLE", "RANK", "PORT", "ADDR", "ID", "RESTART"})  # words in the name of a flag
DO = "give each launch a receipt of its own, or start again with what the first one ran"


@rule("R119", "changed_midway", E, question=PATH, taints=(LOSS, GOODPUT), reads_others=ANYWHERE)
def changed_midway(case: Case) -> Iterator[Offense]:
    """Each part against the one before it, then the launch that was resumed."""
    yield from _joined(case.launch.parsed)
    earlier = case.facts.resumed.get(case.launch.parsed.id) if case.facts is not None else None
    if earlier is None:
        return
    changed = list(_changed(_executed(earlier), _executed(case.launch.parsed)))
    if not changed and any(item.level is None for item in _joined(earlier)):
        changed = ["it joins launches that ran other software"]
    if changed:
        shown = f"resumed from {earlier.id[:12]}: {'; '.join(changed[:3])}"
        yield Offense(RESUMED, shown, "the same wheels, code and flags", DO, level=I, question=COMPARABLE)


def _joined(parsed: Parsed) -> Iterator[Offense]:
    """What changed from one part of a receipt to the next, and parts that do not say what they ran."""
    parts = parsed.receipt.run.parts or ()
    for at, (before, after) in enumerate(pairwise(parts), start=1):
        if changed := list(_changed(before.ran or {}, after.ran or {})):
            shown = f"from step {after.start_step} on {'; '.join(changed[:3])}"
            yield Offense(f"{PARTS}[{at}].ran", shown, "the same wheels, code and flags in all steps", DO)
    stated = [frozenset(filter(_counts, part.ran or {})) for part in parts]
    whole = frozenset().union(*stated)
    silent = [(part, whole - has) for part, has in zip(parts, stated, strict=True) if not part.ran or whole - has]
    if len(parts) > 1 and silent:
        first, gone = silent[0]
        what = ", ".join(sorted(gone)[:3]) if first.ran else "what"
        shown = f"nobody says {what} ran from step {first.start_step} on"
        do = "state wheels, code and flags of each part"
        yield Offense(PARTS, shown, "what each joined launch ran", do, level=I, unjudged=True)


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """What both state, with two values."""
    for path in sorted(before.keys() & after.keys()):
        if _counts(path) and before[path] != after[path]:
            yield f"{path} {before[path]} → {after[path]}"


def _counts(path: str) -> bool:
    """Whether a leaf says what software ran, and not where one start of it did."""
    own = path.startswith("flags.") and OF_ONE_START & set(path.upper().replace(".", "_").split("_"))
    return path.startswith(KINDS) and not own and not only_tells(path.removesuffix(".value"), "")


def _executed(parsed: Parsed) -> dict[str, Any]:
    """Wheels, code and flags of a whole receipt, of its last part where that says more."""
    parts = parsed.receipt.run.parts or ()
    own = {path: value for path, value in parsed.stated.items() if path.startswith(KINDS)}
    return own | ((parts[-1].ran or {}) if parts else {})
