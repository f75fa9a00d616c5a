"""Receipts as a report reads them: rows of the store first, documents parsed and judged on first use and kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from receipts.judge import judge_receipt
from receipts.lane import Lane
from receipts.metrics import Launch
from receipts.receipt import Document, Parsed, parse
from receipts.report.data import Ref
from receipts.rule import Facts
from receipts.rulebook import Rulebook
from receipts.verdict import ReceiptVerdict, Taint

if TYPE_CHECKING:
    from receipts.store import Entry, Store

FAILED = ("oom", "crash", "nan", "hang")
SHAPE = ("accelerator", "chips", "sequence_length", "micro_batch", "depth")


@dataclass(frozen=True, eq=False)
class Item:
    """One receipt of the report, judged under the present rules."""

    entry: Entry
    launch: Launch
    verdict: ReceiptVerdict
    facts: Facts

    @property
    def parsed(self) -> Parsed:
        """The receipt."""
        return self.launch.parsed

    @property
    def lane(self) -> Lane:
        """The lane that it is judged under."""
        return self.launch.lane

    @property
    def ref(self) -> Ref:
        """What to call it."""
        return ref_of(self.entry)

    def spoilt(self, kind: Taint) -> bool:
        """Whether an error spoils that kind of metric."""
        return kind in self.verdict.tainted or Taint.ALL in self.verdict.tainted


def ref_of(entry: Entry) -> Ref:
    """A row's receipt."""
    return Ref(entry.id, entry.name)


def ran(entry: Entry) -> datetime:
    """When a receipt counts: the end of its run, else its start."""
    return entry.finished or entry.started


def order(entry: Entry) -> tuple[datetime, datetime, int]:
    """Where a receipt stands in time; the store's own order decides among those known to the day."""
    return ran(entry), entry.started, entry.seq


class Shelf:
    """Every receipt of the store that ran until ``as_of``, in the order in which they ran."""

    def __init__(self, store: Store, rulebook: Rulebook, as_of: datetime, lanes: Sequence[str] = ()) -> None:
        from receipts.store import Condition, Filters

        self._store = store
        self._rulebook = rulebook
        started = Condition("started", "<=", as_of.isoformat())
        rows = store.find(Filters((started,), superseded=True, order="stored"))
        kept = [row for row in rows if ran(row) <= as_of and (not lanes or row.lane in lanes)]
        self.rows: tuple[Entry, ...] = tuple(sorted(kept, key=order))
        self._items: dict[str, Item] = {}
        self._facts: dict[str, Facts] = {}
        self._lanes: dict[str, Lane] = {}

    def lane(self, name: str) -> Lane:
        """The lane of that name, else ``unlisted``."""
        if name not in self._lanes:
            self._lanes[name] = self._rulebook.lanes.of(name)
        return self._lanes[name]

    def item(self, row: Entry) -> Item:
        """A row's receipt, judged."""
        if row.id not in self._items:
            parsed = parse(Document(self._store.document(row.id), row.id[:12]))
            lane = self.lane(row.lane)
            witnesses, witnessed = self._kin(row)
            facts = replace(
                self.facts(parsed),
                failures=tuple(self._store.failed_before(parsed)),
                witnesses=witnesses,
                witnessed=witnessed,
            )
            verdict = judge_receipt(parsed, lane, self._rulebook.rules, facts)
            self._items[row.id] = Item(row, Launch(parsed, lane), verdict, facts)
        return self._items[row.id]

    def items(self, rows: Iterable[Entry]) -> list[Item]:
        """Rows' receipts, judged."""
        return [self.item(row) for row in rows]

    def facts(self, parsed: Parsed) -> Facts:
        """What rules may know of a lane, asked of the store once a lane; what is superseded, from the rows."""
        name = parsed.receipt.run.lane
        if name not in self._facts:
            known = self._store.facts([parsed])
            self._facts[name] = replace(known, superseded=self._superseded, failures=(), witnesses=(), witnessed=())
        return self._facts[name]

    def _kin(self, row: Entry) -> tuple[tuple[Parsed, ...], tuple[Parsed, ...]]:
        """The receipts that stand and name this one's launch as the one that they witness, and the one it names."""
        if row.witness_for is not None:
            return (), tuple(self._store.parsed(other.id) for other in self._named.get(row.witness_for, ()))
        found = {other.id: other for name in (row.id, row.launch) for other in self._witnesses.get(name, ())}
        return tuple(self._store.parsed(name) for name in found), ()

    @cached_property
    def _witnesses(self) -> Mapping[str, list[Entry]]:
        found: dict[str, list[Entry]] = defaultdict(list)
        for row in reversed(self.rows):
            if row.witness_for is not None and row.stands:
                found[row.witness_for].append(row)
        return found

    @cached_property
    def _named(self) -> Mapping[str, list[Entry]]:
        wanted = {row.witness_for for row in self.rows if row.witness_for is not None}
        found: dict[str, list[Entry]] = defaultdict(list)
        for row in self.rows:
            if row.id in wanted:
                found[row.id].append(row)
            if row.launch in wanted and row.stands:
                found[row.launch].append(row)
        return found

    @cached_property
    def _superseded(self) -> Mapping[str, tuple[str, str]]:
        return {item.receipt: (item.successor or "", item.reason) for item in self._store.supersessions()}

    @cached_property
    def _failures(self) -> Mapping[tuple[object, ...], list[Entry]]:
        found: dict[tuple[object, ...], list[Entry]] = defaultdict(list)
        for row in self.rows:
            if row.outcome in FAILED and row.stands:
                found[_shape(row)].append(row)
        return found

    def failed_before(self, row: Entry) -> list[Entry]:
        """Earlier launches of the lane that failed at the same shape; none where a part of it is unstated."""
        key = _shape(row)
        if None in key:
            return []
        return [other for other in self._failures.get(key, ()) if order(other) < order(row)]


def _shape(row: Entry) -> tuple[object, ...]:
    return (row.lane, row.kind, *(getattr(row, name) for name in SHAPE))
