"""Importing an export: every document is hashed and parsed again, and what was said of it comes with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, get_args

import orjson

from receipts.base.errors import InputError
from receipts.judging.verdict import PathAnswer, Status
from receipts.plugins.exchange.rows import stored_row
from receipts.receipt import Document, parse
from receipts.workflows.datasets import Row

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.plugins.exchange.source import ExportSource
    from receipts.store import Store
    from receipts.store.transfer.foreign_rows import TakenRows
    from receipts.store.transfer.intake import Arrival, VerdictRow

Progress = Callable[[int, int], None]
_STATUSES: Final = get_args(Status)
_PATHS: Final = get_args(PathAnswer)


@dataclass
class ImportedStore:
    """What became of an export. Each of `refused` says what and why; nothing of what it names was written.

    `new` and `known` count rows by dataset, `purged` receipts that were purged here before and stay so, `left_out`
    rows that speak of a receipt that is not here. `notes` are sentences that are no error; `sealed` counts new seals.
    """

    place: str
    store: str
    new: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    purged: int = 0
    left_out: int = 0
    columns_read_otherwise: int = 0
    sealed: int = 0
    refused: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """2 where something was refused, else 0."""
        return 2 if self.refused else 0


def import_store(
    source: ExportSource, store: Store, rulebook: Rulebook, progress: Progress | None = None
) -> ImportedStore:
    """Take an export into a store: a few hundred receipts per transaction, each with its bytes and verdicts.

    What is here already is left as it is, so that an import that was stopped is taken up by doing it again. Raises
    InputError for an export that is damaged, and StoreError; what was taken in before stays.
    """
    work = _StoreImport(source, store, rulebook)
    return work.all(progress)


class _StoreImport:
    def __init__(self, source: ExportSource, store: Store, rulebook: Rulebook) -> None:
        from receipts.store.transfer.intake import Receiver

        self._source = source
        self._rulebook = rulebook
        self._store = store
        self._taking = Receiver(store, source.store, whole=source.whole)
        self._done = ImportedStore(source.place, source.store)
        self._statements: dict[str, list[Row]] = {}

    def all(self, progress: Progress | None) -> ImportedStore:
        """Part after part, in the order in which the export gives them."""
        count, total = 0, self._source.rows["receipts"]
        waiting: list[Row] = []
        pins: list[Row] = []
        for name, rows in self._source.parts():
            if pins and name != "pins":
                self._rows("pins", pins)
                pins = []
            self._receipts(waiting, rows if name == "verdicts" else [])
            waiting = rows if name == "receipts" else []
            if name == "supersessions":
                self._add_statements(rows)
            elif name == "comparisons":
                self._comparisons(rows)
            elif name == "pins":
                pins += rows  # a name's history is one: what counts here is asked once
            elif name not in ("receipts", "verdicts"):
                self._rows(name, rows)
            count += len(waiting)
            if waiting and progress is not None:
                progress(count, total)
        self._receipts(waiting, [])
        self._rows("pins", pins)
        if any(self._done.new.values()):
            self._done.sealed = len(self._store.seal())
        return self._done

    def _add_statements(self, rows: Sequence[Row]) -> None:
        """Kept until their receipts come: a receipt and its standing are one transaction."""
        for row in rows:
            self._statements.setdefault(row["receipt"], []).append(stored_row(row))

    def _receipts(self, rows: Sequence[Row], verdicts: Sequence[Row]) -> None:
        if not rows:
            return
        judgements: dict[str, list[VerdictRow]] = {}
        for row in verdicts:
            judgement = self._verdict(row, "receipt", [("receipt", row["receipt"])])
            if judgement is not None:
                judgements.setdefault(row["receipt"], []).append(judgement)
        batch = [item for row in rows if (item := self._arrival(row, judgements.get(row["id"], []))) is not None]
        taken = self._taking.receipts(batch, self._statements)
        for item, fate in zip(batch, taken.fates, strict=True):
            if fate.what == "refused":
                self._refuse(f"{item.parsed.name} ({fate.id[:12]}): {fate.why}")
                self._done.left_out += len(item.verdicts)
            elif fate.what == "purged":
                self._done.purged += 1
                self._done.left_out += len(item.verdicts)
            else:
                (self._done.new if fate.what == "new" else self._done.known)["receipts"] += 1
        held = sum(
            len(item.verdicts) for item, fate in zip(batch, taken.fates, strict=True) if fate.what in ("new", "known")
        )
        self._done.new["verdicts"] += taken.verdicts
        self._done.known["verdicts"] += held - taken.verdicts
        self._done.new["supersessions"] += taken.supersessions_added

    def _arrival(self, row: Row, judgements: Sequence[VerdictRow]) -> Arrival | None:
        """A row as a receipt on its way in; None where it is refused, which is remembered."""
        from receipts.store.entries import VerdictColumns
        from receipts.store.transfer.intake import arrival

        document = Document(row["document"].encode(), row["id"][:12])
        first = min(judgements, key=lambda item: item.number, default=None)
        answer = VerdictColumns.of(first.status, orjson.loads(first.document)) if first is not None else None
        why = ""
        if document.id != row["id"]:
            why = "its bytes are not those of that id; they were changed"
        elif answer is None:
            why = "the verdict that it was stored with has not come with it"
        elif row["status"] not in _STATUSES or row["path_answer"] not in _PATHS:
            why = f"{row['status']!r} is no status of a receipt"
        elif (row["status"], row["path_answer"]) != answer[:2]:
            why = (
                f"its row says {row['status']}, path {row['path_answer']}, and the verdict that it was stored with "
                "something else"
            )
        if answer is None or why:
            self._refuse(f"{row['id'][:12]}: {why}")
            return None
        try:
            parsed = parse(document)
            launch = self._rulebook.launch(parsed)
            incoming = arrival(
                launch, row["number"], row["generation"], answer, row["submitted_at"], row.get("actor"), judgements
            )
        except InputError as error:
            self._refuse(str(error))
            return None
        self._done.columns_read_otherwise += any(_differs(row, name, value) for name, value in incoming.row.items())
        return incoming

    def _verdict(self, row: Row, kind: str, subjects: Sequence[tuple[str, str]]) -> VerdictRow | None:
        """A row as a verdict; None where its document is none or says something else than its columns."""
        from receipts.store.transfer.intake import VerdictRow

        judgement = VerdictRow(
            row["number"],
            kind,
            row["status"],
            row.get("metric"),
            None,
            row["rules"],
            row["judge"],
            row["judged_at"],
            row["document"].encode(),
            tuple(subjects),
        )
        if not _matches_columns(judgement):
            name = subjects[0][1][:12] if subjects else "nothing"
            self._refuse(f"verdict {judgement.number} on {name}: its columns and its document do not agree")
            return None
        return judgement

    def _comparisons(self, rows: Sequence[Row]) -> None:
        judgements = [self._verdict(row, "comparison", _subjects(row)) for row in rows]
        batch = [item for item in judgements if item is not None]
        new, left = self._taking.verdicts(batch)
        self._done.new["comparisons"] += new
        self._done.left_out += left
        self._done.known["comparisons"] += len(batch) - new - left

    def _rows(self, name: str, rows: Sequence[Row]) -> None:
        came: TakenRows = self._taking.rows(name, [stored_row(row) for row in rows])
        self._done.new[name] += came.new
        self._done.known[name] += max(0, len(rows) - came.new - came.left - len(came.conflicts))
        self._done.left_out += came.left
        self._done.notes += came.notes
        self._done.refused += came.conflicts

    def _refuse(self, why: str) -> None:
        self._done.refused.append(why)


def _subjects(row: Row) -> list[tuple[str, str]]:
    return [(item["side"], item["receipt"]) for item in row["subjects"]]


def _matches_columns(judgement: VerdictRow) -> bool:
    """Whether a verdict's document agrees with its columns."""
    try:
        document = orjson.loads(judgement.document)
        sides: Iterator[tuple[str, str]] | list[tuple[str, str]]
        if judgement.kind == "receipt":
            sides = [("receipt", document["receipt"])]
        else:
            sides = [*(("a", item) for item in document["a"]), *(("b", item) for item in document["b"])]
        given = (judgement.status, judgement.rules, judgement.judge, judgement.metric, judgement.subjects)
        return given == (document["status"], document["rules"], document["judge"], document.get("metric"), tuple(sides))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return False


def _differs(row: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether a column was read otherwise by the version that took the receipt in first."""
    given = row.get("run_lane" if name == "lane" else name)
    if isinstance(value, datetime) and isinstance(given, datetime):
        return value.timestamp() != given.timestamp()
    return bool(given != value)
