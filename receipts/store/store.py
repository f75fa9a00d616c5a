"""The store: receipts as they came, what was said of them, and what rules may know of their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeVar

from sqlalchemy import Connection, Engine, bindparam, select

from receipts.axes.configuration import Configuration
from receipts.errors import ConflictError, InputError, NotFound, StoreError
from receipts.metrics import Launch
from receipts.receipt import Document, Parsed, parse_again
from receipts.rule import EarlierFailure, Facts
from receipts.signature import Signature
from receipts.store import alike as alike_module
from receipts.store import around, between, history, names, near, published, schema
from receipts.store import chronicle as chronicle_module
from receipts.store import facts as facts_module
from receipts.store import find as find_module
from receipts.store import seal as seal_module
from receipts.store import shapes as shapes_module
from receipts.store import signatures as signatures_module
from receipts.store import submission as submission_module
from receipts.store import verdicts as verdicts_module
from receipts.store.address import Address, address
from receipts.store.alike import Alike
from receipts.store.around import Held
from receipts.store.between import Between
from receipts.store.chronicle import Chronicle
from receipts.store.engine import connect, reading, told, write
from receipts.store.find import Filters
from receipts.store.history import Pin, Supersession
from receipts.store.near import Neighbour
from receipts.store.packing import unpack
from receipts.store.published import Decision, NewClaim, Quote, StoredClaim, StoredClaimVerdict
from receipts.store.rows import Entry, entries, entry
from receipts.store.seal import Seal
from receipts.store.shapes import Reached
from receipts.store.signatures import Known
from receipts.store.statement import Statement
from receipts.store.submission import Prepared, Submitted
from receipts.store.tables import documents, receipts, stores
from receipts.store.verdicts import StoredVerdict, Verdict
from receipts.verdict import ClaimVerdict, ReceiptVerdict

if TYPE_CHECKING:
    from receipts.store.inspection import Inspection

T = TypeVar("T")
KEPT: Final = 500  # parsed receipts, some 50 kB each
_DOCUMENT: Final = Statement(
    select(documents.c.codec, documents.c.body)
    .join(receipts, receipts.c.seq == documents.c.receipt)
    .where(receipts.c.id == bindparam("id"))
)


class Store:
    """An open store. Every method is one transaction: what it says was written is on the disk, whole.

    Every method raises StoreError where the store cannot be reached, read or written.
    """

    def __init__(self, engine: Engine, place: Address) -> None:
        self._engine = engine
        self._address = place
        self._parsed: dict[str, Parsed] = {}

    def __repr__(self) -> str:
        return f"Store({str(self._address)!r})"

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    @property
    def url(self) -> str:
        """Where it is: a path, or a URL without its password."""
        return str(self._address)

    @property
    def full_url(self) -> str:
        """Its URL with the password, by which another process of the same user opens it: for no message."""
        return self._address.url.render_as_string(hide_password=False)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with told(self._address), reading(self._engine) as connection:
            yield connection

    # Writing receipts

    def submit(self, launch: Launch, verdict: ReceiptVerdict) -> Submitted:
        """Store a judged receipt with its bytes and verdict, on the disk when this returns.

        The same bytes again are harmless: `Submitted.new` is False. Raises ConflictError where the launch has
        another receipt that stands, or these bytes were purged.
        """
        (result,) = self.submit_many([(launch, verdict)])
        if isinstance(result, Submitted):
            return result
        raise result

    def submit_many(
        self, judged: Sequence[tuple[Launch, ReceiptVerdict]]
    ) -> list[Submitted | ConflictError | InputError]:
        """Store several receipts in one transaction, in their order. One that is refused leaves the others alone.

        Gives, for each, what became of it, or the error that it was refused with.
        """
        return self.take([prepared(launch, verdict) for launch, verdict in judged])

    def take(self, items: Sequence[Prepared | InputError]) -> list[Submitted | ConflictError | InputError]:
        """`submit_many` of receipts that were prepared, here or in another process; see `prepared`."""
        ready = [item for item in items if not isinstance(item, InputError)]
        with told(self._address):
            found = iter(write(self._engine, lambda item: submission_module.take(item, ready), at_once=True))
        return [item if isinstance(item, InputError) else next(found) for item in items]

    def held(self, ids: Sequence[str]) -> dict[str, Held]:
        """Those of some documents, by the digests of their bytes, that the store holds already."""
        with told(self._address), reading(self._engine, at_once=True) as connection:
            return around.held(connection, ids)

    # Reading receipts

    def document(self, receipt_id: str) -> bytes:
        """The bytes of a receipt as they came. Raises NotFound, or StoreError where they were tampered with."""
        with self._reading() as connection:
            rows = _DOCUMENT.all(connection, {"id": receipt_id})
        if not rows:
            raise NotFound(f"there is no receipt {receipt_id[:12]}; see: receipts list")
        ((codec, body),) = rows
        raw = unpack(codec, body, receipt_id[:12])
        if Document(raw, "").id != receipt_id:
            raise StoreError(f"{self.url}: the bytes of {receipt_id[:12]} were changed in the store; restore a backup")
        return raw

    def get(self, text: str) -> Parsed:
        """The one receipt that a text names, as `resolve` reads it."""
        return self.parsed(self.resolve(text))

    def parsed(self, receipt_id: str) -> Parsed:
        """The receipt of an id, kept at hand: who looks for replicates and then for noise reads the same ones.

        Raises as `document` does.
        """
        found = self._parsed.get(receipt_id)
        if found is None:
            if len(self._parsed) >= KEPT:
                self._parsed.clear()
            found = self._parsed[receipt_id] = parse_again(Document(self.document(receipt_id), receipt_id[:12]))
        return found

    def entry(self, receipt_id: str) -> Entry:
        """The row of a receipt. Raises NotFound."""
        with self._reading() as connection:
            row = connection.execute(entries().where(receipts.c.id == receipt_id)).first()
        if row is None:
            raise NotFound(f"there is no receipt {receipt_id[:12]}; see: receipts list")
        return entry(row)

    def resolve(self, text: str) -> str:
        """The id of the one receipt that a text names; see `receipts.store.names`."""
        with self._reading() as connection:
            return names.resolve(connection, text)

    def resolve_all(self, text: str) -> list[str]:
        """Ids of all receipts that a text names, at least one; see `receipts.store.names`."""
        with self._reading() as connection:
            return names.resolve_all(connection, text)

    def find(self, filters: Filters | None = None) -> Iterator[Entry]:
        """Receipts that meet the filters, in their order, read as they are asked for."""
        with self._reading() as connection:
            yield from find_module.find(connection, filters or Filters())

    # What was said of them

    def verdicts(self, receipt_id: str) -> list[StoredVerdict]:
        """Every verdict on a receipt, alone or in a comparison, oldest first."""
        with self._reading() as connection:
            return list(verdicts_module.of(connection, receipt_id))

    def record(self, verdict: Verdict) -> int:
        """Keep a verdict on stored receipts; gives its number. Raises NotFound where one of them is not stored."""
        return self._write(lambda connection: verdicts_module.record(connection, verdict, datetime.now(UTC)))

    def retract(self, receipt_id: str, reason: str) -> None:
        """Withdraw a receipt without a successor. Raises NotFound, ConflictError where it no longer stands."""
        self.entry(receipt_id)
        self._write(lambda connection: history.retract(connection, receipt_id, reason, datetime.now(UTC)))

    def purge(self, receipt_id: str, reason: str) -> None:
        """Erase a receipt for good, with every verdict that speaks of it; id, reason and time stay. Raises NotFound.

        Copies of the store made before keep what was in them.
        """
        self.entry(receipt_id)
        self._parsed.pop(receipt_id, None)
        with told(self._address):
            schema.overwrite_deleted(self._engine)
            write(self._engine, lambda item: history.purge(item, receipt_id, reason, datetime.now(UTC)))
            schema.erase(self._engine)

    def supersessions(self) -> list[Supersession]:
        """Every supersession and retraction, in the order in which they were said."""
        with self._reading() as connection:
            return list(history.all_supersessions(connection))

    def pin(self, name: str, receipt_id: str | None, note: str | None = None) -> Pin:
        """Point ``@name`` at a receipt, or, with None, take the name away. Raises NotFound, UsageError."""
        if receipt_id is not None:
            self.entry(receipt_id)
        return self._write(lambda connection: history.pin(connection, name, receipt_id, note, datetime.now(UTC)))

    def pins(self) -> dict[str, Pin]:
        """Each pin that is set, by its name without the @."""
        with self._reading() as connection:
            last = {item.name: item for item in history.all_pins(connection)}
        return {name: item for name, item in sorted(last.items()) if item.receipt is not None}

    def pin_history(self, name: str) -> list[Pin]:
        """What a pin has pointed at, oldest first."""
        with self._reading() as connection:
            return list(history.all_pins(connection, name))

    # Claims, decisions, and documents that quote receipts

    def add_claims(self, new: Sequence[NewClaim]) -> list[str]:
        """Add claims, all or none; gives the ids of those that were not there yet. Raises ConflictError, NotFound."""
        return self._write(lambda connection: published.add_claims(connection, new, datetime.now(UTC)))

    def claims(self, *, standing: bool = True) -> list[StoredClaim]:
        """Claims in the order in which they were added; those alone that stand, unless told otherwise."""
        with self._reading() as connection:
            return list(published.all_claims(connection, standing=standing))

    def claim(self, claim_id: str) -> StoredClaim:
        """One claim. Raises NotFound."""
        with self._reading() as connection:
            return published.one_claim(connection, claim_id)

    def supersede_claim(self, claim_id: str, successor: str | None, reason: str) -> None:
        """Say that a claim no longer stands. Raises NotFound, UsageError, ConflictError where that was said already."""
        self._write(
            lambda connection: published.supersede_claim(connection, claim_id, successor, reason, datetime.now(UTC))
        )

    def record_claims(self, verdicts: Sequence[ClaimVerdict]) -> list[int]:
        """Keep verdicts on claims with the receipts that they stood on, all or none; gives their numbers."""
        now = datetime.now(UTC)
        return self._write(lambda connection: [published.record_claim(connection, item, now) for item in verdicts])

    def claim_verdicts(self, claim_id: str) -> list[StoredClaimVerdict]:
        """Every verdict on a claim, oldest first."""
        with self._reading() as connection:
            return list(published.claim_verdicts_of(connection, claim_id))

    def last_claim_verdict(self, claim_id: str) -> StoredClaimVerdict | None:
        """The last verdict on a claim, or None."""
        with self._reading() as connection:
            return published.last_claim_verdict(connection, claim_id)

    def claims_on(self, receipt_id: str) -> list[str]:
        """Ids of claims whose last verdict stood on a receipt."""
        with self._reading() as connection:
            return published.claims_on(connection, receipt_id)

    def decide(self, receipt_id: str, decision: str, reason: str) -> Decision:
        """Write down what was decided on a receipt: ship, hold or drop. Raises NotFound, UsageError."""
        self.entry(receipt_id)
        return self._write(
            lambda connection: published.decide(connection, receipt_id, decision, reason, datetime.now(UTC))
        )

    def decisions(self, receipt_ids: Sequence[str] | None = None) -> list[Decision]:
        """Decisions on these receipts, or on all, oldest first; the last one of a receipt counts."""
        with self._reading() as connection:
            return list(published.decisions_on(connection, receipt_ids))

    def quote(self, document: str, found: Sequence[tuple[str, str | None]]) -> None:
        """Write down which receipts a document quotes, each as id and what it says; replaces its earlier reading."""
        self._write(lambda connection: published.quote(connection, document, found, datetime.now(UTC)))

    def quotes(self, receipt_id: str) -> list[Quote]:
        """Where documents quote a receipt, by the last reading of each document."""
        with self._reading() as connection:
            return list(published.quotes_of(connection, receipt_id))

    def chronicle(self, since: datetime, until: datetime) -> Chronicle:
        """What was decided, published and superseded from one moment to another, the latter left out."""
        with self._reading() as connection:
            return chronicle_module.chronicle(connection, since, until)

    def quoting(self, receipt_ids: Sequence[str], until: datetime) -> list[Quote]:
        """Where documents quote some receipts, by the last reading of each before a moment."""
        with self._reading() as connection:
            return chronicle_module.quoting(connection, receipt_ids, until)

    # For rules and comparisons

    def facts(self, group: Parsed | Sequence[Parsed]) -> Facts:
        """Facts for judging receipts, stored or not; see `receipts.store.facts`."""
        with self._reading() as connection:
            return facts_module.facts(connection, [group] if isinstance(group, Parsed) else group)

    def facts_of_new(self, group: Sequence[Parsed]) -> list[Facts]:
        """Facts for judging receipts that are about to be submitted, one for each; fewer questions than `facts`."""
        with told(self._address), reading(self._engine, at_once=True) as connection:
            return facts_module.facts_of_new(connection, group)

    def failed_before(self, parsed: Parsed) -> list[EarlierFailure]:
        """Earlier launches of this receipt's signature that failed, the newest first."""
        with self._reading() as connection:
            return signatures_module.failed_before(connection, parsed)

    def same_signature(self, signature: Signature) -> tuple[list[Known], list[Known]]:
        """Launches of a signature that stand: those that worked and those that failed, the newest first."""
        with self._reading() as connection:
            return signatures_module.same(connection, signature)

    def dominating(self, signature: Signature) -> tuple[list[Known], list[Known]]:
        """Launches that differ in pressure alone: larger ones that worked and smaller ones that ran out of memory."""
        with self._reading() as connection:
            larger = signatures_module.larger_worked(connection, signature)
            return larger, signatures_module.smaller_failed(connection, signature)

    def reached(self, lane: str, since: datetime | None = None, until: datetime | None = None) -> list[Reached]:
        """Shapes that measured training of a lane sustained or ran out of memory at, whole or in part unstated."""
        with self._reading() as connection:
            return shapes_module.reached(connection, lane, since, until)

    def failed_alike(self, ids: Sequence[str]) -> list[Alike]:
        """Failed launches that share a signature with one of these, by signature, the oldest first."""
        with self._reading() as connection:
            return alike_module.failed_alike(connection, ids)

    def replicate_candidates(self, parsed: Parsed, ran: Configuration | None = None) -> list[str]:
        """Ids of stored launches that may differ from this one in no axis, newest first; the caller compares them.

        With ``ran``, its configuration, they are looked up where the axis index holds its lane.
        """
        with self._reading() as connection:
            return facts_module.candidates(connection, parsed, ran)

    def neighbours(
        self, parsed: Parsed, ran: Configuration, axis: str | None = None, limit: int = near.MOST_VALUES
    ) -> list[Neighbour]:
        """Stored launches that may differ in one axis from a receipt, stored or not, which ran this configuration.

        By axis, the newest first, at most ``limit`` configurations an axis; the caller compares them.
        """
        with self._reading() as connection:
            return near.neighbours(connection, parsed, ran, axis, limit)

    def mixtures(
        self, a: Configuration, b: Configuration, differing: Sequence[str], kind: str, *, beyond: bool = False
    ) -> list[Between]:
        """Stored configurations that have each differing axis as one of the two has it; see `receipts.store.between`.

        ``beyond``: those that have one of these axes as neither has it.
        """
        with self._reading() as connection:
            look = between.detours if beyond else between.mixtures
            return look(connection, a, b, differing, kind)

    def holds_lane(self, ran: Configuration) -> bool:
        """Whether the axis index holds every receipt of a configuration's lane, as it is read now."""
        with self._reading() as connection:
            return near.holds_lane(connection, ran.lane, ran.catalogue)

    @property
    def id(self) -> str:
        """The store's own id, a UUID."""
        with self._reading() as connection:
            found: str = connection.execute(select(stores.c.id)).scalar_one()
            return found

    @contextmanager
    def inspect(self) -> Iterator[Inspection]:
        """Everything that it holds, in one state of it, for an audit."""
        from receipts.store.inspection import Inspection, snapshot

        with told(self._address), snapshot(self._engine) as connection:
            yield Inspection(connection)

    def check(self) -> schema.Check:
        """Schema, triggers, and what the engine says of its own files; see `receipts.store.schema`."""
        return schema.check(self._address)

    def seal(self) -> list[Seal]:
        """Seal what no seal holds yet; gives the seals written. Other writers wait for a second or two at a time."""
        made: list[Seal] = []
        while True:
            some = self._write(lambda connection: seal_module.seal(connection, datetime.now(UTC)), alone=True)
            made += some
            # What comes while this is written is for the next one: who waited for silence might wait for ever.
            if not any(item.held >= seal_module.MOST for item in some):
                return made

    def _write(self, work: Callable[[Connection], T], *, alone: bool = False) -> T:
        def locked(connection: Connection) -> T:
            submission_module.lock(connection, alone=alone)  # no seal may pass by a row that is not seen yet
            return work(connection)

        with told(self._address):
            return write(self._engine, locked)


