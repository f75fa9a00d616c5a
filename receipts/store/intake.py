"""Copying the rows of another store into this one, in one transaction: all of them, or none.

What is here already stays as it is, so that an export of a store that grew is imported again. Where the other store
says more of something than this one, the rest is added; where the two contradict each other, it is a conflict.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import Connection, func, insert, select

from receipts.base.errors import Problem
from receipts.metrics import Launch
from receipts.store import index
from receipts.store.decisions import BY_PURGED
from receipts.store.entries import CODEC, pack, standing
from receipts.store.index import IndexedReceipt
from receipts.store.snapshot import VerdictRow, verdict_rows
from receipts.store.sql import engine_of
from receipts.store.store import Store
from receipts.store.submission import RelatedReceipt, World, ask_related, replaced_by, replacing
from receipts.store.tables import (
    claim_subjects,
    claim_verdicts,
    content_columns,
    documents,
    metadata,
    purges,
    receipts,
    subjects,
    verdicts,
)
from receipts.store.verdicts import Row, insert_verdicts

T = TypeVar("T")
_ELSEWHERE: Final = "which has not come along: "  # a successor that the export of a part left out


class Arrival(NamedTuple):
    """A receipt on its way in, with the verdicts on it alone. `row` has its columns but for `seq` and `generation`."""

    launch: Launch
    generation: int
    row: Mapping[str, Any]
    verdicts: tuple[VerdictRow, ...]


class _Statement(NamedTuple):
    """How the rows of one table meet: `group` is what a row speaks of, and the last of a group counts by `counts`.

    `named` is what to call a group, `do` settles a conflict. Rows whose `do` is empty can be read or judged again, so
    that those of this store stay.
    """

    group: str
    counts: str
    named: str
    do: str = ""


_STATEMENTS: Final[Mapping[str, _Statement]] = {
    "supersessions": _Statement(
        "receipt", "successor", "receipt {:.12}", "say the same in both stores: receipts retract {:.12}"
    ),
    "pins": _Statement("name", "receipt", "@{}", "set it alike in both stores: receipts pin @{} ID"),
    "claims": _Statement("id", "body", "claim {}", "claims are never edited: import into a new store (--store NEW)"),
    "claim_supersessions": _Statement(
        "claim", "successor", "claim {}", "claims are never edited: import into a new store (--store NEW)"
    ),
    "decisions": _Statement(
        "receipt", "decision", "decision on {:.12}", "decide alike in both stores: receipts decide {:.12}"
    ),
    "incidents": _Statement("incident", "event", "incident {}", "close it in both stores: receipts incident close {}"),
    "quotes": _Statement("document", "at", "quotes in {}"),
    "claim_verdicts": _Statement("claim", "at", "verdicts on claim {}"),
}


class Intake:
    """Rows of another store on their way into this one.

    `new` and `known` count rows by dataset, `left_out` rows about receipts that were purged here. `conflicts` say
    where, what, and what to do; whoever takes rows in ends the transaction without them where there are any. ``whole``
    says that the export left nothing out.
    """

    def __init__(self, connection: Connection, *, whole: bool) -> None:
        self._connection = connection
        self._whole = whole
        self.new: Counter[str] = Counter()
        self.known: Counter[str] = Counter()
        self.purged = 0
        self.left_out = 0
        self.conflicts: list[Problem] = []
        self.notes: list[str] = []
        self._replaced: list[Row] = []

    # Receipts

    def receipts(self, batch: Sequence[Arrival]) -> None:
        """Receipts with their verdicts; `settle` follows the last of them."""
        asks = ask_related(self._connection, [item.row for item in batch])
        existing, purged = engine_of(self._connection).together(self._connection, asks)
        world = World((RelatedReceipt(*row) for row in existing), purged)
        rows: dict[str, dict[str, Any]] = {}
        for item in batch:
            own = item.row["id"]
            if own in world.purged:
                self.purged += 1
                self.left_out += len(item.verdicts)
            elif world.get(own) is not None:
                self.known["receipts"] += 1
            else:
                related = world.related(item.row)
                replaced, later = replaced_by(item.row, related), replacing(item.row, related)
                taken = {other.generation for other in related if other.launch == item.row["launch"]}
                generation = item.generation if item.generation not in taken else max(taken) + 1
                rows[own] = {**item.row, "generation": generation}
                self._replaced += [_superseded(other.id, item.row) for other in replaced if other.superseded is None]
                self._replaced += [_superseded(own, other._asdict()) for other in later]
                world.take(item.row, item.row["actor"], generation, replaced, stands=not later)
        held = [item for item in batch if item.row["id"] not in world.purged]
        if rows:
            self.new["receipts"] += len(rows)
            self._connection.execute(insert(receipts), list(rows.values()))
        numbers = self._numbers(item.row["id"] for item in held)
        arrived = [(numbers[item.row["id"]], item) for item in held if item.row["id"] in rows]
        raws = [(seq, item.launch.parsed.raw) for seq, item in arrived]
        packed = [{"receipt": seq, "codec": CODEC, "size": len(raw), "body": pack(raw)} for seq, raw in raws]
        if packed:
            self._connection.execute(insert(documents), packed)
            indexed = [IndexedReceipt.of(seq, item.row["started"], item.launch) for seq, item in arrived]
            index.add(self._connection, indexed)
        known = [seq for receipt, seq in numbers.items() if receipt not in rows]
        self._verdicts("verdicts", [verdict for item in held for verdict in item.verdicts], numbers, known)

    def settle(self, standings: Mapping[str, Sequence[Row]]) -> None:
        """What both stores say of standing, when all receipts are here; ``standings`` are rows there, by receipt."""
        about = self._present(receipts.c.id, [*standings, *(row["receipt"] for row in self._replaced)])
        coming = {receipt: list(standings.get(receipt, ())) for receipt in about}
        for row in self._replaced:
            statements = coming[row["receipt"]]
            if row["successor"] not in {item["successor"] for item in statements}:
                statements.append(row)
        successors = {row["successor"] for rows in coming.values() for row in rows}
        gone = self._present(purges.c.receipt, successors)
        there = gone | self._present(receipts.c.id, successors)

        def settled(row: Row) -> Row:
            successor = row["successor"]
            if successor in gone:  # its reason may quote what had to go
                return {**row, "reason": BY_PURGED}
            if successor is None or successor in there or self._whole:
                return row
            return {**row, "successor": None, "reason": f"superseded by {successor[:12]}, {_ELSEWHERE}{row['reason']}"}

        self._statements("supersessions", {receipt: list(map(settled, rows)) for receipt, rows in coming.items()})
        if not self.new["receipts"]:
            return
        # A launch has at most one receipt that stands.
        several = select(receipts.c.launch).where(standing()).group_by(receipts.c.launch).having(func.count() > 1)
        query = select(receipts.c.launch, receipts.c.id).where(receipts.c.launch.in_(several), standing())
        stand: dict[str, list[str]] = defaultdict(list)
        for launch, receipt in self._connection.execute(query.order_by(receipts.c.seq)):
            stand[launch].append(receipt[:12])
        for launch, ids in stand.items():
            what = f"it has a receipt with other bytes here, {ids[0]}, and one there, {ids[1]}"
            do = f'where that one is right: receipts retract {ids[0]} --reason "…"; else retract it there'
            self.conflicts.append(Problem(f"launch {launch}", what, do))

    # Verdicts

    def comparisons(self, batch: Sequence[VerdictRow]) -> None:
        """Verdicts on several receipts; those on a receipt that is not here are left out."""
        numbers = self._numbers(receipt for item in batch for _, receipt in item.subjects)
        held = [item for item in batch if all(receipt in numbers for _, receipt in item.subjects)]
        self.left_out += len(batch) - len(held)
        self._verdicts("comparisons", held, numbers, list(numbers.values()))

    def _verdicts(
        self, name: str, batch: Sequence[VerdictRow], numbers: Mapping[str, int], known: Sequence[int]
    ) -> None:
        """Verdicts that both stores have are one; none contradicts another. ``known`` receipts may have them."""
        there = set()
        if known:
            spoken = select(subjects.c.verdict).where(subjects.c.receipt.in_(known))
            at = {item.at.astimezone(UTC) for item in batch}
            query = select(verdicts).where(verdicts.c.seq.in_(spoken), verdicts.c.judged_at.in_(at))
            there = {item.key for item in verdict_rows(self._connection, self._connection.execute(query).all())}
        new = list({item.key: item for item in batch if item.key not in there}.values())
        rows = [
            (
                {"kind": item.kind, "metric": item.metric, "judged_at": item.at, **_given(item)},
                [(side, numbers[receipt]) for side, receipt in item.subjects],
            )
            for item in new
        ]
        insert_verdicts(self._connection, verdicts, subjects, rows)
        self.new[name] += len(new)
        self.known[name] += len(batch) - len(new)

    def claim_verdicts(self, batch: Sequence[VerdictRow]) -> None:
        """Verdicts on claims, but for those that stood on a receipt that was purged here."""
        gone = self._present(purges.c.receipt, {receipt for item in batch for _, receipt in item.subjects})
        coming: dict[str, list[VerdictRow]] = defaultdict(list)
        for item in batch:
            if any(receipt in gone for _, receipt in item.subjects):
                self.left_out += 1
            else:
                coming[item.about or ""].append(item)
        query = select(claim_verdicts).where(claim_verdicts.c.claim.in_(list(coming))).order_by(claim_verdicts.c.seq)
        here: dict[str, list[VerdictRow]] = defaultdict(list)
        for item in verdict_rows(self._connection, self._connection.execute(query).all(), of_claims=True):
            here[item.about or ""].append(item)
        new = self._to_add("claim_verdicts", here, coming, lambda one: one.key, lambda one: one.key)
        rows = [({"claim": item.about, "at": item.at, **_given(item)}, item.subjects) for item in new]
        insert_verdicts(self._connection, claim_verdicts, claim_subjects, rows)

    # What people said

    def rows(self, name: str, rows: Sequence[Row]) -> None:
        """Every row of any other dataset, in the order in which they were said there."""
        if name == "purges":  # what is here and was purged there is not erased by an import, which is said instead
            ids = {row["receipt"] for row in rows}
            stored, known = self._present(receipts.c.id, ids), self._present(purges.c.receipt, ids)
            new = [row for row in map(_content(name), rows) if row["receipt"] not in stored | known]
            self._insert(name, new, len(rows) - len(stored))
            self.notes += (
                f"{row['receipt'][:12]} was purged there ({row['reason']}) and is still here; where that holds here, "
                f'too: receipts purge {row["receipt"][:12]} --reason "…"'
                for row in rows
                if row["receipt"] in stored
            )
        elif name == "envelopes":  # a signature contradicts none
            here = {tuple(row.values()) for group in self._here(name, "receipt", rows).values() for row in group}
            new = [row for row in map(_content(name), rows) if tuple(row.values()) not in here]
            self._insert(name, new, len(rows))
        else:
            group, speaking = _STATEMENTS[name].group, rows
            if name in ("pins", "decisions"):
                wanted = {row["receipt"] for row in rows}
                known = self._present(receipts.c.id, wanted) | self._present(purges.c.receipt, wanted)
                speaking = [row for row in rows if row["receipt"] is None or row["receipt"] in known]
            self.left_out += len(rows) - len(speaking)
            coming: dict[str, list[Row]] = defaultdict(list)
            for row in speaking:
                coming[row[group]].append(row)
            self._statements(name, coming)

    def _statements(self, name: str, coming: Mapping[str, Sequence[Row]]) -> None:
        """Rows of a table by what they speak of."""
        content, counts = _content(name), _STATEMENTS[name].counts
        plain = {group: list(map(content, rows)) for group, rows in coming.items()}
        here = self._here(name, _STATEMENTS[name].group, [row for rows in plain.values() for row in rows])
        if name == "supersessions":  # what the export of a part left out has come
            here = {key: [row for row in rows if _ELSEWHERE not in row["reason"]] for key, rows in here.items()}
        alike = (lambda row: json.loads(row["body"])) if name == "claims" else (lambda row: row[counts])
        new = self._to_add(name, here, plain, lambda row: tuple(row.values()), alike)
        if new:
            self._connection.execute(insert(metadata.tables[name]), new)

    def _to_add(
        self,
        name: str,
        here: Mapping[str, Sequence[T]],
        coming: Mapping[str, Sequence[T]],
        same: Callable[[T], Any],
        counts: Callable[[T], Any],
    ) -> list[T]:
        """What this store lacks of groups of rows, in their order; a group that went on otherwise there conflicts."""
        added: list[T] = []
        of = _STATEMENTS[name]
        for group, rows in coming.items():
            mine, theirs = list(map(same, here.get(group, ()))), list(map(same, rows))
            if theirs[: len(mine)] == mine:
                added += rows[len(mine) :]
                self.new[name] += len(rows) - len(mine)
                self.known[name] += len(mine)
            elif all(row in mine for row in theirs) or counts(rows[-1]) == counts(here[group][-1]):
                self.known[name] += len(rows)
            elif not of.do:
                self.left_out += len(rows)
                self.notes.append(f"{of.named.format(group)}: this store has others, which stay")
            else:
                what = f"{of.counts} is {_short(counts(here[group][-1]))} here and {_short(counts(rows[-1]))} there"
                self.conflicts.append(Problem(of.named.format(group), what, of.do.format(group)))
        return added

    def _insert(self, name: str, new: Sequence[Row], count: int) -> None:
        if new:
            self._connection.execute(insert(metadata.tables[name]), list(new))
        self.new[name] += len(new)
        self.known[name] += count - len(new)

    def _here(self, name: str, group: str, rows: Iterable[Row]) -> dict[str, list[Row]]:
        """The rows of this store that speak of the same, by what they speak of, in the order they were said in."""
        table = metadata.tables[name]
        among = engine_of(self._connection).among(table.c[group], list({row[group] for row in rows}))
        query = select(*(table.c[key] for key in content_columns(table))).where(among).order_by(table.c.seq)
        here: dict[str, list[Row]] = defaultdict(list)
        for row in self._connection.execute(query).mappings():
            here[row[group]].append(dict(row))
        return here

    def _numbers(self, ids: Iterable[str]) -> dict[str, int]:
        among = engine_of(self._connection).among(receipts.c.id, list(set(ids)))
        query = select(receipts.c.id, receipts.c.seq).where(among)
        return {row.id: row.seq for row in self._connection.execute(query)}

    def _present(self, column: Any, wanted: Iterable[str | None]) -> set[str]:
        among = engine_of(self._connection).among(column, [item for item in set(wanted) if item is not None])
        return set(self._connection.execute(select(column).where(among)).scalars())


def take_in(store: Store, work: Callable[[Intake], T], *, whole: bool) -> T:
    """Take rows in by one transaction, which ends without them where ``work`` raises. Raises StoreError."""
    return store.database.write(lambda connection: work(Intake(connection, whole=whole)), alone=True)


def _content(name: str) -> Callable[[Row], Row]:
    """What a row means in every store: its columns but the number, times in UTC."""
    columns = content_columns(metadata.tables[name])

    def content(row: Row) -> Row:
        values: dict[str, Any] = {key: row.get(key) for key in columns}
        return {**values, "at": values["at"].astimezone(UTC)}

    return content


def _given(item: VerdictRow) -> dict[str, Any]:
    """What both tables have of a verdict."""
    names = ("status", "rules", "judge")
    return {**{name: getattr(item, name) for name in names}, "codec": CODEC, "body": pack(item.document)}


def _superseded(receipt: str, by: Row) -> Row:
    """What a receipt says that supersedes another, where neither store has said it."""
    reason = by["supersedes_reason"] or ""
    return {"receipt": receipt, "successor": by["id"], "reason": reason, "at": datetime.now(UTC), "actor": by["actor"]}


def _short(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text[:12] if len(text) == 64 else text[:40]  # an id is told by its beginning
