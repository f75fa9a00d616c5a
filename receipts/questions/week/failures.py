"""What launches of a week offend, by rule; those that did not end well, by cause; failures that were known before.

An offense makes a launch invalid, or says that it left its path, drifted or never settled. A failure was known where
its signature had failed before. A cost is the time that launches ran, and the same by the chips that they held.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from receipts.axes.lineage import Versions, ran_on
from receipts.axes.shape import DEPTH, PATTERN
from receipts.base.untrusted_text import UNKNOWN, plain
from receipts.judging.rule import Topic
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Finding, Level, Question
from receipts.questions.week.data import Cut, Ref, cut, ref_of
from receipts.questions.week.reader import FAILED, Item

if TYPE_CHECKING:
    from receipts.store import Entry, Store


_UNITS = ((3600, "hours"), (60, "minutes"), (1, "seconds"))


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds from start to end of `timed` launches, and chip seconds; `untimed` launches do not say when they ended.

    `chip_seconds` leaves out launches that do not state their chips.
    """

    seconds: float
    chip_seconds: float
    timed: int
    untimed: int


def cost(rows: Iterable[Entry]) -> Cost:
    """What these launches cost together."""
    launches = list(rows)
    times = [
        ((row.finished - row.started).total_seconds(), row.chips or 0) for row in launches if row.finished is not None
    ]
    return Cost(
        seconds=sum(seconds for seconds, _ in times),
        chip_seconds=sum(seconds * chips for seconds, chips in times),
        timed=len(times),
        untimed=len(launches) - len(times),
    )


def spent(total: Cost) -> str:
    """A cost in words; `~` where no launch says how long it ran."""
    if not total.timed:
        return "~"
    spent_on, of = (total.chip_seconds, "chip ") if total.chip_seconds else (total.seconds, "")
    size, unit = next(pair for pair in _UNITS if spent_on >= pair[0] or pair[0] == 1)
    amount = f"{spent_on / size:,.1f} {of}{unit}"
    return f"{amount} ({total.untimed} not stated)" if total.untimed else amount


MAX_RECEIPTS = 6
MAX_SEEN = 4
_LEVELS = {Level.ERROR: 0, Level.OPEN: 1, Level.SHOWN: 2}


@dataclass(frozen=True, slots=True)
class OffenseSeen:
    """What a rule found at a place, of so many launches."""

    at: str
    found: str
    expected: str
    launches: int


@dataclass(frozen=True, slots=True)
class RuleOffenses:
    """A rule with the launches that offend it: each counts once, whatever was found of it.

    `level` is the heaviest, and `do` its remedy; an `incident` changes which system a number belongs to.
    """

    code: str
    name: str
    level: str
    incident: bool
    do: str
    launches: int
    seen: Cut[OffenseSeen]
    receipts: Cut[Ref]
    cost: Cost


def offenses(items: Iterable[Item]) -> tuple[RuleOffenses, ...]:
    """Offenses of these launches: incidents first, errors before what is shown, then by launches."""
    groups: dict[tuple[bool, str, str], list[tuple[Finding, Item]]] = defaultdict(list)
    for item in items:
        for finding in item.verdict.findings:
            incident = _is_incident(finding, item.reader.rulebook.rules)
            if incident or finding.level is Level.ERROR:
                groups[incident, finding.code, finding.name].append((finding, item))
    by_rule = []
    for (incident, *_), group in groups.items():
        heaviest = min((finding for finding, _ in group), key=lambda item: _LEVELS[item.level])
        launches = {item.entry.id: item for _, item in group}
        # Of the same finding at the same place a launch counts once.
        places = {(finding.at, finding.found, finding.expected, item.entry.id): None for finding, item in group}
        seen = Counter(place[:3] for place in places)
        ordered = sorted(seen.items(), key=lambda one: (-one[1], one[0]))
        refs = [item.ref for item in launches.values()]
        by_rule.append(
            RuleOffenses(
                code=heaviest.code,
                name=heaviest.name,
                level=heaviest.level.value,
                incident=incident,
                do=heaviest.do,
                launches=len(refs),
                seen=cut((OffenseSeen(*place, many) for place, many in ordered), MAX_SEEN),
                receipts=cut(refs, MAX_RECEIPTS),
                cost=cost(item.entry for item in launches.values()),
            )
        )
    return tuple(
        sorted(by_rule, key=lambda item: (not item.incident, _LEVELS[Level(item.level)], -item.launches, item.code))
    )


def _is_incident(finding: Finding, rules: RuleSet) -> bool:
    """Whether a finding, such as every error on the path, changes which system a number belongs to."""
    if finding.unjudged:
        return False
    listed = finding.code in rules.about(Topic.INCIDENT)
    if finding.question is Question.PATH:
        # On the path an open question is a fact that nobody stated, and no incident. Where no version of a lineage is
        # stated at all, nothing has drifted as far as anybody knows.
        unstated = all(part.endswith(" not stated") for part in finding.found.split("; "))
        return finding.level is Level.ERROR or (finding.level is Level.SHOWN and listed and not unstated)
    return listed


