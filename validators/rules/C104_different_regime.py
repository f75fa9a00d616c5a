"""# C104 different_regime

*Why.* A warm cache against a cold one, a timer that waits for the device against one that does not, a profiled run
against a measured one: the number changes, although no setting that an experimenter chose did.

*Rejected.* Compile seconds with `cache_state` cold on A and warm on B. A profiled launch, or one that is a witness
(`run.witness_for`), against a measured one. Peak memory read at the end on A, and before the first step on B. A window
of steps 3 to 5 against one of steps 3 to 8. A mean over a window against a number whose statistic is not stated. A
median against the best step, where one side did not keep its steps. As W: a flag that only makes one side's program
tell more (`TORCH_LOGS`, `NVTE_DEBUG`, an XLA dump), which is no setting of an experiment and costs a little time.

*Accepted.* Equal regimes; or unstated on both sides within one context; or a steady-state metric whose cache state
differs, since nothing compiles inside its window (R201 and R202 guard that). One window in two wordings: `iters 3-6`,
and `hot (from step 3)` of six steps. A cold cache on A and a warm one on B in the study `warm-cache`, which asks for
just that: `receipts compare --cold A --warm B`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from receipts.axes import Member
from receipts.judging.rule import COMPARABLE, Case, E, I, Offense, PairCase, W, rule
from receipts.metrics.stated import Stretch, read_window
from receipts.receipt.measurement import MemoryPhase

_WINDOW = ("measurement.window.start", "measurement.window.stop", "measurement.window.stated")
_CACHE = "compile.cache_state"  # found at the start, and another one after each launch
_STATISTIC = "measurement.stated.statistic"


@rule("C104", "different_regime", E, on="pair", question=COMPARABLE)
def different_regime(pair: PairCase) -> Iterator[Offense]:
    """Regimes that the metric depends on, where they differ or one side does not say."""
    kind_a, kind_b = pair.values("run.kind")
    if kind_a != kind_b:
        yield _differs("run.kind", kind_a, kind_b, "run both as the same kind")
    witness_a, witness_b = pair.values("run.witness_for")
    if (witness_a is None) != (witness_b is None):
        side = "A" if witness_b is None else "B"
        yield _differs(
            "run.witness_for", witness_a, witness_b, f"take the launch that {side} witnesses, not its witness"
        )
    if pair.metric.summary == "memory":
        a, b = (_last_phase(side, pair.metric.name) for _, side in pair.sides)
        if a and b and a != b:
            yield _differs("memory.chips.phase", a, b, "read the peaks of both sides in one phase")
    for path in pair.metric.regimes:
        if path not in pair.regimes:
            yield from _judge(pair, path)
    for item in pair.difference.regimes:
        if item.path.startswith("flags."):
            yield _tells_more(item)
    without_steps = not pair.a.launch.durations or not pair.b.launch.durations
    if pair.metric.summary in ("step", "rate") and without_steps:
        for path in _WINDOW:
            a, b = pair.values(path)
            if a is not None and b is not None and a != b:
                yield from _windows(pair, path, a, b)
            elif (a is None) != (b is None) and not _other_window(pair):
                yield _unstated(path, "A" if a is None else "B")
        a, b = (_statistic(side) for _, side in pair.sides)
        if a is not None and b is not None and a != b:
            yield _differs(_STATISTIC, a, b, "take one statistic on both sides")


def _tells_more(flag: Member) -> Offense:
    shown = (f"{'unset' if value is None else value} on {side}" for side, value in (("A", flag.a), ("B", flag.b)))
    return Offense(
        at=flag.path,
        found=", ".join(shown),
        expected="one regime on both sides",
        do="where the effect is small, switch it alike on both: what it prints takes time",
        level=W,
    )


def _statistic(side: Case) -> str | None:
    """What the side's number is over its steps: their median where they are kept, else as stated."""
    return "median" if side.launch.durations else side.get(_STATISTIC)


def _windows(pair: PairCase, path: str, a: object, b: object) -> Iterator[Offense]:
    """Two windows, unless both name the same steps; then the statistic over them, where one side leaves it open."""
    one, other = (_stretch(side, path) for _, side in pair.sides)
    if one is None or other is None or not one.same_steps(other):
        yield _differs(path, a, b, "state the step times, or measure over one window")
    elif one.statistic is None or other.statistic is None:
        if one != other:
            yield _unstated(_STATISTIC, "A" if one.statistic is None else "B")
    elif one != other:
        yield _differs(path, a, b, "take one statistic on both sides")


def _stretch(side: Case, path: str) -> Stretch | None:
    window = side.get(path)
    return read_window(window, side.get("measurement.steps")) if isinstance(window, str) else None


def _last_phase(side: Case, name: str) -> str | None:
    """The latest phase that carries the figure: a peak so far holds all that came before it, and nothing after."""
    memory = side.receipt.memory
    rows = (memory.chips if memory is not None else None) or ()
    phases = {row.phase for row in rows if getattr(row, name) is not None}
    return next((phase for phase in reversed(get_args(MemoryPhase)) if phase in phases), None)


def _other_window(pair: PairCase) -> bool:
    """Whether both sides say something of their window, each in its own words."""
    return all(any(side.get(path) is not None for path in _WINDOW) for _, side in pair.sides)


def _judge(pair: PairCase, path: str) -> Iterator[Offense]:
    a, b = pair.values(path)
    if a is not None and b is not None:
        if a != b:
            yield _differs(path, a, b, "measure both in one regime")
    elif a is not None or b is not None:
        yield _unstated(path, "A" if a is None else "B")
    elif pair.lane.applies(path) and (path == _CACHE or not pair.holds(path)):
        yield _unstated(path, "either side")


def _differs(path: str, a: object, b: object, do: str) -> Offense:
    return Offense(at=path, found=f"{_shown(a)} on A, {_shown(b)} on B", expected="one regime on both sides", do=do)


def _shown(value: object) -> object:
    return "none" if value is None else value


def _unstated(path: str, side: str) -> Offense:
    return Offense(
        at=path, found=f"not stated on {side}", expected="one regime on both sides", do=f"state {path}", level=I
    )
