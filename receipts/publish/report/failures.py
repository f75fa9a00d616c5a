"""Launches of a stretch that did not end well, grouped by cause, with what each cause cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from receipts.axes.lineage import Versions, ran_on
from receipts.axes.shape import DEPTH, PATTERN
from receipts.publish.text import UNKNOWN, plain
from receipts.questions.week.offenses import Cost, cost
from receipts.questions.week.reader import FAILED, Item
from receipts.questions.week.ref import Cut, Ref, cut
from receipts.receipt.measurement import Failure

MOST = 40  # causes
MOST_READ = 400  # failed launches whose messages are read; the others are grouped by their shape
MOST_NAMED = 6
MOST_TEXTS = 3
WHEELS = ("torch", "torch_xla", "libtpu", "jax", "transformer_engine", "megatron-core", "deepspeed")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class FailureCause:
    """One cause: launches of a lane that ran out of memory at one shape, or that ended otherwise with one message.

    `models` are patterns with their depth, `software` the wheels that decide most and the lineage that they make,
    `attempts` the rungs of the ladder that were tried after, each with its launch. `texts` are what the launches
    printed, `phases` and `classes` where and how they failed. The bytes are the largest that a launch asked for and the
    smallest limit.
    """

    lane: str
    outcome: str
    accelerator: str | None
    chips: int | None
    sequence_length: int | None
    micro_batch: int | None
    depth: int | None
    launches: int
    texts: tuple[str, ...]
    phases: tuple[str, ...]
    classes: tuple[str, ...]
    chip: int | None
    models: tuple[str, ...]
    software: tuple[str, ...]
    attempts: tuple[str, ...]
    requested_bytes: int | None
    limit_bytes: int | None
    receipts: Cut[Ref]
    cost: Cost

    @property
    def wheels(self) -> tuple[str, ...]:
        """The versions alone: R305 names what they depart from, once for all."""
        texts = (text.partition("; ")[0] for text in self.software if text.startswith(WHEELS))
        return tuple(dict.fromkeys(texts))


@dataclass(frozen=True, slots=True)
class Failures:
    """Causes by how many launches they ended; `launches` failed in all."""

    launches: int
    causes: Cut[FailureCause]
    cost: Cost


def failures(items: Iterable[Item]) -> Failures:
    """The launches that failed, by cause."""
    failed = [item for item in items if item.entry.outcome in FAILED]
    groups: dict[tuple[object, ...], list[Item]] = defaultdict(list)
    for place, item in enumerate(failed):
        groups[_cause(item, read=place < MOST_READ)].append(item)
    ordered = sorted(groups.items(), key=lambda one: (-len(one[1]), *_on_the_ladder(one[0])))
    causes = Cut(tuple(_failure(items) for _, items in ordered[:MOST]), max(0, len(ordered) - MOST))
    return Failures(len(failed), causes, cost(item.entry for item in failed))


def _cause(item: Item, *, read: bool) -> tuple[object, ...]:
    """What makes failures one: memory runs out at a shape, whatever asked for it last; all else by its message."""
    row = item.entry
    shape = (row.accelerator, row.chips, row.sequence_length, row.micro_batch)
    text = _text(item) if read and row.outcome != "oom" else ""
    return (row.lane, row.outcome, text, *(() if text else shape))


def _on_the_ladder(cause: tuple[object, ...]) -> tuple[object, ...]:
    """Its place among causes of as many launches: from more sequences and tokens to fewer, as a ladder is walked."""
    lane, outcome, text, *shape = cause
    accelerator, chips, length, micro_batch = shape or (None,) * 4
    fewer = tuple(-size if isinstance(size, int) else 0 for size in (chips, micro_batch, length))
    return (str(lane), str(outcome), str(text), str(accelerator), *fewer)


def _text(item: Item) -> str:
    failure = item.parsed.receipt.failure
    return " · ".join(part for part in (failure.operator, failure.message) if part) if failure is not None else ""


def _failure(items: Sequence[Item]) -> FailureCause:
    rows = [item.entry for item in items]
    shown = items[:MOST_READ]
    stated = [item.parsed.receipt.failure for item in shown]
    known = [item for item in stated if item is not None]
    texts = dict.fromkeys(filter(None, map(_text, shown)))
    chips = {item.chip for item in known if item.chip is not None}
    return FailureCause(
        lane=rows[0].lane,
        outcome=rows[0].outcome,
        accelerator=_same([row.accelerator for row in rows]),
        chips=_same([row.chips for row in rows]),
        sequence_length=_same([row.sequence_length for row in rows]),
        micro_batch=_same([row.micro_batch for row in rows]),
        depth=_same([row.depth for row in rows]),
        launches=len(rows),
        texts=tuple(texts)[:MOST_TEXTS],
        phases=tuple(dict.fromkeys(item.phase for item in known if item.phase)),
        classes=tuple(dict.fromkeys(item.class_ for item in known if item.class_)),
        chip=chips.pop() if len(chips) == 1 else None,
        models=_several(_model(item) for item in shown),
        software=_several(_software(item) for item in shown),
        attempts=_several(attempt for item in known for attempt in _attempts(item)),
        requested_bytes=max((item.requested_bytes for item in known if item.requested_bytes is not None), default=None),
        limit_bytes=min((item.limit_bytes for item in known if item.limit_bytes is not None), default=None),
        receipts=cut((item.ref for item in items), MOST_NAMED),
        cost=cost(rows),
    )


def _several(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, texts)))[:MOST_TEXTS]


def _model(item: Item) -> str:
    """The pattern as stated, with the depth that it makes; the depth alone of a model without one."""
    pattern, depth = (item.parsed.stated.get(path) for path in (PATTERN, DEPTH))
    if pattern is None:
        return f"depth {depth}" if depth is not None else ""
    return f"{pattern} to depth {depth}" if depth is not None else str(pattern)


def _software(item: Item) -> str:
    """The wheels that decide most, and the lineage that they make."""
    known = Versions(item.parsed.receipt.wheels, item.parsed.stated.get)
    versions = [f"{name} {version}" for name in WHEELS if (version := known.of(name))]
    lineage = ran_on(item.parsed, item.lane)
    return "; ".join(filter(None, (", ".join(versions), str(lineage or ""))))


def _attempts(failure: Failure) -> Iterator[str]:
    """What was tried after it."""
    for attempt in failure.ladder or ():
        why = f" ({attempt.reason})" if attempt.reason else ""
        yield f"{attempt.rung.replace('_', ' ')}: {attempt.launch}{why}"


def _same(values: Sequence[_T | None]) -> _T | None:
    """The value that all of them have; None where they differ."""
    return values[0] if len(set(values)) == 1 else None


def named(item: FailureCause, *, printed: bool = True) -> str:
    """A cause in a phrase: how it ended, and at which shape, or what it ``printed``."""
    outcome = {"oom": "OOM", "nan": "NaN"}.get(item.outcome, item.outcome)
    if printed and item.texts and item.outcome != "oom":
        return f"{outcome}: {plain(item.texts[0], 60)}"
    sizes = (
        f"{item.sequence_length:,}" if item.sequence_length else "",
        f"micro batch {item.micro_batch:,}" if item.micro_batch else "",
    )
    at = " × ".join(filter(None, sizes))
    machine = f"{item.chips:,} × {plain(item.accelerator or UNKNOWN)}" if item.chips else ""
    where = ", ".join(filter(None, (at, machine)))
    return f"{outcome} at {where}" if where else f"{outcome}, shape not stated"