def prepared(launch: Launch, verdict: ReceiptVerdict) -> Prepared | InputError:
    """A judged receipt as `Store.take` writes it; or why no store can hold it."""
    try:
        return submission_module.prepare(launch, verdict)
    except InputError as error:
        return error


def open_store(url: str | None = None, *, create: bool = True) -> Store:
    """Open the store of a URL or path; None is ``RECEIPTS_STORE``, else the user's own.

    A store that does not exist is made, unless ``create`` is False. Raises UsageError for a URL of another kind,
    SchemaTooOld, and StoreError that says what to do.
    """
    place = address(url)
    if place.file is not None and not place.file.exists():
        _prepare_folder(place, create)
    engine = connect(place)
    try:
        with told(place):
            schema.ensure(engine, place, create=create)
    except BaseException:
        engine.dispose()
        raise
    return Store(engine, place)


def _prepare_folder(place: Address, create: bool) -> None:
    assert place.file is not None
    if not create:
        raise StoreError(f"{place}: there is no store yet; make one with: receipts submit FILE")
    folder = place.file.parent
    try:
        if place.own:
            folder.mkdir(parents=True, exist_ok=True)
        if not folder.is_dir():
            raise StoreError(f"{place}: there is no folder {folder}; make it with: mkdir -p {folder}")
    except OSError as error:
        raise StoreError(f"{place}: the folder cannot be made: {error.strerror}; name a store with --store") from None