MAX_REPEATS = 20
MAX_NAMED_LAUNCHES = 6


@dataclass(frozen=True, slots=True)
class RepeatedFailure:
    """A signature that failed in the week and had failed before: `again` are the launches of the week that knew.

    `first` failed first, `times` is how often it failed until the end of the week. The cost is that of `again`:
    `compile_seconds` where the launches compiled and say so, else `failed_seconds` from start to end, and `uncosted`
    launches state neither.
    """

    signature: str
    lane: str
    kind: str
    first: Ref
    first_at: datetime
    times: int
    again: Cut[Ref]
    compile_seconds: float
    compiled: int
    failed_seconds: float
    timed: int
    uncosted: int

    @property
    def seconds(self) -> float | None:
        """What the repeats took together; None where none of them says."""
        return self.compile_seconds + self.failed_seconds if self.compiled or self.timed else None

    @property
    def spent(self) -> float:
        """The same, 0 where none of them says."""
        return self.seconds or 0.0


def repeats(store: Store, failed: Iterable[Entry], until: datetime) -> Cut[RepeatedFailure]:
    """Failures that were known before some launches started, by signature, the most expensive first."""
    week = {row.id for row in failed}
    groups: dict[str, list[Entry]] = defaultdict(list)
    for signature, item in store.query.failed_alike(sorted(week)):
        if item.started < until:
            groups[signature].append(item)
    rows = []
    for signature, (first, *later) in groups.items():
        again = [item for item in later if item.id in week and item.started > first.started]
        if not again:
            continue
        compiled = [item.compile_seconds for item in again if item.compile_seconds]
        timed = [
            (item.finished - item.started).total_seconds()
            for item in again
            if not item.compile_seconds and item.finished is not None
        ]
        last = again[-1]
        kind = last.failure_type.replace("_", " ")
        rows.append(
            RepeatedFailure(
                signature=signature,
                lane=last.lane,
                kind=f"{kind} in {last.failure_phase.replace('_', ' ')}" if last.failure_phase else kind,
                first=ref_of(first),
                first_at=first.started,
                times=1 + len(later),
                again=cut(map(ref_of, again), MAX_NAMED_LAUNCHES),
                compile_seconds=sum(compiled),
                compiled=len(compiled),
                failed_seconds=sum(timed),
                timed=len(timed),
                uncosted=len(again) - len(compiled) - len(timed),
            )
        )
    rows.sort(key=lambda item: (-(item.seconds or 0.0), item.lane, item.signature))
    return cut(rows, MAX_REPEATS)


MAX_CAUSES = 40  # causes
MAX_READ = 400  # failed launches whose messages are read; the others are grouped by their shape
MAX_RECEIPTS_OF_CAUSE = 6
MAX_TEXTS = 3
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
        # What makes failures one: memory runs out at a shape, whatever asked for it last; all else by its message.
        read = place < MAX_READ
        row = item.entry
        shape = (row.accelerator, row.chips, row.sequence_length, row.micro_batch)
        text = _text(item) if read and row.outcome != "oom" else ""
        groups[(row.lane, row.outcome, text, *(() if text else shape))].append(item)
    ordered = sorted(groups.items(), key=lambda one: (-len(one[1]), *_on_the_ladder(one[0])))
    causes = Cut(tuple(_failure(items) for _, items in ordered[:MAX_CAUSES]), max(0, len(ordered) - MAX_CAUSES))
    return Failures(len(failed), causes, cost(item.entry for item in failed))


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
    shown = items[:MAX_READ]
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
        texts=tuple(texts)[:MAX_TEXTS],
        phases=tuple(dict.fromkeys(item.phase for item in known if item.phase)),
        classes=tuple(dict.fromkeys(item.class_ for item in known if item.class_)),
        chip=chips.pop() if len(chips) == 1 else None,
        models=_several(_model(item) for item in shown),
        software=_several(_software(item) for item in shown),
        attempts=_several(
            f"{tried.rung.replace('_', ' ')}: {tried.launch}{f' ({tried.reason})' if tried.reason else ''}"
            for item in known
            for tried in item.ladder or ()
        ),
        requested_bytes=max((item.requested_bytes for item in known if item.requested_bytes is not None), default=None),
        limit_bytes=min((item.limit_bytes for item in known if item.limit_bytes is not None), default=None),
        receipts=cut((item.ref for item in items), MAX_RECEIPTS_OF_CAUSE),
        cost=cost(rows),
    )


def _several(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, texts)))[:MAX_TEXTS]


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
