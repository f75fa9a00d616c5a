"""One and the same change tried elsewhere: at a lane's target where it was tried beside it, or the other way round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from receipts.axes import OFF, UNSET, Difference, Member, difference_under
from receipts.axes.configuration import configuration
from receipts.axes.effective import axis_of, flag_text
from receipts.axes.lane import Lane
from receipts.axes.shape import meets, target_of
from receipts.base.errors import NotFound, UsageError
from receipts.judging.verdict import Comparison
from receipts.publish.report.comparisons import is_gain
from receipts.publish.report.reader import ReportReader, ran
from receipts.receipt import Parsed
from receipts.store import Condition, Entry, Filters

LOOKED_AT: Final = 24  # launches with the changed value, and as many without it
_COLUMNS: Final = {
    "hardware.chips": "chips",
    "batch.sequence_length": "sequence_length",
    "batch.global_batch": "global_batch",
    "model.depth": "depth",
}
Change = tuple[Member, ...]


@dataclass(frozen=True)
class Tried:
    """A change that was tried: launches of both sides, and what the comparison says; None where B did not end well."""

    a: Entry
    b: Entry
    verdict: Comparison | None

    @property
    def ratio(self) -> float | None:
        """B over A."""
        return _headline(self.verdict)[0] if self.verdict is not None else None

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """The 95 % interval of it."""
        return _headline(self.verdict)[1:] if self.verdict is not None else (None, None)

    @property
    def gain(self) -> bool:
        """Whether B is faster, proven or indicated."""
        verdict = self.verdict
        return (
            verdict is not None and verdict.status != "rejected" and is_gain(verdict.metric, verdict.effect, self.ratio)
        )


def _headline(verdict: Comparison) -> tuple[float | None, float | None, float | None]:
    item = verdict.headline
    return (item.ratio, item.effect.low, item.effect.high) if item is not None else (None, None, None)


def change_of(difference: Difference) -> Change:
    """The leaves that changed, in their order."""
    return tuple(member for change in difference.changed for member in change.members)


class Retests:
    """Looks for launches of a lane that tried a change, until a moment."""

    def __init__(self, reader: ReportReader, until: datetime) -> None:
        self._reader = reader
        self._store = reader.store
        self._until = until
        self._indexed: dict[str, bool] = {}
        self._tried: dict[tuple[str, ...], Tried | None] = {}

    @property
    def looked_for(self) -> int:
        """How many changes were looked for, each once."""
        return len(self._tried)

    def at_target(self, change: Change, like: Parsed, lane: Lane, metric: str) -> Tried | None:
        """The newest trial of a change at one of the lane's targets."""
        return self._known("at target", self._at_target, change, like, lane, metric)

    def _known(
        self, where: str, look: Callable[..., Tried | None], change: Change, like: Parsed, lane: Lane, metric: str
    ) -> Tried | None:
        """What was found of a change, which is looked for once."""
        key = (where, lane.name, metric, repr(change))
        if key not in self._tried:
            self._tried[key] = look(change, like, lane, metric)
        return self._tried[key]

    def _at_target(self, change: Change, like: Parsed, lane: Lane, metric: str) -> Tried | None:
        """The newest that can be compared, else the newest: one that recompiled says nothing of the change."""
        refused: Tried | None = None
        for target in lane.targets:
            bounds = [(_COLUMNS[path], wanted) for path, wanted in target.bounds.items() if path in _COLUMNS]
            conditions = [Condition(name, "=", str(wanted)) for name, wanted in bounds if _is_free(name, change)]
            rows = self._rows(change, "b", like, lane, conditions)
            rows = (b for b in rows if meets(self._reader.launch(b).parsed, target.bounds))
            for b in self._once(rows, lane):
                tried = self._against(b, change, lane, metric, conditions)
                if tried is not None and (tried.verdict is None or tried.verdict.status != "rejected"):
                    return tried
                refused = refused or tried
        return refused

    def elsewhere(self, change: Change, like: Parsed, lane: Lane, metric: str) -> Tried | None:
        """The newest trial of a change away from the lane's targets that was a gain."""
        return self._known("elsewhere", self._elsewhere, change, like, lane, metric)

    def _elsewhere(self, change: Change, like: Parsed, lane: Lane, metric: str) -> Tried | None:
        rows = self._rows(change, "b", like, lane, [Condition("outcome", "=", "ok")])
        for b in self._once((b for b in rows if target_of(self._reader.launch(b).parsed, lane) is None), lane):
            tried = self._against(b, change, lane, metric, [])
            if tried is not None and tried.gain:
                return tried
        return None

    def _once(self, rows: Iterable[Entry], lane: Lane) -> Iterator[Entry]:
        """The newest launch of each configuration, as sound and with that outcome: the others were tried with it."""
        seen: set[tuple[bytes, str, str]] = set()
        for row in rows:
            status = self._reader.item(row).rate_status
            key = (configuration(self._store.parsed(row.id), lane).whole, row.outcome, status)
            if key not in seen:
                seen.add(key)
                yield row

    def _against(
        self, b: Entry, change: Change, lane: Lane, metric: str, conditions: Sequence[Condition]
    ) -> Tried | None:
        """One launch against the newest sound one that differs from it in this change alone, else the newest."""
        candidate = self._store.parsed(b.id)
        unsound: tuple[Entry, Parsed] | None = None
        for a in self._partners(candidate, change, lane, conditions):
            base = self._store.parsed(a.id)
            if a.launch == b.launch or change_of(difference_under(lane, base, candidate)) != change:
                continue
            if b.outcome != "ok":
                return Tried(a, b, None)
            if self._reader.item(a).rate_status != "invalid":
                return Tried(a, b, self._compared(base, candidate, metric))
            unsound = unsound or (a, base)
        return Tried(unsound[0], b, self._compared(unsound[1], candidate, metric)) if unsound else None

    def _compared(self, base: Parsed, candidate: Parsed, metric: str) -> Comparison:
        return self._reader.comparisons.compare([base], [candidate], metric, named=(), beside=())

    def _had_run(self, row: Entry) -> bool:
        return ran(row) <= self._reader.scope.until

    def _partners(
        self, candidate: Parsed, change: Change, lane: Lane, conditions: Sequence[Condition]
    ) -> Iterable[Entry]:
        """Launches that ended well and may differ from one in a change alone: looked up where it is of one axis."""
        axes = {axis_of(member.path) for member in change}
        configured = configuration(candidate, lane)
        if len(axes) != 1 or configured.own or not self._is_indexed(candidate, lane):
            well = [Condition("outcome", "=", "ok"), *conditions]
            return self._rows(change, "a", candidate, lane, well)
        stored, last = self._reader.stored, self._until - timedelta(microseconds=1)
        entries = (
            row
            for number in stored.near(configured, axes.pop(), LOOKED_AT)
            for row in stored.launches(number, "training", last, LOOKED_AT)
            if all(str(getattr(row, item.name)) == item.value for item in conditions)
        )
        return sorted(entries, key=lambda row: (row.started, row.seq), reverse=True)

    def _rows(
        self, change: Change, side: str, like: Parsed, lane: Lane, conditions: Sequence[Condition]
    ) -> Iterator[Entry]:
        """Training launches of the lane with one side's values of the change, the newest first."""
        target_conditions = [Condition("lane", "=", lane.name), Condition("kind", "=", "training"), *conditions]
        target_conditions.append(Condition("started", "<", self._until.isoformat()))
        if self._is_indexed(like, lane):
            values = ((member.path, getattr(member, side)) for member in change)
            target_conditions += [
                Condition(path, "=", text) for path, value in values if (text := _typed(value)) is not None
            ]
        try:
            yield from filter(self._had_run, list(self._store.find(Filters(tuple(target_conditions), limit=LOOKED_AT))))
        except (NotFound, UsageError):
            return  # a leaf that no condition can name

    def _is_indexed(self, like: Parsed, lane: Lane) -> bool:
        """Whether values are looked up: without the axis index every document of the lane would be read."""
        if lane.name not in self._indexed:
            self._indexed[lane.name] = self._store.query.holds_lane(configuration(like, lane))
        return self._indexed[lane.name]


def _is_free(column: str, change: Change) -> bool:
    return not any(_COLUMNS.get(member.path) == column for member in change)


def _typed(value: Any) -> str | None:
    """A value as a condition has it; None for one that a condition would read as a pattern or a list."""
    if value in (UNSET, None):
        return "-"
    if value == OFF or isinstance(value, list | tuple):
        return None
    text = flag_text(value)
    return None if any(sign in text for sign in "*?[") or text == "-" else text
