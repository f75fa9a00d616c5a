"""The next rung of a lane's ladder: the first plan that is smaller and not known or predicted to fail.

Rungs that do not reduce the pressure that is active are skipped, each with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from receipts.axes.lane import Lane
from receipts.axes.shape import MICRO_BATCH, SEQUENCE_LENGTH, sign
from receipts.base.errors import InputError
from receipts.base.units import amount
from receipts.questions.plan import parse_plan, write_plan
from receipts.receipt import Document, Parsed

if TYPE_CHECKING:
    from receipts.questions.preflight import PreflightAnswer

_BATCH, _LENGTH, _FEATURES = "device_batch", "sequence_length", "features"
# Surfaces of the estimate that are there before the first sequence comes.
_STATES: Final = ("parameters", "gradients", "optimizer", "reserve")
_OF_START: Final = "it ran out at start-up, before the first batch"
_OF_KERNEL: Final = "one kernel's on-chip memory ran out, and its tiles do not grow with the batch"
_OF_BLOCKS: Final = "it works in blocks of a fixed size: choose smaller blocks, or raise the limit of its memory"
_BLOCKED: Final = re.compile(r"splash|flash", re.IGNORECASE)
_ON_CHIP: Final = ("compile_vmem", "compile_smem")
_TOKENS: Final[Mapping[str, str]] = {_BATCH: MICRO_BATCH, _LENGTH: SEQUENCE_LENGTH}  # rungs that take tokens away
_UNMOVED: Final = 0.005  # of the bytes: a message prints four digits of them
_OF_ANOTHER: Final = "another process held the memory: free the chip and launch the same plan again"


def useless(answer: PreflightAnswer) -> Mapping[str, str]:
    """Rungs that do not reduce the active pressure, each with why. Empty where nothing tells which pressure it is."""
    by = answer.by
    if by is not None and by.outcome == "oom":
        if by.class_ == "foreign_process":
            return dict.fromkeys((_BATCH, _LENGTH, _FEATURES, "topology"), _OF_ANOTHER)
        if by.class_ in _ON_CHIP:
            blocked = _BLOCKED.search(by.operator or "") is not None
            return {_BATCH: _OF_KERNEL, **dict.fromkeys((_LENGTH, "topology") if blocked else (), _OF_BLOCKS)}
        if by.phase == "startup" and by.class_ != "program_load":
            return dict.fromkeys((_BATCH, _LENGTH, _FEATURES), _OF_START)
    elif answer.fit is not None and answer.fit.surface and any(word in answer.fit.surface for word in _STATES):
        return {_FEATURES: f"most of the estimate is {answer.fit.surface}, which no diagnostic holds"}
    return {}


def unrelieved(plan: Parsed, lane: Lane, answer: PreflightAnswer) -> Callable[[str, Parsed], str | None]:
    """Why a smaller plan of a rung frees nothing by the estimate; None where it does, or nothing whole can be said.

    The estimate counts no diagnostics, and no memory but the chip's own.
    """
    from receipts.questions.fit import estimate  # a plan that works has no next rung

    by = answer.by
    if by is not None and (by.outcome != "oom" or by.class_ in _ON_CHIP):
        return lambda _rung, _smaller: None
    before = estimate(plan, lane)

    def why(rung: str, smaller: Parsed) -> str | None:
        after = estimate(smaller, lane)
        if rung == _FEATURES or before.uncounted or after.uncounted or None in (before.total_bytes, after.total_bytes):
            return None
        now, then = before.total_bytes or 0.0, after.total_bytes or 0.0
        return None if then < now else f"it frees nothing: the estimate goes from {amount(now)} to {amount(then)}"

    return why


def idle(ran_out: Iterable[Parsed], lane: Lane) -> Mapping[str, str]:
    """Rungs that moved nothing, by the need that failures printed: two that differ in one pressure print the same.

    What is left of such a rung is not tried. A failure that shows that it moved something keeps it.
    """
    moved: dict[str, tuple[bool, str]] = {}
    for one, other in combinations(ran_out, 2):
        a, b = sign(one, lane), sign(other, lane)
        sizes = _printed(one), _printed(other)
        apart = [(rung, path) for rung, path in _TOKENS.items() if one.stated.get(path) != other.stated.get(path)]
        if (a.base, a.extras) != (b.base, b.extras) or None in sizes or len(apart) != 1:
            continue
        ((rung, path),) = apart
        if rung not in moved or moved[rung][0]:
            low, high = sorted(size for size in sizes if size is not None)
            values = " and ".join(f"{item.stated.get(path):,}" for item in (one, other))
            leaf = path.partition(".")[2].replace("_", " ")
            why = f"at {leaf} {values} the failure printed {amount(high)} alike"
            moved[rung] = high - low <= _UNMOVED * high, why
    return {rung: why for rung, (still, why) in moved.items() if still}


def _printed(failed: Parsed) -> int | None:
    """The bytes that a program needs by its failure. What a full allocator held is its limit, and no need."""
    failure = failed.receipt.failure
    if failure is None or failure.used_bytes is None:
        return None
    planned = failure.phase == "compile" or (
        failure.limit_bytes is not None and failure.used_bytes > failure.limit_bytes
    )
    return int(failure.used_bytes) if planned else None


MIN_SEQUENCE: Final = 128  # tokens; shorter than a kernel's tile nothing more is saved
FIRST_THAT_REDUCES: Final = "the first rung that reduces the active pressure"
_DEGREES: Final = ("tensor", "expert", "pipeline", "context")
Ask = Callable[[Parsed], "PreflightAnswer"]
Changes = dict[str, Any]


class Skipped(NamedTuple):
    """A rung, or one step of it, that was passed over, and why."""

    rung: str
    why: str


class Rung(NamedTuple):
    """The next thing to try. ``name`` is a rung of the lane's ladder, ``stop`` where nothing is left.

    ``changes`` maps leaves to the value before and after, ``dropped`` are leaves that followed from the old ones and
    have to be stated anew, ``plan`` the bytes of the ready plan (None at ``stop``), ``answer`` what is known of it.
    """

    name: str
    changes: Mapping[str, tuple[Any, Any]]
    skipped: tuple[Skipped, ...]
    plan: bytes | None = None
    answer: PreflightAnswer | None = None
    dropped: tuple[str, ...] = ()

    @property
    def reason(self) -> str | None:
        """Why this rung, where an earlier one was skipped: what a ladder attempt states."""
        return FIRST_THAT_REDUCES if {item.rung for item in self.skipped} - {self.name} else None

    def as_data(self) -> dict[str, Any]:
        """The rung as JSON; the plan itself is a document of its own."""
        return {
            "rung": self.name,
            "reason": self.reason,
            "changes": {path: {"from": old, "to": new} for path, (old, new) in self.changes.items()},
            "dropped": list(self.dropped),
            "skipped": [item._asdict() for item in self.skipped],
            "status": self.answer.status if self.answer is not None else None,
        }


def next_rung(plan: Parsed, lane: Lane, ask: Ask, answer: PreflightAnswer, ran_out: Sequence[Parsed] = ()) -> Rung:
    """The first smaller plan down the lane's ladder of which ``ask`` does not know or predict that it fails.

    Mesh-wide: what is written holds for every rank. A rung that is used up (every step of it fails) stays used: the
    next one goes on from its last step, as the ladder is walked. ``ran_out`` are failures of this launch at other
    pressures: of a rung that moved none of the bytes that they printed the other steps are passed over.
    """
    skipped: list[Skipped] = []
    gone, kept = {**idle(ran_out, lane), **useless(answer)}, unrelieved(plan, lane, answer)
    held: Changes = {}
    for rung in lane.ladder:
        if rung == "stop":
            break
        if rung in gone:
            skipped.append(Skipped(rung, gone[rung]))
            continue
        steps = list(_steps(rung, plan, lane, held))
        if not steps:
            skipped.append(Skipped(rung, _nothing(rung, plan, lane)))
        for changes in steps:
            wanted = {**held, **changes}
            smaller = _smaller_plan(plan, wanted, lane)
            if isinstance(smaller, str):
                skipped.append(Skipped(rung, smaller))
                continue
            if (why := kept(rung, smaller)) is not None:
                skipped.append(Skipped(rung, f"{_change_text(changes)}: {why}"))
                continue
            prediction = ask(smaller)
            if prediction.status not in ("failed", "predicted"):
                return _rung(rung, plan, smaller, wanted, skipped, prediction)
            skipped.append(Skipped(rung, f"{_change_text(changes)}: {prediction.why}"))
        if steps and rung != "topology":
            held.update(steps[-1])
    return Rung("stop", {}, tuple(skipped))


def _rung(
    name: str, plan: Parsed, smaller: Parsed, changes: Changes, skipped: Sequence[Skipped], answer: PreflightAnswer
) -> Rung:
    moved = {path: (plan.stated.get(path), value) for path, value in changes.items()}
    derived = ("batch.accumulation", "parallelism.data", "parallelism.shard")
    for path in derived:
        old, new = plan.stated.get(path), smaller.stated.get(path)
        if old != new and new is not None:
            moved[path] = (old, new)
    before = parse_plan(Document(write_plan(plan, {}), plan.source))
    dropped = tuple(path for path in before.stated if path not in smaller.stated and not path.startswith("run."))
    return Rung(name, moved, tuple(skipped), smaller.raw, answer, dropped)


def _smaller_plan(plan: Parsed, changes: Changes, lane: Lane) -> Parsed | str:
    """The plan with the changes, under the label that it has, or why there is none."""
    label = plan.receipt.run.label
    try:
        return parse_plan(
            Document(write_plan(plan, {**changes, **({"run.label": label} if label else {})}, lane), plan.name)
        )
    except InputError as error:
        return f"{_change_text(changes)}: {'; '.join(problem.what for problem in error.problems)}"


def _change_text(changes: Changes) -> str:
    return ", ".join(f"{path.partition('.')[2]} {value}" for path, value in changes.items())


def _steps(rung: str, plan: Parsed, lane: Lane, held: Changes) -> Iterator[Changes]:
    """What a rung offers, the smallest change first."""
    if rung == "device_batch":
        micro = plan.stated.get(MICRO_BATCH)
        while micro is not None and micro > 1:
            micro = next(size for size in range(micro // 2, 0, -1) if micro % size == 0)
            yield {MICRO_BATCH: micro}
    elif rung == "sequence_length":
        length = plan.stated.get(SEQUENCE_LENGTH)
        while length is not None and length % 2 == 0 and length // 2 >= MIN_SEQUENCE:
            length //= 2
            yield {SEQUENCE_LENGTH: length}
    elif rung == "features":
        extras = sign(plan, lane).extras
        if extras:
            yield {f"features.{name}": False for name in extras}
    elif rung == "topology":
        # Twice a degree on the same chips, where what it divides can be divided; coupled leaves go with it.
        for name in _DEGREES:
            path = f"parallelism.{name}"
            degree = plan.stated.get(path)
            if degree is None or not lane.applies(path) or not _divides(name, degree * 2, plan, held):
                continue
            then = (leaf for item in lane.couplings if item.when == path for leaf in item.then if leaf in plan.stated)
            follows = ("parallelism.shard", "parallelism.mesh_axes")  # made anew, or taken out, with the plan
            yield {path: degree * 2, **{leaf: None for leaf in then if leaf not in follows}}


def _divides(name: str, degree: int, plan: Parsed, held: Changes) -> bool:
    stated = plan.stated
    if name == "tensor":
        return all(stated.get(f"model.{part}", degree) % degree == 0 for part in ("heads", "kv_heads"))
    if name == "expert":
        experts = stated.get("model.experts") or 0
        return experts > 1 and experts % degree == 0
    if name == "pipeline":
        return bool(stated.get("model.depth", 1) % degree == 0)
    length = held.get(SEQUENCE_LENGTH, stated.get(SEQUENCE_LENGTH))
    return length is not None and length % (2 * degree) == 0


def _nothing(rung: str, plan: Parsed, lane: Lane) -> str:
    """Why a rung offers nothing."""
    if rung == "device_batch":
        return "micro batch is 1 already" if plan.stated.get(MICRO_BATCH) == 1 else "micro batch is not stated"
    if rung == "sequence_length":
        length = plan.stated.get(SEQUENCE_LENGTH)
        return f"{length} tokens cannot be halved" if length is not None else "sequence length is not stated"
    if rung == "features":
        names = ", ".join(lane.nonessential_features) or "none"
        return f"no feature that the lane calls non-essential ({names}) is on"
    if rung == "topology":
        return "no degree can be doubled on these chips"
    return "this version knows no such rung"
