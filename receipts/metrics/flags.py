"""Flags that say of slow steps that they were something else, and what shows it: a span, a trace, the warm-up.

A reader flags what a log says of its steps. A job flags what it likes: the seconds of its evaluations, checkpoints and
waits stand in spans, which a recorder times, and whatever they do not explain was a step that somebody paid for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from receipts.stats.distributions import median

if TYPE_CHECKING:
    from receipts.receipt import Parsed

_SPANS: Final = ("checkpoint", "eval", "data")
_LONGER: Final = 1.02  # times the middle of the other steps: below it a flag hides nothing
_LOOSE: Final = 1.1  # what stands beside a span in its step, and a second: caches that are cold after it
_LOOSE_SECONDS: Final = 1.0
_PROFILED: Final = 16  # steps that a witness slows, with those in which it writes its trace
_TRACES: Final = ("profile", "trace", "nsys", "xplane", "xspace")


def unshown(parsed: Parsed, durations: Sequence[float], flagged: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """By flag, the slow steps that nothing shows to have been what it says; of receipts of logs none."""
    recorded = parsed.receipt.run.recorded
    if not durations or (recorded is not None and recorded.by == "ingest"):
        return {}
    last = len(durations)
    named = {at for positions in flagged.values() for at in positions}
    plain = [seconds for at, seconds in enumerate(durations) if at not in named]
    if not plain:
        return {}
    usual = median(plain)
    slow = {
        flag: [at for at in positions if at < last and durations[at] > usual * _LONGER]
        for flag, positions in flagged.items()
    }
    goodput = parsed.receipt.measurement.goodput if parsed.receipt.measurement is not None else None
    hidden: dict[str, list[int]] = {}
    for flag in _SPANS:
        beyond = math.fsum(durations[at] - usual for at in slow.get(flag, ()))
        span = getattr(goodput, f"{flag}_seconds", None) or 0.0
        if beyond > span * _LOOSE + _LOOSE_SECONDS:
            hidden[flag] = slow[flag]
    if len(slow.get("profile", ())) > _PROFILED + _traced(parsed.receipt.evidence or ()):
        hidden["profile"] = slow["profile"]
    late = [at for at in slow.get("warmup", ()) if at >= _warm(parsed, flagged["warmup"])]
    return hidden | ({"warmup": late} if late else {})


def _traced(evidence: Sequence[Any]) -> float:
    """Steps that traces show; any number where one does not say how many."""
    traces = [item for item in evidence if any(name in item.kind.lower() for name in _TRACES)]
    counts = [(item.observed or {}).get("steps") for item in traces]
    return math.inf if any(count is None for count in counts) else sum(map(float, filter(None, counts)))


def _warm(parsed: Parsed, positions: Sequence[int]) -> int:
    """The step at which the warm-up is over: the flagged ones from the first on, and what the window leaves out."""
    measurement, step = parsed.receipt.measurement, 0
    for at in sorted(positions):
        if at != step:
            break
        step += 1
    window = measurement.window if measurement is not None else None
    stated = (window.start or 0, window.warmup_steps or 0) if window is not None else ()
    return max(step, *stated, 0)
