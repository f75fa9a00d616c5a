"""The store: receipts as they came, what was stated of them, and what rules, comparisons and preflights ask of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, select

from receipts.axes.replicates import LaunchSettings
from receipts.base.environment import Actor
from receipts.base.errors import ConflictError, NoStore, NotFound
from receipts.judging.facts import Facts
from receipts.judging.verdict import ReceiptVerdict
from receipts.metrics import Launch
from receipts.receipt import Document, Parsed, parse_again
from receipts.store import decisions, schema, verdicts
from receipts.store.address import address
from receipts.store.database import Database, Repository, connect, driver_errors, reads, write, writes
from receipts.store.decisions import Published
from receipts.store.entries import (
    entries_with_ids,
    entry_with_id,
    every_id,
    extracts_of,
    keep_extracts,
    unpacked_document,
)
from receipts.store.entry import Entry
from receipts.store.evidence import kept_files
from receipts.store.query import axis_index, lists, names, outcomes, replicates
from receipts.store.query import facts as facts_module
from receipts.store.query.facts import SettingsOf
from receipts.store.query.lists import Filters, Progress
from receipts.store.sql import engine_of
from receipts.store.sql.statement import SqlStatement
from receipts.store.submission import Prepared, Submitted, prepare, take
from receipts.store.tables import documents, receipts

if TYPE_CHECKING:
    from receipts.store.credentials import Signing
    from receipts.store.seals import Seal
    from receipts.store.snapshot import Inspection


class Queries(Repository):
    """What rules, comparisons and preflights ask of a store."""

    failed_before = reads(outcomes.failed_before)
    same_signature = reads(outcomes.same_signature)
    dominating = reads(outcomes.dominating)
    ran_out = reads(outcomes.ran_out)
    reached = reads(outcomes.reached_shapes)
    reached_with = reads(facts_module.of_geometry)
    failed_alike = reads(outcomes.failed_alike)
    replicate_candidates = reads(replicates.replicate_candidates)
    alike = reads(replicates.alike)
    newest_alike = reads(replicates.newest_alike)
    neighbours = reads(axis_index.neighbours)
    mixtures = reads(axis_index.mixtures)
    line = reads(replicates.line_launches)
    recent_lines = reads(replicates.recent_lines)
    holds_lane = reads(axis_index.holds_lane)

    def facts(self, group: Parsed | Sequence[Parsed]) -> Facts:
        """Facts for judging receipts, stored or not."""
        with self.database.reading() as connection:
            every = [group] if isinstance(group, Parsed) else group
            return self._with_kept(facts_module.facts(connection, every, self.database.once), every)

    def facts_of_new(self, group: Sequence[Parsed], settings: SettingsOf = LaunchSettings) -> list[Facts]:
        """Facts for judging receipts that are about to be submitted, one for each; fewer questions than `facts`."""
        with self.database.at_once() as connection:
            known = facts_module.facts_of_new(connection, group, self.database.actor(connection), settings)
        return [self._with_kept(item, [one]) for item, one in zip(known, group, strict=True)]

    def _with_kept(self, facts: Facts, group: Sequence[Parsed]) -> Facts:
        """The facts, with which of the listed files the store keeps; asked only for what a reader read."""
        listed = {entry.sha256 for item in group for entry in item.receipt.evidence or () if entry.read}
        kept = kept_files(self.database.address) if listed else None
        return replace(facts, kept=kept.held(filter(None, listed))) if kept is not None else facts


KEPT: Final = 1000  # parsed receipts, some 50 kB each
_DOCUMENT: Final = SqlStatement(
    select(documents.c.codec, documents.c.body)
    .join(receipts, receipts.c.seq == documents.c.receipt)
    .where(receipts.c.id == bindparam("id"))
)


class Store(Repository):
    """An open store. Every method is one transaction: what it says was written is on the disk, whole.

    Every method raises StoreError where the store cannot be reached, read or written. `query` asks of launches,
    `published` of claims, decisions and quotes, `signing` of keys and signatures; `database` is for whatever else reads
    or writes rows.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.query = Queries(database)
        self.published = Published(database)
        self._parsed: dict[str, Parsed] = {}

    @cached_property
    def signing(self) -> Signing:
        """Keys that count, and signatures: few submits have any."""
        from receipts.store.credentials import Signing

        return Signing(self.database)

    def __repr__(self) -> str:
        return f"Store({self.url!r})"

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self.database.close()

    @property
    def url(self) -> str:
        """Where it is: a path, or a URL without its password."""
        return self.database.url

    def one_state(self) -> AbstractContextManager[None]:
        """All reads inside see one state of the store, whatever is written meanwhile, and nothing is asked twice."""
        return self.database.one_state()

    # Writing receipts

    def submit(self, launch: Launch, verdict: ReceiptVerdict) -> Submitted:
        """Store a judged receipt with its bytes and verdict, on the disk when this returns.

        The same bytes again are harmless: `Submitted.new` is False. Raises ConflictError where the launch has
        another valid receipt, or these bytes were purged, and InputError where no store can hold it.
        """
        (result,) = self.write([prepare(launch, verdict)])
        if isinstance(result, Submitted):
            return result
        raise result

    def write(self, items: Sequence[Prepared], *, decides: bool = False) -> list[Submitted | ConflictError]:
        """Store receipts in one transaction, in their order. One that is refused leaves the others alone.

        Only an actor who ``decides`` replaces a receipt that another actor submitted.

        They were prepared here or in another process; see `prepare`. Gives, for each, what it came to, or the error
        that it was refused with.
        """
        actor = self.database.actor
        with driver_errors(self.database.address):
            return write(
                self.database.engine,
                lambda connection: take(connection, items, actor(connection), decides=decides),
                together=True,
            )

    # Reading receipts

    entry = reads(entry_with_id)
    entries = reads(entries_with_ids)
    ids = reads(every_id)
    resolve = reads(names.resolve)
    resolve_all = reads(names.resolve_all)
    plan = reads(lists.plan)

    def document(self, receipt_id: str) -> bytes:
        """The bytes of a receipt as they came. Raises NotFound, or StoreError where they were tampered with."""
        with self.database.reading() as connection:
            rows = _DOCUMENT.all(connection, {"id": receipt_id})
        if not rows:
            raise NotFound(f"there is no receipt {receipt_id[:12]}; see: receipts list")
        ((codec, body),) = rows
        return unpacked_document(codec, body, receipt_id).raw

    def get(self, text: str, *, repeated: bool = False) -> Parsed:
        """The one receipt that a text names, as `resolve` reads it."""
        return self.parsed(self.resolve(text, repeated=repeated))

    def parsed(self, receipt_id: str) -> Parsed:
        """The receipt of an id, kept at hand: who looks for replicates and then for noise reads the same ones.

        Raises as `document` does.
        """
        if receipt_id not in self._parsed:
            if len(self._parsed) >= KEPT:
                del self._parsed[next(iter(self._parsed))]
            self._parsed[receipt_id] = parse_again(Document(self.document(receipt_id), receipt_id[:12]))
        return self._parsed[receipt_id]

    def find(self, filters: Filters | None = None, progress: Progress | None = None) -> Iterator[Entry]:
        """Receipts that meet the filters, in their order, read as they are asked for; see `query.lists.find`."""
        with self.database.reading() as connection:
            yield from lists.find(connection, filters or Filters(), progress)

    # What was said of them

    keep_extracts = writes(keep_extracts)
    extracts = reads(extracts_of)
    record = writes(verdicts.record)
    verdicts = reads(verdicts.of)
    retract = writes(decisions.retract)
    reinstate = writes(decisions.reinstate)
    fallen = reads(decisions.fallen)
    supersessions = reads(decisions.all_supersessions)
    pin = writes(decisions.pin)
    pins = reads(decisions.current_pins)
    pin_history = reads(decisions.pin_history)

    def purge(self, receipt_id: str, reason: str) -> None:
        """Erase a receipt for good, with every verdict that speaks of it; id, reason and time stay. Raises NotFound.

        Copies of the store made before keep what was in them.
        """
        self.entry(receipt_id)
        self._parsed.pop(receipt_id, None)
        with driver_errors(self.database.address):
            engine_of(self.database.engine).overwrite_deleted(self.database.engine)
            write(self.database.engine, lambda item: decisions.purge(item, receipt_id, reason, self.database.by(item)))
            schema.erase(self.database.engine)

    @property
    def id(self) -> str:
        """The store's own id, a UUID."""
        with self.database.reading() as connection:
            return schema.own_id(connection)

    @contextmanager
    def inspect(self) -> Iterator[Inspection]:
        """Everything that it holds, in one state of it, for an audit."""
        from receipts.store.snapshot import Inspection

        with self.database.snapshot() as connection:
            yield Inspection(connection)

    def check(self) -> schema.StoreCheck:
        """Schema, triggers, and what the engine says of its own files; see `receipts.store.schema`."""
        return schema.check(self.database.address)

    def seal(self, every: timedelta | None = None) -> list[Seal]:
        """Seal what no seal holds yet; gives the seals written. Other writers wait for a second or two at a time.

        With ``every`` only if the last seal is older than that, or there is none.
        """
        from receipts.store import seals as seal_module

        if every is not None:
            with self.database.reading() as connection:
                last = seal_module.last_at(connection)
            if last is not None and datetime.now(UTC) - last < every:
                return []
        sealed: list[Seal] = []
        more = True
        while more:
            some = self.database.write(lambda connection: seal_module.seal(connection, datetime.now(UTC)), alone=True)
            sealed += some
            # What comes while this is written is for the next one: who waited for silence might wait for ever.
            more = any(item.held >= seal_module.MAX_ROWS for item in some)
        return sealed


def open_store(url: str | None = None, *, create: bool = True, actor: Actor | None = None) -> Store:
    """Open the store of a URL or path; None is ``RECEIPTS_STORE``, else the user's own.

    A store that does not exist is made, unless ``create`` is False. Raises UsageError for a URL of another kind,
    NoStore, and any other StoreError that says what to do. Rows that are written record the ``actor``, by default the
    database's user or that of the process; who writes for others, such as a server, names whom.
    """
    place = address(url)
    if place.file is not None and not place.file.exists():
        if not create:
            raise NoStore(f"{place}: there is no store yet; make one with: receipts submit FILE")
        place.make_folder()
    engine = connect(place)
    try:
        with driver_errors(place):
            schema.ensure(engine, place, create=create)
    except BaseException:
        engine.dispose()
        raise
    return Store(Database(engine, place, actor))
