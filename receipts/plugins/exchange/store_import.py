"""Importing an export: every document is hashed and parsed again, and what was said of it comes with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, get_args

import orjson

from receipts.base import files
from receipts.base.errors import InputError, Problem
from receipts.emit.files import file_mode, make_folder
from receipts.judging.verdict import PathAnswer, Status
from receipts.plugins.exchange.rows import json_line, stored_row
from receipts.receipt import Document, parse
from receipts.workflows.datasets import Row

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.plugins.exchange.source import ExportSource
    from receipts.store import Store
    from receipts.store.intake import Arrival, Intake
    from receipts.store.snapshot import VerdictRow

Progress = Callable[[int, int], None]
MAX_SHOWN: Final = 20  # conflicts
_AGAIN: Final = "write the export again with: receipts export"
_STATUSES: Final = get_args(Status)
_PATHS: Final = get_args(PathAnswer)


@dataclass
class ImportedStore:
    """What became of an export.

    `new` and `known` count rows by dataset, `purged` receipts that were purged here before and stay so, `left_out`
    rows that speak of a receipt that is not here. `notes` are sentences that are not errors; `sealed` counts new seals
    of this store, and `seals` is the file with those of the other one, which speak of its rows by their numbers there.
    """

    place: str
    store: str
    new: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    purged: int = 0
    left_out: int = 0
    columns_read_otherwise: int = 0
    notes: list[str] = field(default_factory=list)
    sealed: int = 0
    seals: str | None = None


def import_store(
    source: ExportSource, store: Store, rulebook: Rulebook, progress: Progress | None = None
) -> ImportedStore:
    """Copy an export into a store, in one transaction: all that is not here yet, or nothing.

    Raises InputError for an export that is damaged or contradicts what is here, each problem with where, what and what
    to do, and StoreError.
    """
    from receipts.store.intake import take_in

    own = store.id

    def work(intake: Intake) -> tuple[ImportedStore, list[Row]]:
        coming = _StoreImport(source, intake, rulebook)
        return coming.all(progress), coming.sealed

    done, sealed = take_in(store, work, whole=source.whole)
    if any(done.new.values()):
        done.sealed = len(store.seal())
    beside = store.database.address.file
    if sealed and beside is not None and source.store != own:
        folder = beside.with_name(f"{beside.name}.seals")
        make_folder(folder)
        place = folder / f"{source.store}.jsonl"
        with files.staged(place, over=True, mode=file_mode(folder)) as staged:
            staged.write_bytes(b"".join(map(json_line, sealed)))
        done.seals = str(place)
    return done


class _StoreImport:
    def __init__(self, source: ExportSource, intake: Intake, rulebook: Rulebook) -> None:
        self._source = source
        self._rulebook = rulebook
        self._intake = intake
        self._columns_read_otherwise = 0
        self.sealed: list[Row] = []

    def all(self, progress: Progress | None) -> ImportedStore:
        """Part after part, in the order in which the export gives them."""
        count, total = 0, self._source.rows["receipts"]
        waiting: list[Row] = []
        standings: dict[str, list[Row]] = {}
        # All that one dataset says of one thing is one history.
        name, rows = "", list[Row]()
        for part, some in self._source.parts():
            if part != name:
                self._take_rows(name, rows)
                name, rows = part, []
            self._receipts(waiting, some if part == "verdicts" else [])
            waiting = some if part == "receipts" else []
            if part == "supersessions":
                for row in some:
                    standings.setdefault(row["receipt"], []).append(stored_row(row))
            elif part == "comparisons":
                given = (self._verdict(row, "comparison", _subjects(row)) for row in some)
                self._intake.comparisons([item for item in given if item is not None])
            elif part in ("erased", "seals"):
                self.sealed += ({"in": part, **row} for row in some)
            elif part in ("purges", "envelopes"):
                self._intake.rows(part, list(map(stored_row, some)))
            elif part not in ("receipts", "verdicts"):
                rows += map(stored_row, some)
            count += len(waiting)
            if waiting and progress is not None:
                progress(count, total)
        self._receipts(waiting, [])
        self._take_rows(name, rows)
        self._intake.settle(standings)
        intake = self._intake
        if intake.conflicts:
            rest = len(intake.conflicts) - MAX_SHOWN
            more = [Problem("", f"and {rest:,} more such")] if rest > 0 else []
            last = Problem("", "nothing was imported; settle this and import it again")
            raise InputError(self._source.place, [*intake.conflicts[:MAX_SHOWN], *more, last])
        return ImportedStore(
            self._source.place,
            self._source.store,
            +intake.new,
            +intake.known,
            intake.purged,
            intake.left_out,
            self._columns_read_otherwise,
            intake.notes,
        )

    def _take_rows(self, name: str, rows: Sequence[Row]) -> None:
        if name == "claim_verdicts":
            from receipts.store.snapshot import VerdictRow

            verdicts = []
            for row in rows:
                given = ("claim", row["status"], None, row["claim"], row["rules"], row["judge"], row["judged_at"])
                subjects = tuple(_subjects(row))
                verdicts.append(VerdictRow(row["number"], *given, row["document"].encode(), subjects))
            self._intake.claim_verdicts(verdicts)
        elif rows:
            self._intake.rows(name, rows)

    def _receipts(self, rows: Sequence[Row], verdicts: Sequence[Row]) -> None:
        if not rows:
            return
        judgements: dict[str, list[VerdictRow]] = {}
        for row in verdicts:
            judgement = self._verdict(row, "receipt", [("receipt", row["receipt"])])
            if judgement is not None:
                judgements.setdefault(row["receipt"], []).append(judgement)
        batch = [item for row in rows if (item := self._arrival(row, judgements.get(row["id"], []))) is not None]
        self._intake.receipts(batch)

    def _arrival(self, row: Row, judgements: Sequence[VerdictRow]) -> Arrival | None:
        """A row as a receipt on its way in; None if it is damaged, which is remembered."""
        from receipts.store.entries import VerdictColumns, promoted
        from receipts.store.intake import Arrival

        document = Document(row["document"].encode(), row["id"][:12])
        first = min(judgements, key=lambda item: item.number, default=None)
        answer = VerdictColumns.of(first.status, orjson.loads(first.document)) if first is not None else None
        why = ""
        if document.id != row["id"]:
            why = "its bytes are not those of that id; they were changed"
        elif answer is None:
            why = "the verdict that it was stored with has not come with it"
        elif row["status"] not in _STATUSES or row["path_answer"] not in _PATHS:
            why = f"{row['status']!r} is not a status of a receipt"
        elif (row["status"], row["path_answer"]) != answer[:2]:
            why = (
                f"its row says {row['status']}, path {row['path_answer']}, and the verdict that it was stored with "
                "something else"
            )
        if answer is None or why:
            self._damaged(f"receipt {row['id'][:12]}", why)
            return None
        try:
            launch = self._rulebook.launch(parse(document))
            columns = {**promoted(launch, answer, row["submitted_at"]), "actor": row.get("actor")}
        except InputError as error:
            self._damaged(f"receipt {row['id'][:12]}", str(error))
            return None
        self._columns_read_otherwise += any(_differs(row, name, value) for name, value in columns.items())
        return Arrival(launch, row["generation"], columns, tuple(judgements))

    def _damaged(self, where: str, what: str) -> None:
        self._intake.conflicts.append(Problem(where, what, _AGAIN))

    def _verdict(self, row: Row, kind: str, subjects: Sequence[tuple[str, str]]) -> VerdictRow | None:
        """A row as a verdict; None if its document is none or says something else than its columns."""
        from receipts.store.snapshot import VerdictRow

        given = (row["status"], row.get("metric"), None, row["rules"], row["judge"], row["judged_at"])
        judgement = VerdictRow(row["number"], kind, *given, row["document"].encode(), tuple(subjects))
        agrees = False
        with suppress(orjson.JSONDecodeError, KeyError, TypeError):
            document = orjson.loads(judgement.document)
            sides = [("receipt", document["receipt"])] if kind == "receipt" else []
            sides += [(side, item) for side in ("a", "b") for item in document[side]] if kind != "receipt" else []
            columns = (judgement.status, judgement.rules, judgement.judge, judgement.metric, judgement.subjects)
            stated = (document["status"], document["rules"], document["judge"], document.get("metric"), tuple(sides))
            agrees = columns == stated
        if not agrees:
            name = subjects[0][1][:12] if subjects else "nothing"
            self._damaged(f"verdict {judgement.number} on {name}", "its columns and its document do not agree")
            return None
        return judgement


def _subjects(row: Row) -> list[tuple[str, str]]:
    return [(item["side"], item["receipt"]) for item in row["subjects"]]


def _differs(row: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether a column was read otherwise by the version that took the receipt in first."""
    given = row.get("run_lane" if name == "lane" else name)
    if isinstance(value, datetime) and isinstance(given, datetime):
        return value.timestamp() != given.timestamp()
    return bool(given != value)
